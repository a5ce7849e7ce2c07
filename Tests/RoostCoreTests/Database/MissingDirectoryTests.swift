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
        let before = MissingDirectories(upTo: url)
        #expect(missing() == ["PLACE", "PLACE/above", "PLACE/above/new"])
        // Nothing exists yet, so there is no name to sync.
        try before.syncNames()
        for _ in 1...2 {
            try MissingDirectories.make(url)
            #expect(missing() == [])
        }
        try before.syncNames()
        #expect(DataFiles.mode(of: url.path) == 0o700)
    }
}
