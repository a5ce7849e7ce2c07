/// A client's key for one change: it deduplicates a retry after a lost response.
///
/// It is a UUID of version 7 (RFC 9562), generated right before the change is first sent: its first 48 bits are the time. The server keeps
/// it for ``Limits/idempotencyKeyHours``, and refuses older keys, since it can't know whether their changes were made.
public struct IdempotencyKey: Hashable, Sendable, CustomStringConvertible {
    /// The text, in lowercase.
    public let rawValue: String
    /// When the key was generated, by the client's account.
    public let madeAt: Timestamp

    public var description: String { rawValue }

    /// The member that holds a key in a socket's frame.
    public static let member = "key"
    /// The regular expression of a key, for the API description.
    public static let pattern = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"

    /// Reads a key.
    ///
    /// - Parameter field: The key's place in the request, for the error.
    /// - Throws: `invalid_argument` for anything but a UUID of version 7.
    public init(_ text: String, field: String = member) throws(RoostError) {
        let characters = Array(text.lowercased().utf8)
        let isKey =
            characters.count == 36
            && characters.enumerated().allSatisfy { place, character in
                switch place {
                case 8, 13, 18, 23: character == UInt8(ascii: "-")
                case 14: character == UInt8(ascii: "7")
                case 19: "89ab".utf8.contains(character)
                default: "0123456789abcdef".utf8.contains(character)
                }
            }
        let time = String(decoding: characters.prefix(8) + characters.dropFirst(9).prefix(4), as: UTF8.self)
        guard isKey, let milliseconds = Int64(time, radix: 16) else {
            throw .invalidArgument(field, "must be a UUID of version 7 (RFC 9562), which says when it was made")
        }
        rawValue = String(decoding: characters, as: UTF8.self)
        madeAt = Timestamp(milliseconds: milliseconds)
    }

    /// Generates a key.
    ///
    /// - Parameters:
    ///   - time: Now, by the client's estimate of the server's clock.
    ///   - random: 62 of its bits distinguish keys of the same millisecond.
    public init(madeAt time: Timestamp, random: UInt64) {
        let milliseconds = UInt64(min(max(0, time.milliseconds), 0xffff_ffff_ffff))
        let time = String(milliseconds, radix: 16, width: 12)
        let tail = String(random & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000, radix: 16, width: 16)
        rawValue = "\(time.prefix(8))-\(time.suffix(4))-7000-\(tail.prefix(4))-\(tail.suffix(12))"
        madeAt = Timestamp(milliseconds: Int64(milliseconds))
    }
}
