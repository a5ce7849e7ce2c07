import Foundation
import GRDB
import RoostAPI

/// The content of a row of a channel list. It is copied as one reference and compared by reference first: after a change, most rows of a list are the
/// same references as before.
final class ChannelRow: Hashable, Sendable {
    /// The stored rows from which a view was read.
    private struct Source: Hashable {
        var attributes: Int64
        var messageSeq: Seq?
        var messageChangeSeq: Seq?
        var isDeletedForMe: Bool?
        /// The changes made by the user's pending operations.
        var overlay: Data?
    }

    let view: ChannelView
    /// The senders of the last message and of the invitation.
    let sender: UserSummary?
    let inviter: UserSummary?
    private let source: Source?

    /// A row received from the server.
    init(_ view: ChannelView, sender: UserSummary?, inviter: UserSummary?) {
        self.view = view
        self.sender = sender
        self.inviter = inviter
        source = nil
    }

    private init(_ view: ChannelView, sender: UserSummary?, inviter: UserSummary?, _ source: Source?) {
        self.view = view
        self.sender = sender
        self.inviter = inviter
        self.source = source
    }

    static func == (one: ChannelRow, other: ChannelRow) -> Bool {
        one === other || (one.view == other.view && one.sender == other.sender && one.inviter == other.inviter)
    }

    func hash(into hasher: inout Hasher) { view.hash(into: &hasher) }

    // MARK: From the store

    /// A channel with everything that is shown of it, in one statement.
    static let query = """
        SELECT a.revision, l.seq, l.change_seq, l.is_deleted_for_me, o.json, \(ChannelMention.isUnread), \(ChannelCounters.cacheColumns.of("c")),
               \(Channel.cacheColumns.of("a")),
               \(Membership.cacheColumns.of("m")), \(Capabilities.cacheColumns.of("k")), \(Message.cacheColumns.of("l")),
               \(UserSummary.cacheColumns.of("u")), \(Invitation.cacheColumns.of("i")), \(UserSummary.cacheColumns.of("v"))
        FROM channels c JOIN channel_attributes a ON a.channel_id = c.channel_id
        LEFT JOIN memberships m ON m.channel_id = c.channel_id
        LEFT JOIN capabilities k ON k.channel_id = c.channel_id
        LEFT JOIN positions p ON p.channel_id = c.channel_id
        LEFT JOIN overlays o ON o.channel_id = c.channel_id
        LEFT JOIN messages l ON l.channel_id = c.channel_id
                  AND l.seq = (SELECT seq FROM messages WHERE channel_id = ?1 AND seq >= COALESCE(p.window_start, 0)
                                     AND seq > COALESCE(o.concealed_seq, 0)
                               ORDER BY seq DESC LIMIT 1)
        LEFT JOIN users u ON u.user_id = l.sender
        LEFT JOIN invitations i ON i.channel_id = c.channel_id AND +i.is_waiting = 1
        LEFT JOIN users v ON v.user_id = i.inviter
        WHERE c.channel_id = ?1
        """

    /// A row of ``query``. Parts of `known` that were read from the same rows aren't read again.
    ///
    /// - Parameter now: The time by which silences, rate limits and mutes have ended; nil leaves them as they were stored.
    convenience init(_ reader: inout CacheReader, known: ChannelRow?, now: Timestamp?) throws {
        let source = Source(
            attributes: try reader.value(), messageSeq: try reader.value(), messageChangeSeq: try reader.value(),
            isDeletedForMe: try reader.value(), overlay: try reader.value())
        let isMentioned: Bool = try reader.value()
        let counters = try ChannelCounters(cached: &reader)
        var channel: Channel
        if let known, known.source?.attributes == source.attributes {
            channel = known.view.channel
            reader.skip(Channel.self)
        } else {
            channel = try Channel(cached: &reader)
        }
        channel.counters = counters
        if let now { channel.updateTimedStates(at: now) }

        var membership: Membership? = try reader.optional()
        let capabilities: Capabilities? = try reader.optional()
        let isMember = membership?.state == .member
        let isMuted = membership?.isMuted(at: now) ?? false
        var permissions = capabilities?.now(as: isMember ? membership?.role : nil, isMuted: isMuted) ?? []
        if channel.deletedAt != nil {
            // A deleted channel has no members, although none of them got an event about their membership.
            membership?.state = .none
            permissions = []
        }
        // Equal lists share their storage.
        if let known, known.view.ownCapabilities == permissions { permissions = known.view.ownCapabilities }

        var lastMessage: Message?
        if let known, let before = known.source, before.messageSeq == source.messageSeq,
            before.messageChangeSeq == source.messageChangeSeq, before.isDeletedForMe == source.isDeletedForMe,
            before.overlay == source.overlay
        {
            lastMessage = known.view.lastMessage
            reader.skip(Message.self)
        } else {
            lastMessage = try reader.optional()
            if let message = lastMessage, let overlay = source.overlay {
                lastMessage = try StoredJSON.decode(Overlay.self, from: overlay).applied(to: message)
            }
        }
        let sender: UserSummary? = try reader.optional()
        let invitation: Invitation? = try reader.optional()
        let inviter: UserSummary? = try reader.optional()
        self.init(
            ChannelView(
                channel: channel, membership: membership, invitation: invitation, lastMessage: lastMessage,
                ownCapabilities: permissions,
                hasMention: isMentioned && membership?.state == .member && permissions.contains(.historyRead)),
            sender: lastMessage.map { sender ?? UserSummary(userId: $0.sender) },
            inviter: invitation.map { inviter ?? UserSummary(userId: $0.inviter) }, source)
    }

    /// Whether the user has marked messages as unread on this device, and the server isn't known to have received it.
    var isMarkedUnread: Bool {
        guard let overlay = source?.overlay else { return false }
        return (try? StoredJSON.decode(Overlay.self, from: overlay).unreadAfterSeq) != nil
    }

    /// When the next silence, rate limit or mute shown by it ends; nil if none does.
    func nextEnd(after now: Timestamp) -> Timestamp? {
        let end = view.channel.nextEnd(after: now)
        guard let muteEnd = view.membership?.mutedUntil, muteEnd > now, muteEnd < .forever else { return end }
        return end.map { min($0, muteEnd) } ?? muteEnd
    }

    /// Whether it may show a silence, a rate limit or a mute that has ended since it was read.
    func hasEndedState(at now: Timestamp) -> Bool {
        if view.channel.hasEndedState(at: now) { return true }
        return view.membership?.mutedUntil != nil && view.membership?.isMuted(at: now) == false
            && !view.ownCapabilities.contains(.messageSend)
    }

    /// Whether the row shows any of the given users.
    func shows(_ users: Set<UserID>) -> Bool {
        (sender.map { users.contains($0.userId) } ?? false) || (inviter.map { users.contains($0.userId) } ?? false)
    }

    /// The same row with its users as currently stored.
    func withCurrentUsers(in database: Database) throws -> ChannelRow {
        let changed = ChannelRow(
            view, sender: try sender.map { try database.summary(of: $0.userId) },
            inviter: try inviter.map { try database.summary(of: $0.userId) }, source)
        return changed == self ? self : changed
    }
}
