import Foundation
import RoostTestSupport
import Testing

@testable import RoostDatabase

/// Directories that are made with those above them.
@Suite("Missing directories")
struct MissingDirectoryTests {
    @Test(
        "I1 each directory that is made has its name brought to disk in the one above it, the outermost first; none that is there")
    func names() throws {
        let place = TemporaryPlace.make()
        let url = place.appending(path: "above/new", directoryHint: .isDirectory)
        func missing() -> [String] { MissingDirectories(upTo: url).paths.map { $0.replacing(place.path, with: "PLACE") } }
        let before = MissingDirectories(upTo: url)
        #expect(missing() == ["PLACE", "PLACE/above", "PLACE/above/new"])
        // Nothing of it is there yet, and so has no name.
        try before.syncNames()
        for _ in 1...2 {
            try MissingDirectories.make(url)
            #expect(missing() == [])
        }
        try before.syncNames()
        #expect(DataFiles.mode(of: url.path) == 0o700)
    }
}
