import ArgumentParser
import Foundation
import RoostAPI
import RoostServer

/// The words `field=value` of a command line as the fields of an operation, each read according to its schema.
///
/// - A field of an object is named with the object, `policy.send=members`, or the object is given as JSON, `policy={"send":"members"}`.
/// - A list is JSON, or its values separated by commas; given again, it gets further values.
struct CallFields {
    private(set) var values: [String: JSONValue] = [:]
    private let operation: OperationGuide

    /// - Throws: `ValidationError` for a word that isn't a field of the operation, or whose value the field doesn't accept.
    init(_ words: [String], of operation: OperationGuide) throws {
        self.operation = operation
        for word in words {
            guard let equals = word.firstIndex(of: "="), equals != word.startIndex else {
                throw ValidationError("\(word.safe()) isn't field=value. \(Self.help(operation))")
            }
            let names = word[..<equals].split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            let text = String(word[word.index(after: equals)...])
            values = try put(
                text, at: names[...], into: values, operation.schema.fields, parent: [])
        }
        if let missing = operation.schema.fields.first(where: { $0.isRequired && values[$0.name] == nil }) {
            throw ValidationError("\(operation.name) needs \(missing.name)=… \(Self.help(operation))")
        }
    }

    static func help(_ operation: OperationGuide) -> String { "roost call \(operation.name) --help lists its fields." }

    // MARK: Places

    private func put(
        _ text: String, at names: ArraySlice<String>, into object: [String: JSONValue], _ fields: [Schema.Field], parent: [String]
    ) throws -> [String: JSONValue] {
        guard let name = names.first else { return object }
        let path = parent + [name]
        guard let field = fields.first(where: { $0.name == name }) else { throw unknown(path, among: fields, parent: parent) }
        var object = object
        object[name] = try value(text, at: names.dropFirst(), of: field.schema, over: object[name], path: path)
        return object
    }

    /// Returns a value that replaces another, or a part of it.
    private func value(
        _ text: String, at names: ArraySlice<String>, of schema: Schema, over before: JSONValue?, path: [String]
    ) throws -> JSONValue {
        guard let name = names.first else {
            let read = try value(text, of: schema, path: path)
            guard let before else { return read }
            guard case .array(let earlier) = before, case .array(let further) = read else {
                throw ValidationError("\(path.joined(separator: ".")) is given twice.")
            }
            return .array(earlier + further)
        }
        var inner: [String: JSONValue] = [:]
        switch before {
        case .object(let there)?: inner = there
        case nil: break
        default: throw ValidationError("\(path.joined(separator: ".").safe()) is given twice.")
        }
        switch schema {
        case .object(_, let fields):
            return .object(try put(text, at: names, into: inner, fields, parent: path))
        case .map(let element):
            // The whole text before the `=` is one key.
            let key = names.joined(separator: ".")
            inner[key] = try value(text, at: [], of: element, over: inner[key], path: path + [key])
            return .object(inner)
        case .any:
            inner[name] = try value(text, at: names.dropFirst(), of: .any, over: inner[name], path: path + [name])
            return .object(inner)
        case .string, .integer, .number, .boolean, .enumeration, .array:
            throw ValidationError("\(path.joined(separator: ".")) is \(schema.inWords), and has no field \(name.safe()).")
        }
    }

    private func unknown(_ path: [String], among fields: [Schema.Field], parent: [String]) -> ValidationError {
        let name = path.last ?? ""
        let whole = parent.isEmpty ? operation.name : parent.joined(separator: ".")
        let known = fields.map(\.name)
        guard !known.isEmpty else { return ValidationError("\(whole) has no fields, so there is no \(name.safe()).") }
        let nearest = known.nearest(to: name).map { " Did you mean \($0)?" } ?? ""
        return ValidationError("\(whole) has no field \(name.safe()).\(nearest) It has: \(known.joined(separator: ", ")).")
    }

    // MARK: Values

