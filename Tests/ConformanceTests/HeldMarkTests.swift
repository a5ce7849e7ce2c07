import Logging
import NIOCore
import NIOPosix
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// Marks on their way to a busy lane.
@Suite("Held marks", .timeLimit(.minutes(1)))
struct HeldMarkTests {
    @Test(
        "a mark over either transport, and one that the server makes, is held back by a busy lane until another operation arrives")
    func held() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let files = try TestDatabase()
        var configuration = Engine.Configuration(RoostServer.Configuration(dataDirectory: TemporaryDirectory.make()))
        configuration.hold = Hold.Configuration(durationMax: .seconds(3600), countMax: 64, idleAfter: .seconds(3600))
        let hub = try await Hub(group: group)
        let engine = try Engine(
            database: try files.open(), hub: hub, configuration: configuration, logger: Logger(label: "test"))
        let ann = Caller(user: "ann")
        // Refused, since there is no such channel: it takes its way through the queue all the same.
        let mark = MarkRead(channel: "nowhere")
        let socket = hub.nextSocketID(on: group.next())
        let finished = Mailbox<Bool>()
        func runOther() async throws {
            try await engine.perform(Job.Traits(scope: .channel("nowhere")), for: .server) { _ in [] }
        }
        let marks: [@Sendable () throws -> Void] = [
            { Task { finished.put((try? await engine.perform(mark, for: ann)) == nil) } },
            { try engine.submit(write: Job(marking: mark, by: ann) { _ in finished.put(true) }) },
            {
                try engine.submit(write: Job(mark, call: 1, by: ann, at: socket).knowing { _ in })
                finished.put(true)
            },
        ]
        for submit in marks {
            try await runOther()
            try submit()
            try await eventually("a hold") { engine.isHolding }
            try await runOther()
            #expect(!engine.isHolding)
            #expect(await finished.next() == true)
        }
        engine.stop()
        try await group.shutdownGracefully()
    }
}
