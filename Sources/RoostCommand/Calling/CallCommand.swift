import ArgumentParser
import Foundation
import RoostAPI
import RoostServer

/// `roost call`: any operation of the protocol, from the terminal.
///
/// It has no code for single operations. Fields, limits and completions come from the table of operations, so a new operation can be called
/// as soon as it exists.
struct CallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call", abstract: "Call any operation by its name and fields, and print its answer as JSON.",
        usage: """
            roost call <operation> [<field>=<value> ...] [--as <user>] [--admin] [--url <url>] [--data <data>] [--token <token>]
            roost call <operation> --help
            roost call --list [<part of a name>]
            """,
        discussion: """
            roost call message.send channel=general clientId=1 text='Good morning' --as ann
            roost call channel.update channel=general policy.send=operators tags=news,today --as ann
            roost call channel.query membership=all 'includingTags=["news"]' limit=5 --as ann
            roost call message.send channel=general clientId=2 text='Hi @bob' 'mentionees=[{"type":"user","users":["bob"]}]' --as ann

            Give an object as JSON, or its fields as policy.send=operators. Give a list as JSON, or its values separated by commas; repeat the field \
            for more. Give a list of objects as JSON. Unknown fields are refused before the server is asked.

            Calls are made over HTTP. Operations about one connection, such as channel.watch and reading.start, need a WebSocket and are refused: \
            not_connected.

            With --as on the server's machine it makes its own token from the data directory; anywhere else, give one with --token or ROOST_TOKEN. \
            Exit code 1 if the server or the operation's own limits refuse; the refusal and its code are printed to standard error. \
            Exit code 64 for an operation, a field or a value that can't be read.
            """,
        helpNames: [])

    @Argument(
        help: ArgumentHelp("The operation, as the protocol names it: message.send.", valueName: "operation"),
        completion: .custom { words, _, prefix in CallCompletions.operations(words, prefix) })
    var name: String?
    @Argument(
        help: ArgumentHelp("A field of the operation.", valueName: "field=value"),
        completion: .custom { words, _, prefix in CallCompletions.fields(words, prefix) })
    var fields: [String] = []
    @Flag(help: "List the operations, or only those whose name contains a text.") var list = false
    @Flag(name: .shortAndLong, help: "Show help; after an operation, its fields with their types and limits.") var help = false
    @OptionGroup var asking: AskingOptions

    func validate() throws {
        if list {
            _ = try CallHelp.list(name)
        } else if let name {
            let operation = try CallHelp.operation(name)
            if !help { _ = try CallFields(fields, of: operation) }
        } else if !help {
            throw ValidationError("Missing operation. See roost call --list.")
        }
    }

    func run() async throws {
        guard !list else { return try Output.lines(try CallHelp.list(name)) }
        guard let name else { throw CleanExit.helpRequest(CallCommand.self) }
        let operation = try CallHelp.operation(name)
        guard !help else { return try Output.lines(CallHelp.lines(of: operation)) }
        let values = try CallFields(fields, of: operation).values
        if let refusal = operation.refusal(ofUnreadable: values) { throw ValidationError(refusal.message.safe()) }
        do {
            let request = try operation.operation(with: values)
            try await asking.run { connection in try await connection.show(request) }
        } catch let error as RoostError {
            throw Failure(error.summaryLine)
        }
    }
}

extension CallConnection {
    /// Calls an operation and prints the whole response. Exit code 1 if one of several users was refused.
    fileprivate func show(_ operation: any RoostAPI.Operation) async throws {
        let body = try await answer(to: try CallRequest(operation))
        let response: JSONValue
        do {
            response = try JSONDecoder().decode(JSONValue.self, from: body)
        } catch {
            throw Failure("The response isn't JSON; is the server a different version?")
        }
        try Output.json(response)
        if response.refusesAUser { throw ExitCode(1) }
    }
}

extension JSONValue {
    /// Whether it has the results for several users (``MemberResults``), and one was refused. A newer server's results may have other members and codes.
    fileprivate var refusesAUser: Bool {
        guard case .array(let results)? = self["results"] else { return false }
        return results.contains { $0["outcome"]?.stringValue == MemberResult.Outcome.refused.rawValue }
    }
}

/// The help of `roost call` about operations.
enum CallHelp {
    /// The operations whose name has a part, each with its summary.
    static func list(_ part: String?) throws -> [String] {
        let found = OperationGuide.all.filter { operation in part.map { operation.name.contains($0) } ?? true }
        guard !found.isEmpty else {
            throw ValidationError("No operation has \((part ?? "").safe()) in its name. roost call --list shows all of them.")
        }
        return Output.table(found.map { [$0.name, $0.summary] })
    }

