import Foundation
import Testing

@Suite("Isolation")
struct IsolationTests {
    /// Optimised by Swift 6.3.1, such a function can end beside its caller's actor, and the caller goes on there: docs/decisions/0100.
    @Test("No function of ours promises by `nonisolated(nonsending)` to end on its caller's actor")
    func nonsending() {
        let promises = SourceFile.sources.filter { $0.text.contains("nonisolated(nonsending)") }.map(\.path)
        #expect(promises == [])
    }
}
