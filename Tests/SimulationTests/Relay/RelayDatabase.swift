import RoostAPI
import RoostCore

@testable import RoostServer

/// The rows of a simulation as far as a relay sees them: heads, memberships, and what changed after a position.
///
/// It answers like `Transaction.missedEvents`: with pages of current rows, not the original events.
struct RelayDatabase {
    struct Membership {
        var isMember: Bool
        /// The stamps of the row's newest change.
        var channelSeq: Seq
        var userSeq: Seq
        /// Where the membership period began.
        var joinedSeq: Seq
        var joinedUserSeq: Seq
        /// Messages up to it are hidden from the user.
        var floor: Seq
    }

    struct Key: Hashable {
        let user: UserID
        let channel: ChannelID
    }

    private(set) var heads: [StreamID: Seq] = [:]
    private(set) var memberships: [Key: Membership] = [:]
    private var profileSeqs: [UserID: Seq] = [:]
    /// Each channel's messages: their seqs, and those of their newest changes.
    private var messages: [ChannelID: [(seq: Seq, changeSeq: Seq)]] = [:]
    /// For each membership, the channel's seqs between which it held, and its initial floor: what a checker needs.
    private var membershipPeriods: [Key: [(from: Seq, to: Seq?, floor: Seq)]] = [:]

    func head(_ stream: StreamID) -> Seq { heads[stream] ?? 0 }

    private mutating func advance(_ stream: StreamID) -> Seq {
        heads[stream, default: 0] += 1
        return head(stream)
    }

    func isMember(_ user: UserID, of channel: ChannelID) -> Bool {
        memberships[Key(user: user, channel: channel)]?.isMember ?? false
    }

    /// Whether a user is, or was, a member of a channel.
    func hasBeenMember(_ user: UserID, of channel: ChannelID) -> Bool {
        membershipPeriods[Key(user: user, channel: channel)] != nil
    }

    /// Whether a user may have an event of a channel: one after joining and before leaving.
    func mayHave(_ user: UserID, _ channel: ChannelID, _ seq: Seq) -> Bool {
        (membershipPeriods[Key(user: user, channel: channel)] ?? []).contains { $0.from < seq && seq < $0.to ?? .max }
    }

    /// The seq up to which a channel's messages are hidden from a user, set when they joined.
    func floor(of user: UserID, _ channel: ChannelID, at seq: Seq) -> Seq {
        membershipPeriods[Key(user: user, channel: channel)]?.last { $0.from < seq }?.floor ?? 0
    }

    /// A membership's place in its user's stream, as a rule sees it.
    func callerSeq(of user: UserID?, in channel: ChannelID?) -> Seq {
        guard let user, let channel else { return 0 }
        return memberships[Key(user: user, channel: channel)]?.userSeq ?? 0
    }

    /// A user's membership period in a channel, by its first seq; 0 for none.
    func membershipPeriod(of user: UserID?, in channel: ChannelID?) -> Seq {
        guard let user, let channel, let row = memberships[Key(user: user, channel: channel)], row.isMember else { return 0 }
        return row.joinedSeq
    }

    func streams(of user: UserID) -> UserStreams {
        var streams = UserStreams(user: head(.user(user)))
        for (key, membership) in memberships where key.user == user {
            if membership.isMember { streams.channels[key.channel] = head(.channel(key.channel)) }
            if membership.floor > 0 { streams.floors[key.channel] = membership.floor }
        }
        return streams
    }

    // MARK: Changes, each with its items

    mutating func send(to channel: ChannelID) -> [StreamItem] {
        let seq = advance(.channel(channel))
        messages[channel, default: []].append((seq, seq))
        return [plain(.channel(channel), after: seq - 1, seq: seq)]
    }

    /// A message changes, the one `back` before the newest: an event with a message older than itself.
    mutating func edit(in channel: ChannelID, back: Int) -> [StreamItem] {
        guard let held = messages[channel], let index = held.indices.dropLast(back).last else { return [] }
        let seq = advance(.channel(channel))
        messages[channel]?[index].changeSeq = seq
        return [old([held[index].seq], of: .channel(channel), after: seq - 1, seq: seq)]
    }

    /// A member hides a channel's messages so far: a change on the user's stream.
    mutating func hide(_ channel: ChannelID, from user: UserID) -> [StreamItem] {
        let key = Key(user: user, channel: channel)
        guard isMember(user, of: channel) else { return [] }
        let seq = advance(.user(user))
        memberships[key]?.userSeq = seq
        let floor = head(.channel(channel))
        memberships[key]?.floor = floor
        return [item(of: key, since: seq - 1, after: seq - 1, seq: seq)]
    }

    /// A read position advances: a change of a membership on the user's stream that isn't sent to the channel's members.
    mutating func read(_ user: UserID, in channel: ChannelID) -> [StreamItem] {
        let key = Key(user: user, channel: channel)
        guard isMember(user, of: channel) else { return [] }
        let seq = advance(.user(user))
        memberships[key]?.userSeq = seq
        return [plain(.user(user), after: seq - 1, seq: seq)]
    }

    mutating func touch(_ user: UserID) -> [StreamItem] {
        let seq = advance(.user(user))
        profileSeqs[user] = seq
        return [plain(.user(user), after: seq - 1, seq: seq)]
    }

