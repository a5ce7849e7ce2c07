import Testing

@Suite("Sizes")
struct SizeTests {
    @Test("no file has more than 500 lines")
    func files() {
        let wrong = (SourceFile.sources + SourceFile.tests).filter { $0.lines.count > 501 }
        #expect(wrong.map { "\($0.path): \($0.lines.count)" } == [])
    }

    @Test("the terminal chat has 150 lines at most, as an example to be read at once")
    func terminalChat() throws {
        let example = try #require(SourceFile.examples.first { $0.path == "Examples/TerminalChat/main.swift" })
        #expect(example.lines.count <= 151)
    }

    @Test("no function has more than 70 lines")
    func functions() {
        let wrong = SourceFile.sources.flatMap { file in
            Self.functions(in: file.code).filter { $0.lineCount > 70 }.map { "\(file.path):\($0.line): \($0.lineCount)" }
        }
        #expect(wrong == [])
    }

    @Test("the reading of functions finds their ends")
    func readsFunctions() {
        let code = CodeReader.code(
            of: """
                protocol P { func a(); func b() -> Int }
                extension P {
                    func c(_ body: () -> Void = {}) {
                        // }
                        print("}\\(1 + f({ 2 }))", #"\\("#)
                    }
                    init(x: Int) { /* { */ }
                }
                """)
        let found = Self.functions(in: code).map { [$0.line, $0.lineCount] }
        #expect(found == [[3, 4], [7, 1]])
    }

    /// Functions and initialisers with a body: where they begin, and their numbers of lines.
    static func functions(in code: String) -> [(line: Int, lineCount: Int)] {
        let bytes = Array(code.utf8)
        var found: [(Int, Int)] = []
        var line = 1
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "\n") { line += 1 }
            if let keyword = keyword(at: index, in: bytes), let end = endOfBody(from: index + keyword, in: bytes) {
                let lines = bytes[index...end].count { $0 == UInt8(ascii: "\n") } + 1
                found.append((line, lines))
            }
            index += 1
        }
        return found
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "_"), UInt8(ascii: "."): true
        default: false
        }
    }

    /// The length of a keyword that begins a function here.
    private static func keyword(at index: Int, in bytes: [UInt8]) -> Int? {
        guard index == 0 || !isWord(bytes[index - 1]) else { return nil }
        for (word, next) in [
            ("func", UInt8(ascii: " ")), ("init", UInt8(ascii: "(")), ("init", UInt8(ascii: "?")), ("init", UInt8(ascii: "<")),
        ] {
            let letters = Array(word.utf8)
            guard bytes[index...].starts(with: letters), index + letters.count < bytes.count else { continue }
            if bytes[index + letters.count] == next { return letters.count }
        }
        return nil
    }

    /// The end of the body of the function that begins here; nil if there is none, as in a protocol.
    private static func endOfBody(from start: Int, in bytes: [UInt8]) -> Int? {
        var index = start
        var nesting = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "("), UInt8(ascii: "["): nesting += 1
            case UInt8(ascii: ")"), UInt8(ascii: "]"): nesting -= 1
            case UInt8(ascii: "{") where nesting == 0: return endOfBraces(from: index, in: bytes)
            case UInt8(ascii: "}") where nesting == 0, UInt8(ascii: ";") where nesting == 0: return nil
            default: if nesting == 0, keyword(at: index, in: bytes) != nil { return nil }
            }
            // A call of an initialiser (`init(…)` of a value) ends with its parenthesis or before.
            if nesting < 0 { return nil }
            index += 1
        }
        return nil
    }

    private static func endOfBraces(from start: Int, in bytes: [UInt8]) -> Int? {
        var depth = 0
        for index in start..<bytes.count {
            if bytes[index] == UInt8(ascii: "{") { depth += 1 }
            if bytes[index] == UInt8(ascii: "}") {
                depth -= 1
                if depth == 0 { return index }
            }
        }
        return nil
    }
}
