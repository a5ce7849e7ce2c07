import Foundation
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// A socket as URLSession has it, of a server in the process: it sends texts back, answers pings, and says goodbye when it is told to.
private final class StandInSocket: MessageSocket {
    private struct State {
        var sent: [String] = []
        var isAbandoned = false
        var hasSaidGoodbye = false
    }

    private let state = Mutex(State())
    private let opening: Result<Void, any Error>
    private let (echoes, echo) = AsyncStream.makeStream(of: Result<String, any Error>.self)
    private let answersPings: Bool
    /// The answer to a ping that isn't answered.
    private let abandonment = CallbackAnswer()

    init(opening: Result<Void, any Error> = .success(()), answersPings: Bool = true) {
        self.opening = opening
        self.answersPings = answersPings
    }

    var sent: [String] { state.withLock { $0.sent } }
    var isAbandoned: Bool { state.withLock { $0.isAbandoned } }
    var hasSaidGoodbye: Bool { state.withLock { $0.hasSaidGoodbye } }

    func open() async throws { try opening.get() }

    func send(_ text: String) async throws {
        state.withLock { $0.sent.append(text) }
        switch text {
        case "bye": echo.yield(.failure(SocketClosed(code: 4001, reason: "the token has expired")))
        case "break": echo.yield(.failure(URLError(.networkConnectionLost)))
        case "refuse": throw URLError(.networkConnectionLost)
        default: echo.yield(.success(text))
        }
    }

    func receive() async throws -> String {
        var iterator = echoes.makeAsyncIterator()
        guard let next = await iterator.next() else { throw SocketClosed(code: nil, reason: "abandoned") }
        return try next.get()
    }

    func ping() async throws {
        guard !answersPings else { return }
        try await abandonment.wait()
    }

    func close() {
        state.withLock { $0.hasSaidGoodbye = true }
        echo.finish()
    }

    func abandon() {
        state.withLock { $0.isAbandoned = true }
        abandonment.end(.failure(URLError(.cancelled)))
        echo.finish()
    }
}

@Suite("Transports: what isn't URLSession's own", .timeLimit(.minutes(5)))
struct MessageSocketTests {
    /// Runs a socket with these commands, and closes it when all of some events were told, unless it ends before. Returns what was told.
    private func events(
        _ socket: StandInSocket, _ commands: [TransportCommand], closesAfter awaited: [TransportEvent]? = nil
    ) async -> [TransportEvent] {
        let (stream, outgoing) = AsyncStream.makeStream(of: TransportCommand.self)
        let told = Mutex<[TransportEvent]>([])
        for command in commands { outgoing.yield(command) }
        await socket.run(stream) { event in
            let all = told.withLock { told in
                told.append(event)
                return told
            }
            if let awaited, awaited.allSatisfy(all.contains) { outgoing.finish() }
        }
        return told.withLock { $0 }
    }

    private func message(_ text: String) -> TransportEvent { .message(Array(text.utf8)) }
    private func command(_ text: String) -> TransportCommand { .message(Array(text.utf8)) }

    @Test("Messages come back whole and in order, a ping is answered, and the end is told once")
    func echo() async {
        let socket = StandInSocket()
        let long = String(repeating: "hello ", count: 10_000)
        let seen = await events(
            socket, [command("hi"), command(long), .ping], closesAfter: [message("hi"), message(long), .heard])
        let end = TransportEvent.closed(code: nil, reason: "closed by the client")
        // The answer to the ping comes when it comes.
        #expect(seen.filter { $0 != .heard } == [.opened, message("hi"), message(long), end])
        #expect(seen.count { $0 == .heard } == 1)
        #expect(socket.hasSaidGoodbye && socket.isAbandoned)
    }

    @Test("A server's goodbye is told with its code, and nothing is told after it")
    func goodbye() async {
        let socket = StandInSocket(answersPings: false)
        let seen = await events(socket, [command("hi"), .ping, command("bye")])
        #expect(seen == [.opened, message("hi"), .closed(code: 4001, reason: "the token has expired")])
        #expect(!socket.hasSaidGoodbye && socket.isAbandoned)
    }

    @Test("Where a connection can't be made, the end is all that is told, with where to look")
    func refused() async {
        let causes: [(URLError.Code, WaitingReason.Cause)] = [
            (.cannotConnectToHost, .network), (.notConnectedToInternet, .network), (.serverCertificateUntrusted, .certificate),
            (.secureConnectionFailed, .certificate), (.badServerResponse, .upgrade),
        ]
        for (code, cause) in causes {
            let seen = await events(StandInSocket(opening: .failure(URLError(code))), [])
            guard case .closed(nil, _, cause) = seen.first, seen.count == 1 else {
                Issue.record("\(code): \(seen)")
                continue
            }
        }
    }

    @Test("A connection that breaks while reading or writing is one that the network lost", arguments: ["break", "refuse"])
    func broken(text: String) async {
        let seen = await events(StandInSocket(), [command(text)])
        guard case .closed(nil, _, .network) = seen.last, seen.count == 2 else {
            Issue.record("\(seen)")
            return
        }
    }

    @Test("A message that needs several frames ends the connection, and says which transport sends it")
    func tooLong() async {
        let socket = StandInSocket()
        let seen = await events(socket, [command(String(repeating: "a", count: Limits.frameSizeBytes + 1))])
        guard case .closed(nil, let reason, _) = seen.last else {
            Issue.record("\(seen)")
            return
        }
        #expect(reason.contains("65537 bytes") && reason.contains("WebSocketTransport"))
        #expect(socket.sent == [])
    }

    @Test("Cancelling ends the connection")
    func cancelled() async {
        let socket = StandInSocket(answersPings: false)
        let task = Task { await events(socket, [.ping]) }
        task.cancel()
        let seen = await task.value
        guard case .closed = seen.last else {
            Issue.record("\(seen)")
            return
        }
        #expect(socket.isAbandoned)
    }

    @Test("What a system calls back with is told once, whether somebody waits already or not")
    func opening() async throws {
        let early = CallbackAnswer()
        early.end(.success(()))
        early.end(.failure(URLError(.cancelled)))
        try await early.wait()
        let late = CallbackAnswer()
        let waiting = Task { try await late.wait() }
        await letOthersRun(1)
        late.end(.failure(URLError(.timedOut)))
        await #expect(throws: URLError(.timedOut)) { try await waiting.value }
        await #expect(throws: URLError(.timedOut)) { try await late.wait() }
    }

    @Test("An address is one of URLSession's, with its scheme, port and path")
    func addresses() throws {
        let given = ["https://chat.example", "http://127.0.0.1:8080", "wss://[::1]:9/chat%20room", "ws://chat.example/"]
        let urls = try given.map { try Address(try #require(URL(string: $0))).url?.absoluteString }
        #expect(
            urls == [
                "wss://chat.example:443/v1/socket", "ws://127.0.0.1:8080/v1/socket", "wss://[::1]:9/chat%20room",
                "ws://chat.example:80/v1/socket",
            ])
    }
}
