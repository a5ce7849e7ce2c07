public import RoostAPI

/// A text being composed, with its mentions: for a composer that suggests members after an "@".
///
///     composer.text = field.text                          // whenever it changes
///     if let query = composer.query(at: cursor) { … }     // look for members of that name
///     cursor = composer.choose(member, at: cursor)        // one of them was chosen
///     try await channel.send(composer.draft)
///
/// To edit a message, start with its content:
///
///     var composer = MentionComposer(editing: message.content)
///     …
///     let draft = composer.draft
///     try await channel.edit(message.messageId, text: draft.text, metadata: draft.metadata, mentionees: draft.mentionees)
///
/// Mentions move with text typed before them, and end when they are changed themselves. The same applies to entries of the metadata's list that this
/// version doesn't know, such as a newer client's types of mentions, if they name a place in the text (`index` and `length`); other entries stay as
/// they are.
public struct MentionComposer: Hashable, Sendable {
    /// The text. Setting it keeps the mentions that the change didn't touch.
    public var text: String {
        didSet {
            let change = TextChange(from: oldValue, to: text, keeping: mentions.map(\.part) + entries.parts)
            mentions = mentions.compactMap { $0.moved(by: change) }
            entries.move(by: change)
        }
    }
    /// The mentions in the text, in the order of their places.
    public private(set) var mentions: [TextMention]
    /// The metadata that it started with, whose other keys stay.
    private let metadata: JSONValue?
    /// The list of mentions in that metadata, kept for its other entries.
    private var entries: MentionEntries
    /// The users whom the original message mentions without a place in the text.
    private var unplaced = MentioneesBuilder()
    /// Whether it started with a message or with mentions: a draft without mentions has to say so, or the former ones would be kept.
    private let endsMentions: Bool
    /// Likewise for metadata.
    private let endsMetadata: Bool

    /// Starts with a text, such as the user's draft. Mentions outside the text are left out, because a message may have any places (MN-05).
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - mentions: The mentions in the text. If there are any, ``draft`` says so when the last of them has ended.
    ///   - metadata: The app's own metadata, to which the mentions are added.
    public init(text: String = "", mentions: [TextMention] = [], metadata: JSONValue? = nil) {
        self.text = text
        self.metadata = metadata
        let count = text.utf16.count
        entries = MentionEntries(in: metadata)
        entries.place(inTextOf: count)
        self.mentions = mentions.compactMap { $0.placed(inTextOf: count) }.sorted { $0.index < $1.index }
        (endsMentions, endsMetadata) = (!mentions.isEmpty, !mentions.isEmpty)
    }

    /// Starts with a message, to edit it. Users whom it mentions without a place in its text stay mentioned.
    public init(editing content: MessageContent) {
        text = content.text
        metadata = content.metadata
        let (count, mentionees) = (content.text.utf16.count, content.mentionees ?? [])
        entries = MentionEntries(in: content.metadata)
        entries.place(inTextOf: count)
        // The metadata is what an app highlights; only the users in `mentionees` are notified.
        let users = mentionees.mentionedUsers
        let placed = MentionMapper.mentions(from: content.metadata).compactMap { $0.placed(inTextOf: count) }.filter { mention in
            mention.userId.map(users.contains) ?? mentionees.mentionsChannel
        }
        mentions = placed.sorted { $0.index < $1.index }
        unplaced.mentionUsers(users.filter { user in !placed.contains { $0.userId == user } })
        if mentionees.mentionsChannel, !placed.contains(where: { $0.type == .channel }) { unplaced.mentionChannel() }
        (endsMentions, endsMetadata) = (true, content.metadata != nil)
    }

    /// The text between an "@" and the cursor: the start of a name to search for. Nil if no mention is being typed.
    ///
    /// It is empty right after the "@", and a search for an empty text is refused: show ``LiveChannel/members(states:roles:sort:order:pageSize:)`` then.
    ///
    /// An "@" starts a mention at the beginning of the text and after white space or punctuation, but not in an email address.
    /// - Parameter cursor: The cursor's position, in UTF-16 code units.
    public func query(at cursor: Int) -> String? {
        // A combining accent after the cursor would form one character with the sign.
        sign(before: cursor).map { String(text[$0].dropFirst()) }
    }

    /// Replaces the typed text with an "@", a user's name, and a space.
    ///
    /// - Parameters:
    ///   - user: The chosen user. Without a name, their id is used.
    ///   - cursor: The end of the typed text, in UTF-16 code units.
    /// - Returns: The new position of the cursor.
    public mutating func choose(_ user: UserSummary, at cursor: Int) -> Int {
        insert(user.name, user.userId, at: cursor)
    }

    /// Replaces the typed text with a mention of the channel.
    ///
    /// - Parameters:
    ///   - name: The channel's name in the text.
    ///   - cursor: The end of the typed text, in UTF-16 code units.
    /// - Returns: The new position of the cursor.
    public mutating func chooseChannel(as name: String = "all", at cursor: Int) -> Int { insert(name, nil, at: cursor) }

    /// The message to send, or the content for an edit: the text and its mentions with their places.
    ///
    /// If it started with a message or with mentions and nobody is mentioned, its `mentionees` are an empty list rather than nil; likewise its
    /// `metadata` is an empty object when nothing is left in it: an edit keeps the fields that it leaves out.
    public var draft: MessageDraft {
        var builder = unplaced
        for mention in mentions { builder.mention(mention) }
        return MessageDraft(
            text: text, metadata: metadata(with: mentions) ?? (endsMetadata ? [:] : nil),
            mentionees: builder.mentionees ?? (endsMentions ? [] : nil))
    }

    /// The metadata that it started with, with its mentions replaced, and the other entries of their list moved to their current places in the text.
    package func metadata(with mentions: [TextMention]) -> JSONValue? {
        MentionMapper.metadata(from: mentions, among: entries, beside: metadata)
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

    /// The sign that starts the mention being typed at a place, and the text after it.
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
        let isTaken = mentions.contains { $0.index == place } || entries.parts.contains { $0.lowerBound == place }
        return isTaken ? nil : sign..<end
    }
}

extension TextMention {
    /// The mention as placed in a text of the given number of UTF-16 code units; nil if it is outside. A length that counts the sign (D-18) ends with
    /// the text.
    func placed(inTextOf count: Int) -> TextMention? {
        guard 0..<count ~= index, 0...(count - index) ~= length else { return nil }
        var mention = self
        mention.length = min(length, count - index - 1)
        return mention
    }

    /// The part of the text that it covers including its sign, if it is placed in one.
    var part: Range<Int> { index..<index + length + 1 }

    /// The mention after a change of the text; nil if the change touched it.
    fileprivate func moved(by change: TextChange) -> TextMention? {
        guard let distance = change.distance(of: part) else { return nil }
        var mention = self
        mention.index += distance
        return mention
    }
}
