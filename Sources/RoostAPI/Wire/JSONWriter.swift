/// Writes any `Encodable` value as JSON, straight into bytes.
///
/// Every event and reply of the server passes here, and a page of history holds a hundred of them, so nothing is built in
/// between: Foundation's encoder makes a tree of objects first and costs five times as much. Reading is left to Foundation, which
/// knows how to refuse what clients send.
///
/// Keys stand in the order in which a value encodes them; there is no white space; floating point values that JSON can't
/// express throw `EncodingError.invalidValue`.
public struct JSONWriter: ~Copyable {
    private let output = JSONOutput()

    public init(capacity: Int = 256) { output.bytes.reserveCapacity(capacity) }

    /// The JSON text of a value in UTF-8.
    public static func bytes(of value: some Encodable) throws -> [UInt8] {
        let writer = JSONWriter()
        try writer.append(value)
        return writer.bytes
    }

    /// Appends the JSON text of a value.
    public func append(_ value: some Encodable) throws {
        let depth = output.closers.count
        try value.encode(to: JSONEncoding(output: output, depth: depth, codingPath: []))
        output.close(to: depth)
    }

    /// Appends text that is JSON already.
    public func append(raw text: StaticString) {
        text.withUTF8Buffer { output.bytes.append(contentsOf: $0) }
    }

    /// Appends a string as a JSON string.
    public func append(string: String) { output.append(string: string) }

    /// Appends a whole number.
    public func append(integer: Int64) { output.append(integer: integer) }

    public var bytes: [UInt8] { output.bytes }
}

/// What has been written so far, and which objects and arrays are still open.
private final class JSONOutput {
    var bytes: [UInt8] = []
    /// The closing byte of each open object or array, outermost first.
    var closers: [UInt8] = []
    /// Whether the innermost open object or array is still empty.
    var isEmpty = true

    func open(_ opener: UInt8, _ closer: UInt8) {
        bytes.append(opener)
        closers.append(closer)
        isEmpty = true
    }

    /// Closes what was opened deeper than the given depth. A container can't tell when its last value was written; whoever writes next
    /// at a lower depth does.
    func close(to depth: Int) {
        while closers.count > depth, let closer = closers.popLast() {
            bytes.append(closer)
            isEmpty = false
        }
    }

    func separate() {
        if isEmpty { isEmpty = false } else { bytes.append(UInt8(ascii: ",")) }
    }

    func append(key: String) {
        separate()
        append(string: key)
        bytes.append(UInt8(ascii: ":"))
    }

    func append(integer: some BinaryInteger) {
        if integer >= 0, integer < 10 {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: integer))
        } else {
            bytes.append(contentsOf: String(integer).utf8)
        }
    }

    func append(string: String) {
        bytes.append(UInt8(ascii: "\""))
        var copy = string
        copy.withUTF8 { utf8 in
            var start = 0
            for index in 0..<utf8.count {
                let byte = utf8[index]
                if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { continue }
                bytes.append(contentsOf: utf8[start..<index])
                append(escaped: byte)
                start = index + 1
            }
            bytes.append(contentsOf: utf8[start..<utf8.count])
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private func append(escaped byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        default:
            let digits = Array("0123456789abcdef".utf8)
            bytes.append(contentsOf: "u00".utf8)
            bytes.append(digits[Int(byte >> 4)])
            bytes.append(digits[Int(byte & 15)])
        }
    }
}

private struct JSONEncoding: Encoder {
    let output: JSONOutput
    let depth: Int
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        output.open(UInt8(ascii: "{"), UInt8(ascii: "}"))
        return KeyedEncodingContainer(JSONObjectContainer<Key>(output: output, depth: depth + 1, codingPath: codingPath))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        output.open(UInt8(ascii: "["), UInt8(ascii: "]"))
        return JSONArrayContainer(output: output, depth: depth + 1, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        JSONValueContainer(output: output, depth: depth, codingPath: codingPath)
    }
}

/// What the three kinds of containers share: writing one value where the output stands.
private protocol JSONContainer {
    var output: JSONOutput { get }
    var depth: Int { get }
    var codingPath: [any CodingKey] { get }
}

extension JSONContainer {
    func write(_ value: some Encodable) throws {
        try value.encode(to: JSONEncoding(output: output, depth: depth, codingPath: codingPath))
        output.close(to: depth)
    }
    func write(boolean: Bool) { output.bytes.append(contentsOf: boolean ? "true".utf8 : "false".utf8) }
    func write(double: Double) throws {
        guard double.isFinite else {
            throw EncodingError.invalidValue(double, .init(codingPath: codingPath, debugDescription: "JSON has no such number."))
        }
        output.bytes.append(contentsOf: double.description.utf8)
    }
    func writeNull() { output.bytes.append(contentsOf: "null".utf8) }
    func child() -> JSONEncoding { JSONEncoding(output: output, depth: depth, codingPath: codingPath) }
}

private struct JSONObjectContainer<Key: CodingKey>: KeyedEncodingContainerProtocol, JSONContainer {
    let output: JSONOutput
    let depth: Int
    let codingPath: [any CodingKey]

