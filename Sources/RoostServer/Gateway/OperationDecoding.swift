import Foundation
import RoostAPI
import RoostCore

extension OperationTable {
    /// The operations that are valid without fields, decoded in advance: decoding an empty object costs as much as decoding a few fields.
    fileprivate static let withoutFields: [String: any Handled] = Dictionary(
        uniqueKeysWithValues: handled.compactMap { type in
            (try? named(type.name)?.decode(from: Data("{}".utf8))).map { (type.name, $0) }
        })
}

extension OperationTable.Entry {
    /// The operation without fields; nil if it has required fields.
    var withoutFields: (any Handled)? { OperationTable.withoutFields[type.name] }

    /// Decodes the operation from a JSON object of its fields.
    func decode(from json: Data) throws -> any Handled {
        let decoder = JSONDecoder()
        if let key = DecodedOperation.entry { decoder.userInfo[key] = self }
        return try decoder.decode(DecodedOperation.self, from: json).operation
    }

    /// An operation whose type is only known when it is decoded.
    private struct DecodedOperation: Decodable {
        static let entry = CodingUserInfoKey(rawValue: "entry")
        let operation: any Handled

        init(from decoder: any Decoder) throws {
            guard let entry = Self.entry.flatMap({ decoder.userInfo[$0] as? OperationTable.Entry }) else {
                throw RoostError.internalFailure
            }
            operation = try entry.decode(from: decoder)
        }
    }

    /// Decodes the operation, refuses fields that it doesn't have, and checks its limits.
    func decode(from decoder: any Decoder) throws -> any Handled {
        try refuseUnknown(in: decoder.container(keyedBy: FieldKey.self), schema.fields, of: type.name, path: [])
        do {
            let operation = try type.init(from: decoder)
            try operation.validate()
            return operation
        } catch DecodingError.dataCorrupted(let context) {
            guard case .enumeration(let cases) = schema.at(RoostError.fieldNames(context.codingPath)) else {
                throw DecodingError.dataCorrupted(context)
            }
            throw RoostError.invalidArgument(
                RoostError.field(context.codingPath), "must be one of: \(cases.joined(separator: ", "))")
        } catch let error where !(error is DecodingError || error is RoostError) {
            // Foundation parses numbers late, and its error then names no field.
            throw unreadableNumber(in: decoder) ?? RoostError(.invalidArgument, "A number can't be read.")
        }
    }

    /// Refuses fields that the operation, or an object in it, doesn't have.
    private func refuseUnknown(
        in container: KeyedDecodingContainer<FieldKey>, _ fields: [Schema.Field], of name: String, path: [String]
    ) throws {
        for key in container.allKeys where !fields.contains(where: { $0.name == key.stringValue }) {
            let known = fields.map(\.name).sorted().joined(separator: ", ")
            let list = known.isEmpty ? "it has none" : "it has: \(known)"
            let field = (path + [key.stringValue]).joined(separator: ".")
            throw RoostError.invalidArgument(field, "is not a field of \(name); \(list)")
        }
        for field in fields {
            let (key, inside) = (FieldKey(field.name), path + [field.name])
            // A value of the wrong type is refused when the operation is decoded.
            switch field.schema {
            case .object(_, let inner):
                guard let nested = try? container.nestedContainer(keyedBy: FieldKey.self, forKey: key) else { continue }
                try refuseUnknown(in: nested, inner, of: field.name, path: inside)
            case .array(.object(_, let inner)):
                guard var entries = try? container.nestedUnkeyedContainer(forKey: key) else { continue }
                while !entries.isAtEnd {
                    let place = path + ["\(field.name)[\(entries.currentIndex)]"]
                    guard let nested = try? entries.nestedContainer(keyedBy: FieldKey.self) else { break }
                    try refuseUnknown(in: nested, inner, of: field.name, path: place)
                }
            default: continue
            }
        }
    }

    /// Returns the error for the field whose number can't be read: 1.5 instead of a whole number, or one with too many digits.
    private func unreadableNumber(in decoder: any Decoder) -> RoostError? {
        (try? decoder.container(keyedBy: FieldKey.self)).flatMap { unreadableNumber(in: $0, schema.fields, path: []) }
    }

