import RoostAPI
import TaskSteps
import Testing

@testable import Roost

@MainActor @Suite("Live objects: turns", .timeLimit(.minutes(5)))
struct TurnsTests {
    @Test("work whose caller is cancelled ends, even before its turn; earlier and later work continues")
    func cancelled() async throws {
        let turns = Turns()
        var log: [String] = []
        let (firstEnd, endFirst) = AsyncStream.makeStream(of: Void.self)
        let (noEnd, never) = AsyncStream.makeStream(of: Void.self)
        defer { never.finish() }
        let first = Task {
            try await turns.take {
                log.append("first begins")
                for await _ in firstEnd {}
                log.append("first ends")
            }
        }
        try await until { !log.isEmpty }
        let second = Task { try await turns.takeUnlessCancelled { log.append("second") } }
        let third = Task {
            try await turns.takeUnlessCancelled {
                log.append("third begins")
                for await _ in noEnd {}
                try Task.checkCancellation()
                log.append("third ends")
            }
        }
        let fourth = Task { try await turns.take { log.append("fourth") } }
        await letOthersRun(100)
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(log == ["first begins"])
        endFirst.finish()
        try await until { log.last == "third begins" }
        third.cancel()
        await #expect(throws: CancellationError.self) { try await third.value }
        _ = try await (first.value, fourth.value)
        #expect(log == ["first begins", "first ends", "third begins", "fourth"])
    }

    @Test("mandatory work is done, though its caller is cancelled; all of it is cancelled together")
    func done() async throws {
        let turns = Turns()
        var log: [String] = []
        let (end, ends) = AsyncStream.makeStream(of: Void.self)
        let first = Task {
            try await turns.take {
                log.append("first begins")
                for await _ in end {}
                log.append(Task.isCancelled ? "first is cancelled" : "first ends")
            }
        }
        try await until { !log.isEmpty }
        first.cancel()
        await letOthersRun(100)
        #expect(log == ["first begins"])
        ends.finish()
        try await first.value
        #expect(log == ["first begins", "first ends"])

        let (noEnd, never) = AsyncStream.makeStream(of: Void.self)
        defer { never.finish() }
        let second = Task {
            try await turns.take {
                log.append("second begins")
                for await _ in noEnd {}
            }
        }
        let third = Task { try await turns.take { log.append("third") } }
        try await until { log.last == "second begins" }
        await letOthersRun(100)
        turns.cancel()
        try await second.value
        await #expect(throws: CancellationError.self) { try await third.value }
        #expect(log == ["first begins", "first ends", "second begins"])
    }

    /// The outcomes of pieces of work, which are numbered in the order of the requests.
    @MainActor
    private final class Pieces {
        let turns = Turns()
        private(set) var requestCount = 0
        private(set) var begun: [Int] = []
        private(set) var ended: [Int] = []
        /// Whether two were in progress at the same time.
        private(set) var haveMet = false

        /// Takes a turn for another piece. One that isn't mandatory checks whether it is cancelled, as a request to the server does.
        func take(mustBeDone: Bool, on steps: StepExecutor? = nil, _ work: @escaping @MainActor () async -> Void) async throws {
            let number = requestCount
            requestCount += 1
            let piece: @MainActor () async throws -> Void = {
                self.haveMet = self.haveMet || self.begun.count != self.ended.count
                self.begun.append(number)
                defer { self.ended.append(number) }
                try await withTaskExecutorPreference(steps) {
                    await work()
                    if !mustBeDone { try Task.checkCancellation() }
                }
            }
            if mustBeDone { try await turns.take(piece) } else { try await turns.takeUnlessCancelled(piece) }
        }
    }

    /// Has a piece take its turn between two others, and cancels its caller at a moment: of the caller's, or of the work.
    private func cancelSecond(at moment: Moment, isOfWork: Bool) async throws -> Int? {
        let pieces = Pieces()
        let steps = StepExecutor()
        let (end, ends) = AsyncStream.makeStream(of: Void.self)
        let first = Task { try await pieces.take(mustBeDone: true) { for await _ in end {} } }
        try await until { pieces.requestCount == 1 }
        let call: @MainActor @Sendable () async throws -> Void = {
            try await pieces.take(mustBeDone: false, on: isOfWork ? steps : nil) { await letOthersRun(1) }
        }
        let second = Task(executorPreference: isOfWork ? nil : steps) { try await call() }
        steps.run({ second.cancel() }, at: moment)
        try await until { pieces.requestCount == 2 }
        let third = Task { try await pieces.take(mustBeDone: true) {} }
        try await until { pieces.requestCount == 3 }
        ends.finish()
        let results = [await result(of: first), await result(of: second), await result(of: third)]
        let count = steps.end()
        let isDone = results.map { if case .success? = $0 { true } else { false } }
        // A piece that has begun and noticed that it is cancelled has ended, too.
        let isBegun = pieces.begun.contains(1)
        #expect(isDone[0] && isDone[2] && (isBegun || !isDone[1]), "\(moment)")
        #expect(pieces.begun == (isBegun ? [0, 1, 2] : [0, 2]) && pieces.ended == pieces.begun && !pieces.haveMet, "\(moment)")
        if case .failure(let error)? = results[1] { #expect(error is CancellationError && count != nil, "\(moment)") }
        return count
    }

    @Test(
        "AM-29 work whose caller is cancelled at any wait, the caller's or its own, ends, and the next piece has its turn",
        arguments: [true, false])
    func cancelledAnywhere(isOfWork: Bool) async throws {
        let stepCount = try await Moment.withEach { try await cancelSecond(at: $0, isOfWork: isOfWork) }
        #expect((1..<Moment.stepsMax).contains(stepCount))
        var turns = 0
        while try await cancelSecond(at: .later(0, turns: turns), isOfWork: isOfWork) != nil { turns += 1 }
        #expect(turns > 0)
    }

    @Test("AM-29 with any cancellations, work is done in the order of the requests, mandatory work is done, and no wait is in vain")
    func anyOrder() async throws {
        for seed in 1...300 as ClosedRange<UInt64> { try await takeTurns(seed) }
    }

    private func takeTurns(_ seed: UInt64) async throws {
        var chance = SeededChance(seed: seed)
        weak var turns: Turns?
        do {
            let pieces = Pieces()
            turns = pieces.turns
            var callers: [(task: Task<Void, any Error>, mustBeDone: Bool)] = []
            for number in 0..<12 {
                let (mustBeDone, waits) = (Bool.random(using: &chance), Int.random(in: 0...3, using: &chance))
                callers.append((Task { try await pieces.take(mustBeDone: mustBeDone) { await letOthersRun(waits) } }, mustBeDone))
                try await until { pieces.requestCount == number + 1 }
                await letOthersRun(.random(in: 0...4, using: &chance))
                if Bool.random(using: &chance) { callers.randomElement(using: &chance)?.task.cancel() }
            }
            for (number, caller) in callers.enumerated() {
                let isRight =
                    switch await result(of: caller.task) {
                    case .success?: pieces.ended.contains(number)
                    case .failure(is CancellationError)?: caller.task.isCancelled && !caller.mustBeDone
                    case .failure?, nil: false
                    }
                #expect(isRight, "piece \(number) of seed \(seed)")
            }
            #expect(pieces.begun == pieces.begun.sorted() && pieces.ended == pieces.begun && !pieces.haveMet, "seed \(seed)")
        }
        // Nothing of it is retained.
        try await until { turns == nil }
    }
}
