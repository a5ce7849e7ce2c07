import Roost
import RoostAPI
import RoostTesting
import TaskSteps
import Testing

/// Every call of the SDK is cancelled at each of its waits, until it ends before that: with a server, and while the server is away.
///
/// A call's own task runs step by step (`StepExecutor`). It is cancelled before each step, when what it waited for is available; after it,
/// when it starts to wait or returns to the main actor; and then after each turn of the main actor, until the next step or until the call
/// waits for something else. So at which waits a call is cancelled doesn't depend on how fast the machine and the server are.
///
/// Tasks that a call starts have no steps: the work of a list (`Turns`) and of the machine. The call's task waits for them, and is
/// cancelled while they are anywhere in progress; where, is sampled by the main actor's turns. `TurnsTests` and `CancelledPageTests`
/// cancel a list's work at each of its own waits.
@MainActor @Suite("Cancelled calls", .timeLimit(.minutes(5)))
struct CancelledCallTests {
    private struct Stuck: Error {}

    /// Makes a call and cancels it at a moment.
    ///
    /// - Parameters:
    ///   - isAway: Whether there is no server. In that case a call may wait forever, and throw more errors.
    ///   - patience: After this many turns of the main actor without a step, a call without a server is taken to wait forever.
    /// - Returns: How many steps had begun by then; nil if the call ended before.
    private func cancel(_ call: CancelledCalls.Call, at moment: Moment, isAway: Bool, patience: Int = 1000) async throws -> Int? {
        let steps = StepExecutor()
        let task = Task(executorPreference: steps) { try await call.run() }
        steps.run({ task.cancel() }, at: moment)
        let wasQuiet = isAway ? await cancel(task, onceQuiet: steps, for: patience) : false
        // The deadline starts with the cancellation: until then a call without a server may wait as long as it likes.
        let ended = await result(of: task)
        let count = steps.end()
        let what = "\(call.name), cancelled \(moment)\(isAway ? ", offline" : "")"
        switch ended {
        case nil:
            let state = task.isCancelled ? "cancelled by now" : "not cancelled yet"
            Issue.record("It hangs after \(steps.count) steps, \(state): \(what)")
            task.cancel()
            throw Stuck()
        case .success?: break
        case .failure(is CancellationError)? where isAway || count != nil: break
        case .failure(is RoostError)? where isAway: break
        case .failure(let error)?: Issue.record("\(what), throws \(error)")
        }
        // On a busy machine a step may just have taken long.
        guard count == nil, wasQuiet, patience < 10_000 else { return count }
        return try await cancel(call, at: moment, isAway: isAway, patience: patience * 10)
    }

    /// Cancels a call that has made no step for many turns of the main actor, unless it ends before.
    ///
    /// - Returns: Whether it cancelled the call.
    private func cancel(_ task: Task<Void, any Error>, onceQuiet steps: StepExecutor, for turns: Int) async -> Bool {
        let watch = Task {
            var (count, quietTurns) = (steps.count, 0)
            while quietTurns < turns {
                if Task.isCancelled { return false }
                await Task.yield()
                let now = steps.count
                (count, quietTurns) = (now, now == count ? quietTurns + 1 : 0)
            }
            task.cancel()
            return true
        }
        let ending = Task {
            _ = await task.result
            watch.cancel()
        }
        defer { ending.cancel() }
        return await watch.value
    }

    /// Cancels a call at each of its waits.
    private func cancelEverywhere(_ call: CancelledCalls.Call, isAway: Bool) async throws {
        // Messages sent offline stay in the outbox each time.
        let stepCount = try await Moment.withEach(turnsMax: isAway ? 0 : 2) { try await cancel(call, at: $0, isAway: isAway) }
        #expect(stepCount < Moment.stepsMax, "\(call.name) has no end")
    }

    /// Cancels a call after more and more turns of the main actor, each time half as many more.
    private func sample(_ call: CancelledCalls.Call) async throws {
        var turns = 0
        while try await cancel(call, at: .later(0, turns: turns), isAway: false) != nil, turns < 100_000 { turns += turns / 2 + 1 }
    }

    @Test(
        "AM-29 R39 every call ends if it is cancelled at any of its waits; nothing acknowledged is lost or doubled, and the chat still works"
    )
    func everywhere() async throws {
        let server = try await CancelledCalls.server()
        let calls = try await CancelledCalls(server)
        for call in calls.all {
            try await cancelEverywhere(call, isAway: false)
            if !call.hasPreparation { try await sample(call) }
            // The chat still works.
            #expect(try await calls.ann.me().userId == "ann", "after \(call.name)")
        }
        try await calls.checkNothingIsLost()
        try await calls.end()
        try await server.stop()
    }

    @Test(
        "R39 while the server is away every call ends if it is cancelled at any of its waits; acknowledged messages arrive when it is back"
    )
    func away() async throws {
        let server = try await CancelledCalls.server()
        let calls = try await CancelledCalls(server)
        try await server.startOutage()
        for await status in calls.ann.connection.updates where status != .online { break }
        for call in calls.all { try await cancelEverywhere(call, isAway: true) }
        try await server.endOutage()
        try await calls.ann.connect(timeout: .seconds(60))
        try await calls.checkNothingIsLost()
        try await calls.end()
        try await server.stop()
    }
}
