import Foundation

/// A string chosen by a caller that identifies something in Roost for its whole life.
///
/// 1 to 128 characters and at most 512 bytes of UTF-8, without control characters, `/` or `,` (ledger §8.6), in Unicode's normalization form C, and
/// neither `.` nor `..`. Operations check this with ``Identifier/validate(field:)``.
///
/// Ids are compared and hashed by their UTF-8, as databases compare them. Two strings can be equal in Swift and have different bytes; as ids they
/// are different, even where the check of the form misses one of them.
public protocol Identifier: WireString, CodingKeyRepresentable {}

extension Identifier {
    public static func < (left: Self, right: Self) -> Bool {
        comparing(left, right) { $0.lexicographicallyPrecedes($1) }
            ?? left.rawValue.utf8.lexicographicallyPrecedes(right.rawValue.utf8)
    }

    /// Whether another id has the same UTF-8. Each type has its own operators, which take precedence over those that Swift has for every raw value.
    func hasBytes(of other: Self) -> Bool {
        guard rawValue.utf8.count == other.rawValue.utf8.count else { return false }
        let isSame = Self.comparing(self, other) { bytes, otherBytes in
            // Only empty ids have no address.
            guard let bytes = bytes.baseAddress, let start = otherBytes.baseAddress else { return true }
            return memcmp(bytes, start, otherBytes.count) == 0
        }
        return isSame ?? rawValue.utf8.elementsEqual(other.rawValue.utf8)
    }

    func hashBytes(into hasher: inout Hasher) {
        let isHashed: Void? = rawValue.utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        if isHashed == nil { for byte in rawValue.utf8 { hasher.combine(byte) } }
        // No UTF-8 has this byte: it separates an id from the next part of a key.
        hasher.combine(0xFF as UInt8)
    }

    /// Passes the bytes of two ids to a body without copying them. Nil if one isn't stored in one piece: on Apple's systems a string may be an
    /// `NSString`.
    private static func comparing(
        _ left: Self, _ right: Self, _ body: (UnsafeBufferPointer<UInt8>, UnsafeBufferPointer<UInt8>) -> Bool
    ) -> Bool? {
        let result: Bool?? = left.rawValue.utf8.withContiguousStorageIfAvailable { bytes in
            right.rawValue.utf8.withContiguousStorageIfAvailable { otherBytes in body(bytes, otherBytes) }
        }
        return result.flatMap { $0 }
    }

    public init?<Key: CodingKey>(codingKey: Key) { self.init(rawValue: codingKey.stringValue) }
    public var codingKey: any CodingKey { FieldKey(rawValue) }

    public static var schema: Schema {
        .string(maxLength: Limits.identifierLength, pattern: VisibleText.identifierPattern)
    }
    public static var schemaExample: Self { Self(rawValue: "example") }

    /// Throws `invalid_argument` with the field's name if the string isn't a valid identifier. Existing ids that earlier versions on Linux took to
    /// be in form C stay valid, in apps too; the server checks new ones more strictly.
    public func validate(field: String) throws(RoostError) {
        guard !rawValue.isEmpty else {
            throw .invalidArgument(field, "must not be empty")
        }
        // An id with too many bytes may still have few characters: some emoji take more than twenty bytes each. Its characters aren't counted.
        guard rawValue.utf8.count <= Limits.identifierSizeBytes else {
            throw .limitExceeded(
                field, limit: Limits.identifierLength, unit: "characters and \(Limits.identifierSizeBytes) bytes")
        }
        guard rawValue.count <= Limits.identifierLength else {
            throw .limitExceeded(field, limit: Limits.identifierLength, unit: "characters")
        }
        // Part of a path, they would mean another one.
        guard rawValue != ".", rawValue != ".." else {
            throw .invalidArgument(field, "must not be '.' or '..'")
        }
        guard !hasForbiddenCharacters else {
            throw .invalidArgument(field, "must not contain control characters, '/' or ','")
        }
        guard isInFormC || isInFormerFormC else { throw .notInFormC(field) }
    }

    /// Whether it is in Unicode's normalization form C, as new ids have to be.
    var isInFormC: Bool { isASCII || rawValue.inFormC.utf8.elementsEqual(rawValue.utf8) }

    /// Whether earlier versions took it to be in form C. On Linux they accepted a Korean syllable with its final consonant apart, so stored channels,
    /// users and messages may have such ids. Composing these here gives the same answer on every system, whatever its Foundation does.
    private var isInFormerFormC: Bool {
        let composed = rawValue.composingFinalConsonants
        return composed.inFormC.utf8.elementsEqual(composed.utf8)
    }

    private var isASCII: Bool { rawValue.utf8.allSatisfy { $0 < 0x80 } }

