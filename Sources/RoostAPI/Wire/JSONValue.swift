/// Any JSON value, such as an app's `metadata`, which Roost stores and returns without interpreting it.
///
/// Whole numbers keep all their digits up to 64 bits; other numbers are doubles. The order of an object's keys isn't kept: keys are written
/// sorted, so equal values have equal bytes.
public enum JSONValue: Hashable, Sendable, Codable {
    /// `null`.
    case null
    /// `true` or `false`.
    case boolean(Bool)
    /// A whole number of up to 64 bits.
    case integer(Int64)
    /// Any other number.
    case number(Double)
    /// A text.
    case string(String)
    /// Values in order.
    case array([JSONValue])
    /// Values by name.
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        guard decoder.codingPath.count <= Limits.jsonDepth else {
            throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "is nested too deep"))
        }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .boolean(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .null:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        case .boolean(let value): try value.encode(to: encoder)
        case .integer(let value): try value.encode(to: encoder)
        case .number(let value): try value.encode(to: encoder)
        case .string(let value): try value.encode(to: encoder)
        case .array(let values):
            var container = encoder.unkeyedContainer()
            for value in values { try container.encode(value) }
        case .object(let values):
            var container = encoder.container(keyedBy: FieldKey.self)
            for (key, value) in values.sorted(by: { $0.key < $1.key }) { try container.encode(value, forKey: FieldKey(key)) }
        }
    }

    /// The levels of nesting: 1 for a value without children.
    public var depth: Int {
        switch self {
        case .array(let values): 1 + (values.map(\.depth).max() ?? 0)
        case .object(let values): 1 + (values.values.map(\.depth).max() ?? 0)
        default: 1
        }
    }

    /// The size in bytes of the value written as JSON without white space.
    public var sizeBytes: Int { (try? JSONWriter.bytes(of: self).count) ?? Int.max }

    /// The value of a name in an object; nil if there is none, or for other values.
    public subscript(key: String) -> JSONValue? {
        if case .object(let values) = self { values[key] } else { nil }
    }
}

/// Reading values without a `switch`: `message.metadata?["floor"]?.intValue`.
extension JSONValue {
    /// The text; nil for other values.
    public var stringValue: String? { if case .string(let value) = self { value } else { nil } }

    /// `true` or `false`; nil for other values.
    public var boolValue: Bool? { if case .boolean(let value) = self { value } else { nil } }

    /// The whole number, even if another platform wrote it with a zero fraction; nil for other values, and for a number out of range.
    public var intValue: Int? {
        switch self {
        case .integer(let value): Int(exactly: value)
        case .number(let value): Int(exactly: value)
        default: nil
        }
    }

    /// The number, whole or not; nil for other values. Whole numbers beyond 2^53 are rounded.
    public var doubleValue: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    /// The values of an array; nil for other values.
    public var arrayValue: [JSONValue]? { if case .array(let values) = self { values } else { nil } }

    /// The values of an object by their names; nil for other values.
    public var objectValue: [String: JSONValue]? { if case .object(let values) = self { values } else { nil } }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByFloatLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
    /// A number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// An array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// An object. Of two values with one name, the last one counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
    }
}

extension JSONValue: SchemaDescribed {
    public static var schema: Schema { .any }
    public static var schemaExample: JSONValue { .object([:]) }
}

extension JSONValue: WireWritable {
    public func write(to json: inout JSONBytes) {
        switch self {
        case .null: json.null()
        case .boolean(let value): json.boolean(value)
        case .integer(let value): json.integer(value)
        case .number(let value): json.number(value)
        case .string(let value): json.string(value)
        case .array(let values): json.array(values)
        case .object(let values):
            json.beginObject()
            for (key, value) in values.sorted(by: { $0.key < $1.key }) {
                json.key(key)
                value.write(to: &json)
            }
            json.endObject()
        }
    }
}
