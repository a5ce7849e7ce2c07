import Foundation
import Testing

@Suite("Scripts")
struct ScriptTests {
    /// With `pipefail`, a pipe fails if a command writes to one that has already exited, which depends on timing.
    @Test("in a pipe, no command exits before the previous one has ended")
    func readersStay() throws {
        var found: [String] = []
        for path in try Self.paths() {
            let text = try String(contentsOf: SourceFile.root.appending(path: path), encoding: .utf8)
            for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
            where Self.leavesEarly(line) {
                found.append("\(path):\(number + 1)")
            }
        }
        #expect(found.isEmpty, "These may end a script by SIGPIPE: \(found)")
    }

    @Test(
        "knows the commands that exit early",
        arguments: [
            ("a | head -n 1", true), ("a | grep -q b", true), ("a | grep -o -m 1 b", true), ("a | sed -n '/b/{p;q}'", true),
            ("grep -q a file", false), ("a | grep b", false), ("a || head -n 1 file", false), ("a | tail -n 1", false),
            ("a | sort -q", false),
        ])
    func readsPipes(line: String, leaves: Bool) {
        #expect(Self.leavesEarly(line[...]) == leaves)
    }

    private static func leavesEarly(_ line: Substring) -> Bool {
        line.contains(/[^|]\|\s*(head\b|grep\s[^|]*-[a-zA-Z]*[qm]|sed\s[^|]*;\s*q\s*})/)
    }

    /// The shell scripts of `scripts` and `.ci`.
    private static func paths() throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: SourceFile.root.appending(path: "scripts").path)
        let all = names.sorted().map { "scripts/" + $0 } + [".ci/run"]
        let shells = all.filter { path in
            (try? String(contentsOf: SourceFile.root.appending(path: path), encoding: .utf8))?.hasPrefix("#!/usr/bin/env bash")
                == true
        }
        try #require(shells.count > 5)
        return shells
    }
}
