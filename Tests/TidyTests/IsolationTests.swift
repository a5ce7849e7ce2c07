import Foundation
import Testing

@Suite("Isolation")
struct IsolationTests {
    /// Optimised by Swift 6.3.1, such a function can return outside its caller's actor, and the caller continues there: docs/decisions/0100.
    @Test("none of our functions promises by `nonisolated(nonsending)` to return on its caller's actor")
    func nonsending() {
        let promises = SourceFile.sources.filter { $0.text.contains("nonisolated(nonsending)") }.map(\.path)
        #expect(promises == [])
    }
}
