import Foundation
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// What ``Transport/run(url:outgoing:receive:)`` promises, with the same cases for each transport.
@Suite("Transports: what each of them promises", .timeLimit(.minutes(5)))
struct TransportConformanceTests {
    /// A connection, its commands, and its events.
    private struct Connection {
        let outgoing: AsyncStream<TransportCommand>.Continuation
        let task: Task<[TransportEvent], Never>
        let received: Received

        /// All of its events, once it has ended.
        var events: [TransportEvent] { get async { await task.value } }
    }

    private final class Received: Sendable {
        private let events = Mutex<[TransportEvent]>([])
        var all: [TransportEvent] { events.withLock { $0 } }
        func add(_ event: TransportEvent) { events.withLock { $0.append(event) } }
    }

    /// Starts a connection.
    ///
    /// - Parameter receive: What the receiver does with an event before it returns.
    private func connect(
        _ peer: any TransportPeer, _ commands: [TransportCommand] = [],
        receive: @escaping @Sendable (TransportEvent) async -> Void = { _ in }
    ) -> Connection {
        let (stream, outgoing) = AsyncStream.makeStream(of: TransportCommand.self)
        for command in commands { outgoing.yield(command) }
        let received = Received()
        let task = Task {
            await peer.run(stream) { event in
                received.add(event)
                await receive(event)
            }
            return received.all
        }
        return Connection(outgoing: outgoing, task: task, received: received)
    }

    private func message(_ text: String) -> TransportEvent { .message(Array(text.utf8)) }
    private func command(_ text: String) -> TransportCommand { .message(Array(text.utf8)) }
    private let closedByClient = TransportEvent.closed(code: nil, reason: "closed by the client")

    /// Whether the opening is reported first and the end last, each once; or the end alone.
    private func isWhole(_ events: [TransportEvent]) -> Bool {
        let openings = events.indices.filter { events[$0] == .opened }
        let ends = events.indices.filter { if case .closed = events[$0] { true } else { false } }
        return ends == [events.count - 1] && (openings == [0] || openings.isEmpty && events.count == 1)
    }

    @Test(
        "messages go both ways in order, between the opening and the end, each of which is reported once",
        arguments: TestedTransport.allCases)
    func order(transport: TestedTransport) async throws {
        let peer = try await transport.peer()
        let texts = (0..<200).map { "message \($0)" }
        let connection = connect(peer, texts.map(command))
        try await until { connection.received.all.count == texts.count + 1 }
        connection.outgoing.finish()
        #expect(await connection.events == [.opened] + texts.map(message) + [closedByClient])
        #expect(peer.log.texts == texts)
        try await peer.stop()
    }

    @Test("a message of 1 MiB arrives whole, both ways", arguments: TestedTransport.allCases)
    func long(transport: TestedTransport) async throws {
        let peer = try await transport.peer()
        let text = WebSocketPeer.longText(1)
        let connection = connect(peer, [command(text)])
        try await until { connection.received.all.count == 2 }
        connection.outgoing.finish()
        // Not shown on failure: the message would fill the log.
        let isAsExpected = await connection.events == [.opened, message(text), closedByClient] && peer.log.texts == [text]
        #expect(isAsExpected)
        try await peer.stop()
    }

    @Test("an answered ping is a sign of life; an unanswered one holds nothing up", arguments: TestedTransport.allCases)
    func pings(transport: TestedTransport) async throws {
        for (behaviour, signs) in [(PeerBehaviour.answers, 1), (.ignoresPings, 0)] {
            let peer = try await transport.peer(behaviour)
            let connection = connect(peer, [.ping, command("hi")])
            // The answer to the ping may arrive at any time.
            try await until { connection.received.all.count == 2 + signs }
            connection.outgoing.finish()
            let events = await connection.events
            #expect(events.filter { $0 != .heard } == [.opened, message("hi"), closedByClient])
            #expect(events.count { $0 == .heard } == signs)
            try await peer.stop()
        }
    }

