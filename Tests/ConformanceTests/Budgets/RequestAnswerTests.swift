import Logging
import NIOCore
import NIOPosix
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// What the engine counts for requests over HTTP.
@Suite("Answers to requests", .timeLimit(.minutes(1)))
struct RequestAnswerTests {
    @Test(
        "I18 the engine counts the answers to requests for the server and their user, and runs none while a budget is used up by others"
    )
    func counted() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let files = try TestDatabase()
        let (server, user) = (ByteLedger(sizeBytesMax: 4 << 20), ByteLedger(sizeBytesMax: 1 << 20))
        let engine = try Engine(
            database: try files.open(), hub: try await Hub(group: group),
            configuration: Engine.Configuration(RoostServer.Configuration(dataDirectory: TemporaryDirectory.make())),
            memory: server,
            logger: Logger(label: "test"))
        let ann = Caller(user: "ann")
        try await engine.perform(Job.Traits(scope: .user("ann")), for: ann) { context in
            try context.registerCaller(displayName: nil)
            return []
        }
        let operations: [any Handled] = [CreateChannel(channel: "c"), GetMe()]
        for operation in operations {
            do {
                let answer = try await engine.answer(to: operation, for: ann, callerMemory: user)
                let size = answer.bytes.count
                #expect(size > 0 && user.heldBytes == size && server.heldBytes == size)
                withExtendedLifetime(answer) {}
            }
            // A lane may let go of what it has answered a moment later.
            try await eventually("nothing is held") { user.heldBytes == 0 && server.heldBytes == 0 }
        }

        let others = HeldBytes(1 << 20, in: [user])
        for operation in operations {
            let refusal = await #expect(throws: RoostError.self) {
                _ = try await engine.answer(to: operation, for: ann, callerMemory: user)
            }
            #expect(refusal?.code == .overloaded)
        }
        // What a request itself holds doesn't count against it.
        _ = try await engine.answer(to: GetMe(), for: ann, callerMemory: user, requestSizeBytes: 1)
        withExtendedLifetime(others) {}

        // The same applies to the server's budget, of which writes have a quarter more.
        let everyones = HeldBytes(5 << 20, in: [server])
        let later: [any Handled] = [CreateChannel(channel: "d"), GetMe()]
        for operation in later {
            let refusal = await #expect(throws: RoostError.self) {
                _ = try await engine.answer(to: operation, for: ann, callerMemory: nil)
            }
            #expect(refusal?.code == .overloaded)
            _ = try await engine.answer(to: operation, for: ann, callerMemory: nil, requestSizeBytes: 2 << 20)
        }
        withExtendedLifetime(everyones) {}
        engine.stop()
        try await group.shutdownGracefully()
    }
}
