import Foundation
import Testing

/// The table at the end of SECURITY.md, which names the tests that cover each claim.
@Suite("Claims")
struct ClaimTests {
    @Test("every suite and test named in SECURITY.md exists, and every claim in its table names one or says why there is none")
    func securityNamesTests() throws {
        let text = try String(contentsOf: SourceFile.root.appending(path: "SECURITY.md"), encoding: .utf8)
        let parts = text.components(separatedBy: "\n## The tests of these claims\n")
        let table = try #require(parts.count == 2 ? parts.last : nil)
        // The first row is the head.
        let rows = table.components(separatedBy: "\n").filter { $0.hasPrefix("| ") }.dropFirst()
        let titles = try Self.titles()
        let wrong = rows.flatMap { Self.faults(in: $0, titles) }
        #expect(wrong == [] && !rows.isEmpty)
    }

    /// Returns the faults of a row. Its second cell has suites in backticks, some followed by parts of titles in quotation marks.
    private static func faults(in row: String, _ titles: [String: [String]]) -> [String] {
        let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        guard cells.count == 2 else { return ["\(row) has \(cells.count) cells"] }
        let (claim, held) = (cells[0], cells[1])
        let isHeading = claim.hasPrefix("**") && held.isEmpty
        if isHeading || held.hasPrefix("no test: ") { return [] }
        var faults: [String] = []
        var suite: String?
        for (number, part) in held.components(separatedBy: "\"").enumerated() {
            guard number % 2 == 0 else {
                let isThere = suite.flatMap { titles[$0] }?.contains { $0.contains(part) } ?? false
                if !isThere { faults.append("\(claim): no test of \(suite ?? "a suite") says: \(part)") }
                continue
            }
            for match in part.matches(of: /`([^`]+)`/) {
                suite = String(match.1)
                if titles[String(match.1)] == nil { faults.append("\(claim): there is no suite \(match.1)") }
            }
        }
        return suite == nil ? ["\(claim): nothing is named"] : faults
    }

    /// The titles of tests by the names of suites, or by the file name for those in Python.
    private static func titles() throws -> [String: [String]] {
        var titles: [String: [String]] = [:]
        for file in SourceFile.tests {
            let found = quoted(in: file.text, behind: "@Test(")
            guard !found.isEmpty else { continue }
            for match in file.text.matches(of: /\b(?:struct|class|actor|extension) (\w+Tests)\b/) {
                titles[String(match.1), default: []] += found
            }
        }
        let interop = SourceFile.root.appending(path: "Tests/Interop/test_interop.py")
        titles[interop.lastPathComponent] = quoted(in: try String(contentsOf: interop, encoding: .utf8), behind: "@case(")
        return titles
    }

    /// The strings after a word, each up to its first quotation mark.
    private static func quoted(in text: String, behind word: String) -> [String] {
        text.components(separatedBy: word).dropFirst().compactMap { part in
            let argument = part.drop { $0.isWhitespace }
            guard argument.first == "\"" else { return nil }
            return String(argument.dropFirst().prefix { $0 != "\"" })
        }
    }
}
