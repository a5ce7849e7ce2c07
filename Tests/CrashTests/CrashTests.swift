import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Synchronization
import Testing

/// kill -9 under load: everything acknowledged is there, once, in one order without gaps.
@Suite(.serialized) struct CrashTests {
    static let crashCount = Int(ProcessInfo.processInfo.environment["ROOST_CRASHES"] ?? "") ?? 200

    @Test("I1 I3 I4 after each kill -9: 0 acked lost, 0 twice, seq without gaps", .timeLimit(.minutes(15)))
    func crashes() async throws {
        let seed = UInt64(ProcessInfo.processInfo.environment["ROOST_SEED"] ?? "") ?? UInt64.random(in: 1...UInt64(Int.max))
        print("Crash test: seed \(seed), \(Self.crashCount) crashes.")
        var random = SeededGenerator(seed: seed)
        let directory = TemporaryDirectory.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let senders = ["ann", "bob", "cat", "dan"].map { Sender(user: UserID($0)) }
        try await prepare(directory, members: senders.map(\.user))

        let keys = await TokenKeys(secret: try SecretFile(directory: directory).read())
        for crash in 1...Self.crashCount {
            if Int.random(in: 0..<10, using: &random) == 0 {
                // In the middle of a start: recovery of the WAL, the first reads. The tables are current; PowerCutTests cuts upgrades.
                try await ServerProcess.startAndKill(
                    directory: directory, after: .milliseconds(.random(in: 1...120, using: &random)))
            }
            let server = try await ServerProcess.start(directory: directory)
            let moment = Duration.milliseconds(.random(in: 5...120, using: &random))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for sender in senders {
                    let token = try await keys.sign(
                        .init(user: sender.user, role: .user, expiresAt: Date(timeIntervalSinceNow: 600)))
                    group.addTask { await sender.sendUntilCut(port: server.port, token: token) }
                }
                // The moment of the crash is random; nothing waits on it.
                // A test that exceeds its time ends too: the senders continue until their server is gone.
                try? await Task.sleep(for: moment)
                try await server.killNow()
                try await group.waitForAll()
                try Task.checkCancellation()
            }
            if crash.isMultiple(of: 20) { try await check(directory, senders, keys, crash: crash, seed: seed) }
        }
        let total = try await check(directory, senders, keys, crash: Self.crashCount, seed: seed)
        print("Crash test: \(Self.crashCount) crashes, \(total.acked) acked, \(total.stored) stored, 0 lost, 0 twice, 0 gaps.")
        #expect(total.acked > 0)
    }

    private func prepare(_ directory: URL, members: [UserID]) async throws {
        let server = try await ServerProcess.start(directory: directory)
        let keys = await TokenKeys(secret: try SecretFile(directory: directory).read())
        for user in members {
            let token = try await keys.sign(.init(user: user, role: .user, expiresAt: Date(timeIntervalSinceNow: 600)))
            let socket = try await RawSocket.connect(port: server.port, token: token)
            if user == members.first { try await socket.call(CreateChannel(channel: "general")) }
            try await socket.call(JoinChannel(channel: "general"))
            await socket.close()
        }
        #expect(try await server.stop() == 0)
    }

    /// Reads the whole channel and compares it with the senders' state.
    @discardableResult
    private func check(
        _ directory: URL, _ senders: [Sender], _ keys: TokenKeys, crash: Int, seed: UInt64
    ) async throws
        -> (acked: Int, stored: Int)
    {
        let server = try await ServerProcess.start(directory: directory)
        let token = try await keys.sign(.init(user: "ann", role: .user, expiresAt: Date(timeIntervalSinceNow: 600)))
        let socket = try await RawSocket.connect(port: server.port, token: token)
        var stored: [Message] = []
        while true {
            let page = try await socket.call(ListMessages(channel: "general", after: stored.last?.seq ?? 0, limit: 100))
            stored += page.messages
            if !page.hasNewer { break }
        }
        let channel = try await socket.call(GetChannel(channel: "general")).channel
        await socket.close()
        #expect(try await server.stop() == 0)

        var problems: [String] = []
        // After the members joined, only messages take a seq: they are consecutive up to the channel's own.
        if let first = stored.first?.seq {
            if stored.map(\.seq) != Array(first..<first + Int64(stored.count)) { problems.append("gaps in seq") }
            if channel.counters.seq != stored.last?.seq { problems.append("the channel's seq isn't that of its newest message") }
        }
        if channel.counters.messageCount != stored.count {
            problems.append("messageCount \(channel.counters.messageCount) ≠ \(stored.count)")
        }
        let bySender = Dictionary(grouping: stored, by: \.sender)
        var acked = 0
        for sender in senders {
            let (acknowledged, sent) = sender.history
            acked += acknowledged.count
            let own = Dictionary(grouping: bySender[sender.user] ?? [], by: \.clientId)
            let twice = own.filter { $0.value.count > 1 }.keys
            if !twice.isEmpty { problems.append("\(sender.user): stored twice: \(twice)") }
            let lost = acknowledged.filter { own[$0.key]?.first?.seq != $0.value }.keys
            if !lost.isEmpty { problems.append("\(sender.user): acked and lost or moved: \(lost.sorted().prefix(5))") }
            let unknown = own.keys.filter { !sent.contains($0) }
            if !unknown.isEmpty { problems.append("\(sender.user): stored and never sent: \(unknown)") }
        }
        #expect(problems == [], "after crash \(crash) of seed \(seed)")
        return (acked, stored.count)
    }
}

/// A client that sends numbered messages, several at a time, and repeats those not acknowledged before the connection broke.
private final class Sender: Sendable {
    private struct State {
        var acknowledged: [ClientID: Seq] = [:]
        var sent: Set<ClientID> = []
        var unacknowledged: [ClientID] = []
        var lastNumber = 0
    }
    let user: UserID
    private let state = Mutex(State())
    private static let inFlightMax = 8

    init(user: UserID) { self.user = user }

    var history: (acknowledged: [ClientID: Seq], sent: Set<ClientID>) { state.withLock { ($0.acknowledged, $0.sent) } }

    func sendUntilCut(port: Int, token: String) async {
        guard let socket = try? await RawSocket.connect(port: port, token: token) else { return }
        var inFlight: [Int64: ClientID] = [:]
        var again = state.withLock { $0.unacknowledged }
        while true {
            while inFlight.count < Self.inFlightMax {
                let clientId = again.isEmpty ? new() : again.removeFirst()
                guard
                    let call = try? await socket.post(
                        SendMessage(channel: "general", clientId: clientId, text: "from \(user): \(clientId)"))
                else { return }
                inFlight[call] = clientId
            }
            guard let text = await socket.nextText() else { return }
            guard let reply = try? JSONDecoder().decode(Reply.self, from: Data(text.utf8)), let call = reply.reply,
                let clientId = inFlight.removeValue(forKey: call), let message = reply.result
            else { continue }
            state.withLock { state in
                state.acknowledged[clientId] = message.seq
                state.unacknowledged.removeAll { $0 == clientId }
            }
        }
    }

    private struct Reply: Decodable {
        let reply: Int64?
        let result: Message?
    }

    private func new() -> ClientID {
        state.withLock { state in
            state.lastNumber += 1
            let clientId = ClientID("\(user)-\(state.lastNumber)")
            state.sent.insert(clientId)
            state.unacknowledged.append(clientId)
            return clientId
        }
    }
}