    private func unreadableNumber(
        in container: KeyedDecodingContainer<FieldKey>, _ fields: [Schema.Field], path: [String]
    ) -> RoostError? {
        for field in fields where container.contains(FieldKey(field.name)) {
            let key = FieldKey(field.name)
            switch field.schema {
            case .integer:
                if isUnreadableNumber(key, in: container) { return .unreadableNumber(at: path + [field.name]) }
            case .map(.integer):
                guard let map = try? container.nestedContainer(keyedBy: FieldKey.self, forKey: key) else { continue }
                let names = map.allKeys.map(\.stringValue).sorted()
                guard let name = names.first(where: { isUnreadableNumber(FieldKey($0), in: map) }) else { continue }
                return .unreadableNumber(at: path + [field.name, name])
            case .object(_, let inner):
                guard let nested = try? container.nestedContainer(keyedBy: FieldKey.self, forKey: key) else { continue }
                if let found = unreadableNumber(in: nested, inner, path: path + [field.name]) { return found }
            default: continue
            }
        }
        return nil
    }

    private func isUnreadableNumber(_ key: FieldKey, in container: KeyedDecodingContainer<FieldKey>) -> Bool {
        (try? container.decodeNil(forKey: key)) != true && (try? container.decode(Int64.self, forKey: key)) == nil
    }
}

extension Schema {
    /// Returns the schema at the end of a path of fields; nil if there is none.
    fileprivate func at(_ path: [String]) -> Schema? {
        var schema = self
        for name in path {
            guard let field = schema.fields.first(where: { $0.name == name }) else { return nil }
            schema = field.schema
            if case .array(let element) = schema { schema = element }
        }
        return schema
    }
}

extension RoostError {
    fileprivate static func unreadableNumber(at path: [String]) -> RoostError {
        .invalidArgument(path.joined(separator: "."), "must be a whole number of at most 64 bits")
    }

    static func unknownOperation(_ name: String) -> RoostError {
        let names = OperationTable.handled.map { $0.name }
        let suggestion = names.nearest(to: name).map { " Did you mean \($0)?" } ?? ""
        return RoostError(.unknownOperation, "There is no such operation.\(suggestion)", field: "operation")
    }

    /// The error for input that doesn't decode: it names the field and what was expected.
    init(decoding error: any Error) {
        switch error {
        case let error as RoostError:
            self = error
        case DecodingError.keyNotFound(let key, let context):
            self = .invalidArgument(Self.field(context.codingPath + [key]), "is missing")
        case DecodingError.typeMismatch(let type, let context):
            self = Self.refusal(context.codingPath, "must be \(Self.name(of: type))")
        case DecodingError.valueNotFound(let type, let context):
            self = Self.refusal(context.codingPath, "must be \(Self.name(of: type)), not null")
        case DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty:
            self = RoostError(.invalidArgument, "This is not JSON.")
        case DecodingError.dataCorrupted(let context):
            self = .invalidArgument(Self.field(context.codingPath), context.debugDescription)
        default:
            self = RoostError(.invalidArgument, "The request can't be read.")
        }
    }

    private static func refusal(_ path: [any CodingKey], _ reason: String) -> RoostError {
        let field = field(path)
        if !field.isEmpty { return .invalidArgument(field, reason) }
        // The whole JSON value, or all fields of a call.
        return path.isEmpty ? RoostError(.invalidArgument, "The JSON \(reason).") : .invalidArgument("with", reason)
    }

    fileprivate static func field(_ path: [any CodingKey]) -> String { names(path).joined(separator: ".") }

    /// Returns the names of the fields that lead to a value, without those of the frame. An array element is written like `tags[0]`.
    private static func names(_ path: [any CodingKey]) -> [String] {
        var names: [String] = []
        for key in path {
            if let index = key.index, let last = names.popLast() {
                names.append("\(last)[\(index)]")
            } else {
                names.append(key.stringValue)
            }
        }
        return ["with", "authenticate"].contains(names.first) ? Array(names.dropFirst()) : names
    }

    /// The same without array indices.
    fileprivate static func fieldNames(_ path: [any CodingKey]) -> [String] {
        let names = path.filter { $0.index == nil }.map(\.stringValue)
        return names.first == "with" ? Array(names.dropFirst()) : names
    }

    private static func name(of type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is Int.Type, is Int64.Type: "a whole number"
        case is Double.Type: "a number"
        case is [Any].Type: "an array"
        case is [String: Any].Type: "an object"
        default: "of another type"
        }
    }
}

extension CodingKey {
    /// The array index that Foundation encodes in the key; nil for a field name, even a numeric one.
    fileprivate var index: Int? { intValue.flatMap { stringValue == "Index \($0)" ? $0 : nil } }
}
