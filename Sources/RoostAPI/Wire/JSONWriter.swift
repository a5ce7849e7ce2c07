/// Writes any `Encodable` value as JSON, straight into bytes.
///
/// It builds nothing in between, while Foundation's encoder first creates a tree of objects. The most frequent models write themselves
/// (``WireWritable``). Reading is left to Foundation, which reports invalid input.
///
/// Keys are in the order in which a value encodes them, without white space; floating point values that JSON can't express throw
/// `EncodingError.invalidValue`.
public enum JSONWriter {
    /// The JSON text of a value in UTF-8.
    public static func bytes(of value: some Encodable) throws -> [UInt8] {
        var json = JSONBytes()
        try json.append(value)
        return json.bytes
    }
}

extension JSONBytes {
    /// Appends the JSON text of any value: written by itself if it can, otherwise through `Encodable`.
    public mutating func append(_ value: some Encodable) throws {
        if let value = value as? any WireWritable {
            value.write(to: &self)
            guard !isUnwritable else {
                throw EncodingError.invalidValue(value, .init(codingPath: [], debugDescription: "JSON has no such number."))
            }
            return
        }
        let output = JSONOutput(capacity: 0)
        swap(&output.json, &self)
        defer { swap(&output.json, &self) }
        try value.encode(to: JSONEncoding(output: output, depth: 0, codingPath: []))
        output.close(to: 0)
    }
}

/// The output so far, and the objects and arrays still open.
private final class JSONOutput {
    var json: JSONBytes
    /// The closing byte of each open object or array, outermost first.
    var closers: [UInt8] = []

    init(capacity: Int) { json = JSONBytes(capacity: capacity) }

    func open(_ opener: UInt8, _ closer: UInt8) {
        json.open(opener)
        closers.append(closer)
    }

    /// Closes everything opened deeper than the given depth. A container doesn't know when its last value was written; the next write at a
    /// lower depth closes it.
    func close(to depth: Int) {
        while closers.count > depth, let closer = closers.popLast() { json.close(closer) }
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

/// The common part of the three kinds of containers: writing one value at the current position.
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
    func write(boolean: Bool) { output.json.boolean(boolean) }
    func write(double: Double) throws {
        guard double.isFinite else {
            throw EncodingError.invalidValue(double, .init(codingPath: codingPath, debugDescription: "JSON has no such number."))
        }
        output.json.number(double)
    }
    func writeNull() { output.json.null() }
    func child() -> JSONEncoding { JSONEncoding(output: output, depth: depth, codingPath: codingPath) }
}

private struct JSONObjectContainer<Key: CodingKey>: KeyedEncodingContainerProtocol, JSONContainer {
    let output: JSONOutput
    let depth: Int
    let codingPath: [any CodingKey]

    private func begin(_ key: Key) {
        output.close(to: depth)
        output.json.key(key.stringValue)
    }
    func encodeNil(forKey key: Key) { begin(key); writeNull() }
    func encode(_ value: Bool, forKey key: Key) { begin(key); write(boolean: value) }
    func encode(_ value: String, forKey key: Key) { begin(key); output.json.string(value) }
    func encode(_ value: Double, forKey key: Key) throws { begin(key); try write(double: value) }
    func encode(_ value: Float, forKey key: Key) throws { begin(key); try write(double: Double(value)) }
    func encode(_ value: Int, forKey key: Key) { begin(key); output.json.integer(value) }
    func encode(_ value: Int8, forKey key: Key) { begin(key); output.json.integer(value) }
    func encode(_ value: Int16, forKey key: Key) { begin(key); output.json.integer(value) }
    func encode(_ value: Int32, forKey key: Key) { begin(key); output.json.integer(value) }
    func encode(_ value: Int64, forKey key: Key) { begin(key); output.json.integer(value) }
    func encode(_ value: UInt, forKey key: Key) { begin(key); output.json.integer(value) }
    func encode(_ value: UInt8, forKey key: Key) { begin(key); output.json.integer(value) }
    func encode(_ value: UInt16, forKey key: Key) { begin(key); output.json.integer(value) }
    func encode(_ value: UInt32, forKey key: Key) { begin(key); output.json.integer(value) }
    func encode(_ value: UInt64, forKey key: Key) { begin(key); output.json.integer(value) }
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
        output.json.key(name)
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
        output.json.separate()
        count += 1
    }
    mutating func encodeNil() { begin(); writeNull() }
    mutating func encode(_ value: Bool) { begin(); write(boolean: value) }
    mutating func encode(_ value: String) { begin(); output.json.string(value) }
    mutating func encode(_ value: Double) throws { begin(); try write(double: value) }
    mutating func encode(_ value: Float) throws { begin(); try write(double: Double(value)) }
    mutating func encode(_ value: Int) { begin(); output.json.integer(value) }
    mutating func encode(_ value: Int8) { begin(); output.json.integer(value) }
    mutating func encode(_ value: Int16) { begin(); output.json.integer(value) }
    mutating func encode(_ value: Int32) { begin(); output.json.integer(value) }
    mutating func encode(_ value: Int64) { begin(); output.json.integer(value) }
    mutating func encode(_ value: UInt) { begin(); output.json.integer(value) }
    mutating func encode(_ value: UInt8) { begin(); output.json.integer(value) }
    mutating func encode(_ value: UInt16) { begin(); output.json.integer(value) }
    mutating func encode(_ value: UInt32) { begin(); output.json.integer(value) }
    mutating func encode(_ value: UInt64) { begin(); output.json.integer(value) }
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
    func encode(_ value: String) { output.json.string(value) }
    func encode(_ value: Double) throws { try write(double: value) }
    func encode(_ value: Float) throws { try write(double: Double(value)) }
    func encode(_ value: Int) { output.json.integer(value) }
    func encode(_ value: Int8) { output.json.integer(value) }
    func encode(_ value: Int16) { output.json.integer(value) }
    func encode(_ value: Int32) { output.json.integer(value) }
    func encode(_ value: Int64) { output.json.integer(value) }
    func encode(_ value: UInt) { output.json.integer(value) }
    func encode(_ value: UInt8) { output.json.integer(value) }
    func encode(_ value: UInt16) { output.json.integer(value) }
    func encode(_ value: UInt32) { output.json.integer(value) }
    func encode(_ value: UInt64) { output.json.integer(value) }
    func encode(_ value: some Encodable) throws { try write(value) }
}
