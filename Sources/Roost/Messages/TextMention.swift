public import Foundation
public import RoostAPI

/// A mention in a text: its user or channel, and its place (MN-07).
///
/// Places are counted in UTF-16 code units, as in JavaScript, Java and `NSRange` (D-34); ``range(in:)-(String)`` converts them to Swift's indices.
/// ``index`` is the place of the sign, usually "@", and ``length`` doesn't include it: for "@all" it is 3 (D-18).
public struct TextMention: Hashable, Sendable {
    /// The kind of mention.
    public var type: Mentionee.Kind
    /// The position of the sign, in UTF-16 code units from the beginning of the text.
    public var index: Int
    /// The number of UTF-16 code units after the sign.
    public var length: Int
    /// The user; nil for the channel.
    public var userId: UserID?
    /// The other members of its entry in the metadata, from an app or a newer version. They stay when the entry is written again (MN-06).
    public var otherMembers: [String: JSONValue] = [:]

    /// Makes a mention of a user, or of the channel if `userId` is nil.
    public init(index: Int, length: Int, userId: UserID? = nil) {
        type = userId == nil ? .channel : .user
        self.index = index
        self.length = length
        self.userId = userId
    }

    /// Makes a mention of a range of a text, which starts with the sign. Nil if nothing follows the sign.
    public init?(_ range: Range<String.Index>, in text: String, userId: UserID? = nil) {
        let (start, end) = (range.lowerBound.utf16Offset(in: text), range.upperBound.utf16Offset(in: text))
        guard start + 1 < end else { return nil }
        self.init(index: start, length: end - start - 1, userId: userId)
    }

    /// Makes a mention of a range of an attributed text, which starts with the sign. Nil if nothing follows the sign.
    public init?(_ range: Range<AttributedString.Index>, in text: AttributedString, userId: UserID? = nil) {
        let start = String(text[..<range.lowerBound].characters).utf16.count
        let count = String(text[range].characters).utf16.count
        guard count > 1 else { return nil }
        self.init(index: start, length: count - 1, userId: userId)
    }

    /// The part of a text to highlight: the sign and the text after it (MN-08).
    ///
    /// Nil for a mention that doesn't fit the text, for instance after an edit that left the metadata unchanged: one that starts before the text,
    /// ends after it, or starts or ends within a character of two code units. A length that includes the sign, as some apps write it, is accepted if
    /// the text ends there (D-18).
    public func range(in text: String) -> Range<String.Index>? {
        let units = text.utf16
        let count = units.count
        guard index >= 0, length > 0, index < count, length <= count - index else { return nil }
        let start = units.index(units.startIndex, offsetBy: index)
        let end = units.index(start, offsetBy: min(length + 1, count - index))
        guard start.samePosition(in: text.unicodeScalars) != nil, end.samePosition(in: text.unicodeScalars) != nil else {
            return nil
        }
        return start..<end
    }

    /// The same part of an attributed text.
    public func range(in text: AttributedString) -> Range<AttributedString.Index>? {
        let plain = String(text.characters)
        guard let range = range(in: plain) else { return nil }
        let scalars = plain.unicodeScalars
        let before = scalars.distance(from: scalars.startIndex, to: range.lowerBound)
        let start = text.unicodeScalars.index(text.startIndex, offsetBy: before)
        return start..<text.unicodeScalars.index(start, offsetBy: scalars.distance(from: range.lowerBound, to: range.upperBound))
    }
}

/// Converts between mentions and the metadata that carries them (MN-06), in the form that apps on every platform read:
///
///     {"mentioned": [{"type": "user", "index": 3, "length": 4, "userId": "john"}, {"type": "channel", "index": 12, "length": 3}]}
///
/// Other members of an entry stay when it is written again, and so do entries of types that this version doesn't know, which it doesn't treat as
/// mentions. The server reads none of it (MN-05): an app may use any form, and only `mentionees` decides which users are notified.
public enum MentionMapper {
    /// The key of the mentions in the metadata.
    public static let key = "mentioned"

