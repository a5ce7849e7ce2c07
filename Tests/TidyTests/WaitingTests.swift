import Testing

/// If the event that a test waits for never happens, that test fails, and the others run.
@Suite("Waiting")
struct WaitingTests {
    private static let waiting = "Tests/RoostTests/Live/Waiting.swift"
    private static let files = SourceFile.tests.filter { ["RoostTests", "RoostTestingTests"].contains($0.target) }

    @Test("the SDK's tests poll only by `until`, which has a deadline, and yield only by `letOthersRun`")
    func loops() {
        let files = Self.files.filter { $0.target == "RoostTests" }
        let yields = files.flatMap { $0.places(of: /\bTask\.yield\b/) }
        #expect(yields.filter { !$0.hasPrefix(Self.waiting) } == [])
        // A cancelled task gets nil immediately, and such a loop would never end.
        #expect(files.flatMap { $0.places(of: /\bwhile\b.*\b_ = await [\w.]+\.next\(/) } == [])
        #expect(yields.count { $0.hasPrefix(Self.waiting) } == 2, "\(Self.waiting) is read no more.")
    }

    @Test("the SDK's tests that wait for a sequence have a time limit, which ends the sequence")
    func timeLimits() {
        let waiting = Self.files.filter { file in
            file.code.contains("@Test") && !file.places(of: /\bfor (?:try )?await\b|\bawait [\w.]+\.next\(/).isEmpty
        }
        #expect(waiting.filter { !$0.code.contains(".timeLimit(") }.map(\.path) == [])
        #expect(waiting.count > 10)
    }
}
