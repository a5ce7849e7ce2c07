import Foundation
import Testing

/// The calls that are cancelled at each of their waits are all of the SDK's.
///
/// A new function, or another form of one, isn't covered until an entry of `CancelledCalls` names it.
@Suite("Cancelled calls: the list")
struct CancelledCallListTests {
    /// Functions that don't need an entry for each form, and why.
    private static let exceptions = [
        "ChatEvents.next": "A loop calls one form or the other, and there is an entry with a loop.",
        "ListUpdates.next": "A loop calls one form or the other, and there is an entry with a loop.",
        "URLSessionTransport.run": "A chat calls it, and cancels it itself.",
        "WebSocketTransport.run": "A chat calls it, and cancels it itself.",
    ]

    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test("every asynchronous function of the SDK is among the cancelled calls, as often as it has forms")
    func complete() throws {
        let declared = try Self.counted(Self.declaredFunctions())
        let named = try Self.counted(Self.namedFunctions())
        let missing = declared.filter { named[$0.key, default: 0] < $0.value && Self.exceptions[$0.key] == nil }
        #expect(missing.keys.sorted() == [])
        #expect(named.keys.filter { declared[$0] == nil }.sorted() == [], "These names belong to no function.")
        #expect(Self.exceptions.keys.filter { declared[$0] == nil }.sorted() == [], "These exceptions belong to no function.")
        #expect(declared.count > 80, "The sources weren't read.")
    }

    @Test("a declaration is asynchronous if its own signature says so, and not one of its parameters")
    func readsDeclarations() {
        let code = """
            extension Chat {
                public func one() async throws { try await other() }
                @MainActor public func two(_ done: @escaping () async -> Void) { Task { await done() } }
                public nonisolated(nonsending) func three<Value: Sendable>(
                    _ value: (Value, Int) = (0, 1)
                ) async throws -> Value {
                }
                func four() async {}
            }

            public struct List: AsyncSequence {
                public struct Iterator: AsyncIteratorProtocol {
                    public mutating func next() async -> Int? { nil }
                }
            }
            """
        #expect(Self.functions(declaredIn: code) == ["Chat.one", "Chat.three", "List.next"])
    }

    private static func counted(_ names: [String]) -> [String: Int] {
        names.reduce(into: [:]) { counts, name in counts[name, default: 0] += 1 }
    }

    // MARK: The entries

    /// The functions that the entries name, as `Type.function`.
    private static func namedFunctions() throws -> [String] {
        let file = root.appending(path: "Tests/RoostTestingTests/CancelledCalls.swift")
        let text = try String(contentsOf: file, encoding: .utf8)
        return text.matches(of: /\badd\(\s*"([^"]+)"/).flatMap { functions(namedIn: $0.1) }
    }

    /// `LiveChannel.send, delete: a row` is for `LiveChannel.send` and `LiveChannel.delete`.
    private static func functions(namedIn entry: Substring) -> [String] {
        var type = ""
        var functions: [String] = []
        for part in entry.prefix(while: { $0 != ":" }).split(separator: ",") {
            let words = part.drop { $0 == " " }.split(separator: ".")
            if words.count == 2, let first = words.first { type = String(first) }
            if let last = words.last { functions.append("\(type).\(last)") }
        }
        return functions
    }

    // MARK: The sources

    /// The public asynchronous functions of the SDK, as `Type.function`: one with several forms is repeated for each.
    private static func declaredFunctions() throws -> [String] {
        let folder = root.appending(path: "Sources/Roost")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        return try paths.sorted().flatMap { path in
            functions(declaredIn: try String(contentsOf: folder.appending(path: path), encoding: .utf8))
        }
    }

    /// - Returns: The functions, each with the outermost type that it is declared in.
    private static func functions(declaredIn text: String) -> [String] {
        var functions: [String] = []
        var type = ""
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (number, line) in lines.enumerated() {
            // Regular expressions are slow in a debug build: most lines are skipped before.
            if line.first?.isLetter == true,
                let match = line.prefixMatch(of: /(?:\w+ )*(?:class|struct|enum|actor|protocol|extension) (\w+)/)
            {
                type = String(match.1)
            }
            guard line.contains("func "), let match = line.prefixMatch(of: /\s+(?:@\w+ )*public (?:[\w()]+ )*func (\w+)/) else {
                continue
            }
            if isAsync(lines[number...].joined(separator: "\n")) { functions.append("\(type).\(match.1)") }
        }
        return functions
    }

    /// Whether `async` is before a declaration's body, and not among its parameters.
    ///
    /// - Parameter code: Begins with the declaration.
    private static func isAsync(_ code: String) -> Bool {
        var depth = 0
        var signature = ""
        for character in code {
            switch character {
            case "(": depth += 1
            case ")": depth -= 1
            case "{" where depth == 0: return signature.contains("async")
            default: if depth == 0 { signature.append(character) }
            }
        }
        return false
    }
}
