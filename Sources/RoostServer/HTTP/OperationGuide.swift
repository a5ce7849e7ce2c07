import Foundation
package import RoostAPI
package import RoostCore

/// An operation's fields and answer in words, which `roost call` shows and builds calls from.
///
/// Like the OpenAPI document, it is made from the operation's schema and from the limits that the operation itself reports.
package struct OperationGuide: Sendable {
    private let entry: OperationTable.Entry

    package var name: String { entry.type.name }
    package var summary: String { entry.type.summary }
    package var permission: Permission { entry.type.permission }
    package var schema: Schema { entry.schema }
    package var response: Schema { OpenAPI.response(of: entry.type) }
    /// `POST /v1/channels/{channel}/messages`
    package var route: String { "\(entry.type.method.rawValue) \(entry.type.path)" }

    /// Every operation, in the order of the table.
    package static let all: [OperationGuide] = OperationTable.handled.compactMap { OperationTable.named($0.name) }
        .map(OperationGuide.init(entry:))

    /// Nil for a name that no operation has.
    package static func named(_ name: String) -> OperationGuide? { OperationTable.named(name).map(OperationGuide.init(entry:)) }

    /// Makes the operation from its fields.
    ///
    /// - Throws: The server's refusal: the field, and what it should be.
    package func operation(with fields: [String: JSONValue]) throws(RoostError) -> any Handled {
        do {
            return try entry.decode(from: Data(try JSONWriter.bytes(of: JSONValue.object(fields))))
        } catch {
            throw RoostError(decoding: error)
        }
    }

    /// Returns the refusal of a value that can't be parsed as its field's type, such as a time; nil if all can be, within their limits or not.
    package func refusal(ofUnreadable fields: [String: JSONValue]) -> RoostError? {
        do {
            _ = try entry.decode(from: Data(try JSONWriter.bytes(of: JSONValue.object(fields))))
            return nil
        } catch let error as DecodingError {
            return RoostError(decoding: error)
        } catch {
            return nil
        }
    }

    // MARK: Fields

    /// A field, or a field of an object in it by its full path: `policy.send`.
    package struct Field: Hashable, Sendable {
        package let path: String
        package let type: String
        /// The limits of its values; empty if there are none.
        package let limits: String
        package let isRequired: Bool
    }

    /// Returns every field with its limits. Finding those takes a moment.
    package func fields() -> [Field] {
        let limits = FieldLimits(of: entry)
        return schema.fields.flatMap { Self.fields($0, path: $0.name, limits.ownSchema(of: $0)) }
    }

    private static func fields(_ field: Schema.Field, path: String, _ schema: [String: JSONValue]) -> [Field] {
        var all = [
            Field(path: path, type: field.schema.inWords, limits: LimitsInWords(schema).text, isRequired: field.isRequired)
        ]
        if case .object(let properties)? = schema["properties"] {
            for inner in field.schema.fields {
                guard case .object(let innerSchema)? = properties[inner.name] else { continue }
                var inner = inner
                inner.isRequired = inner.isRequired && field.isRequired
                all += fields(inner, path: "\(path).\(inner.name)", innerSchema)
            }
        }
        return all
    }
}

extension Schema {
    /// The name of a value of this type.
    package var inWords: String {
        switch self {
        case .string(let format, _, _):
            switch format {
            case "date-time": "time"
            case "int64": "number as text"
            default: "text"
            }
        case .integer: "whole number"
        case .number: "number"
        case .boolean: "true or false"
        case .enumeration: "name"
        case .array(let element): "list of \(element.inWords)"
        case .map(let value): "object of \(value.inWords)"
        case .object: "object"
        case .any: "JSON object"
        }
    }
}

/// The limits of a field as a phrase.
private struct LimitsInWords {
    let text: String

    init(_ schema: [String: JSONValue]) { text = Self.parts(of: schema).joined(separator: "; ") }

    private static func parts(of schema: [String: JSONValue]) -> [String] {
        var parts: [String] = []
        if case .array(let cases)? = schema["enum"] {
            parts.append(cases.compactMap { if case .string(let name) = $0 { name } else { nil } }.joined(separator: ", "))
        }
        let alternatives: [JSONValue] = if case .array(let all)? = schema["anyOf"] { all } else { [] }
        for case .object(let alternative) in alternatives { parts += Self.parts(of: alternative) }
        if case .integer(let constant)? = schema["const"] { parts.append(constant == -1 ? "-1 (forever)" : "\(constant)") }
        if let range = range(integer(schema["minimum"]), integer(schema["maximum"]), of: "") { parts.append(range) }
        if let range = range(integer(schema["minLength"]), integer(schema["maxLength"]), of: " characters") { parts.append(range) }
        if let range = range(integer(schema["minItems"]), integer(schema["maxItems"]), of: " values") { parts.append(range) }
        if let range = range(nil, integer(schema["maxProperties"]), of: " keys") { parts.append(range) }
        if schema["uniqueItems"] != nil { parts.append("each once") }
        if case .object(let items)? = schema["items"] {
            let each = Self.parts(of: items).joined(separator: "; ")
            if !each.isEmpty { parts.append("each \(each)") }
        }
        if case .string(let description)? = schema["description"] {
            let text = description.prefix(1).lowercased() + description.dropFirst()
            parts.append(text.hasSuffix(".") ? String(text.dropLast()) : text)
        }
        return parts
    }

    private static func integer(_ value: JSONValue?) -> Int64? { if case .integer(let number)? = value { number } else { nil } }

    private static func range(_ min: Int64?, _ max: Int64?, of unit: String) -> String? {
        switch (min == .min ? nil : min, max) {
        case (nil, let max?) where max == .max: nil
        case (let min?, let max?) where max == .max: "\(min)\(unit) or more"
        case (let min?, let max?): "\(min) to \(max)\(unit)"
        case (nil, let max?): "at most \(max)\(unit)"
        case (1, nil): unit.isEmpty ? "1 or more" : "not empty"
        case (let min?, nil): "\(min)\(unit) or more"
        case (nil, nil): nil
        }
    }
}