    private func begin(_ key: Key) {
        output.close(to: depth)
        output.append(key: key.stringValue)
    }
    func encodeNil(forKey key: Key) { begin(key); writeNull() }
    func encode(_ value: Bool, forKey key: Key) { begin(key); write(boolean: value) }
    func encode(_ value: String, forKey key: Key) { begin(key); output.append(string: value) }
    func encode(_ value: Double, forKey key: Key) throws { begin(key); try write(double: value) }
    func encode(_ value: Float, forKey key: Key) throws { begin(key); try write(double: Double(value)) }
    func encode(_ value: Int, forKey key: Key) { begin(key); output.append(integer: value) }
    func encode(_ value: Int8, forKey key: Key) { begin(key); output.append(integer: value) }
    func encode(_ value: Int16, forKey key: Key) { begin(key); output.append(integer: value) }
    func encode(_ value: Int32, forKey key: Key) { begin(key); output.append(integer: value) }
    func encode(_ value: Int64, forKey key: Key) { begin(key); output.append(integer: value) }
    func encode(_ value: UInt, forKey key: Key) { begin(key); output.append(integer: value) }
    func encode(_ value: UInt8, forKey key: Key) { begin(key); output.append(integer: value) }
    func encode(_ value: UInt16, forKey key: Key) { begin(key); output.append(integer: value) }
    func encode(_ value: UInt32, forKey key: Key) { begin(key); output.append(integer: value) }
    func encode(_ value: UInt64, forKey key: Key) { begin(key); output.append(integer: value) }
    func encode(_ value: some Encodable, forKey key: Key) throws { begin(key); try write(value) }
    func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
        begin(key)
        return child().container(keyedBy: keyedBy)
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        begin(key)
        return child().unkeyedContainer()
    }
    func superEncoder() -> any Encoder { superEncoder(named: "super") }
    func superEncoder(forKey key: Key) -> any Encoder { superEncoder(named: key.stringValue) }
    private func superEncoder(named name: String) -> any Encoder {
        output.close(to: depth)
        output.append(key: name)
        return child()
    }
}

private struct JSONArrayContainer: UnkeyedEncodingContainer, JSONContainer {
    let output: JSONOutput
    let depth: Int
    let codingPath: [any CodingKey]
    private(set) var count = 0

    init(output: JSONOutput, depth: Int, codingPath: [any CodingKey]) {
        self.output = output
        self.depth = depth
        self.codingPath = codingPath
    }

    private mutating func begin() {
        output.close(to: depth)
        output.separate()
        count += 1
    }
    mutating func encodeNil() { begin(); writeNull() }
    mutating func encode(_ value: Bool) { begin(); write(boolean: value) }
    mutating func encode(_ value: String) { begin(); output.append(string: value) }
    mutating func encode(_ value: Double) throws { begin(); try write(double: value) }
    mutating func encode(_ value: Float) throws { begin(); try write(double: Double(value)) }
    mutating func encode(_ value: Int) { begin(); output.append(integer: value) }
    mutating func encode(_ value: Int8) { begin(); output.append(integer: value) }
    mutating func encode(_ value: Int16) { begin(); output.append(integer: value) }
    mutating func encode(_ value: Int32) { begin(); output.append(integer: value) }
    mutating func encode(_ value: Int64) { begin(); output.append(integer: value) }
    mutating func encode(_ value: UInt) { begin(); output.append(integer: value) }
    mutating func encode(_ value: UInt8) { begin(); output.append(integer: value) }
    mutating func encode(_ value: UInt16) { begin(); output.append(integer: value) }
    mutating func encode(_ value: UInt32) { begin(); output.append(integer: value) }
    mutating func encode(_ value: UInt64) { begin(); output.append(integer: value) }
    mutating func encode(_ value: some Encodable) throws { begin(); try write(value) }
    mutating func nestedContainer<Nested: CodingKey>(keyedBy: Nested.Type) -> KeyedEncodingContainer<Nested> {
        begin()
        return child().container(keyedBy: keyedBy)
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        begin()
        return child().unkeyedContainer()
    }
    mutating func superEncoder() -> any Encoder {
        begin()
        return child()
    }
}

private struct JSONValueContainer: SingleValueEncodingContainer, JSONContainer {
    let output: JSONOutput
    let depth: Int
    let codingPath: [any CodingKey]

    func encodeNil() { writeNull() }
    func encode(_ value: Bool) { write(boolean: value) }
    func encode(_ value: String) { output.append(string: value) }
    func encode(_ value: Double) throws { try write(double: value) }
    func encode(_ value: Float) throws { try write(double: Double(value)) }
    func encode(_ value: Int) { output.append(integer: value) }
    func encode(_ value: Int8) { output.append(integer: value) }
    func encode(_ value: Int16) { output.append(integer: value) }
    func encode(_ value: Int32) { output.append(integer: value) }
    func encode(_ value: Int64) { output.append(integer: value) }
    func encode(_ value: UInt) { output.append(integer: value) }
    func encode(_ value: UInt8) { output.append(integer: value) }
    func encode(_ value: UInt16) { output.append(integer: value) }
    func encode(_ value: UInt32) { output.append(integer: value) }
    func encode(_ value: UInt64) { output.append(integer: value) }
    func encode(_ value: some Encodable) throws { try write(value) }
}
