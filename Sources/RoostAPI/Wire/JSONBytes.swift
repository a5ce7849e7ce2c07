/// A buffer of JSON text, with the primitives that write everything on the wire.
///
/// A value type, so writing to it costs no check for exclusive access: a delivery to a thousand sockets begins here.
public struct JSONBytes: Sendable {
    /// The text so far, in UTF-8.
    public private(set) var bytes: [UInt8] = []
    /// Whether a value has been written since the innermost object or array was opened, and a comma is due before the next.
    var needsComma = false
    /// Whether a value couldn't be expressed in JSON.
    package private(set) var isUnwritable = false

    /// Creates an empty text with room for some bytes.
    public init(capacity: Int = 256) { bytes.reserveCapacity(capacity) }

    // MARK: Structure

    /// Opens an object. Its members follow, each by ``key(_:)`` and a value or by one of the functions `member`.
    public mutating func beginObject() { open(UInt8(ascii: "{")) }
    /// Closes the innermost object.
    public mutating func endObject() { close(UInt8(ascii: "}")) }
    /// Opens an array. Its elements follow.
    public mutating func beginArray() { open(UInt8(ascii: "[")) }
    /// Closes the innermost array.
    public mutating func endArray() { close(UInt8(ascii: "]")) }

    mutating func open(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = false
    }

    mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    /// Writes a comma if one is due. Called before each element of an array and each key of an object.
    public mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }

    /// A key that needs no escapes.
    public mutating func key(_ name: StaticString) {
        let hasComma = needsComma
        name.withUTF8Buffer { name in
            ascii(capacity: name.count + 4) { text in
                if hasComma { text.put(",") }
                text.put("\"")
                text.put(name)
                text.put("\"")
                text.put(":")
            }
        }
        needsComma = true
    }

    mutating func key(_ name: String) {
        separate()
        string(name)
        bytes.append(UInt8(ascii: ":"))
    }

    // MARK: Values

    /// Text that is already JSON.
    public mutating func raw(_ text: StaticString) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    /// The value `null`.
    public mutating func null() { raw("null") }
    /// A Boolean.
    public mutating func boolean(_ value: Bool) { raw(value ? "true" : "false") }

    /// A whole number.
    public mutating func integer(_ value: some FixedWidthInteger) {
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        digits(UInt64(value.magnitude), width: 1)
    }

    /// Decimal digits, padded with leading zeros to a width.
    mutating func digits(_ value: UInt64, width: Int) {
        var rest = value
        var reversed: (UInt64, UInt64, UInt64) = (0, 0, 0)
        withUnsafeMutableBytes(of: &reversed) { buffer in
            var start = buffer.count
            repeat {
                start -= 1
                buffer[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0 || buffer.count - start < width
            buffer.withMemoryRebound(to: UInt8.self) { digits in
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
            }
        }
    }

    /// A short text that is already JSON, assembled before it is appended: appending a single piece costs as much as copying the whole.
    ///
    /// - Parameter capacity: The most bytes that the body writes.
    mutating func ascii(capacity: Int, _ body: (inout ShortText) -> Void) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: capacity) { buffer in
            var text = ShortText(buffer)
            body(&text)
            bytes.append(contentsOf: text.written)
        }
    }

    /// A number. JSON has neither infinity nor NaN: these set ``isUnwritable``.
    mutating func number(_ value: Double) {
        guard value.isFinite else {
            isUnwritable = true
            return null()
        }
        bytes.append(contentsOf: value.description.utf8)
    }

    /// A string with its quotes and escapes.
    public mutating func string(_ value: String) {
        bytes.append(UInt8(ascii: "\""))
        var value = value
        value.withUTF8 { utf8 in
            var index = Self.firstEscaped(in: utf8, from: 0)
            guard index < utf8.count else { return bytes.append(contentsOf: utf8) }
            var start = 0
            while index < utf8.count {
                let byte = utf8[index]
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start..<index]))
                escape(byte)
                start = index + 1
                index = Self.firstEscaped(in: utf8, from: start)
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start...]))
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// The number of bytes that ``string(_:)`` writes for a text: a control character takes six.
    public static func sizeBytes(of value: String) -> Int {
        var value = value
        return value.withUTF8 { utf8 in
            var size = utf8.count + 2
            for byte in utf8[firstEscaped(in: utf8, from: 0)...] {
                switch byte {
                case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x09, 0x0A, 0x0D: size += 1
                case ..<0x20: size += 5
                default: break
                }
            }
            return size
        }
    }

    /// Returns the index of the first byte that needs an escape, or the end. Most texts have none, so eight bytes are checked at a time.
    private static func firstEscaped(in utf8: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        func needsEscape(_ byte: UInt8) -> Bool { byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") }
        let (ones, highs): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        // The high bit of each byte below a bound of at most 0x80, and possibly of some bytes above such a byte.
        func below(_ bound: UInt64, _ word: UInt64) -> UInt64 { (word &- ones &* bound) & ~word & highs }
        let raw = UnsafeRawBufferPointer(utf8)
        var index = start
        while index + 8 <= raw.count {
            let word = raw.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let found = below(0x20, word) | below(1, word ^ ones &* 0x22) | below(1, word ^ ones &* 0x5C)
            if found != 0, let place = (index..<index + 8).first(where: { needsEscape(utf8[$0]) }) { return place }
            index += 8
        }
        while index < utf8.count, !needsEscape(utf8[index]) { index += 1 }
        return index
    }

    private mutating func escape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        default:
            raw("u00")
            for digit in [byte >> 4, byte & 15] {
                bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            }
        }
    }
}

