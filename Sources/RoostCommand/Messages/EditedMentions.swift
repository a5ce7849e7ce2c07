import Roost
import RoostAPI

/// The effect of editing a message's text on its mentions. Mentions whose name is still in the text stay, those whose name is gone end, and
/// those that were never in the text, as when a script mentioned users without naming them, are left unchanged.
struct EditedMentions {
    private let content: MessageContent
    /// The mentions in the message's text, in text order.
    let placed: [TextMention]
    private let unplacedUsers: [UserID]
    private let isChannelUnplaced: Bool

    /// - Parameter users: The mentioned users with their names, as far as known. Names whose place isn't in the metadata are searched for
    ///   in the text, and so are ids.
    init(of content: MessageContent, named users: [UserSummary] = []) {
        self.content = content
        let text = content.text
        let mentionees = content.mentionees ?? []
        let mentionedUsers = mentionees.mentionedUsers
        // Clients may interpret the metadata freely; only `mentionees` decide who is notified.
        var placed = MentionMapper.mentions(from: content.metadata).compactMap { mention in
            let isMentioned = mention.userId.map(mentionedUsers.contains) ?? mentionees.mentionsChannel
            guard isMentioned, let range = mention.range(in: text),
                let found = TextMention(range, in: text, userId: mention.userId)
            else { return nil as TextMention? }
            return found.with(mention.otherMembers)
        }
        var unplacedUsers: [UserID] = []
        for user in mentionedUsers where !placed.contains(where: { $0.userId == user }) {
            let name = users.first { $0.userId == user }?.name
            let words = [name, user.rawValue].compactMap { $0 }.map { "@" + $0 }
            let found = words.lazy.compactMap { Self.mention($0, of: user, in: text, beside: placed) }.first
            if let found { placed.append(found) } else { unplacedUsers.append(user) }
        }
        var isChannelUnplaced = mentionees.mentionsChannel && !placed.contains { $0.type == .channel }
        if isChannelUnplaced, let found = Self.mention("@all", of: nil, in: text, beside: placed) {
            placed.append(found)
            isChannelUnplaced = false
        }
        self.placed = placed.sorted { $0.index < $1.index }
        (self.unplacedUsers, self.isChannelUnplaced) = (unplacedUsers, isChannelUnplaced)
    }

    /// The mentioned users whose names are needed to find them in the text.
    static func usersToName(in content: MessageContent) -> [UserID] { EditedMentions(of: content).unplacedUsers }

    /// The message's text with its mentions, for further editing.
    var composer: MentionComposer { MentionComposer(text: content.text, mentions: placed) }

    /// The changes of an edit. Nil fields stay unchanged.
    struct Changes {
        var text: String
        var mentionees: [Mentionee]?
        var metadata: JSONValue?
    }

    /// The edit that replaces the message's text.
    func edit(of message: MessageID, in channel: ChannelID, to composer: MentionComposer) -> EditMessage {
        let changes = changes(to: composer)
        return EditMessage(
            channel: channel, message: message, text: changes.text, metadata: changes.metadata, mentionees: changes.mentionees)
    }

    /// The changes that replace the message's text.
    ///
    /// - Parameter composer: The new text, with the mentions inserted by its writer.
    func changes(to composer: MentionComposer) -> Changes {
        var mentions = composer.mentions
        for old in placed where !mentions.contains(where: { $0.userId == old.userId }) {
            guard let range = old.range(in: content.text),
                let found = Self.mention(String(content.text[range]), of: old.userId, in: composer.text, beside: mentions)
            else { continue }
            mentions.append(found.with(old.otherMembers))
        }
        mentions.sort { $0.index < $1.index }
        var builder = MentioneesBuilder()
        builder.mentionUsers(mentions.compactMap(\.userId) + unplacedUsers)
        if isChannelUnplaced || mentions.contains(where: { $0.type == .channel }) { builder.mentionChannel() }
        let mentionees = builder.mentionees ?? []
        return Changes(
            text: composer.text,
            // An empty list removes the former mentions, nil keeps them.
            mentionees: mentionees == content.mentionees ?? [] ? nil : mentionees,
            metadata: metadata(with: mentions, in: composer.text))
    }

    /// The metadata with the places of the mentions in the new text; nil if it is unchanged. Apps may keep anything else there (MN-05).
    private func metadata(with mentions: [TextMention], in text: String) -> JSONValue? {
        if let given = content.metadata {
            guard case .object = given else { return nil }
        }
        let hadPlaces = !MentionMapper.mentions(from: content.metadata).isEmpty
        let isNew = mentions.contains { mention in !placed.contains { $0.userId == mention.userId } }
        // Other entries of the list, unknown to this version, are moved too.
        var others = MentionComposer(text: content.text, metadata: content.metadata)
        let before = others.metadata(with: [])
        others.text = text
        guard hadPlaces || isNew || others.metadata(with: []) != before else { return nil }
        let changed = others.metadata(with: hadPlaces || isNew ? mentions : [])
        return changed == content.metadata ? nil : changed ?? .object([:])
    }

    /// The first place of a name with its sign, as a separate word outside other mentions.
    private static func mention(_ word: String, of user: UserID?, in text: String, beside others: [TextMention]) -> TextMention? {
        for range in text.ranges(of: word) {
            let isBegun = text[range.upperBound...].first.map { $0.isLetter || $0.isNumber } ?? false
            let isContinued = text[..<range.lowerBound].last.map { $0.isLetter || $0.isNumber } ?? false
            guard !isBegun, !isContinued, let mention = TextMention(range, in: text, userId: user) else { continue }
            let isTaken = others.contains {
                $0.index <= mention.index + mention.length && mention.index <= $0.index + $0.length
            }
            if !isTaken { return mention }
        }
        return nil
    }
}

extension TextMention {
    /// The mention with the other members of its entry in the metadata.
    fileprivate func with(_ otherMembers: [String: JSONValue]) -> TextMention {
        var mention = self
        mention.otherMembers = otherMembers
        return mention
    }
}