    /// - Parameter hidesHistory: Whether earlier messages are hidden from the new member.
    mutating func setMember(
        _ user: UserID, of channel: ChannelID, _ isMember: Bool, hidesHistory: Bool = false
    ) -> [StreamItem] {
        guard self.isMember(user, of: channel) != isMember else { return [] }
        let key = Key(user: user, channel: channel)
        let seq = advance(.channel(channel))
        let userSeq = advance(.user(user))
        let before = memberships[key]
        let floor = isMember && hidesHistory ? seq - 1 : before?.floor ?? 0
        memberships[key] = Membership(
            isMember: isMember, channelSeq: seq, userSeq: userSeq, joinedSeq: isMember ? seq : before?.joinedSeq ?? seq,
            joinedUserSeq: isMember ? userSeq : before?.joinedUserSeq ?? userSeq, floor: floor)
        if isMember {
            membershipPeriods[key, default: []].append((seq, nil, floor))
        } else if let last = membershipPeriods[key]?.indices.last {
            membershipPeriods[key]?[last].to = seq
        }
        var inChannel = plain(.channel(channel), after: seq - 1, seq: seq)
        if !isMember { inChannel.left = [.init(user: user, seq: seq)] }
        return [inChannel, item(of: key, since: userSeq - 1, after: userSeq - 1, seq: userSeq)]
    }

    /// Returns the event of a user's stream with a membership, for a reader of the stream up to `since`: its state, its beginning, and the
    /// channel's position. A floor is always included.
    private func item(of key: Key, since: Seq, after: Seq, seq: Seq) -> StreamItem {
        var item = plain(.user(key.user), after: after, seq: seq)
        guard let membership = memberships[key] else { return item }
        if !membership.isMember || membership.joinedUserSeq > since {
            let sign = membership.isMember ? "+" : "-"
            let text = "\(sign) \(membership.joinedSeq) \(head(.channel(key.channel))) \(key.channel)"
            item = plain(item.stream, after: after, seq: seq, membership: text)
            if membership.isMember { item.joined = [.init(channel: key.channel, seq: membership.joinedSeq)] }
        }
        if membership.floor > 0 { item.floors = [.init(channel: key.channel, seq: membership.floor)] }
        return item
    }

    // MARK: Items

    /// Everyone may read, watchers too.
    private static let readers = Readers(others: .user)

    private func plain(_ stream: StreamID, after: Seq, seq: Seq, membership: String? = nil) -> StreamItem {
        StreamItem(
            stream: stream, after: after, seq: seq, readers: Self.readers,
            json: RelayFrame.members(stream: stream, after: after, seq: seq, membership: membership))
    }

    /// An event with messages that may be hidden from some receivers.
    private func old(_ messages: [Seq], of stream: StreamID, after: Seq, seq: Seq) -> StreamItem {
        StreamItem(
            stream: stream, after: after, seq: seq, readers: Self.readers, oldestMessage: messages.min(),
            json: RelayFrame.members(stream: stream, after: after, seq: seq, messages: messages))
    }

    // MARK: Missed events

    func missed(of stream: StreamID, after: Seq, limit: Int, reporting leavers: MissedEvents.Leavers) -> Relay.Fetched {
        switch stream {
        case .channel(let channel):
            let upTo = min(head(stream), after + Seq(limit))
            guard upTo > after else { return .init(items: [], seq: after, hasMore: false, head: after) }
            let changed = (messages[channel] ?? []).filter { $0.seq <= upTo && $0.changeSeq > after }.map(\.seq)
            let isOld = changed.contains { $0 < upTo }
            var item = isOld ? old(changed, of: stream, after: after, seq: upTo) : plain(stream, after: after, seq: upTo)
            var reportedUpTo = after
            if case .joinedAfter(let seq) = leavers { reportedUpTo = max(after, seq) }
            let gone = memberships.filter { key, row in
                if case .user(let user) = leavers, key.user != user { return false }
                guard key.channel == channel, row.channelSeq <= upTo || row.joinedSeq > reportedUpTo else { return false }
                return row.joinedSeq > after || (!row.isMember && row.channelSeq > after && row.channelSeq <= upTo)
            }
            item.left = gone.map { key, row in
                let isBack = row.isMember || row.channelSeq > upTo
                return .init(user: key.user, seq: isBack ? row.joinedSeq : row.channelSeq, isBack: isBack)
            }
            return .init(items: [item], seq: upTo, hasMore: upTo < head(stream), head: head(stream))
        case .user(let user):
            var rows: [(seq: Seq, key: Key?)] = memberships.filter { $0.key.user == user }.map { ($0.value.userSeq, $0.key) }
            rows.append((profileSeqs[user] ?? 0, nil))
            let due = rows.filter { $0.seq > after }.sorted { $0.seq < $1.seq }
            var position = after
            let items = due.map { seq, key in
                defer { position = seq }
                guard let key else { return plain(stream, after: position, seq: seq) }
                return item(of: key, since: after, after: position, seq: seq)
            }
            return .init(items: items, seq: position, hasMore: false, head: position)
        }
    }
}
