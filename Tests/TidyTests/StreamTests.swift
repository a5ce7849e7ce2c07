import Foundation
import Testing

@Suite("Streams")
struct StreamTests {
    /// The check that an operation stays within its scope is where heads are written.
    @Test("the heads of streams are written in one file, and by the migration steps that create the tables")
    func oneWriter() {
        let writes = /(?:INSERT INTO|UPDATE|DELETE FROM)\s+(?:channel|user)_heads\b/
        let writers = SourceFile.sources.filter { $0.target == "RoostCore" && $0.text.contains(writes) }.map(\.path)
        let allowed = writers.filter { $0.hasPrefix("Sources/RoostCore/Migrations/") }
        #expect(writers.filter { !allowed.contains($0) } == ["Sources/RoostCore/Streams/StreamMoves.swift"])
    }
}
