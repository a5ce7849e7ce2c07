import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Live objects: turns", .timeLimit(.minutes(5)))
struct TurnsTests {
    @Test("Work whose caller is cancelled ends, also before its turn; work before it and after it goes on")
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

    @Test("Work that has to be done is, though its caller is cancelled; all of it is cancelled together")
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
}
