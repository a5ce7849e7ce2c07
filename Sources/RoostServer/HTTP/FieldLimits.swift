import Foundation
import RoostAPI
import RoostCore

/// The limits of an operation's fields, found by probing the operation: each field is tried with values that are too long, too many, too small or
/// too large, and the refusals give the limits.
///
/// So the API description has no list of limits of its own, and can't differ from what `validate()` enforces.
struct FieldLimits {
    private let entry: OperationTable.Entry
    /// Valid values of the required fields.
    private let required: [String: JSONValue]

    /// The schemas of the operations' fields, by operation and field. Made when a description is first requested.
    private static let schemas: [String: [String: [String: JSONValue]]] = {
        var all: [String: [String: [String: JSONValue]]] = [:]
        for type in OperationTable.handled {
            guard let entry = OperationTable.named(type.name) else { continue }
            let limits = FieldLimits(of: entry)
            for field in entry.schema.fields { all[type.name, default: [:]][field.name] = limits.askedSchema(of: field) }
        }
        return all
    }()

    init(of entry: OperationTable.Entry) {
        self.entry = entry
        var required: [String: JSONValue] = [:]
        let fields = entry.schema.fields.filter(\.isRequired)
        for field in fields { required[field.name] = Self.example(field.schema) }
        // Not every case of an enumeration is valid for every field.
        for field in fields {
            for value in Self.cases(of: field.schema) where Self.refusal(required, of: entry)?.field == field.name {
                required[field.name] = value
            }
        }
        self.required = required
    }

    /// Returns each case of an enumeration, or a list with only that case.
    private static func cases(of schema: Schema) -> [JSONValue] {
        switch schema {
        case .enumeration(let cases): cases.map(JSONValue.string)
        case .array(let element): cases(of: element).map { [$0] }
        default: []
        }
    }

    /// A valid call with only the required fields.
    var example: [String: JSONValue] { required }

    /// The schema of a field with its limits.
    func schema(of field: Schema.Field) -> [String: JSONValue] { Self.schemas[entry.type.name]?[field.name] ?? [:] }

    /// Some of the fields, as an object that allows no others.
    func object(of fields: [Schema.Field]) -> JSONValue {
        [
            "type": "object", "additionalProperties": false,
            "required": .array(fields.filter(\.isRequired).map { .string($0.name) }),
            "properties": .object(
                Dictionary(
                    fields.map { ($0.name, .object(schema(of: $0).orNull(unless: $0.isRequired))) },
                    uniquingKeysWith: { first, _ in first })),
        ]
    }

    /// The same for a single operation, without computing those of all.
    func ownSchema(of field: Schema.Field) -> [String: JSONValue] { askedSchema(of: field) }

    private func askedSchema(of field: Schema.Field) -> [String: JSONValue] {
        let probe = Probe(limits: self, name: field.name, beside: companions(of: field)) { $0 }
        return probe.schema(field.schema)
    }

    // MARK: Asking

    /// Returns why a call is refused; nil if it isn't.
    private func refusal(_ fields: [String: JSONValue]) -> RoostError? { Self.refusal(fields, of: entry) }

    private static func refusal(_ fields: [String: JSONValue], of entry: OperationTable.Entry) -> RoostError? {
        do {
            _ = try entry.decode(from: Data(try JSONWriter.bytes(of: JSONValue.object(fields))))
            return nil
        } catch {
            return RoostError(decoding: error)
        }
    }

    /// Returns the additional fields that a field needs to be valid at all: for example, the metadata that a version belongs to.
    private func companions(of field: Schema.Field) -> [String: JSONValue] {
        let value = Self.example(field.schema)
        if refusal(required.merging([field.name: value]) { $1 }) == nil { return [:] }
        for other in entry.schema.fields where !other.isRequired && other.name != field.name {
            let companion = [other.name: Self.example(other.schema)]
            if refusal(required.merging(companion) { $1 }.merging([field.name: value]) { $1 }) == nil { return companion }
        }
        return [:]
    }

    /// Returns some valid value of a schema, as far as the schema tells.
    static func example(_ schema: Schema) -> JSONValue {
        switch schema {
        case .string(let format, _, _): .string(format == "int64" ? "1" : "example")
        case .integer: 1
        case .number: 1
        case .boolean: true
        case .enumeration(let cases): .string(cases.last ?? "")
        case .array(let element): [example(element)]
        case .object(_, let fields):
            .object(Dictionary(fields.filter(\.isRequired).map { ($0.name, example($0.schema)) }) { first, _ in first })
        case .map, .any: [:]
        }
    }

