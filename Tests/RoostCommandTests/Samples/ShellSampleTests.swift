import ArgumentParser
import Foundation
import RoostAPI
import RoostServer
import Testing

@testable import RoostCommand

/// Commands copied from a page do what the page says.
@Suite("Samples of commands")
struct ShellSampleTests {
    /// The commands of a program that pages show.
    private static func samples(of program: String) -> [(page: String, words: [String])] {
        DocumentPage.all.flatMap { page in
            let commands = ShellReader.commands(in: page.shell)
            return commands.filter { $0.first == program || $0.first?.hasSuffix("/\(program)") == true }
                .map { (page: page.path, words: $0) }
        }
    }

    /// Returns a line for each command that is refused.
    private static func refused(
        _ samples: [(page: String, words: [String])], _ refusal: (_ words: [String]) -> String?
    ) -> [String] {
        samples.compactMap { page, words in refusal(words).map { "\(page): \(words.joined(separator: " ")): \($0)" } }
    }

    @Test("every roost command on a page is accepted by the program")
    func commands() {
        let samples = Self.samples(of: "roost")
        #expect(samples.count >= 60)
        #expect(Self.refused(samples) { Self.refusal(ofCommand: $0) } == [])
    }

    private static func refusal(ofCommand words: [String]) -> String? {
        var words = Array(words.dropFirst())
        // Files that a command names must exist: the other program of a comparison, and the directory to measure on.
        for (option, place) in [("--against", "/bin/sh"), ("--on", "/tmp")] {
            if let option = words.firstIndex(of: option), option + 1 < words.count { words[option + 1] = place }
        }
        do {
            let command = try RoostCommand.parseAsRoot(NegativeNumbers.attached(words))
            guard let call = command as? CallCommand, !call.list, !call.help, let name = call.name else { return nil }
            let operation = try CallHelp.operation(name)
            _ = try operation.operation(with: try CallFields(call.fields, of: operation).values)
            return nil
        } catch {
            return RoostCommand.message(for: error)
        }
    }

    @Test("every curl request on a page is an operation with its fields, or one for monitoring")
    func requests() {
        let samples = Self.samples(of: "curl")
        #expect(samples.count >= 30)
        #expect(Self.refused(samples) { Self.refusal(ofRequest: $0) } == [])
    }

    private static func refusal(ofRequest words: [String]) -> String? {
        let request = CurlRequest(words)
        if request.method == "GET", ["/livez", "/readyz", "/metrics"].contains(request.path) { return nil }
        let found = OperationGuide.all.compactMap { operation in
            request.parameters(of: operation).map { (operation: operation, parameters: $0) }
        }
        // A word takes precedence over a field in its place.
        guard let (operation, parameters) = found.min(by: { $0.parameters.count < $1.parameters.count }) else {
            return "There is no operation \(request.method) \(request.path)."
        }
        do {
            let fields = try CallFields(parameters + request.query + request.bodyFields(), of: operation)
            _ = try operation.operation(with: fields.values)
            return nil
        } catch {
            return RoostCommand.message(for: error)
        }
    }

    @Test(
        "commands are read as a shell reads them",
        arguments: [
            (#"a 'b  c' "d $e"  # f"#, ["a|b  c|d 1"]), ("for x in 1 2; do A=1 a $x; done", ["for|x|in|1|2", "a|1", "done"]),
            ("a | b && c &", ["a", "b", "c"]), (#"x=$(a --b "$c") d"#, ["a|--b|1", "d"]),
            ("a \\\n  b 2>c.log & d=$!", ["a|b"]), ("a '{\"b\":\n\"c\"}'\nd", ["a|{\"b\":\n\"c\"}", "d"]),
        ])
    func readsShell(text: String, commands: [String]) {
        #expect(ShellReader.commands(in: text).map { $0.joined(separator: "|") } == commands)
    }
}

/// A request made by curl.
private struct CurlRequest {
    let method: String
    let path: String
    /// Each as `name=value`.
    let query: [String]
    private let body: String?

    init(_ words: [String]) {
        var (named, target, body) = (String?.none, "", String?.none)
        var rest = words.dropFirst()
        while let word = rest.popFirst() {
            switch word {
            case "-X": named = rest.popFirst()
            case "--json": body = rest.popFirst()
            case "-H": rest = rest.dropFirst()
            case "-s", "--silent", "--fail": break
            default: target = word
            }
        }
        method = named ?? (body == nil ? "GET" : "POST")
        let address = target.replacing(#/^https?:///#, with: "")
        let parts = address.drop { $0 != "/" }.split(separator: "?", maxSplits: 1)
        path = parts.first.map(String.init) ?? ""
        query = parts.dropFirst().flatMap { $0.split(separator: "&").map(String.init) }
        self.body = body
    }

    /// Returns the fields of an operation that are in the path, each as `name=value`; nil if the request isn't one for it.
    func parameters(of operation: OperationGuide) -> [String]? {
        let route = operation.route.split(separator: " ")
        guard route.count == 2, route[0] == method else { return nil }
        let (names, values) = (route[1].split(separator: "/"), path.split(separator: "/"))
        let pairs = Array(zip(names, values))
        guard names.count == values.count, pairs.allSatisfy({ $0.0.hasPrefix("{") || $0.0 == $0.1 }) else { return nil }
        return pairs.filter { $0.0.hasPrefix("{") }.map { "\($0.0.dropFirst().dropLast())=\($0.1)" }
    }

    /// The fields of the body, in the form of `roost call`.
    func bodyFields() throws -> [String] {
        guard let body else { return [] }
        let fields = try JSONDecoder().decode([String: JSONValue].self, from: Data(body.utf8))
        return try fields.map { name, value in
            if case .string(let text) = value { return "\(name)=\(text)" }
            let json = try JSONWriter.bytes(of: value)
            return "\(name)=\(String(decoding: json, as: UTF8.self))"
        }
    }
}
