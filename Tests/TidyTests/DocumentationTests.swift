import Foundation
import RoostAPI
import Testing

@Suite("Documentation")
struct DocumentationTests {
    private static let targets: Set<String> = ["RoostAPI", "Roost"]
    /// The targets whose public declarations are documented: those of all library products that programs other than tests link.
    private static let documented: Set<String> = targets.union(["RoostServer"])

    /// Requirements of Swift's own protocols, of swift-metrics' or of the wire's, documented there. Operators have no name here.
    private static let clear: Set<String> = [
        "validate", "encode", "description", "codingKey", "schema", "schemaExample", "rawValue", "hash", "allCases", "next",
        "Response", "", "makeCounter", "makeRecorder", "makeTimer", "destroyCounter", "destroyRecorder", "destroyTimer",
    ]

    private struct Declaration {
        var kind: String
        var name: String
        /// Whether it is a property that each value of its type stores.
        var isField: Bool
    }

    /// All public types, functions, properties and initialisers of the SDK, of RoostAPI and of the server are documented, operations and their
    /// fields too.
    ///
    /// Exempt: a protocol's documented requirements, except fields; further forms of a documented function; cases of enumerations, for which
    /// `scripts/public-names` asks it where an app has them with Roost.
    @Test("every public type, function, property and initialiser of RoostAPI, Roost and RoostServer has a docstring")
    func publicIsDocumented() {
        var wrong: [String] = []
        var count = 0
        for file in SourceFile.sources where Self.documented.contains(file.target) {
            let lines = file.lines
            var described: Set<String> = []
            for (number, code) in file.codeLines.enumerated() {
                guard let declaration = Self.declaration(in: code), !Self.clear.contains(declaration.name) else { continue }
                if Self.demanded.contains(declaration.name), !declaration.isField { continue }
                count += 1
                if Self.isDocumented(number, in: lines) {
                    described.insert(declaration.name)
                    continue
                }
                if declaration.kind == "func", described.contains(declaration.name) { continue }
                wrong.append("\(file.path):\(number + 1): \(declaration.name)")
            }
        }
        #expect(wrong == [])
        #expect(count > 1000)
    }

    /// Only names of several words: one word can be that of a field or of a role.
    @Test("every code named in a docstring of RoostAPI and Roost is that of a refusal, or of a call's outcome for a user")
    func codesExist() {
        var codes = Set(RoostError.Code.allCases.map(\.rawValue) + MemberResult.Outcome.allCases.map(\.rawValue))
        // The code of repeated work that never ended, which isn't a refusal.
        codes.insert("never_ended")
        var (wrong, count): ([String], Int) = ([], 0)
        for file in SourceFile.sources where Self.targets.contains(file.target) {
            for (number, line) in file.lines.enumerated() where line.drop(while: { $0 == " " }).hasPrefix("///") {
                for match in line.matches(of: /`([a-z]+(?:_[a-z]+)+)`/) {
                    count += 1
                    if !codes.contains(String(match.1)) { wrong.append("\(file.path):\(number + 1): \(match.1)") }
                }
            }
        }
        #expect(wrong == [])
        #expect(count > 100)
    }

    /// A page has a `nextCursor`, and nothing in an answer is named `cursor`.
    @Test("no docstring of RoostAPI and Roost says that a page has a `cursor`")
    func cursors() {
        let files = SourceFile.sources.filter { Self.targets.contains($0.target) }
        #expect(files.filter { $0.text.contains("the `cursor` of") }.map(\.path) == [])
        #expect(files.contains { $0.text.contains("the `nextCursor` of") })
    }

    /// An app would set one against a flood, and believe itself protected.
    @Test("AM-08 the docstrings of a channel's rate limit say that the server doesn't enforce it yet")
    func rateLimit() {
        var (wrong, found): ([String], Set<String>) = ([], [])
        for file in SourceFile.sources where Self.targets.contains(file.target) {
            let lines = file.lines
            for (number, code) in file.codeLines.enumerated() where code.contains("RateLimit") {
                guard let match = code.firstMatch(of: /public (?:struct|func|var) ([sS]etRateLimit|isRateLimited)\b/) else {
                    continue
                }
                found.insert(String(match.1))
                if !Self.docstring(above: number, in: lines).contains("doesn't enforce it yet") {
                    wrong.append("\(file.path):\(number + 1)")
                }
            }
        }
        #expect(wrong == [])
        #expect(found == ["SetRateLimit", "setRateLimit", "isRateLimited"])
    }

