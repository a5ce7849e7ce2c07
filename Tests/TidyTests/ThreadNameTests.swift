import Foundation
import Testing

/// The documentation explains a busy server's threads by the names that `top` shows.
@Suite("Names of threads")
struct ThreadNameTests {
    @Test("each thread name of the server is explained", arguments: ["ARCHITECTURE.md", "docs/performance.md"])
    func explained(page: String) throws {
        let text = try String(contentsOf: SourceFile.root.appending(path: page), encoding: .utf8)
        // Swift's own pool. Linux shows the last 15 bytes of the names of libdispatch's queues.
        var names: Set<String> = ["oot.default-qos", "-qos.overcommit"]
        for file in SourceFile.sources where ["RoostServer", "RoostDatabase"].contains(file.target) {
            for match in file.text.matches(of: #/(?:threads\.start|ThreadName\.set)\("(roost-[a-z]+)/#) {
                names.insert(String(match.1))
            }
        }
        #expect(names.count >= 12 && names.filter { !text.contains("`" + $0) } == [])
    }
}
