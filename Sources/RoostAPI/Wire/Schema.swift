/// The shape of a value on the wire, derived from the Swift type that decodes it.
///
/// The OpenAPI document, the reading of path and query parameters and the refusal of unknown fields all come from here, so none of them can
/// differ from the type.
public indirect enum Schema: Hashable, Sendable {
    case string(format: String? = nil, maxLength: Int? = nil, pattern: String? = nil)
    case integer
    case number
    case boolean
    case enumeration([String])
    case array(Schema)
    case map(Schema)
    case object(name: String, fields: [Field])
    case any

    /// One member of an object.
    public struct Field: Hashable, Sendable {
        /// The name of the member.
        public var name: String
        /// The shape of its value.
        public var schema: Schema
        /// Whether every object has the member.
        public var isRequired: Bool

        // derived: package init
        package init(name: String, schema: Schema, isRequired: Bool) {
            self.name = name
            self.schema = schema
            self.isRequired = isRequired
        }
    }

    /// The fields of an object; none for anything else.
    public var fields: [Field] {
        if case .object(_, let fields) = self { fields } else { [] }
    }

    /// The shape of a type, found by decoding it from a decoder that records the requests.
    ///
    /// - Throws: `DecodingError` if the type requires particular values; such a type describes itself with ``SchemaDescribed``.
    public static func of<T: Decodable>(_ type: T.Type) throws -> Schema {
        let recorder = SchemaRecorder(name: "\(T.self)")
        _ = try recorder.value(of: type)
        return recorder.result
    }
}

/// A type whose shape can't be derived from how it decodes: identifiers, enumerations, free JSON.
public protocol SchemaDescribed {
    /// The shape of its values.
    static var schema: Schema { get }
    /// Any valid value.
    static var schemaExample: Self { get }
}

/// An enumeration of strings on the wire.
public protocol WireEnumeration: SchemaDescribed, CaseIterable, RawRepresentable, WireWritable where RawValue == String {
    /// The value of a name that this version knows; nil for any other.
    static func known(_ name: String) -> Self?
}

extension WireEnumeration {
    public static func known(_ name: String) -> Self? { Self(rawValue: name) }
    public func write(to json: inout JSONBytes) { json.string(rawValue) }
    public static var schema: Schema { .enumeration(allCases.map(\.rawValue)) }
    public static var schemaExample: Self {
        guard let first = allCases.first else { preconditionFailure("\(Self.self) has no cases.") }  // None is empty.
        return first
    }
}

/// An enumeration in rows and answers, to which a newer server may add cases: an unknown value is kept as its string, and the rest is read.
///
/// Calls must not have unknown values: validation refuses them with ``validate(field:)``.
public protocol OpenWireEnumeration: WireEnumeration, Codable, Hashable, Sendable {
    /// A value that this version doesn't know.
    static func unknown(_ name: String) -> Self
}

extension OpenWireEnumeration {
    public init(rawValue: String) { self = Self.known(rawValue) ?? .unknown(rawValue) }

    public static func known(_ name: String) -> Self? { allCases.first { $0.rawValue == name } }
    /// Whether this version knows the value.
    public var isKnown: Bool { Self.allCases.contains(self) }

    /// Throws `invalid_argument` with the field's name if this version doesn't know the value.
    public func validate(field: String) throws(RoostError) {
        guard !isKnown else { return }
        throw .invalidArgument(field, "must be one of: \(Self.allCases.map(\.rawValue).joined(separator: ", "))")
    }
}

/// Records a type's requests to its decoder, and returns empty values.
private final class SchemaRecorder: Decoder {
    let name: String
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    var result: Schema = .any
    var fields: [Schema.Field] = []

    init(name: String) { self.name = name }

    func value<T: Decodable>(of type: T.Type) throws -> T {
        if let described = type as? any SchemaDescribed.Type {
            result = described.schema
            if let example = described.schemaExample as? T { return example }
        }
        return try T(from: self)
    }

    func note(_ key: any CodingKey, _ schema: Schema) {
        if let index = fields.firstIndex(where: { $0.name == key.stringValue }) {
            fields[index].schema = schema
        } else {
            fields.append(Schema.Field(name: key.stringValue, schema: schema, isRequired: true))
        }
        result = .object(name: name, fields: fields)
    }

    func noteOptional(_ key: any CodingKey) {
        guard !fields.contains(where: { $0.name == key.stringValue }) else { return }
        fields.append(Schema.Field(name: key.stringValue, schema: .any, isRequired: false))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        result = .object(name: name, fields: fields)
        return KeyedDecodingContainer(SchemaObjectContainer<Key>(recorder: self))
    }
    func unkeyedContainer() -> any UnkeyedDecodingContainer { SchemaArrayContainer(recorder: self) }
    func singleValueContainer() -> any SingleValueDecodingContainer { SchemaValueContainer(recorder: self) }
}