    /// The mentions in metadata, in order. Mentions that can't be read, and those of types that this version doesn't know, are left out.
    public static func mentions(from metadata: JSONValue?) -> [TextMention] {
        guard case .object(let members) = metadata, case .array(let entries) = members[key] else { return [] }
        return entries.compactMap { TextMention(json: $0) }
    }

    /// Adds mentions to other metadata, replacing the mentions in it. Entries that ``mentions(from:)`` leaves out stay as they are. Without any entry
    /// the key is left out.
    public static func metadata(from mentions: [TextMention], beside others: JSONValue? = nil) -> JSONValue? {
        metadata(from: mentions, among: MentionEntries(in: others), beside: others)
    }

    static func metadata(from mentions: [TextMention], among entries: MentionEntries, beside others: JSONValue?) -> JSONValue? {
        var members: [String: JSONValue] = [:]
        if case .object(let given) = others { members = given }
        let list = entries.list(with: mentions)
        members[key] = list.isEmpty ? nil : .array(list)
        return members.isEmpty ? nil : .object(members)
    }
}

extension TextMention {
    /// Reads an entry of the metadata. Nil if it can't be read, or if its type isn't known to this version.
    init?(json: JSONValue) {
        guard case .object(var members) = json, case .string(let type) = members["type"],
            var mention = TextMention(placeIn: members)
        else { return nil }
        for name in ["type", "index", "length"] { members[name] = nil }
        switch Mentionee.Kind(rawValue: type) {
        case .channel: break
        case .user:
            guard case .string(let user) = members.removeValue(forKey: "userId") else { return nil }
            (mention.type, mention.userId) = (.user, UserID(user))
        case .unknown: return nil
        }
        mention.otherMembers = members
        self = mention
    }

    /// Reads the place in an entry of the metadata, whatever its other members. Nil if it has none.
    init?(placeIn members: [String: JSONValue]) {
        guard let index = members["index"]?.intValue, let length = members["length"]?.intValue else { return nil }
        self.init(index: index, length: length)
    }

    /// Its entry in the metadata.
    var json: JSONValue {
        var entry = otherMembers
        entry["type"] = .string(type.rawValue)
        entry["index"] = .integer(Int64(index))
        entry["length"] = .integer(Int64(length))
        if let userId { entry["userId"] = .string(userId.rawValue) }
        return .object(entry)
    }
}

extension [TextMention] {
    /// The `mentionees` of a message with these mentions, who are notified of it (MN-09).
    public var mentionees: [Mentionee]? {
        var builder = MentioneesBuilder()
        for mention in self { builder.mention(mention) }
        return builder.mentionees
    }
}

/// Builds the `mentionees` of a message (MN-09).
///
///     var mentions = MentioneesBuilder()
///     mentions.mentionUsers(["ann", "ben"])
///     mentions.mentionChannel()
///     draft.mentionees = mentions.mentionees
public struct MentioneesBuilder: Hashable, Sendable {
    private var users: [UserID] = []
    private var isOfChannel = false

    /// Makes a builder without mentions.
    public init() {}

    /// Mentions users. Each is listed once, however often this is called.
    public mutating func mentionUsers(_ ids: [UserID]) {
        for id in ids where !users.contains(id) { users.append(id) }
    }

    /// Mentions everyone in the channel.
    public mutating func mentionChannel() { isOfChannel = true }

    mutating func mention(_ mention: TextMention) {
        if let user = mention.userId { mentionUsers([user]) } else { mentionChannel() }
    }

    /// The entries; nil if nobody is mentioned.
    public var mentionees: [Mentionee]? {
        let entries = (users.isEmpty ? [] : [Mentionee.users(users)]) + (isOfChannel ? [.channel] : [])
        return entries.isEmpty ? nil : entries
    }
}
