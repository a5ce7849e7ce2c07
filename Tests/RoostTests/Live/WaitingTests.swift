import Testing

@Suite("Waiting in tests", .timeLimit(.minutes(5)))
struct WaitingTests {
    @Test("a wait in vain ends the test and reports its location; in a test whose time is over it ends at once")
    func vain() async throws {
        let line = #_sourceLocation.line + 1
        let overdue = await #expect(throws: Overdue.self) { try await until(within: .milliseconds(5)) { false } }
        #expect(overdue?.place.line == line)
        #expect(overdue?.description.contains("WaitingTests.swift:\(line)") == true)
        let waiting = Task { try await until { false } }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    @Test("a wait ends with its condition, or with the error of the check")
    func ends() async throws {
        var looks = 0
        try await until {
            looks += 1
            return looks == 1100
        }
        #expect(looks == 1100)
        struct Unreadable: Error {}
        await #expect(throws: Unreadable.self) { try await until { throw Unreadable() } }
    }
}
