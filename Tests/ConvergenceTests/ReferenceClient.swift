import RoostAPI
import RoostTestSupport

/// A client as simple as it can be: it holds rows and positions, and applies events and changes by the rules of the two streams.
///
/// - A stream's event is applied when it is the next one; an older one is dropped; one further ahead is a gap.
/// - Rows replace older ones, by the seq that they carry.
/// - A membership on the user's stream begins or ends a channel; a deleted channel has ended too.
struct ReferenceClient: Sendable {
    /// A channel that the user is a member of.
    struct Held: Hashable, Sendable {
        /// The position in the channel's stream.
        var seq: Seq
        /// Messages from here on are held, without a hole.
        var windowStart: Seq
        var channel: Channel
        var membership: Membership
        var messages: [Seq: Message] = [:]
        /// Those who left stay in it, as whom they left. Nil until they were fetched.
        var members: [UserID: Member]?
    }

    let user: UserID
    var seq: Seq = 0
    var profile: User?
    var channels: [ChannelID: Held] = [:]
    /// Whether an event was missed: time to catch up.
    var hasGap = false

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
            let position = held.seq
            held.seq = event.seq
            held.apply(event.rows)
            for message in event.rows.messages ?? [] where message.seq > position {
                Unread.receive(message, as: user, in: &held.membership)
            }
            channels[id] = held.channel.deletedAt == nil ? held : nil
        }
    }

    private mutating func isNext(_ event: Event, after seq: Seq) -> Bool {
        guard event.seq > seq else { return false }
        if event.after ?? event.seq - 1 > seq { hasGap = true }
        return event.after ?? event.seq - 1 <= seq
    }

    private mutating func apply(own rows: Rows) {
        profile = rows.users?.last { $0.userId == user } ?? profile
        for membership in rows.memberships ?? [] {
            let id = membership.channelId
            if membership.state != .member {
                channels[id] = nil
            } else if let held = channels[id], held.seq >= membership.joinedSeq {
                let own = held.messages.values.filter { $0.sender == user && $0.seq <= held.seq }
                channels[id]?.membership = Unread.bringUp(membership, ownSeqs: own.map(\.seq))
            } else if let channel = rows.channel {
                let start = channel.counters.messageCount == 0 ? 0 : channel.counters.seq + 1
                channels[id] = Held(seq: channel.counters.seq, windowStart: start, channel: channel, membership: membership)
            }
        }
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
        if changes.isFresh == true {
            guard let channel = changes.rows.channel, let membership = changes.rows.memberships?.last else { return }
            let messages = changes.rows.messages ?? []
            let start = messages.count == channel.counters.messageCount ? 0 : messages.map(\.seq).min() ?? changes.seq + 1
            channels[id] = Held(seq: changes.seq, windowStart: start, channel: channel, membership: membership)
        }
        guard var held = channels[id] else { return }
        held.apply(changes.rows)
        held.membership = changes.rows.memberships?.last ?? held.membership
        held.seq = changes.seq
        channels[id] = held.channel.deletedAt == nil && held.membership.state == .member ? held : nil
    }
}

extension ReferenceClient.Held {
    fileprivate mutating func apply(_ rows: Rows) {
        let counters = channel.counters
        if let row = rows.channel { channel = row }
        for newer in [counters, rows.counters].compactMap({ $0 }) where newer.seq >= channel.counters.seq {
            channel.counters = newer
        }
        apply(members: rows.members ?? [])
        for message in rows.messages ?? [] where message.seq >= windowStart {
            if message.changeSeq >= messages[message.seq]?.changeSeq ?? 0 { messages[message.seq] = message }
        }
    }

    mutating func apply(members rows: [Member]) {
        for member in rows where member.changeSeq >= members?[member.userId]?.changeSeq ?? 0 { members?[member.userId] = member }
    }
}

// MARK: What is compared

/// All that a user can see of their channels.
struct View: Hashable, Sendable {
    struct ChannelPart: Hashable, Sendable {
        var channel: Channel
        var membership: Membership
        var unread: Int
        /// Where the held messages begin; compared are those from here on.
        var windowStart: Seq
        var messages: [Message]
        var members: [Member]
    }

    var profile: User?
    var seq: Seq
    var total: TotalUnread
    var channels: [ChannelID: ChannelPart]

    /// Where two views differ, for the text of a failure.
    func differences(from other: View) -> [String] {
        var found: [String] = []
        if profile != other.profile {
            found.append("profile: \(String(describing: profile)) != \(String(describing: other.profile))")
        }
        if seq != other.seq { found.append("seq: \(seq) != \(other.seq)") }
        if total != other.total { found.append("total: \(total) != \(other.total)") }
        for id in Set(channels.keys).union(other.channels.keys).sorted() where channels[id] != other.channels[id] {
            guard let own = channels[id], let theirs = other.channels[id] else {
                found.append("\(id): \(channels[id] == nil ? "missing" : "too much")")
                continue
            }
            if own.channel != theirs.channel { found.append("\(id): \(own.channel) != \(theirs.channel)") }
            if own.membership != theirs.membership { found.append("\(id): \(own.membership) != \(theirs.membership)") }
            if own.unread != theirs.unread { found.append("\(id): unread \(own.unread) != \(theirs.unread)") }
            if own.messages != theirs.messages { found.append("\(id): messages \(own.messages) != \(theirs.messages)") }
            if own.members != theirs.members { found.append("\(id): members \(own.members) != \(theirs.members)") }
        }
        return found
    }
}

extension ReferenceClient {
    var view: View {
        let parts = channels.mapValues { held in
            View.ChannelPart(
                channel: held.channel, membership: held.membership.comparable,
                unread: Unread.count(in: held.channel.counters, for: held.membership),
                windowStart: held.windowStart, messages: held.messages.values.sorted { $0.seq < $1.seq },
                members: (held.members ?? [:]).values.filter { $0.state == .member }.sorted { $0.userId < $1.userId })
        }
        let unread = parts.values.map(\.unread)
        let total = TotalUnread(unreadCount: unread.reduce(0, +), unreadChannelCount: unread.filter { $0 > 0 }.count)
        return View(profile: profile, seq: seq, total: total, channels: parts)
    }
}