private struct SchemaObjectContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let recorder: SchemaRecorder
    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { [] }

    func contains(_ key: Key) -> Bool { true }
    // The library asks whether a value is null before it decodes an optional, and only then.
    func decodeNil(forKey key: Key) -> Bool {
        recorder.noteOptional(key)
        return false
    }
    func decode(_ type: Bool.Type, forKey key: Key) -> Bool { noted(.boolean, key, false) }
    func decode(_ type: String.Type, forKey key: Key) -> String { noted(.string(), key, "") }
    func decode(_ type: Double.Type, forKey key: Key) -> Double { noted(.number, key, 0) }
    func decode(_ type: Float.Type, forKey key: Key) -> Float { noted(.number, key, 0) }
    func decode(_ type: Int.Type, forKey key: Key) -> Int { noted(.integer, key, 0) }
    func decode(_ type: Int8.Type, forKey key: Key) -> Int8 { noted(.integer, key, 0) }
    func decode(_ type: Int16.Type, forKey key: Key) -> Int16 { noted(.integer, key, 0) }
    func decode(_ type: Int32.Type, forKey key: Key) -> Int32 { noted(.integer, key, 0) }
    func decode(_ type: Int64.Type, forKey key: Key) -> Int64 { noted(.integer, key, 0) }
    func decode(_ type: UInt.Type, forKey key: Key) -> UInt { noted(.integer, key, 0) }
    func decode(_ type: UInt8.Type, forKey key: Key) -> UInt8 { noted(.integer, key, 0) }
    func decode(_ type: UInt16.Type, forKey key: Key) -> UInt16 { noted(.integer, key, 0) }
    func decode(_ type: UInt32.Type, forKey key: Key) -> UInt32 { noted(.integer, key, 0) }
    func decode(_ type: UInt64.Type, forKey key: Key) -> UInt64 { noted(.integer, key, 0) }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        let child = SchemaRecorder(name: "\(T.self)")
        let value = try child.value(of: type)
        recorder.note(key, child.result)
        return value
    }
    private func noted<T>(_ schema: Schema, _ key: Key, _ value: T) -> T {
        recorder.note(key, schema)
        return value
    }
    func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
        SchemaRecorder(name: key.stringValue).container(keyedBy: keyedBy)
    }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        SchemaRecorder(name: key.stringValue).unkeyedContainer()
    }
    func superDecoder() throws -> any Decoder { recorder }
    func superDecoder(forKey key: Key) throws -> any Decoder { recorder }
}

/// One element, to record the shape of an array's elements.
private struct SchemaArrayContainer: UnkeyedDecodingContainer {
    let recorder: SchemaRecorder
    var codingPath: [any CodingKey] { [] }
    var count: Int? { 1 }
    var isAtEnd: Bool { currentIndex > 0 }
    private(set) var currentIndex = 0

    init(recorder: SchemaRecorder) { self.recorder = recorder }

    mutating func decodeNil() -> Bool { false }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let child = SchemaRecorder(name: "\(T.self)")
        let value = try child.value(of: type)
        recorder.result = .array(child.result)
        currentIndex += 1
        return value
    }
    mutating func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type) -> KeyedDecodingContainer<Nested> {
        recorder.container(keyedBy: keyedBy)
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer { self }
    mutating func superDecoder() -> any Decoder { recorder }
}

private struct SchemaValueContainer: SingleValueDecodingContainer {
    let recorder: SchemaRecorder
    var codingPath: [any CodingKey] { [] }

    func decodeNil() -> Bool { false }
    func decode(_ type: Bool.Type) -> Bool { noted(.boolean, false) }
    func decode(_ type: String.Type) -> String { noted(.string(), "") }
    func decode(_ type: Double.Type) -> Double { noted(.number, 0) }
    func decode(_ type: Float.Type) -> Float { noted(.number, 0) }
    func decode(_ type: Int.Type) -> Int { noted(.integer, 0) }
    func decode(_ type: Int8.Type) -> Int8 { noted(.integer, 0) }
    func decode(_ type: Int16.Type) -> Int16 { noted(.integer, 0) }
    func decode(_ type: Int32.Type) -> Int32 { noted(.integer, 0) }
    func decode(_ type: Int64.Type) -> Int64 { noted(.integer, 0) }
    func decode(_ type: UInt.Type) -> UInt { noted(.integer, 0) }
    func decode(_ type: UInt8.Type) -> UInt8 { noted(.integer, 0) }
    func decode(_ type: UInt16.Type) -> UInt16 { noted(.integer, 0) }
    func decode(_ type: UInt32.Type) -> UInt32 { noted(.integer, 0) }
    func decode(_ type: UInt64.Type) -> UInt64 { noted(.integer, 0) }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try recorder.value(of: type) }
    private func noted<T>(_ schema: Schema, _ value: T) -> T {
        recorder.result = schema
        return value
    }
}

extension Dictionary: SchemaDescribed where Key == String, Value: Decodable {
    public static var schema: Schema { .map((try? Schema.of(Value.self)) ?? .any) }
    public static var schemaExample: [String: Value] { [:] }
}