    /// Returns the operation of a name; throws with the nearest name if there is none.
    static func operation(_ name: String) throws -> OperationGuide {
        if let operation = OperationGuide.named(name) { return operation }
        let nearest = OperationGuide.all.map(\.name).nearest(to: name).map { " Did you mean \($0)?" } ?? ""
        throw ValidationError("There is no operation \(name.safe()).\(nearest) roost call --list shows all of them.")
    }

    static func lines(of operation: OperationGuide) -> [String] {
        let rows = operation.fields().filter { !isRefused($0.path, by: operation) }.map { field in
            [field.path + (field.isRequired ? "" : "?"), field.type, field.limits]
        }
        let lists = operation.schema.fields.compactMap { CallExample.ofObjects($0.name, $0.schema) }
        let head = [operation.summary, "", "\(operation.route), with the permission \(operation.permission.rawValue)", ""]
        let fields = rows.isEmpty ? ["It has no fields."] : Output.table([["field", "type", "limits"]] + rows)
        let note = rows.contains { $0[0].hasSuffix("?") } ? ["", "A field marked ? is optional."] : []
        let examples = lists.isEmpty ? [] : ["", "A list of objects is JSON:"] + lists.map { "  \($0)" }
        return head + fields + note + examples + ["", "Answer: \(answer(operation.response))"]
    }

    /// Fields of nested objects that the operation always refuses. The schema has them because the object is another operation.
    static let refusedFields = ["channel.watch": ["create.channel", "create.idempotencyKey"]]

    static func isRefused(_ path: String, by operation: OperationGuide) -> Bool {
        refusedFields[operation.name]?.contains(path) == true
    }

    private static func answer(_ schema: Schema) -> String {
        switch schema {
        case .array(let element): "a list of " + answer(element)
        case .object(let name, let fields):
            fields.isEmpty ? "{}" : "\(name) with \(fields.map(\.name).joined(separator: ", "))"
        default: schema.inWords
        }
    }
}

/// Shell completions for a call being typed.
enum CallCompletions {
    static func operations(_ words: [String], _ prefix: String) -> [String] {
        OperationGuide.all.map(\.name).filter { $0.hasPrefix(prefix) }
    }

    /// The fields not given yet; after `field=`, the values of a field with a fixed set.
    ///
    /// Bash makes three words of `kind=te`, and inserts a completion in place of the last one: values are then offered without their field.
    static func fields(_ words: [String], _ prefix: String) -> [String] {
        guard let operation = words.lazy.compactMap(OperationGuide.named).first else { return [] }
        let fields = operation.schema.fields.flatMap { paths(of: $0, path: $0.name) }
            .filter { !CallHelp.isRefused($0.path, by: operation) }
        if let name = fieldBefore(words) {
            let value = prefix == "=" ? "" : prefix
            return fields.filter { $0.path == name }.flatMap { values(of: $0.schema) }.filter { $0.hasPrefix(value) }
        }
        if prefix.contains("=") {
            return fields.flatMap { path, schema in values(of: schema).map { "\(path)=\($0)" } }.filter { $0.hasPrefix(prefix) }
        }
        var given = Set(words.filter { $0.contains("=") }.map { String($0.prefix { $0 != "=" }) })
        for (word, next) in zip(words, words.dropFirst()) where next == "=" { given.insert(word) }
        return fields.map(\.path).filter { !given.contains($0) && $0.hasPrefix(prefix) }.map { $0 + "=" }
    }

    /// The field whose value is the last word, if the shell splits words at `=`; nil otherwise. An empty word is a new one after a space.
    private static func fieldBefore(_ words: [String]) -> String? {
        let others = words.dropLast()
        if words.last == "=" { return others.last }
        return words.last?.isEmpty == false && others.last == "=" ? others.dropLast().last : nil
    }

    private static func paths(of field: Schema.Field, path: String) -> [(path: String, schema: Schema)] {
        let inner = field.schema.fields.flatMap { paths(of: $0, path: "\(path).\($0.name)") }
        return inner.isEmpty ? [(path, field.schema)] : inner
    }

    private static func values(of schema: Schema) -> [String] {
        switch schema {
        case .boolean: ["true", "false"]
        case .enumeration(let cases), .array(.enumeration(let cases)): cases
        default: []
        }
    }
}
