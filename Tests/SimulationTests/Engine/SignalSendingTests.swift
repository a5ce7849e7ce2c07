import RoostAPI
import RoostCore
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// What becomes of signals of which some can't be sent.
@Suite("Sending signals")
struct SignalSendingTests {
    /// Runs what is queued, as the engine's thread for it does. Returns the channels of the signals that were told.
    private func run(_ queue: WorkQueue, in world: CoreWorld) throws -> [ChannelID] {
        let settings = BatchSettings(access: try AccessGate(world.database), presence: PresenceBoard())
        var told: [ChannelID] = []
        while let batch = queue.next(within: .zero), !batch.isEmpty {
            ReadBatch.run(batch, in: world.database, settings) { action in
                guard case .answered(let job, let outcome) = action else { return }
                told += outcome.notices.compactMap { if case .signal(let signal, _) = $0 { signal.channel } else { nil } }
                if case .waiting(let done) = job.destination { done(outcome.result) }
            }
        }
        return told
    }

    @Test("R26 signals of a channel whose rows can't be understood are dropped, and no others")
    func damaged() throws {
        let world = try CoreWorld()
        for channel in ["broken", "first", "last"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        try world.execute("UPDATE channels SET type = 'nothing of the kind' WHERE channel_id = 'broken'")
        let queue = WorkQueue(sizeMax: 100, batchSizeMax: 16)
        let failed = Mutex<[ChannelID]>([])
        let signals = (["first", "broken", "last"] as [ChannelID]).map {
            Signal(kind: .typingChanged, channel: $0, typing: TypingUsers(users: ["ann"], hasMore: false))
        }
        Engine.send(signals, through: queue) { again in failed.withLock { $0 += again.map(\.channel) } }
        #expect(try Set(run(queue, in: world)) == ["first", "last"])
        #expect(failed.withLock { $0 } == [])

        // Where the server has too much to do they are told again, all of them.
        Engine.send(signals, through: WorkQueue(sizeMax: 0, batchSizeMax: 16)) { again in
            failed.withLock { $0 += again.map(\.channel) }
        }
        #expect(failed.withLock { $0 } == ["first", "broken", "last"])
    }
}
