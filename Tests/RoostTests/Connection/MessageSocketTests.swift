import Foundation
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// What is specific to `URLSessionTransport`, except for the calls of URLSession: the rest is in ``TransportConformanceTests``.
@Suite("Transports: what isn't URLSession's own", .timeLimit(.minutes(5)))
struct MessageSocketTests {
    /// Runs a socket with these commands until it ends. Returns its events.
    private func events(_ socket: StandInSocket, _ commands: [TransportCommand]) async -> [TransportEvent] {
        let (stream, outgoing) = AsyncStream.makeStream(of: TransportCommand.self)
        let received = Mutex<[TransportEvent]>([])
        for command in commands { outgoing.yield(command) }
        await socket.run(stream) { event in received.withLock { $0.append(event) } }
        return received.withLock { $0 }
    }

    @Test("if URLSession can't connect, its error says where to look")
    func refused() async {
        let causes: [(URLError.Code, WaitingReason.Cause)] = [
            (.cannotConnectToHost, .network), (.notConnectedToInternet, .network), (.serverCertificateUntrusted, .certificate),
            (.secureConnectionFailed, .certificate), (.badServerResponse, .upgrade),
        ]
        for (code, cause) in causes {
            let seen = await events(StandInSocket(openingError: URLError(code)), [])
            guard case .closed(nil, _, cause) = seen.first, seen.count == 1 else {
                Issue.record("\(code): \(seen)")
                continue
            }
        }
    }

    @Test("a connection that breaks while writing is reported as lost by the network")
    func broken() async {
        let seen = await events(StandInSocket(), [.message(Array("refuse".utf8))])
        guard case .closed(nil, _, .network) = seen.last, seen.count == 2 else {
            Issue.record("\(seen)")
            return
        }
    }

    @Test("a system's callback is delivered once, whether a task waits already or not")
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

    @Test("a wait for a system that doesn't call back ends with its task", arguments: [true, false])
    func silent(isCancelledBefore: Bool) async {
        let answer = CallbackAnswer()
        let waiting = Task { try await answer.wait() }
        if !isCancelledBefore { await letOthersRun(10) }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    @Test("an address is one of URLSession's, with its scheme, port and path")
    func addresses() throws {
        let given = ["https://chat.example", "http://127.0.0.1:8080", "wss://[::1]:9/chat%20room", "ws://chat.example/"]
        let urls = try given.map { try Address(try #require(URL(string: $0))).url?.absoluteString }
        #expect(
            urls == [
                "wss://chat.example:443/v1/socket", "ws://127.0.0.1:8080/v1/socket", "wss://[::1]:9/chat%20room",
                "ws://chat.example:80/v1/socket",
            ])
    }

    @Test(
        "a port that no server can have is refused, however long its number is",
        arguments: [
            "http://127.0.0.1:0", "http://127.0.0.1:65536", "https://chat.example:100000/v1/socket",
            "https://chat.example:18446744073709551617", "ws://[::1]:18446744073709551617/chat",
        ])
    func ports(text: String) throws {
        let url = try #require(URL(string: text))
        #expect(throws: RoostError.invalidArgument("url", "must have a port from 1 to 65535")) { try Address(url) }
    }
}
