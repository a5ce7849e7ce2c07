import Dispatch
import NIOCore
import NIOPosix
import RoostAPI
import RoostCore
import Synchronization
import Testing

@testable import RoostServer

/// Presence as read by a client that already knows of a change.
@Suite("Presence over event loops")
struct PresenceOrderTests {
    @Test("a loop without receivers gets nothing of a delivery, unless it is behind", .timeLimit(.minutes(1)))
    func uninvolvedLoop() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let hub = try await Hub(group: group)
        let loops = Array(group.makeIterator())
        let isFree = DispatchSemaphore(value: 0)
        try #require(loops.last).execute { isFree.wait() }
        let first = try #require(loops.first)
        let socket = hub.nextSocketID(on: first)

        hub.deliver([.reply(socket, [1]), .send(.channel("general"), EventFrames.Frames())])
        try await first.submit {}.get()
        await withCheckedContinuation { continuation in hub.preparePresence(of: "general") { continuation.resume() } }

        let isPrepared = Atomic(false)
        hub.deliver([.change(.accessChanged([]))])
        hub.deliver([.reply(socket, [1])])
        try await first.submit {}.get()
        hub.preparePresence(of: "general") { isPrepared.store(true, ordering: .sequentiallyConsistent) }
        let isTooEarly = isPrepared.load(ordering: .sequentiallyConsistent)
        #expect(!isTooEarly)
        isFree.signal()
        await withCheckedContinuation { continuation in hub.preparePresence(of: "general") { continuation.resume() } }
        try await group.shutdownGracefully()
    }

    @Test("ST-05 presence waits only for an event loop that has yet to deliver a change that others have seen")
    func laggingLoop() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let hub = try await Hub(group: group)
        let loops = Array(group.makeIterator())
        let isFree = DispatchSemaphore(value: 0)
        try #require(loops.last).execute { isFree.wait() }

        let steps = Mutex<[String]>([])
        hub.preparePresence(of: "general") { steps.withLock { $0.append("prepared before anything was delivered") } }
        steps.withLock { $0.append("delivered") }
        hub.deliver([.change(.joined("bob", "general", at: 1))])
        await withCheckedContinuation { continuation in
            hub.preparePresence(of: "general") {
                steps.withLock { $0.append("prepared") }
                continuation.resume()
            }
            steps.withLock { $0.append("the second loop goes on") }
            isFree.signal()
        }
        #expect(
            steps.withLock { $0 } == [
                "prepared before anything was delivered", "delivered", "the second loop goes on", "prepared",
            ])
        try await group.shutdownGracefully()
    }
}
