import ArgumentParser
import Foundation
import RoostAPI
import RoostServer
import Testing

@testable import RoostCommand

@Suite("Examples of calls")
struct CallExampleTests {
    /// The words of a line as a shell reads them: with quotes, up to a comment.
    private static func words(_ line: String) -> [String] {
        var (words, word, isQuoted) = ([String](), "", false)
        for character in line + " " {
            switch character {
            case "'": isQuoted.toggle()
            case " " where !isQuoted:
                if !word.isEmpty { words.append(word) }
                word = ""
            default: word.append(character)
            }
        }
        return Array(words.prefix { $0 != "#" })
    }

    /// The lines of a text that call an operation.
    private static func calls(in text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter {
            $0.hasPrefix("roost call ") && !$0.hasPrefix("roost call -") && !$0.hasPrefix("roost call <")
        }
    }

    private static let readme = try? String(
        contentsOf: URL(filePath: #filePath).appending(path: "../../../../README.md").standardized, encoding: .utf8)

    @Test("every example in the help and in the README is a valid operation with its fields")
    func examples() throws {
        let lines = Self.calls(in: CallCommand.configuration.discussion) + Self.calls(in: try #require(Self.readme))
        #expect(lines.count >= 6)
        for line in lines {
            let command = try #require(
                try RoostCommand.parseAsRoot(Array(Self.words(line).dropFirst())) as? CallCommand, "\(line)")
            let operation = try CallHelp.operation(try #require(command.name))
            #expect(throws: Never.self, "\(line)") {
                try operation.operation(with: try CallFields(command.fields, of: operation).values)
            }
        }
    }

    @Test("an operation's help shows how to type its lists of objects, and the operation accepts that form")
    func listsOfObjects() throws {
        let send = try #require(OperationGuide.named("message.send"))
        #expect(CallHelp.lines(of: send).contains(#"  'mentionees=[{"type":"user","users":["bob"]}]'"#))
        for operation in OperationGuide.all {
            let examples = operation.schema.fields.compactMap { CallExample.ofObjects($0.name, $0.schema) }
            for example in examples { #expect(CallHelp.lines(of: operation).contains("  " + example), "\(operation.name)") }
        }
    }

    @Test("a field that an operation always refuses isn't offered")
    func refusedFields() throws {
        for (name, paths) in CallHelp.refusedFields {
            let operation = try #require(OperationGuide.named(name))
            for path in paths {
                let fields = try CallFields(["channel=general", "\(path)=a"], of: operation).values
                #expect(throws: RoostError.self, "\(name) \(path)") { try operation.operation(with: fields) }
                #expect(!CallHelp.lines(of: operation).contains { $0.hasPrefix(path) })
                #expect(!CallCompletions.fields(["roost", "call", name], path).contains("\(path)="))
            }
        }
    }
}
