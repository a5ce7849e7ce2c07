import RoostAPI

/// Judges a history. It knows only what was observed (what users sent, and what was committed, acknowledged and shown), and none of the
/// code that produced it.
///
/// The invariants have the numbers of RELIABILITY.md §2:
/// - I1 acknowledged messages are stored, as acknowledged; sent ones are stored, or their sender knows that they aren't.
/// - I2 only messages that were sent are stored.
/// - I3 a stream has no gap, and each client holds a part of it without a gap.
/// - I4 a message with one client id is stored once.
/// - I5 at rest, each client holds what a fresh one gets.
/// - I6 what was shown stays.
/// - I7 the unread count is what its definition says, at each moment.
/// - I8 a read position never goes back within a membership, unless the user has marked messages as unread.
/// - I9 non-members get nothing, and a device gets and does nothing once it is signed out.
/// - I12 a delivery shown to others was reported by its receiver, is stored, and never goes back within a membership.
/// - I22 a change that a user requests once is made once: a lost answer undoes no later change.
struct Checker {
    struct Verdict: Hashable, CustomStringConvertible {
        let invariant: String
        let text: String
        var description: String { "\(invariant): \(text)" }
    }

    /// A message as its sender names it.
    struct Name: Hashable, CustomStringConvertible {
        let sender: UserID
        let channel: ChannelID
        let clientId: ClientID
        var description: String { "\(sender)'s \(clientId) in \(channel)" }
    }

    /// The time from a join to the leave that follows it, in the channel's seq.
    struct MembershipPeriod: Hashable {
        let from: Seq
        var upTo: Seq?
    }

    private(set) var verdicts: [Verdict] = []

    /// The beginning of the texts of edits by an outbox. Each text has its own number.
    static let queuedEdit = "queued edit"

    // What users did.
    var texts: [Name: Set<String>] = [:]
    var discarded: Set<Name> = []
    var acknowledgements: [Name: Message] = [:]

    // The committed state.
    var heads: [StreamID: Seq] = [:]
    /// Every message by its birth, with all its contents in the order of the changes.
    var versions: [ChannelID: [Seq: [Message]]] = [:]
    /// The messages' seqs in order, with their senders.
    var births: [ChannelID: [(seq: Seq, sender: UserID)]] = [:]
    var stored: [Name: Seq] = [:]
    var periods: [ChannelID: [UserID: [MembershipPeriod]]] = [:]
    /// Deleted channels. A fresh client isn't sent their drafts, and one that has them keeps them.
    var deleted: Set<ChannelID> = []
    /// Where in their own streams users have marked messages of a channel as unread.
    var unmarks: [UserID: [ChannelID: [Seq]]] = [:]

    // Delivery reports.
    /// The seqs that users have reported.
    var reports: [ChannelID: [UserID: Set<Seq>]] = [:]
    /// Reports that were accepted, each with the number of the membership in which it was made.
    var takenReports: [ChannelID: [UserID: [(seq: Seq, membership: Int)]]] = [:]
    /// What was sent about members in their current membership.
    var receipts: [ChannelID: [UserID: ReadPosition]] = [:]
    /// Users who have at some moment shared less than everything.
    var discreet: Set<UserID> = []
    /// The ended sign-ins of each device: up to which one, and the head of each stream at that time.
    var signOuts: [OwnDevice: [(last: Int64, heads: [StreamID: Seq])]] = [:]

    // What clients showed.
    var shown: [String: [ChannelID: Set<Name>]] = [:]
    var memberships: [String: [ChannelID: Membership]] = [:]

    mutating func fail(_ invariant: String, _ text: String) { verdicts.append(Verdict(invariant: invariant, text: text)) }

    // MARK: Users

    mutating func sent(_ name: Name, _ text: String) { texts[name, default: []].insert(text) }

    mutating func gaveUp(_ name: Name, on client: String) {
        discarded.insert(name)
        shown[client]?[name.channel]?.remove(name)
    }

    /// A reply said that a message is stored.
    mutating func acknowledged(_ message: Message) {
        let name = message.name
        let known = versions[message.channelId]?[message.seq] ?? []
        guard known.contains(where: { message.isAsSeen(of: $0) }) || isAsSentAgain(message, by: name, known) else {
            return fail("I1", "\(name) was acknowledged at \(message.seq)/\(message.changeSeq), but was never stored like that")
        }
        if let before = acknowledgements[name], before.seq != message.seq || before.messageId != message.messageId {
            fail("I4", "\(name) was acknowledged at \(before.seq) and at \(message.seq)")
        }
        acknowledgements[name] = message
    }

    /// Whether a message is the answer to a repeated send of a message that has changed since, whose sender has been out of the channel:
    /// its place, without its changes.
    private func isAsSentAgain(_ message: Message, by name: Name, _ versions: [Message]) -> Bool {
        guard let first = versions.first, versions.count > 1, texts[name]?.contains(message.text) == true,
            periods[name.channel]?[name.sender]?.contains(where: { $0.upTo != nil }) == true
        else { return false }
        var expected = first
        expected.content = message.content
        return message == expected
    }

    // MARK: Commits

