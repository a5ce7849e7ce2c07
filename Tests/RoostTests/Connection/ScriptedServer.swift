import Foundation
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// A server that answers calls as a test defines, and sends what the test sends through it.
actor ScriptedServer: Transport {
    /// A call that arrived.
    struct Call: Decodable, Sendable {
        var call: Int64
        var operation: String
        var with: JSONValue
    }

    /// The outcome of a call.
    indirect enum Answer: Sendable {
        case result(any Encodable & Sendable)
        case error(RoostError)
        /// No answer.
        case nothing
        /// The connection breaks.
        case lost
        /// It is sent once a sequence has ended, together with all later ones.
        case held(until: AsyncStream<Void>, Answer)
    }

    private let welcome: WelcomeFrame
    private let answer: @Sendable (Call) -> Answer
    private(set) var calls: [Call] = []
    /// What `stream.resume` answers.
    private var resumption = ScriptedServer.nothingMissed
    private var receive: (@Sendable (TransportEvent) async -> Void)?
    private var connectionCount = 0

    /// Answers to calls other than `stream.resume`.
    ///
    /// - Parameters:
    ///   - name: The server's name: whose data it has.
    ///   - epoch: The history of these data.
    init(named name: String = "server", epoch: String = "first", answer: @escaping @Sendable (Call) -> Answer) {
        welcome = WelcomeFrame(
            welcome: .init(
                user: "ann", role: .user, connection: 1, server: name, epoch: epoch, version: "0.1.0",
                now: Timestamp(milliseconds: 0), tokenExpiresAt: Timestamp(milliseconds: 0), pingIntervalSeconds: 30))
        self.answer = answer
    }

    /// Adds channels to each resume from now on.
    func resume(with channels: [Changes]) { resumption.channels = channels }

    func operations() -> [String] { calls.map(\.operation) }

    /// Sends an event or a signal to the current connection.
    func send(_ frame: some Encodable & Sendable) async throws { await receive?(.message(try JSONWriter.bytes(of: frame))) }

    func run(
        url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
    ) async {
        self.receive = receive
        connectionCount += 1
        let number = connectionCount
        await receive(.opened)
        let end = await answerCalls(outgoing)
        // It would keep the client.
        if number == connectionCount { self.receive = nil }
        await receive(end)
    }

    /// Answers calls as long as the connection lasts. Returns its end.
    private func answerCalls(_ outgoing: AsyncStream<TransportCommand>) async -> TransportEvent {
        for await command in outgoing {
            guard case .message(let bytes) = command else { continue }
            guard let call = try? JSONDecoder().decode(Call.self, from: Data(bytes)) else {
                await deliver(welcome)
                continue
            }
            calls.append(call)
            var outcome: Answer = call.operation == "stream.resume" ? .result(resumption) : answer(call)
            if case .held(let gate, let held) = outcome {
                for await _ in gate {}
                outcome = held
            }
            switch outcome {
            case .result(let result): await deliver(Reply(reply: call.call, result: result))
            case .error(let error): await deliver(Refusal(reply: call.call, error: error))
            case .nothing, .held: break
            case .lost: return .closed(code: 1006, reason: "lost")
            }
        }
        return .closed(code: nil, reason: "")
    }

    private func deliver(_ frame: some Encodable) async {
        if let bytes = try? JSONWriter.bytes(of: frame) { await receive?(.message(bytes)) }
    }

    private static let nothingMissed = Resumption(
        user: Changes(stream: .user("ann"), rows: Rows(), seq: 0, hasMore: false), channels: [], hasMore: false)

    private struct Reply: Encodable {
        var reply: Int64
        var result: any Encodable & Sendable

        private enum CodingKeys: String, CodingKey { case reply, result }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(reply, forKey: .reply)
            try container.encode(result, forKey: .result)
        }
    }

    private struct Refusal: Encodable {
        var reply: Int64
        var error: RoostError
    }
}

/// Counts the requests, to choose among several answers.
final class Turn: Sendable {
    private let count = Mutex(0)

    /// 0 the first time, then 1.
    func next() -> Int {
        count.withLock { count in
            defer { count += 1 }
            return count
        }
    }
}

extension ScriptedServer {
    /// A chat of ann's, connected to this server, with nothing on disk unless a test says where.
    nonisolated func connected(
        _ clock: any Clock<Duration> = ContinuousClock(), storage: Chat.Storage = .inMemory
    ) async throws -> Chat {
        let configuration = Chat.Configuration(
            storage: storage, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: self, clock: clock)
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        return chat
    }

    /// The same, in the channel `general` at seq 3, which is stored. A list that is made before that asks again.
    nonisolated func connectedInGeneral(
        _ clock: any Clock<Duration> = ContinuousClock(), storage: Chat.Storage = .inMemory
    ) async throws -> Chat {
        let chat = try await connected(clock, storage: storage)
        try await send(
            Event(
                kind: .memberJoined, stream: .user("ann"), seq: 1, actor: "ann",
                rows: Rows(
                    channel: channel(counters(3, messages: 0)), [membership(readSeq: 3, readCount: 0, channelSeq: 3, userSeq: 1)])))
        let store = try await chat.driver.files().store
        try await until { try await store.read { try $0.cursor(of: "general") } != nil }
        return chat
    }
}
