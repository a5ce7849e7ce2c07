import Foundation
import RoostTestSupport
import Testing

@testable import RoostDatabase

/// Directories made together with their parents.
@Suite("Missing directories")
struct MissingDirectoryTests {
    @Test(
        "I1 each new directory's name is synced in its parent, the outermost first; existing ones are left alone")
    func names() throws {
        let place = TemporaryPlace.make()
        let url = place.appending(path: "above/new", directoryHint: .isDirectory)
        func missing() -> [String] { MissingDirectories(upTo: url).paths.map { $0.replacing(place.path, with: "PLACE") } }
        let record = FileSync.Record()
        func synced(_ body: () throws -> Void) throws -> [String] {
            try FileSync.$record.withValue(record, operation: body)
            return record.take().map { $0.replacing(place.path, with: "PLACE") }
        }
        let root = place.deletingLastPathComponent().path
        let before = MissingDirectories(upTo: url)
        #expect(missing() == ["PLACE", "PLACE/above", "PLACE/above/new"])
        // Of the parents only the outermost exists yet.
        #expect(try synced { try before.syncNames() } == [root])
        #expect(try synced { try MissingDirectories.make(url) } == [root, "PLACE", "PLACE/above"])
        #expect(missing() == [])
        #expect(try synced { try MissingDirectories.make(url) } == [])
        #expect(try synced { try before.syncNames() } == [root, "PLACE", "PLACE/above"])
        #expect(DataFiles.mode(of: url.path) == 0o700)
    }
}
