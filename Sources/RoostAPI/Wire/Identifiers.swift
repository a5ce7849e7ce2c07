import Foundation

/// A string chosen by a caller that identifies something in Roost for its whole life.
///
/// 1 to 128 characters without control characters, `/` or `,` (ledger §8.6), in Unicode's normalization form C: so that two ids that are
/// equal in Swift, which compares characters, are equal in a database, which compares bytes. Operations check this with
/// ``Identifier/validate(field:)``.
public protocol Identifier: WireString, CodingKeyRepresentable {}

extension Identifier {
    public init?<Key: CodingKey>(codingKey: Key) { self.init(rawValue: codingKey.stringValue) }
    public var codingKey: any CodingKey { FieldKey(rawValue) }

    public static var schema: Schema {
        .string(maxLength: Limits.identifierLength, pattern: VisibleText.identifierPattern)
    }
    public static var schemaExample: Self { Self(rawValue: "example") }

    /// Throws `invalid_argument` with the field's name if the string isn't a valid identifier.
    public func validate(field: String) throws(RoostError) {
        guard !rawValue.isEmpty else {
            throw .invalidArgument(field, "must not be empty")
        }
        guard rawValue.count <= Limits.identifierLength, rawValue.utf8.count <= Limits.identifierLength * 4 else {
            throw .limitExceeded(field, limit: Limits.identifierLength, unit: "characters")
        }
        guard rawValue != ".", rawValue != "..", !hasForbiddenCharacters else {
            throw .invalidArgument(field, "must not contain control characters, '/' or ','")
        }
        guard isASCII || rawValue.precomposedStringWithCanonicalMapping.utf8.elementsEqual(rawValue.utf8) else {
            throw .invalidArgument(field, "must be in Unicode's normalization form C")
        }
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

/// The id of a channel: the caller's string, or one that the server made (AM-13).
public struct ChannelID: Identifier {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// The id of a user: the app's own string.
public struct UserID: Identifier {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// The sender's own id of a message, unique per channel and sender, for ever. Sending twice with one client id stores one message.
///
/// The server's own messages have ids with a `/`, which no call can have.
public struct ClientID: Identifier {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    // Without the pattern of other ids, as it describes what is received.
    public static var schema: Schema { .string(maxLength: Limits.identifierLength) }

    /// A new one: 128 random bits, in 22 characters of base64url. It is sent to everybody who gets the message, and stored twice with it, so a UUID's
    /// 36 would be dear.
    package static func random() -> ClientID {
        let words = [UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max)]
        return ClientID(Base64URL.encode(words.withUnsafeBytes { Data($0) }))
    }
}

/// The id of a message: 63 bits that grow with time (milliseconds, node, counter); a decimal string in JSON.
public struct MessageID: RawRepresentable, Codable, Hashable, Comparable, Sendable, SchemaDescribed, CustomStringConvertible {
    public let rawValue: Int64
    // derived: init
    /// Creates a value with these fields.
    public init(rawValue: Int64) { self.rawValue = rawValue }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let id = Self(written: text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "must be a message id: decimal digits in a string")
        }
        self = id
    }

    /// An id as the server writes it: digits without a sign, or zeros in front. So one message has one id. Nil for anything else.
    package init?(written text: String) {
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

/// A coding key made of any string.
package struct FieldKey: CodingKey {
    package let stringValue: String
    package var intValue: Int? { nil }
    package init(_ string: String) { stringValue = string }
    package init?(stringValue: String) { self.stringValue = stringValue }
    package init?(intValue: Int) { nil }
}