    @Test("if no connection can be made, only the end is reported, with where to look", arguments: TestedTransport.allCases)
    func refused(transport: TestedTransport) async throws {
        for (behaviour, cause) in [(PeerBehaviour.refuses, WaitingReason.Cause.upgrade), (.absent, .network)] {
            let peer = try await transport.peer(behaviour)
            let events = await connect(peer, [command("hi")]).events
            guard case .closed(nil, _, cause) = events.first, events.count == 1 else {
                Issue.record("\(behaviour): \(events)")
                continue
            }
            #expect(peer.log.texts == [])
            // A connection on which a WebSocket is refused isn't left open. URLSession closes its own.
            if case (.refuses, .webSocket) = (behaviour, transport) { try await until { peer.log.isLeft } }
            try await peer.stop()
        }
    }

    @Test("a server's goodbye is reported with its code and reason, even while a ping waits", arguments: TestedTransport.allCases)
    func goodbye(transport: TestedTransport) async throws {
        let peer = try await transport.peer(.ignoresPings)
        let connection = connect(peer, [command("hi"), .ping, command("bye")])
        #expect(await connection.events == [.opened, message("hi"), .closed(code: 4001, reason: "the token has expired")])
        try await until { peer.log.isLeft }
        try await peer.stop()
    }

    @Test("a connection that breaks is reported as lost by the network", arguments: TestedTransport.allCases)
    func broken(transport: TestedTransport) async throws {
        let peer = try await transport.peer()
        let events = await connect(peer, [command("hi"), command("break")]).events
        #expect(isWhole(events) && events.prefix(2) == [.opened, message("hi")] && events.count == 3)
        guard case .closed(nil, _, .network) = events.last else {
            Issue.record("\(events)")
            return
        }
        try await peer.stop()
    }

    @Test("once there are no more commands, the client says goodbye and ends the connection", arguments: TestedTransport.allCases)
    func finished(transport: TestedTransport) async throws {
        let peer = try await transport.peer(.ignoresPings)
        let connection = connect(peer, [.ping, command("last")])
        // Unread bytes when a socket is closed take written ones with them.
        try await until { connection.received.all.count == 2 }
        connection.outgoing.finish()
        let events = await connection.events
        #expect(isWhole(events) && events.first == .opened && events.last == closedByClient)
        try await until { peer.log.isLeft }
        #expect(peer.log.texts == ["last"] && peer.log.hasHeardGoodbye)
        try await peer.stop()
    }

    @Test(
        "cancelling ends the connection, before it begins, while it is opened, and once it is open",
        arguments: TestedTransport.allCases)
    func cancelled(transport: TestedTransport) async throws {
        let peers = [try await transport.peer(.silent), try await transport.peer(.silent), try await transport.peer()]
        let early = connect(peers[0])
        early.task.cancel()
        #expect(await early.events.count == 1 && isWhole(early.received.all))

        let opening = connect(peers[1])
        try await until { peers[1].log.isReached }
        opening.task.cancel()
        #expect(await opening.events.count == 1 && isWhole(opening.received.all))
        try await until { peers[1].log.isLeft }

        let open = connect(peers[2], [command("hi")])
        try await until { open.received.all.count == 2 }
        open.task.cancel()
        let events = await open.events
        #expect(isWhole(events) && events.prefix(2) == [.opened, message("hi")] && events.count == 3)
        try await until { peers[2].log.isLeft }
        for peer in peers { try await peer.stop() }
    }

    @Test(
        "while the receiver is busy, no more events are delivered, and the server can't continue to send",
        arguments: TestedTransport.allCases)
    func backPressure(transport: TestedTransport) async throws {
        let peer = try await transport.peer()
        let (busy, free) = AsyncStream.makeStream(of: Void.self)
        let connection = connect(peer, [command("flood")]) { event in
            if case .message = event { for await _ in busy {} }
        }
        try await until { connection.received.all.count == 2 && peer.log.hasFlooded }
        await letOthersRun(20_000)
        #expect(connection.received.all.count == 2)
        // Some may be in the buffers of the sockets, and of the transport.
        #expect(peer.log.takenCount < WebSocketPeer.floodCount / 2)
        free.finish()
        try await until { connection.received.all.count == WebSocketPeer.floodCount + 1 }
        connection.outgoing.finish()
        let events = await connection.events
        let isInOrder =
            events.dropFirst().dropLast() == (0..<WebSocketPeer.floodCount).map { message(WebSocketPeer.longText($0)) }[...]
        #expect(isInOrder && isWhole(events))
        try await peer.stop()
    }
}
