public import RoostAPI

/// A text that is being written, with its mentions: for a composer that suggests members after an "@".
///
///     composer.text = field.text                          // whenever it changes
///     if let query = composer.query(at: cursor) { … }     // look for members of that name
///     cursor = composer.choose(member, at: cursor)        // one of them was chosen
///     try await channel.send(composer.draft)
///
/// Mentions move with the text that is typed before them, and end when they are changed themselves.
public struct MentionComposer: Hashable, Sendable {
    /// The text. Setting it keeps the mentions that the change didn't touch.
    public var text: String {
        didSet { mentions = Self.moved(mentions, from: oldValue, to: text) }
    }
    /// The mentions in it, in the order of their places.
    public private(set) var mentions: [TextMention]

    /// Begins with a text, such as that of a message to edit. Mentions that are outside of the text are left out, because a message may have any
    /// places (MN-05).
    public init(text: String = "", mentions: [TextMention] = []) {
        self.text = text
        let count = text.utf16.count
        self.mentions = mentions.filter { $0.isWithin(count) }.sorted { $0.index < $1.index }
    }

    /// The text between an "@" and the cursor: the beginning of a name to search for, empty right after the "@". Nil if no mention is being typed.
    ///
    /// An "@" begins a mention at the beginning of the text and after white space or punctuation, but not in an email address.
    /// - Parameter cursor: The cursor's position, in UTF-16 code units.
    public func query(at cursor: Int) -> String? {
        // An accent behind the cursor makes one character of it and the sign.
        sign(before: cursor).map { String(text[$0].dropFirst()) }
    }

    /// Replaces what was typed with an "@", a user's name, and a space.
    ///
    /// - Parameters:
    ///   - user: The user who was chosen. Without a name, their id is used.
    ///   - cursor: The end of what was typed, in UTF-16 code units.
    /// - Returns: The new position of the cursor.
    public mutating func choose(_ user: UserSummary, at cursor: Int) -> Int {
        insert(user.name, user.userId, at: cursor)
    }

    /// Replaces what was typed with a mention of the channel.
    ///
    /// - Parameters:
    ///   - name: What the text calls the channel.
    ///   - cursor: The end of what was typed, in UTF-16 code units.
    /// - Returns: The new position of the cursor.
    public mutating func chooseChannel(as name: String = "all", at cursor: Int) -> Int { insert(name, nil, at: cursor) }

    /// The message to send: the text, whom it mentions, and where.
    public var draft: MessageDraft {
        MessageDraft(
            text: text, metadata: MentionMapper.metadata(from: mentions), mentionees: mentions.mentionees)
    }

    private mutating func insert(_ name: String, _ user: UserID?, at cursor: Int) -> Int {
        let cursor = max(0, min(cursor, text.utf16.count))
        let place = String.Index(utf16Offset: cursor, in: text)
        let typed = sign(before: cursor) ?? place..<place
        let start = typed.lowerBound.utf16Offset(in: text)
        var changed = text
        changed.replaceSubrange(typed, with: "@\(name) ")
        text = changed
        mentions.append(TextMention(index: start, length: name.utf16.count, userId: user))
        mentions.sort { $0.index < $1.index }
        return start + name.utf16.count + 2
    }

    /// The sign that begins the mention which is typed at a place, and what follows it.
    private func sign(before cursor: Int) -> Range<String.Index>? {
        guard cursor > 0, cursor <= text.utf16.count,
            let end = String.Index(utf16Offset: cursor, in: text).samePosition(in: text.unicodeScalars),
            let sign = text[..<end].lastIndex(of: "@"), text[sign..<end].count <= 64, !text[sign..<end].contains(where: \.isNewline)
        else { return nil }
        if sign > text.startIndex {
            let before = text[text.index(before: sign)]
            guard before.isWhitespace || before.isPunctuation else { return nil }
        }
        let place = sign.utf16Offset(in: text)
        return mentions.contains { $0.index == place } ? nil : sign..<end
    }

    /// The mentions after a change: what is the same at both ends of the text stays, and a mention that isn't within it ends.
    private static func moved(_ mentions: [TextMention], from old: String, to new: String) -> [TextMention] {
        let (old, new) = (Array(old.utf16), Array(new.utf16))
        var start = 0
        while start < min(old.count, new.count), old[start] == new[start] { start += 1 }
        var end = 0
        while end < min(old.count, new.count) - start, old[old.count - 1 - end] == new[new.count - 1 - end] { end += 1 }
        let moved = new.count - old.count
        return mentions.compactMap { mention in
            let after = mention.index + mention.length + 1
            if after <= start { return mention }
            guard mention.index >= old.count - end else { return nil }
            var mention = mention
            mention.index += moved
            return mention
        }
    }
}

extension TextMention {
    /// Whether the sign and the name stand in a text of so many UTF-16 code units.
    fileprivate func isWithin(_ count: Int) -> Bool { 0..<count ~= index && 0..<(count - index) ~= length }
}
