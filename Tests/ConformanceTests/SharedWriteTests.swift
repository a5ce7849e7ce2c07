import NIOCore
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// Events of several commits that share a write, from the hub to the client.
@Suite("Shared writes")
struct SharedWriteTests {
    private static func committed(_ seq: Seq) -> Committed {
        let event = Event(kind: .channelHidden, stream: .user("ann"), seq: seq, actor: "ann", rows: Rows())
        return Committed(notices: [.event(event, .user("ann"))], answer: .waiting {})
    }

    /// Delivers commits one after another, each in its own turn of the loop. Called on the loop.
    private static func deliver(_ commits: ArraySlice<Committed>, through hub: Hub, on loop: any EventLoop) {
        guard let commit = commits.first else { return }
        hub.deliver([commit])
        // Once after the delivery, and once after the end of its turn.
        loop.execute { loop.execute { Self.deliver(commits.dropFirst(), through: hub, on: loop) } }
    }

    @Test("an idle socket is written to immediately, and events of the next millisecond share one more write")
    func commits() async throws {
        let files = try TestDatabase()
        let sockets = try await SocketLoop(try files.open())
        let ann = try await sockets.socket("ann")
        let (hub, loop) = (sockets.hub, sockets.loop)
        // A loop that is interrupted for longer than events are held back writes more often, and a socket that was just written to isn't idle.
        try await eventually("two writes of three commits") {
            let before = try await hub.counts().writes
            loop.execute { Self.deliver([Self.committed(1), Self.committed(2), Self.committed(3)], through: hub, on: loop) }
            var seqs: [Seq] = []
            for _ in 1...3 { seqs.append(try await ann.nextEvent().seq) }
            #expect(seqs == [1, 2, 3])
            return try await hub.counts().writes - before == 2
        }
        try await sockets.end(closing: ann)
    }
}
