import RoostAPI
import RoostTestSupport

/// The simplest possible client: it holds rows and positions, and applies events and changes by the rules of the two streams.
///
/// - A stream's event is applied when it is the next one; an older one is dropped; one further ahead is a gap.
/// - Rows replace older ones, by the seq or the revision that they carry.
/// - A membership on the user's stream begins or ends a channel; a deleted channel has ended too.
/// - The user's permissions have a channel's seq: sent to the user alone, or for all members by role, the later of the two wins.
struct ReferenceClient: Sendable {
    /// A channel that the user is a member of.
    struct Held: Hashable, Sendable {
        /// The position in the channel's stream.
        var seq: Seq
        /// Messages from here on are held, without a gap.
        var windowStart: Seq
        var channel: Channel
        var messages: [Seq: Message] = [:]
        /// Places of messages that were deleted for good.
        var purged: [Seq: PurgedMessage] = [:]
        /// Former members stay in it, with their last role. Nil until they were fetched.
        var members: [UserID: Member]?
        var capabilities = Capabilities()
    }

    /// The user's permissions in a channel.
    struct Capabilities: Hashable, Sendable {
        /// Those sent to the user, with the user's and the channel's seq at which they were valid.
        var own: [Permission] = []
        var userSeq: Seq = 0
        var channelSeq: Seq = 0
        /// Those sent to all by role, with the seq of the change.
        var byRole: [String: [Permission]] = [:]
        var byRoleSeq: Seq = 0

        /// A deleted role grants what every member has.
        func now(as role: ChannelRole) -> [Permission] {
            guard byRoleSeq > channelSeq else { return own }
            return byRole[role.rawValue] ?? byRole[ChannelRole.member.rawValue] ?? []
        }
    }

    /// The key of an invitation.
    struct InvitationKey: Hashable, Sendable {
        var channel: ChannelID
        var user: UserID
        var inviter: UserID
    }

    let user: UserID
    var seq: Seq = 0
    var profile: User?
    var preferences: Preferences?
    /// Messages that the user has deleted for themselves, by channel and seq.
    var deletions: [ChannelID: [Seq: Timestamp]] = [:]
    /// The user's drafts; removed ones stay.
    var drafts: [ChannelID: ChannelDraft] = [:]
    /// The user's memberships; ended ones stay.
    var memberships: [ChannelID: Membership] = [:]
    var invitations: [InvitationKey: Invitation] = [:]
    var channels: [ChannelID: Held] = [:]
    /// Whether an event was missed: time to catch up.
    var hasGap = false
    /// Messages that a fetch brought although they aren't for the user.
    var leaked: [String] = []

    init(user: UserID) { self.user = user }

    // MARK: Live

    mutating func receive(_ event: Event) {
        switch event.stream {
        case .user(let id):
            guard id == user, isNext(event, after: seq) else { return }
            seq = event.seq
            apply(own: event.rows)
        case .channel(let id):
            guard var held = channels[id], isNext(event, after: held.seq) else { return }
            // Missed messages of an ephemeral channel are gone, the user's own too: only a resume says how far they are counted.
            if event.after != nil, held.channel.isEphemeral { return hasGap = true }
            let position = held.seq
            held.seq = event.seq
            held.apply(event.rows, above: memberships[id]?.historyFloor ?? 0, without: deletions[id] ?? [:])
            // A message sent alone is added to counters that don't have it yet.
            if event.kind == .messageNew, event.rows.counters == nil { held.channel.counters.add(event.rows) }
            channels[id] = held
            let born = (event.rows.messages ?? []).filter { $0.seq > position }
            memberships[id] = memberships[id].map { Unread.advancing($0, as: user, with: born, event.rows.purged ?? []) }
            take(event.rows.invitations ?? [])
            endIfDeleted(id)
        }
    }

    private mutating func isNext(_ event: Event, after seq: Seq) -> Bool {
        guard event.seq > seq else { return false }
        if event.after ?? event.seq - 1 > seq { hasGap = true }
        return event.after ?? event.seq - 1 <= seq
    }

    private mutating func apply(own rows: Rows) {
        profile = rows.users?.last { $0.userId == user } ?? profile
        preferences = rows.preferences ?? preferences
        for draft in rows.drafts ?? [] { drafts[draft.channelId] = draft }
        for deletion in rows.ownDeletions ?? [] {
            deletions[deletion.channelId, default: [:]][deletion.seq] = deletion.deletedAt
            let held = channels[deletion.channelId]?.messages[deletion.seq]
            channels[deletion.channelId]?.messages[deletion.seq] = held?.concealed(at: deletion.deletedAt)
        }
        for membership in rows.memberships ?? [] {
            let id = membership.channelId
            if membership.state == .member, let channel = rows.channel, channel.channelId == id,
                channels[id].map({ $0.seq < membership.joinedSeq }) ?? true
            {
                end(id)
                let start = channel.counters.messageCount == 0 ? 0 : channel.counters.seq + 1
                channels[id] = Held(seq: channel.counters.seq, windowStart: start, channel: channel)
            }
            take(membership, with: rows)
        }
        take(rows.invitations ?? [])
    }

