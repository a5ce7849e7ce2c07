import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// How a lane handles operations that another transaction's lock blocks.
@Suite("Lane")
struct LaneTests {
    /// A lane with its own database and clock. Operations are rules that say their names: they meet a lock in the channels that are held,
    /// a damaged page in the channel `broken`, take too long in the channel `slow`, and find no database in the channel `gone`.
    private final class World {
        private final class State: Sendable {
            let held = Mutex<Set<ChannelID>>([])
            let milliseconds = Atomic<Int64>(0)
        }

        private let directory = TemporaryPlace.make()
        private let database: SimulatedDatabase
        private let state = State()
        private let settings: BatchSettings
        private let start = ContinuousClock.now
        private var lane: Lane

        init(patience: Duration = .seconds(10), deferredJobsMax: Int = 100, batchSizeMax: Int = 100) throws {
            database = try SimulatedDatabase(directory: directory)
            var settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard())
            let (state, start) = (state, start)
            settings.clock = { start + .milliseconds(state.milliseconds.load(ordering: .relaxed)) }
            self.settings = settings
            lane = Lane(number: 0, patience: patience, deferredJobsMax: deferredJobsMax, batchSizeMax: batchSizeMax)
        }

        deinit { try? FileManager.default.removeItem(at: directory) }

        var isWaiting: Bool { lane.isWaiting }
        var isBehind: Bool { lane.isBehind }

        func hold(_ channels: Set<ChannelID>) { state.held.withLock { $0 = channels } }

        /// Runs operations named `channel number`, some time later. Returns the outcomes of operations, in order.
        func run(_ names: [String], after milliseconds: Int64 = 1) -> [String] {
            state.milliseconds.wrappingAdd(milliseconds, ordering: .relaxed)
            return outcomes { perform in lane.run(names.map(job), in: database, settings, perform) }
        }

        func end() -> [String] { outcomes { perform in lane.end(perform) } }

        private func job(_ name: String) -> Job {
            let channel = ChannelID(String(name.prefix { $0 != " " }))
            return Job(
                .init(scope: .channel(channel)), caller: Caller(user: "ann"),
                run: { [state] _ in
                    if state.held.withLock({ $0.contains(channel) }) {
                        throw DatabaseFailure(message: "A row is held.", kind: .locked)
                    }
                    if channel == "broken" { throw DatabaseFailure(message: "A page is damaged.", kind: .damage) }
                    if channel == "gone" { throw DatabaseFailure(message: "The connection is lost.", kind: .transaction) }
                    if channel == "slow" { throw DatabaseFailure(message: "It took too long.", kind: .cancelled) }
                    return Array(name.utf8)
                }, destination: .waiting { _ in })
        }

