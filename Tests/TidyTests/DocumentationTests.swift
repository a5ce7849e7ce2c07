import Testing

@Suite("Documentation")
struct DocumentationTests {
    /// Declarations whose name says it all, or whose protocol documents them. Operators have no name here.
    private static let clear: Set<String> = [
        "validate", "encode", "description", "codingKey", "schema", "schemaExample", "rawValue", "hash", "allCases", "next", "",
    ]

    /// Public types, functions and computed properties of the SDK and of the language say what they are for.
    ///
    /// Not asked for it: operations, whose `summary` says it; initialisers and stored properties, which say it by their names where
    /// nothing is said; what a protocol demands and describes; functions that are one line; further forms of a function that is described.
    @Test("Every public type, function and computed property of RoostAPI and Roost has a docstring")
    func publicIsDocumented() {
        var wrong: [String] = []
        for file in SourceFile.sources where ["RoostAPI", "Roost"].contains(file.target) {
            let lines = file.lines
            var described: Set<String> = []
            for (number, code) in file.codeLines.enumerated() {
                guard let name = Self.name(of: code), !Self.clear.contains(name), !Self.demanded.contains(name) else { continue }
                if Self.isDocumented(number, in: lines) {
                    described.insert(name)
                    continue
                }
                let isOneLine = code.contains("func ") && code.hasSuffix("}")
                if isOneLine || described.contains(name) { continue }
                wrong.append("\(file.path):\(number + 1): \(name)")
            }
        }
        #expect(wrong == [])
    }

    /// The names of what protocols demand, with a docstring there.
    private static let demanded: Set<String> = {
        var names: Set<String> = []
        for file in SourceFile.sources where file.code.contains(/\bprotocol \w/) {
            let lines = file.lines
            for (number, code) in file.codeLines.enumerated() {
                guard let match = code.firstMatch(of: /^\s+(?:static )?(?:func|var) (\w+)/), isDocumented(number, in: lines) else {
                    continue
                }
                names.insert(String(match.1))
            }
        }
        return names
    }()

    /// The name of what a line declares publicly and ought to describe.
    private static func name(of line: Substring) -> String? {
        guard
            let match = line.firstMatch(
                of:
                    /^\s*(?:@\w+(?:\([^)]*\))?\s+)*public\s+(?:(?:static|final|mutating|indirect|nonisolated|convenience|class)\s+)*(struct|class|enum|protocol|actor|func|var|subscript)\s*(`?\w*`?)/
            )
        else { return nil }
        let kind = String(match.1)
        let name = String(match.2)
        switch kind {
        case "var":
            // A stored property has no braces on its line; `{ get }` and a body make it computed.
            return line.contains("{") && !line.contains("{ didSet") ? name : nil
        case "struct":
            return line.contains(/:\s*Operation\b/) ? nil : name
        default:
            return name
        }
    }

    private static func isDocumented(_ number: Int, in lines: [Substring]) -> Bool {
        var above = number - 1
        while above >= 0, lines[above].drop(while: { $0 == " " }).hasPrefix("@") { above -= 1 }
        return above >= 0 && lines[above].drop(while: { $0 == " " }).hasPrefix("///")
    }
}