    // MARK: Rows

    /// Takes a membership, with the user's permissions, unless a newer one is held.
    private mutating func take(_ incoming: Membership, with rows: Rows) {
        let id = incoming.channelId
        var membership = incoming
        if let held = channels[id] {
            let own = held.messages.values.filter { $0.sender == user && $0.seq <= held.seq }
            membership = Unread.advancing(incoming, as: user, with: own, held.purged.values.filter { $0.changeSeq <= held.seq })
        }
        let old = memberships[id]
        if let old, (old.userSeq, old.readCount) > (membership.userSeq, membership.readCount) { return }
        memberships[id] = membership
        guard membership.state == .member else { return end(id) }
        guard var held = channels[id] else { return }
        held.messages = held.messages.filter { $0.key > membership.historyFloor }
        let known = (held.capabilities.userSeq, held.capabilities.channelSeq)
        if let capabilities = rows.ownCapabilities?[id.rawValue], (incoming.userSeq, incoming.channelSeq) >= known {
            held.capabilities.own = capabilities
            (held.capabilities.userSeq, held.capabilities.channelSeq) = (incoming.userSeq, incoming.channelSeq)
        }
        channels[id] = held
    }

    mutating func take(_ rows: [Invitation]) {
        for row in rows {
            let key = InvitationKey(channel: row.channelId, user: row.userId, inviter: row.inviter)
            if row.revision >= invitations[key]?.revision ?? 0 { invitations[key] = row }
        }
    }

    /// Forgets everything that only members know of a channel.
    private mutating func end(_ id: ChannelID) {
        channels[id] = nil
        invitations = invitations.filter { $0.key.channel != id || $0.key.user == user || $0.key.inviter == user }
    }

    private mutating func endIfDeleted(_ id: ChannelID) {
        guard channels[id]?.channel.deletedAt != nil else { return }
        memberships[id]?.state = .none
        end(id)
    }

    // MARK: Catching up

    var positions: [String: Seq] { Dictionary(uniqueKeysWithValues: channels.map { ($0.key.rawValue, $0.value.seq) }) }

    mutating func apply(_ resumption: Resumption) {
        apply(own: resumption.user)
        for changes in resumption.channels { apply(channel: changes) }
    }

    mutating func apply(own changes: Changes) {
        apply(own: changes.rows)
        seq = max(seq, changes.seq)
    }

    mutating func apply(channel changes: Changes) {
        guard case .channel(let id) = changes.stream else { return }
        let messages = changes.rows.messages ?? []
        if changes.isFresh == true {
            guard let channel = changes.rows.channel else { return }
            end(id)
            let start = messages.count == channel.counters.messageCount ? 0 : messages.map(\.seq).min() ?? changes.seq + 1
            channels[id] = Held(seq: changes.seq, windowStart: start, channel: channel)
        }
        guard channels[id] != nil else { return }
        let floor = changes.rows.memberships?.last?.historyFloor ?? 0
        leaked += messages.filter { $0.seq <= floor }.map { "\(id): \($0.seq) is not above \(floor)" }
        channels[id]?.apply(changes.rows, above: floor, without: deletions[id] ?? [:])
        channels[id]?.seq = changes.seq
        take(changes.rows.invitations ?? [])
        for membership in changes.rows.memberships ?? [] { take(membership, with: changes.rows) }
        endIfDeleted(id)
    }
}

extension ReferenceClient.Held {
    fileprivate mutating func apply(_ rows: Rows, above floor: Seq, without deletions: [Seq: Timestamp]) {
        let counters = channel.counters
        if let row = rows.channel { channel = row }
        for newer in [counters, rows.counters].compactMap({ $0 }) where newer.seq >= channel.counters.seq {
            channel.counters = newer
        }
        if let byRole = rows.capabilities {
            capabilities.byRole = byRole
            capabilities.byRoleSeq = seq
        }
        apply(members: rows.members ?? [])
        for place in rows.purged ?? [] {
            purged[place.seq] = place
            messages[place.seq] = nil
        }
        for message in rows.messages ?? [] where message.seq >= windowStart && message.seq > floor && purged[message.seq] == nil {
            if message.changeSeq >= messages[message.seq]?.changeSeq ?? 0 {
                messages[message.seq] = deletions[message.seq].map { message.concealed(at: $0) } ?? message
            }
        }
    }

    mutating func apply(members rows: [Member]) {
        for member in rows where member.changeSeq >= members?[member.userId]?.changeSeq ?? 0 { members?[member.userId] = member }
    }
}

extension Message {
    /// The message as seen by a user who has deleted it for themselves (docs/protocol.md).
    fileprivate func concealed(at time: Timestamp) -> Message {
        Message(
            messageId: messageId, channelId: channelId, seq: seq, changeSeq: changeSeq, sender: sender, clientId: clientId,
            text: "",
            kind: content.kind, parentId: content.parentId, isSilent: content.isSilent, createdAt: createdAt, editedAt: editedAt,
            deletedAt: deletedAt ?? time, isDeletedForMe: true)
    }
}