    private func value(_ text: String, of schema: Schema, path: [String]) throws -> JSONValue {
        let name = path.joined(separator: ".")
        switch schema {
        case .string: return .string(text)
        case .integer:
            guard let number = Int64(text) else { throw wrong(name, "a whole number of at most 64 bits", text) }
            return .integer(number)
        case .number:
            guard let number = Double(text), number.isFinite else { throw wrong(name, "a number", text) }
            return .number(number)
        case .boolean:
            guard text == "true" || text == "false" else { throw wrong(name, "true or false", text) }
            return .boolean(text == "true")
        case .enumeration(let cases):
            guard cases.contains(text) else { throw wrong(name, "one of: \(cases.joined(separator: ", "))", text) }
            return .string(text)
        case .array(let element) where !element.isTypedAsText:
            // Such values can contain commas themselves, so only JSON can delimit them.
            switch try Self.json(text, at: path) {
            case .array(let values)?: return .array(values)
            case .object(let fields)?: return .array([.object(fields)])
            default:
                throw wrong(name, "a JSON list of objects, like \(CallExample.word(name, schema))", text)
            }
        case .array(let element):
            guard !text.hasPrefix("[") else {
                guard case .array(let values)? = try Self.json(text, at: path) else {
                    throw wrong(name, "a JSON array, or values separated by commas", text)
                }
                return .array(values)
            }
            guard !text.isEmpty else { return .array([]) }
            return .array(
                try text.split(separator: ",", omittingEmptySubsequences: false).map {
                    try value(String($0), of: element, path: path)
                })
        case .object, .map:
            guard case .object(let fields)? = try Self.json(text, at: path) else {
                throw wrong(name, "a JSON object, like '{…}', or be given by its fields: \(name).NAME=VALUE", text)
            }
            return .object(fields)
        case .any:
            // Inside free JSON, anything that isn't JSON is a text.
            let json = try Self.json(text, at: path)
            guard path.count == 1 else { return json ?? .string(text) }
            guard case .object(let fields)? = json else { throw wrong(name, "a JSON object, like '{\"floor\": 3}'", text) }
            return .object(fields)
        }
    }

    private func wrong(_ name: String, _ what: String, _ text: String) -> ValidationError {
        let shown = text.count > 60 ? text.prefix(60) + "…" : text[...]
        return ValidationError("\(name) must be \(what); it is '\(String(shown).safe())'.")
    }

    /// Returns the value of JSON, nil for any other text; throws for JSON that couldn't be stored as typed.
    private static func json(_ text: String, at path: [String]) throws -> JSONValue? {
        do { return try StrictJSON.valueIfAny(of: Array(text.utf8), at: path) } catch {
            throw ValidationError(error.message.safe())
        }
    }
}

extension Schema {
    /// Whether a value is typed as plain text instead of JSON.
    fileprivate var isTypedAsText: Bool {
        switch self {
        case .object, .map, .any, .array: false
        case .string, .integer, .number, .boolean, .enumeration: true
        }
    }
}

/// Examples of values, derived from their schema.
enum CallExample {
    /// A field as typed in a shell: `'mentionees=[{"type":"user","users":["bob"]}]'`.
    static func word(_ name: String, _ schema: Schema) -> String {
        let json = (try? JSONWriter.bytes(of: value(schema))).map { String(decoding: $0, as: UTF8.self) } ?? "…"
        return "'\(name)=\(json)'"
    }

    /// A list of objects as typed; nil for other fields.
    static func ofObjects(_ name: String, _ schema: Schema) -> String? {
        guard case .array(let element) = schema, !element.isTypedAsText else { return nil }
        return word(name, schema)
    }

    private static func value(_ schema: Schema, named name: String = "") -> JSONValue {
        switch schema {
        case .string: .string(name.hasPrefix("user") ? "bob" : "…")
        case .integer: 1
        case .number: 1.5
        case .boolean: true
        case .enumeration(let cases): .string(cases.first ?? "…")
        case .array(let element): .array([value(element, named: name)])
        case .map(let element): ["…": value(element)]
        case .object(_, let fields):
            .object(Dictionary(uniqueKeysWithValues: fields.map { ($0.name, value($0.schema, named: $0.name)) }))
        case .any: [:]
        }
    }
}