        private func outcomes(_ act: ((BatchAction) -> Void) -> Void) -> [String] {
            var outcomes: [String] = []
            func name(_ job: Job) -> String {
                guard case .channel(let channel) = job.order else { return "?" }
                return channel.rawValue
            }
            act { action in
                switch action {
                case .committed(let entries):
                    for (_, outcome) in entries {
                        outcomes.append((try? outcome.result.get()).map { String(decoding: $0, as: UTF8.self) } ?? "failed")
                    }
                case .refused(let jobs, let error): outcomes += jobs.map { "\(name($0)) \(error.code.rawValue)" }
                case .lost(let jobs, _, let error): outcomes += jobs.map { "\(name($0)) \(error.code.rawValue)" }
                case .began, .accessChanged, .answered, .exceededMemory, .failed, .maintain, .end: break
                }
            }
            return outcomes
        }
    }

    @Test("I3 a channel that another transaction holds is set aside with all that follows in it; the others are written at once")
    func heldChannel() throws {
        let world = try World()
        world.hold(["a"])
        #expect(world.run(["b 1", "a 1", "c 1", "a 2", "b 2"]) == ["b 1", "c 1", "b 2"])
        #expect(world.isWaiting)
        // Later operations in the same channel wait behind it, even if the lock is gone.
        world.hold([])
        #expect(world.run(["a 3", "b 3"]) == ["b 3"])
        // Once it is retried, all of it is written, in order.
        #expect(world.run([], after: 300) == ["a 1", "a 2", "a 3"])
        #expect(!world.isWaiting)
        #expect(world.run(["a 4"]) == ["a 4"])
    }

    @Test("I1 I3 if one operation of a batch needs a damaged page, those that meet a lock still wait for it")
    func heldBesideDamage() throws {
        let world = try World()
        world.hold(["a"])
        #expect(world.run(["b 1", "broken 1", "a 1", "c 1", "a 2", "b 2"]) == ["b 1", "broken internal_error", "c 1", "b 2"])
        world.hold([])
        #expect(world.run([], after: 300) == ["a 1", "a 2"])
    }

    @Test("I1 I23 if one operation of a batch takes too long, the others are written; after a second one, the rest isn't tried")
    func slow() throws {
        let world = try World()
        #expect(world.run(["a 1", "slow 1", "b 1"]) == ["a 1", "slow unavailable", "b 1"])
        #expect(
            world.run(["slow 1", "a 1", "slow 2", "b 1", "c 1"]) == [
                "slow unavailable", "a 1", "slow unavailable", "b unavailable", "c unavailable",
            ])
        // The lane continues as before.
        #expect(world.run(["a 2", "b 2"]) == ["a 2", "b 2"])
    }

    @Test("I1 I23 once the database is gone, none of the operations left to run in their own transactions is tried")
    func gone() throws {
        let world = try World()
        world.hold(["a"])
        #expect(world.run(["b 1", "a 1", "gone 1", "c 1"]) == ["b 1", "gone unavailable", "c unavailable"])
        world.hold([])
        #expect(world.run([], after: 300) == ["a 1"])
    }

    @Test("I1 I23 the second operation that takes too long ends the tries of the rest, even if locks come between them")
    func slowBesideHeld() throws {
        let world = try World()
        world.hold(["a", "b"])
        #expect(
            world.run(["a 1", "slow 1", "b 1", "slow 2", "c 1"]) == ["slow unavailable", "slow unavailable", "c unavailable"])
        world.hold([])
        #expect((world.run([], after: 300) + world.run([], after: 300)).sorted() == ["a 1", "b 1"])
    }

    @Test("I3 of several held channels each is retried in turn, and none before its pause is over")
    func turns() throws {
        let world = try World()
        world.hold(["a", "b"])
        #expect(world.run(["a 1", "b 1"]) == [])
        world.hold(["a"])
        #expect(world.run([], after: 100) == [])
        // One channel a turn: the one tried longest ago.
        let turns = world.run([], after: 200) + world.run([]) + world.run([])
        #expect(turns == ["b 1"])
        world.hold([])
        #expect(world.run([], after: 300) == ["a 1"])
    }

    @Test("I1 operations that waited as long as the lane is patient are refused, and later ones start over")
    func patience() throws {
        let world = try World(patience: .seconds(2))
        world.hold(["a"])
        #expect(world.run(["a 1", "a 2"]) == [])
        #expect(world.run([], after: 1900) == [])
        #expect(world.run(["a 3"], after: 300) == ["a unavailable", "a unavailable", "a unavailable"])
        #expect(!world.isWaiting)
        world.hold([])
        #expect(world.run(["a 4"]) == ["a 4"])
    }

    @Test("I1 I3 operations set aside are written in transactions of the usual size, and refused together")
    func batches() throws {
        let world = try World(patience: .seconds(2), batchSizeMax: 2)
        world.hold(["a"])
        #expect(world.run(["a 1", "a 2", "a 3", "a 4", "a 5"]) == [])
        world.hold([])
        #expect(world.run([], after: 300) == ["a 1", "a 2"])
        #expect(world.isBehind)
        #expect(world.run(["a 6"]) == ["a 3", "a 4"])
        #expect(world.run([]) == ["a 5", "a 6"])
        #expect(!world.isWaiting && !world.isBehind)

        world.hold(["a"])
        #expect(world.run(["a 7", "a 8", "a 9"]) == [])
        #expect(world.run([], after: 300) == [])
        #expect(!world.isBehind)
        #expect(world.run([], after: 2000) == ["a unavailable", "a unavailable", "a unavailable"])
        #expect(!world.isWaiting)
    }

    @Test("I1 only so many operations are set aside; further ones are refused, and other channels continue")
    func room() throws {
        let world = try World(deferredJobsMax: 2)
        world.hold(["a"])
        #expect(world.run(["a 1"]) == [])
        #expect(world.run(["a 2", "a 3", "b 1"]) == ["a overloaded", "b 1"])
        world.hold([])
        #expect(world.run([], after: 300) == ["a 1", "a 2"])
    }

    @Test("I1 a lane that ends refuses the operations set aside")
    func ending() throws {
        let world = try World()
        world.hold(["a", "b"])
        #expect(world.run(["a 1", "b 1"]) == [])
        #expect(world.end().sorted() == ["a unavailable", "b unavailable"])
        #expect(!world.isWaiting)
        #expect(world.end() == [])
    }
}