    private var hasForbiddenCharacters: Bool {
        // Most ids are ASCII, for which checking bytes is enough.
        if isASCII {
            return rawValue.utf8.contains { $0 < 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: ",") }
        }
        return rawValue.unicodeScalars.contains { scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: true
            default: scalar == "/" || scalar == ","
            }
        }
    }
}

/// The id of a channel: the caller's string, or one generated by the server (AM-13).
public struct ChannelID: Identifier {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static func == (left: Self, right: Self) -> Bool { left.hasBytes(of: right) }
    public static func != (left: Self, right: Self) -> Bool { !left.hasBytes(of: right) }
    public func hash(into hasher: inout Hasher) { hashBytes(into: &hasher) }
}

/// The id of a user: the app's own string.
public struct UserID: Identifier {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static func == (left: Self, right: Self) -> Bool { left.hasBytes(of: right) }
    public static func != (left: Self, right: Self) -> Bool { !left.hasBytes(of: right) }
    public func hash(into hasher: inout Hasher) { hashBytes(into: &hasher) }
}

/// The sender's own id of a message, permanently unique per channel and sender. Sending twice with the same client id stores one message.
///
/// The server's own messages have ids with a `/`, which calls can't use.
public struct ClientID: Identifier {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static func == (left: Self, right: Self) -> Bool { left.hasBytes(of: right) }
    public static func != (left: Self, right: Self) -> Bool { !left.hasBytes(of: right) }
    public func hash(into hasher: inout Hasher) { hashBytes(into: &hasher) }
    // Without the pattern of other ids, since it also describes received ids.
    public static var schema: Schema { .string(maxLength: Limits.identifierLength) }

    /// A new id: 128 random bits, in 22 characters of base64url. It is sent to every receiver of the message and stored twice with it, so a
    /// UUID's 36 characters would be costly.
    package static func random() -> ClientID {
        let words = [UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max)]
        return ClientID(Base64URL.encode(words.withUnsafeBytes { Data($0) }))
    }
}

/// The id of a message: 63 bits that increase with time (milliseconds, node, counter); a decimal string in JSON.
public struct MessageID: RawRepresentable, Codable, Hashable, Comparable, Sendable, SchemaDescribed, LosslessStringConvertible {
    public let rawValue: Int64
    // derived: init
    /// Creates a value with these fields.
    public init(rawValue: Int64) { self.rawValue = rawValue }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let id = Self(text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "must be a message id: decimal digits in a string")
        }
        self = id
    }

    /// Reads an id from its text, as `description` and JSON have it, for instance in a link. Nil for anything but digits without a sign or leading
    /// zeros, so that a message has only one text.
    public init?(_ text: String) {
        guard let first = text.utf8.first, ("0"..."9").contains(UnicodeScalar(first)),
            first != UInt8(ascii: "0") || text.utf8.count == 1,
            let value = Int64(text)
        else { return nil }
        self.init(rawValue: value)
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(String(rawValue))
    }
    public var description: String { String(rawValue) }
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    public static var schema: Schema { .string(format: "int64", pattern: "^(0|[1-9][0-9]{0,18})$") }
    public static var schemaExample: Self { Self(rawValue: 1) }
}

extension MessageID: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.raw("\"")
        json.integer(rawValue)
        json.raw("\"")
    }
}

/// A position in a stream: the number of a durable change. The first change is 1; 0 is before all of them.
public typealias Seq = Int64

extension RoostError {
    static func notInFormC(_ field: String) -> RoostError { .invalidArgument(field, "must be in Unicode's normalization form C") }
}

extension String {
    /// The text in Unicode's normalization form C. It is decomposed first: composed directly, Foundation on Linux leaves a Korean syllable and the
    /// final consonant after it as they are.
    var inFormC: String { decomposedStringWithCanonicalMapping.precomposedStringWithCanonicalMapping }

    /// The text with each Korean syllable without a final consonant composed with one that follows it, by the arithmetic of Unicode's section 3.12.
    /// Everything else stays as it is.
    fileprivate var composingFinalConsonants: String {
        var scalars: [Unicode.Scalar] = []
        for scalar in unicodeScalars {
            // Of the 28 syllables with the same beginning, the first has no final consonant, and the others have one each, in order.
            if let last = scalars.last?.value, (0xAC00...0xD7A3).contains(last), (last - 0xAC00).isMultiple(of: 28),
                (0x11A8...0x11C2).contains(scalar.value), let syllable = Unicode.Scalar(last + scalar.value - 0x11A7)
            {
                scalars[scalars.count - 1] = syllable
            } else {
                scalars.append(scalar)
            }
        }
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars)
        return String(text)
    }
}

/// A coding key made of any string.
package struct FieldKey: CodingKey {
    package let stringValue: String
    package var intValue: Int? { nil }
    package init(_ string: String) { stringValue = string }
    package init?(stringValue: String) { self.stringValue = stringValue }
    package init?(intValue: Int) { nil }
}
