import Foundation
import Testing

/// A file of this package, read as text.
struct SourceFile: Sendable, CustomTestStringConvertible {
    /// From the root of the package: `Sources/RoostAPI/Wire/Event.swift`.
    let path: String
    let text: String
    /// The text with comments and the contents of strings blanked, which leaves the code. Lines keep their numbers.
    let code: String

    var testDescription: String { path }
    var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }
    var codeLines: [Substring] { code.split(separator: "\n", omittingEmptySubsequences: false) }
    var parts: [String] { path.split(separator: "/").map(String.init) }
    /// The file's target.
    var target: String { parts[1] }
    /// Folders between the target and the file.
    var folders: [String] { Array(parts.dropFirst(2).dropLast()) }

    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static let sources = read("Sources")
    static let tests = read("Tests")
    static let examples = read("Examples")

    private static func read(_ folder: String) -> [SourceFile] {
        let base = root.appending(path: folder)
        let names = FileManager.default.enumerator(atPath: base.path)?.compactMap { $0 as? String } ?? []
        return names.filter { $0.hasSuffix(".swift") && !$0.contains(".build/") }.sorted().compactMap { name in
            guard let text = try? String(contentsOf: base.appending(path: name), encoding: .utf8) else { return nil }
            return SourceFile(path: folder + "/" + name, text: text, code: CodeReader.code(of: text))
        }
    }

    /// `path:line` of each line of code that matches.
    func places(of pattern: Regex<some Any>, except isAllowed: (Substring) -> Bool = { _ in false }) -> [String] {
        var found: [String] = []
        for (number, (code, line)) in zip(codeLines, lines).enumerated() where code.contains(pattern) && !isAllowed(line) {
            found.append("\(path):\(number + 1)")
        }
        return found
    }
}

/// Parses Swift just enough to distinguish code from comments and strings.
struct CodeReader {
    private var input: [UInt8]
    private var output: [UInt8] = []
    private var index = 0

    static func code(of text: String) -> String {
        var reader = CodeReader(input: Array(text.utf8))
        reader.readCode(untilParenthesis: false)
        return String(decoding: reader.output, as: UTF8.self)
    }

    private init(input: [UInt8]) { self.input = input }

    private func starts(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { bytes in
            index + bytes.count <= input.count && input[index..<(index + bytes.count)].elementsEqual(bytes)
        }
    }

    private mutating func keep() {
        output.append(input[index])
        index += 1
    }

    private mutating func blank(_ count: Int = 1) {
        for _ in 0..<count where index < input.count {
            output.append(input[index] == UInt8(ascii: "\n") ? UInt8(ascii: "\n") : UInt8(ascii: " "))
            index += 1
        }
    }

    private mutating func readCode(untilParenthesis: Bool) {
        var depth = 0
        while index < input.count {
            if starts("//") {
                while index < input.count, input[index] != UInt8(ascii: "\n") { blank() }
            } else if starts("/*") {
                skipComment()
            } else if let pounds = quoteAhead() {
                readString(pounds: pounds)
            } else {
                let byte = input[index]
                if byte == UInt8(ascii: "(") { depth += 1 }
                if byte == UInt8(ascii: ")") {
                    if untilParenthesis, depth == 0 { return }
                    depth -= 1
                }
                keep()
            }
        }
    }

    private mutating func skipComment() {
        var depth = 0
        repeat {
            if starts("/*") {
                depth += 1
                blank(2)
            } else if starts("*/") {
                depth -= 1
                blank(2)
            } else {
                blank()
            }
        } while depth > 0 && index < input.count
    }

    /// The number of `#` before a quote at this place; nil if there is none.
    private func quoteAhead() -> Int? {
        var end = index
        while end < input.count, input[end] == UInt8(ascii: "#") { end += 1 }
        return end < input.count && input[end] == UInt8(ascii: "\"") ? end - index : nil
    }

    private mutating func readString(pounds: Int) {
        for _ in 0..<pounds { keep() }
        let isLong = starts("\"\"\"")
        let quotes = isLong ? 3 : 1
        for _ in 0..<quotes { keep() }
        let poundBytes = Array(repeating: UInt8(ascii: "#"), count: pounds)
        let end = Array(repeating: UInt8(ascii: "\""), count: quotes) + poundBytes
        let escape = [UInt8(ascii: "\\")] + poundBytes
        while index < input.count {
            if input[index...].starts(with: end) {
                for _ in end { keep() }
                return
            }
            if input[index...].starts(with: escape) {
                blank(escape.count)
                guard index < input.count else { return }
                if input[index] == UInt8(ascii: "(") {
                    keep()
                    readCode(untilParenthesis: true)
                    if index < input.count { keep() }
                } else {
                    blank()
                }
            } else {
                blank()
            }
        }
    }
}
