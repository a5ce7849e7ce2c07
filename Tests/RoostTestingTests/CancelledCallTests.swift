import Dispatch
import Foundation
import Roost
import RoostAPI
import RoostTesting
import Synchronization
import Testing

/// Every call of the SDK is cancelled at one place after another, until it comes to its end before that: with a server, and while that is away.
///
/// The places are of two kinds. What the call's own task does off the main actor is done step by step, and cancelled before and after each of the
/// steps. Nothing can step into the main actor: what is done there, and in tasks that the call begins without waiting inside them (the work of
/// `Turns`, say), is cancelled by counting the main actor's turns. These are samples: all counts up to ``everyTurnMax`` (of a call with a preparation
/// only some), and behind it each a third larger than the last. How far a call is after so many turns depends on the machine, and on the server.
@MainActor @Suite("Cancelled calls", .timeLimit(.minutes(5)))
struct CancelledCallTests {
    /// When a call is cancelled.
    fileprivate enum Moment: Hashable {
        /// Right before the given step of its own, off the main actor: what it waited for is there.
        case before(Int)
        /// Right after that step: it waits, mostly.
        case after(Int)
        /// Once the main actor has done so many things.
        case turns(Int)
    }

    private struct Stuck: Error {}

    /// Makes a call and cancels it at a moment. Returns whether it came to its end before that.
    private func cancel(_ call: CancelledCalls.Call, at moment: Moment) async throws -> Bool {
        let executor = StepExecutor()
        let task = Task(executorPreference: executor) { try await call.run() }
        let isCancelled = executor.cancels(task, at: moment.step)
        if case .turns(let count) = moment {
            for _ in 0..<count { await Task.yield() }
            task.cancel()
        }
        let result = try await end(of: task, "\(call.name), cancelled \(moment)")
        switch result {
        case .success: break
        case .failure(is CancellationError): return false
        case .failure(let error): Issue.record("\(call.name), cancelled \(moment), throws \(error)")
        }
        if case .turns = moment { return true }
        return !isCancelled()
    }

    /// The result of a call that has to end.
    private func end(of task: Task<Void, any Error>, _ what: String) async throws -> Result<Void, any Error> {
        let (results, continuation) = AsyncStream.makeStream(of: Result<Void, any Error>.self)
        Task { continuation.yield(await task.result) }
        let alarm = Task {
            try await Task.sleep(for: .seconds(45))
            continuation.finish()
        }
        defer { alarm.cancel() }
        for await result in results { return result }
        Issue.record("It hangs: \(what)")
        throw Stuck()
    }

    /// Up to here a call is cancelled after each number of the main actor's turns.
    private static let everyTurnMax = 100

    private func turns(after turns: Int, for call: CancelledCalls.Call) -> Int {
        // Each attempt at one with a preparation leaves a device or an invitation behind, of which the server keeps only so many.
        turns < Self.everyTurnMax && !call.hasPreparation ? turns + 1 : turns + turns / 3 + 1
    }

    @Test(
        "AM-29 R39 Every call ends if it is cancelled at any of its steps, or after any of the main actor's first hundred turns; nothing acknowledged is lost or doubled, and the chat goes on"
    )
    func everywhere() async throws {
        let server = try await CancelledCalls.server()
        let calls = try await CancelledCalls(server)
        for call in calls.all {
            for moment in [Moment.before, Moment.after] {
                var step = 1
                while try await !cancel(call, at: moment(step)), step < 200 { step += 1 }
                #expect(step < 200, "\(call.name) has no end")
            }
            var turns = 0
            while try await !cancel(call, at: .turns(turns)), turns < 100_000 { turns = self.turns(after: turns, for: call) }
            // The chat works.
            #expect(try await calls.ann.me().userId == "ann", "after \(call.name)")
        }
        try await calls.checkNothingIsLost()
        try await calls.end()
        try await server.stop()
    }

    @Test(
        "R39 While the server is away every call ends if it is cancelled after any of the first few turns, or later; what was acknowledged arrives when the server is back"
    )
    func away() async throws {
        let server = try await CancelledCalls.server()
        let calls = try await CancelledCalls(server)
        try await server.goAway()
        for await status in calls.ann.connection.updates where status != .online { break }
        for call in calls.all {
            for turns in Array(0...15) + [20, 50, 100, 1000] {
                let task = Task { try await call.run() }
                for _ in 0..<turns { await Task.yield() }
                task.cancel()
                switch try await end(of: task, "\(call.name), offline") {
                case .success, .failure(is CancellationError), .failure(is RoostError): break
                case .failure(let error): Issue.record("\(call.name), offline, throws \(error)")
                }
            }
        }
        try await server.comeBack()
        try await calls.ann.connect(timeout: .seconds(60))
        try await calls.checkNothingIsLost()
        try await calls.end()
        try await server.stop()
    }
}

extension CancelledCallTests.Moment {
    fileprivate var step: (number: Int, isBefore: Bool)? {
        switch self {
        case .before(let number): (number, true)
        case .after(let number): (number, false)
        case .turns: nil
        }
    }
}

/// Runs what a call does off the main actor, step by step, and cancels it at one of them.
private final class StepExecutor: TaskExecutor {
    private struct State {
        var count = 0
        var step: (number: Int, isBefore: Bool)?
        var task: Task<Void, any Error>?
        var isCancelled = false
    }

    private let queue = DispatchQueue(label: "steps")
    private let state = Mutex(State())

    init() { queue.suspend() }

    /// Has a task cancelled at a step of it. Returns whether it was.
    func cancels(_ task: Task<Void, any Error>, at step: (number: Int, isBefore: Bool)?) -> @Sendable () -> Bool {
        state.withLock { ($0.task, $0.step) = (task, step) }
        queue.resume()
        return { [self] in state.withLock { $0.isCancelled } }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in
            let number = state.withLock { state in
                state.count += 1
                return state.count
            }
            cancel(at: number, isBefore: true)
            job.runSynchronously(on: asUnownedTaskExecutor())
            cancel(at: number, isBefore: false)
        }
    }

    private func cancel(at number: Int, isBefore: Bool) {
        let task = state.withLock { state -> Task<Void, any Error>? in
            guard let step = state.step, step.number == number, step.isBefore == isBefore else { return nil }
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}