/// A text in a buffer on the stack. Anything that doesn't fit is left out.
struct ShortText: ~Copyable {
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    private var count = 0

    init(_ buffer: UnsafeMutableBufferPointer<UInt8>) { self.buffer = buffer }

    var written: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(rebasing: buffer[..<count]) }

    mutating func put(_ character: Unicode.Scalar) { put(UInt8(ascii: character)) }

    private mutating func put(_ byte: UInt8) {
        guard count < buffer.count else { return }
        buffer.initializeElement(at: count, to: byte)
        count += 1
    }

    mutating func put(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard bytes.count <= buffer.count - count else { return }
        count = buffer[count...].initialize(fromContentsOf: bytes)
    }

    /// The last digits of a non-negative number, with leading zeros.
    mutating func digits(_ value: Int64, width: Int) {
        guard width <= buffer.count - count else { return }
        var rest = value
        var place = count + width
        while place > count {
            place -= 1
            buffer.initializeElement(at: place, to: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        }
        count += width
    }
}

/// A model so frequent on the wire that it writes itself without `Codable`, eight times faster (see docs/performance.md).
///
/// The bytes are the same as those of its `Encodable` conformance; a test compares the two.
public protocol WireWritable: Encodable {
    /// Writes the value as `Encodable` would, without looking up names.
    func write(to json: inout JSONBytes)
}

extension JSONBytes {
    /// A member of an object, left out without a value.
    public mutating func member(_ name: StaticString, _ value: String?) {
        guard let value else { return }
        key(name)
        string(value)
    }
    public mutating func member(_ name: StaticString, _ value: (some FixedWidthInteger)?) {
        guard let value else { return }
        key(name)
        integer(value)
    }
    public mutating func member(_ name: StaticString, _ value: Bool?) {
        guard let value else { return }
        key(name)
        boolean(value)
    }
    public mutating func member(_ name: StaticString, _ value: (some WireWritable)?) {
        guard let value else { return }
        key(name)
        value.write(to: &self)
    }
    public mutating func member(_ name: StaticString, _ values: [some WireWritable]?) {
        guard let values else { return }
        key(name)
        array(values)
    }
    public mutating func member(_ name: StaticString, _ values: [String]?) {
        guard let values else { return }
        key(name)
        array(values)
    }

    /// A member that is an object with a list of names for each key, the keys sorted.
    public mutating func member(_ name: StaticString, _ values: [String: [some WireWritable]]?) {
        guard let values else { return }
        key(name)
        beginObject()
        for (name, list) in values.sorted(by: { $0.key < $1.key }) {
            key(name)
            array(list)
        }
        endObject()
    }

    /// A member that is an object with a model for each key, the keys sorted.
    public mutating func member(_ name: StaticString, _ values: [String: some WireWritable]?) {
        guard let values else { return }
        key(name)
        beginObject()
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            key(name)
            value.write(to: &self)
        }
        endObject()
    }

    /// A member of an object that is always present: `null` without a value.
    public mutating func memberOrNull(_ name: StaticString, _ value: (some FixedWidthInteger)?) {
        key(name)
        if let value { integer(value) } else { null() }
    }
    public mutating func memberOrNull(_ name: StaticString, _ value: (some WireWritable)?) {
        key(name)
        if let value { value.write(to: &self) } else { null() }
    }
    public mutating func memberOrNull(_ name: StaticString, _ value: String?) {
        key(name)
        if let value { string(value) } else { null() }
    }

    /// A member that is an object of lists of texts.
    public mutating func member(_ name: StaticString, _ values: [String: [String]]?) {
        guard let values else { return }
        key(name)
        object(values)
    }

    /// Lists of texts by name, sorted by name.
    public mutating func object(_ values: [String: [String]]) {
        beginObject()
        for (name, list) in values.sorted(by: { $0.key < $1.key }) {
            key(name)
            array(list)
        }
        endObject()
    }

    /// An array of texts.
    public mutating func array(_ values: [String]) {
        beginArray()
        for value in values {
            separate()
            string(value)
        }
        endArray()
    }

    /// An array of models.
    public mutating func array(_ values: [some WireWritable]) {
        beginArray()
        // A loop over the array itself would copy each value with everything it holds.
        values.withUnsafeBufferPointer { values in
            let start = bytes.count
            for index in values.indices {
                separate()
                values[index].write(to: &self)
                if index == 0 { reserve(for: values.count - 1, of: bytes.count - start) }
            }
        }
        endArray()
    }

    /// Reserves room for values that are probably about as large as the first one. Otherwise the text grows by doubling and is copied each time.
    private mutating func reserve(for count: Int, of sizeBytes: Int) {
        // The first one may also be larger than all others together.
        let expected = min(count * (sizeBytes + sizeBytes / 8), 64 << 10)
        if expected > bytes.capacity - bytes.count { bytes.reserveCapacity(max(bytes.count + expected, bytes.capacity * 2)) }
    }
}

/// Some operations respond with a list of models.
extension Array: WireWritable where Element: WireWritable {
    public func write(to json: inout JSONBytes) { json.array(self) }
}