    mutating func committed(_ event: Event) {
        if case .user = event.stream, let channel = event.rows.channel, event.kind == .channelCreated {
            // The stream of a channel begins with its creation, which only its first members get, each on their own stream.
            heads[.channel(channel.channelId)] = max(1, heads[.channel(channel.channelId)] ?? 0)
            if let user = event.stream.user {
                periods[channel.channelId, default: [:]][user, default: []].append(MembershipPeriod(from: 1))
            }
        }
        let head = heads[event.stream] ?? 0
        if event.seq != head + 1 { fail("I3", "\(event.stream) goes from \(head) to \(event.seq)") }
        heads[event.stream] = event.seq
        if let row = event.rows.channel, row.deletedAt != nil { deleted.insert(row.channelId) }
        if event.kind == .readingUnmarked, let user = event.stream.user {
            for membership in event.rows.memberships ?? [] {
                unmarks[user, default: [:]][membership.channelId, default: []].append(event.seq)
            }
        }
        if let own = event.rows.preferences, let user = event.stream.user, !own.sharesReading || !own.sharesDelivery {
            discreet.insert(user)
        }
        guard let channel = event.stream.channel else { return }
        for message in event.rows.messages ?? [] { committed(message, with: event) }
        for member in event.rows.members ?? [] {
            if member.state == .member {
                // Members whose role changes already have a period.
                let isMember = periods[channel]?[member.userId]?.last.map { $0.upTo == nil } ?? false
                if isMember { continue }
                receipts[channel]?[member.userId] = nil
                periods[channel, default: [:]][member.userId, default: []].append(MembershipPeriod(from: event.seq))
            } else if let last = periods[channel]?[member.userId]?.indices.last {
                periods[channel]?[member.userId]?[last].upTo = event.seq
            }
        }
    }

    private mutating func committed(_ message: Message, with event: Event) {
        let (name, channel) = (message.name, message.channelId)
        let before = versions[channel]?[message.seq] ?? []
        if message.text.hasPrefix(Self.queuedEdit), before.contains(where: { $0.text == message.text }) {
            fail("I22", "\(name) gets the text '\(message.text)' again at \(message.changeSeq)")
        }
        versions[channel, default: [:]][message.seq, default: []].append(message)
        guard message.seq == event.seq else { return }
        births[channel, default: []].append((message.seq, message.sender))
        if texts[name]?.contains(message.text) != true { fail("I2", "\(name) is stored at \(message.seq), but nobody sent it") }
        if let before = stored[name] { fail("I4", "\(name) is stored at \(before) and at \(message.seq)") }
        stored[name] = message.seq
    }

    /// An event was written to a connection.
    mutating func delivered(_ stream: StreamID, _ seq: Seq, to user: UserID) {
        switch stream {
        case .user(let owner): if owner != user { fail("I9", "\(user) receives \(owner)'s stream") }
        case .channel(let channel):
            let mayHear = (periods[channel]?[user] ?? []).contains { $0.from < seq && seq < $0.upTo ?? .max }
            if !mayHear { fail("I9", "\(user) receives \(channel) at \(seq) without being a member") }
        }
    }

    // MARK: The end

    /// All that is on disk once everything is at rest.
    mutating func disk(_ messages: [Message], heads onDisk: [ChannelID: Seq]) {
        var found: [Name: Message] = [:]
        for message in messages {
            if let other = found[message.name] { fail("I4", "\(message.name) is on disk at \(other.seq) and at \(message.seq)") }
            found[message.name] = message
            if texts[message.name] == nil { fail("I2", "\(message.name) is on disk, but nobody sent it") }
            if versions[message.channelId]?[message.seq]?.last != message {
                fail("I1", "\(message.name) is on disk at \(message.seq)/\(message.changeSeq), not as it was last committed")
            }
        }
        for (name, message) in acknowledgements where found[name]?.seq != message.seq {
            fail("I1", "\(name) was acknowledged at \(message.seq), but is on disk at \(found[name]?.seq ?? 0)")
        }
        for (name, seq) in stored where found[name]?.seq != seq { fail("I1", "\(name) was committed at \(seq), but isn't on disk") }
        for (stream, head) in heads {
            guard let channel = stream.channel, onDisk[channel] != head else { continue }
            fail("I3", "\(channel) was at \(head), but is at \(onDisk[channel] ?? 0) on disk")
        }
    }

    /// The messages that are still queued or refused in any outbox once everything is at rest.
    mutating func waiting(_ names: Set<Name>) {
        for name in texts.keys where stored[name] == nil && !discarded.contains(name) && !names.contains(name) {
            fail("I1", "\(name) was accepted from its sender and vanished")
        }
    }
}

extension Message {
    var name: Checker.Name { Checker.Name(sender: sender, channel: channelId, clientId: clientId) }
}

extension StreamID {
    var channel: ChannelID? { if case .channel(let channel) = self { channel } else { nil } }
    var user: UserID? { if case .user(let user) = self { user } else { nil } }
}

extension Message {
    /// Whether it is a stored message as a user may see it, possibly deleted for themselves.
    func isAsSeen(of stored: Message) -> Bool {
        self == stored || self == stored.deletedForMe(at: deletedAt ?? stored.createdAt)
    }
}
