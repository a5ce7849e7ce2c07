import Dispatch
import NIOCore
import NIOPosix
import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// An event loop that has much to do while others have little.
@Suite("Lagging event loops")
struct LaggingLoopTests {
    @Test(
        "I18 a lane waits for an event loop that has more than 32 MB left to deliver, and goes on when it has caught up, or after a while"
    )
    func waits() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let hub = try await Hub(group: group)
        let isFree = DispatchSemaphore(value: 0)
        try #require(Array(group.makeIterator()).last).execute { isFree.wait() }

        let answer = [UInt8](repeating: 32, count: 1 << 20)
        let socket = hub.nextSocketID(on: group.next())
        for _ in 0..<31 { hub.deliver([.reply(socket, answer)]) }
        #expect(hub.waitForLoops(atMost: .zero))
        hub.deliver([.reply(socket, answer)])
        // The other loop has delivered everything, and the time is up.
        #expect(!hub.waitForLoops(atMost: .milliseconds(10)))
        isFree.signal()
        #expect(hub.waitForLoops(atMost: .seconds(60)))
        hub.deliver([.reply(socket, answer)])
        #expect(hub.waitForLoops(atMost: .seconds(60)))
        try await group.shutdownGracefully()
    }
}