    fileprivate func isRefused(_ value: JSONValue, at name: String, beside companions: [String: JSONValue]) -> RoostError? {
        refusal(required.merging(companions) { $1 }.merging([name: value]) { $1 })
    }
}

/// Probes one value of an operation: a field, an element of an array in it, or a field of an object in it.
private struct Probe {
    let limits: FieldLimits
    let name: String
    let beside: [String: JSONValue]
    /// Puts a value in its place in the field.
    let wrap: (JSONValue) -> JSONValue

    init(
        limits: FieldLimits, name: String, beside: [String: JSONValue], wrap: @escaping (JSONValue) -> JSONValue
    ) {
        (self.limits, self.name, self.beside, self.wrap) = (limits, name, beside, wrap)
    }

    private func refusal(_ value: JSONValue) -> RoostError? { limits.isRefused(wrap(value), at: name, beside: beside) }
    private func isRefused(_ value: JSONValue) -> Bool { refusal(value) != nil }

    private func inside(_ wrap: @escaping (JSONValue) -> JSONValue) -> Probe {
        Probe(limits: limits, name: name, beside: beside) { self.wrap(wrap($0)) }
    }

    /// More characters, and more values, than any limit allows.
    private static let tooLong = 25_001
    private static let tooManyElements = 1001
    private static let tooManyKeys = 25_001

    func schema(_ schema: Schema) -> [String: JSONValue] {
        switch schema {
        case .string(let format, _, let pattern): text(format: format, pattern: pattern)
        case .integer: number()
        case .number: ["type": "number"]
        case .boolean: ["type": "boolean"]
        case .enumeration(let cases):
            ["type": "string", "enum": .array(cases.map(JSONValue.string).filter { !isRefused($0) || cases.count == 1 })]
        case .array(let element): list(of: element)
        case .map(let value): map(to: value)
        case .any: anyObject()
        case .object(_, let fields):
            object(of: fields)
        }
    }

    private func anyObject() -> [String: JSONValue] {
        let large = JSONValue.string(String(repeating: "a", count: Limits.metadataSizeBytes + 1))
        let limit = refusal(["a": large])?.limit ?? Int64(Limits.metadataSizeBytes)
        return [
            "type": "object",
            "description": .string("At most \(limit) bytes of UTF-8 as JSON, \(Limits.metadataDepth) levels of nesting."),
        ]
    }

    private func object(of fields: [Schema.Field]) -> [String: JSONValue] {
        let members = fields.filter(belongs).map { field in
            let others = companions(of: field, in: fields)
            let schema = inside { .object(others.merging([field.name: $0]) { $1 }) }.schema(field.schema)
            return (field.name, JSONValue.object(schema.orNull(unless: field.isRequired)))
        }
        let required = fields.filter(\.isRequired).map { JSONValue.string($0.name) }
        return ["type": "object", "additionalProperties": false, "properties": .object(Dictionary(members) { first, _ in first })]
            .merging(required.isEmpty ? [:] : ["required": .array(required)]) { $1 }
    }

    /// Returns the other fields with which an example of a field is valid: a mention has names only with one of its types, and a query needs
    /// members to say how they have to match.
    private func companions(of field: Schema.Field, in fields: [Schema.Field]) -> [String: JSONValue] {
        let others = fields.filter { $0.isRequired && $0.name != field.name }
        let examples = Dictionary(others.map { ($0.name, FieldLimits.example($0.schema)) }) { first, _ in first }
        let variants = others.flatMap { other -> [[String: JSONValue]] in
            guard case .enumeration(let cases) = other.schema else { return [] }
            return cases.map { examples.merging([other.name: .string($0)]) { $1 } }
        }
        let optional = fields.filter { !$0.isRequired && $0.name != field.name }
            .map { other in examples.merging([other.name: FieldLimits.example(other.schema)]) { $1 } }
        let example = FieldLimits.example(field.schema)
        return (variants + [examples] + optional).first { !isRefused(.object($0.merging([field.name: example]) { $1 })) }
            ?? examples
    }

    /// Whether an object may have a member at all: an operation can take part of another's fields, and then refuses the object for the rest.
    private func belongs(_ field: Schema.Field) -> Bool {
        guard !field.isRequired, !isRefused([:]) else { return true }
        return refusal(.object([field.name: FieldLimits.example(field.schema)]))?.field != name
    }