    /// Figures between two other marks look as if they were kept up to date, and become outdated beside the table that is.
    @Test("the page of the benchmark has no HTML comments but the two marks that scripts/bench-table writes between")
    func marksOfThePage() throws {
        func text(_ path: String) throws -> String {
            try String(contentsOf: SourceFile.root.appending(path: path), encoding: .utf8)
        }
        let list = try #require(try text("scripts/bench-table").firstMatch(of: #/\nMARKS = \((.*)\)\n/#)).1
        let marks = list.matches(of: #/"(<!--.*?-->)"/#).map { String($0.1) }
        try #require(marks.count == 2)
        let comments = try text("docs/performance.md").matches(of: #/<!--.*?-->/#.dotMatchesNewlines()).map { String($0.output) }
        #expect(comments == marks)
    }

    /// Another one would build more, or a program that doesn't run on machines without Swift.
    @Test("wherever the program says how to build it with PostgreSQL and NATS, the command is that of docs/operations/cluster.md")
    func buildWithCluster() throws {
        let page = try String(contentsOf: SourceFile.root.appending(path: "docs/operations/cluster.md"), encoding: .utf8)
        let command = try #require(page.firstMatch(of: /\n(swift build [^\n]*--traits Cluster[^\n]*)/)).1
        let named = SourceFile.sources.flatMap { file in
            file.text.matches(of: /swift build -c release [^"`\n]*/).map { String($0.0) }
        }
        #expect(named.count >= 3 && Set(named) == [String(command)])
    }

    /// The names of the documented requirements of the two targets' protocols.
    private static let demanded: Set<String> = {
        var names: Set<String> = []
        for file in SourceFile.sources where targets.contains(file.target) {
            let lines = file.lines
            var isInProtocol = false
            for (number, code) in file.codeLines.enumerated() {
                if code.contains("protocol "), code.contains(/^(?:@\w+ )*(?:public |package )?protocol \w/) { isInProtocol = true }
                if code.hasPrefix("}") { isInProtocol = false }
                guard isInProtocol, let match = code.firstMatch(of: /^\s+(?:static )?(?:mutating )?(?:func|var) (\w+)/),
                    isDocumented(number, in: lines)
                else { continue }
                names.insert(String(match.1))
            }
        }
        return names
    }()

    /// The public declaration of a line, which has to be documented.
    private static func declaration(in line: Substring) -> Declaration? {
        // The search for a word is many times faster than the pattern, which few lines match.
        guard line.contains("public "),
            let match = line.firstMatch(
                of:
                    /^\s*(?:@\w+(?:\([^)]*\))?\s+)*public +(?:(?:static|final|mutating|indirect|nonisolated(?:\(nonsending\))?|convenience|class|(?:private|internal|package)\(set\))\s+)*(struct|class|enum|protocol|actor|func|var|let|subscript|init|typealias)\b\s*(`?\w*`?)/
            )
        else { return nil }
        let (kind, name) = (String(match.1), String(match.2))
        if kind == "init" {
            // Decoding, raw values and literals are requirements of Swift's own protocols.
            let isDemanded = ["(from ", "(rawValue", "(stringLiteral", "codingKey"].contains { line.contains($0) }
            return isDemanded ? nil : Declaration(kind: kind, name: "init", isField: false)
        }
        // `{ get }` and a body make a property computed.
        let isField = ["var", "let"].contains(kind) && !line.contains("static ") && !line.contains("{")
        return Declaration(kind: kind, name: name, isField: isField)
    }

    private static func docstring(above number: Int, in lines: [Substring]) -> String {
        var first = number
        while first > 0, lines[first - 1].drop(while: { $0 == " " }).hasPrefix("///") { first -= 1 }
        return lines[first..<number].joined(separator: "\n")
    }

    private static func isDocumented(_ number: Int, in lines: [Substring]) -> Bool {
        var above = number - 1
        while above >= 0, lines[above].drop(while: { $0 == " " }).hasPrefix("@") { above -= 1 }
        return above >= 0 && lines[above].drop(while: { $0 == " " }).hasPrefix("///")
    }
}