    private func text(format: String?, pattern: String?) -> [String: JSONValue] {
        var result: [String: JSONValue] = ["type": "string"]
        if let format { result["format"] = .string(format) }
        // Only a refusal for the length has a limit. Others are, for example, for the characters.
        if let refusal = refusal(.string(String(repeating: "a", count: Self.tooLong))), let limit = refusal.limit {
            result["maxLength"] = .integer(limit)
        }
        if isRefused("") { result["minLength"] = 1 }
        if let pattern { result["pattern"] = .string(pattern) }
        if isRefused("example"), !isRefused("https://example.org/1.png") {
            result["pattern"] = .string(Limits.coverURLPattern)
        } else if pattern == nil || pattern == VisibleText.identifierPattern, isRefused("a\u{200B}b"), !isRefused("example") {
            result["pattern"] = .string(isRefused("a/b") ? VisibleText.newIdentifierPattern : VisibleText.displayNamePattern)
        } else if pattern == nil, isRefused("a\u{0}b") {
            // A client id: a sent one has the pattern of ids, a received one doesn't.
            let isIdentifier = isRefused("a/b") && isRefused("a,b") && !isRefused("example")
            result["pattern"] = .string(isIdentifier ? VisibleText.identifierPattern : VisibleText.textPattern)
        }
        return result
    }

    private func number() -> [String: JSONValue] {
        var result: [String: JSONValue] = ["type": "integer", "format": "int64"]
        guard !isRefused(1) else { return result }
        // -1 can be a special value, which means forever.
        let isForEver = isRefused(0) && !isRefused(-1)
        let least = isForEver ? 1 : edge(from: 1, towards: .min)
        result["minimum"] = .integer(least)
        result["maximum"] = .integer(edge(from: 1, towards: .max))
        guard isForEver else { return result }
        return ["type": "integer", "format": "int64", "anyOf": [["const": -1], .object(result)]]
    }

    /// Returns the last valid number between a valid one and another.
    private func edge(from valid: Int64, towards end: Int64) -> Int64 {
        if !isRefused(.integer(end)) { return end }
        var (inside, outside) = (valid, end)
        while true {
            let middle = inside / 2 + outside / 2 + (inside % 2 + outside % 2) / 2
            if middle == inside || middle == outside { return inside }
            if isRefused(.integer(middle)) { outside = middle } else { inside = middle }
        }
    }

    private func list(of element: Schema) -> [String: JSONValue] {
        var result: [String: JSONValue] = ["type": "array", "items": .object(inside { [$0] }.schema(element))]
        let one = FieldLimits.example(element)
        let many = (0..<Self.tooManyElements).map { number -> JSONValue in
            guard case .string(let format, _, _) = element else { return one }
            return .string(format == "int64" ? "\(number + 1)" : "x\(number)")
        }
        if let limit = refusal(.array(many))?.limit { result["maxItems"] = .integer(limit) }
        if isRefused([]) { result["minItems"] = 1 }
        if isRefused([one, one]), !isRefused([one]) { result["uniqueItems"] = true }
        return result
    }

    private func map(to value: Schema) -> [String: JSONValue] {
        var result: [String: JSONValue] = [
            "type": "object", "additionalProperties": .object(inside { ["example": $0] }.schema(value)),
        ]
        let one = FieldLimits.example(value)
        let many = Dictionary(uniqueKeysWithValues: (0..<Self.tooManyKeys).map { ("x\($0)", one) })
        if let limit = refusal(.object(many))?.limit { result["maxProperties"] = .integer(limit) }
        let long = String(repeating: "a", count: Self.tooLong)
        if let limit = refusal(.object([long: one]))?.limit { result["propertyNames"] = ["maxLength": .integer(limit)] }
        if isRefused(["a/b": one]), case .string(_, let length?, let pattern?) = ChannelID.schema {
            result["propertyNames"] = ["maxLength": .integer(Int64(length)), "pattern": .string(pattern)]
        }
        return result
    }
}

extension [String: JSONValue] {
    /// A schema that also takes `null`, as every optional field does.
    func orNull(unless isRequired: Bool) -> [String: JSONValue] {
        guard !isRequired else { return self }
        guard case .string(let type)? = self["type"], self["anyOf"] == nil else {
            return ["anyOf": [.object(self), ["type": "null"]]]
        }
        var result = self
        result["type"] = [.string(type), "null"]
        if case .array(let cases)? = self["enum"] { result["enum"] = .array(cases + [.null]) }
        return result
    }
}
