#if Cluster
import RoostAPI

/// The state of a client that follows docs/protocol.md strictly and forgives nothing.
///
/// It repairs no gap: an event that leaves one is a fault, and so is one that arrives out of order on its connection, a message that is shown
/// twice, and anything of a channel that is newer than the user's leaving.
struct StrictView: Sendable {
    enum Fault: String, CaseIterable, Sendable {
        case gap, order, twice
        case afterLeaving = "after leaving"
        case reply = "reply before its event"
        case silence
        case refusal
    }

    /// A channel that the user is a member of.
    struct Held: Sendable {
        var position: Seq
        /// Messages from here on are held, without a gap.
        var windowStart: Seq
        var counters: ChannelCounters
        var membership: Membership
        var messages: [Seq: Message] = [:]
        var seqs: [String: Seq] = [:]
    }

    let user: UserID
    private(set) var position: Seq = 0
    private(set) var channels: [ChannelID: Held] = [:]
    private(set) var faults: [(kind: Fault, text: String)] = []
    private(set) var eventCount = 0
    /// Events that a node made from rows, in place of lost ones.
    private(set) var repairCount = 0
    private(set) var freshCount = 0
    /// The seq of leaving, for channels that the user isn't a member of.
    private var left: [ChannelID: Seq] = [:]
    /// The last seq of each stream received on this connection.
    private var received: [StreamID: Seq] = [:]

    init(user: UserID) { self.user = user }

    mutating func fault(_ kind: Fault, _ text: String) { faults.append((kind, "\(user): \(text)")) }

    var positions: [String: Seq] { Dictionary(uniqueKeysWithValues: channels.map { ($0.key.rawValue, $0.value.position) }) }

    mutating func beginConnection() { received = [:] }

    // MARK: Events

    /// Records an event of the connection, whether it is applied now or held: its order can be judged immediately.
    mutating func note(_ event: Event) {
        eventCount += 1
        if event.kind == .changes { repairCount += 1 }
        if let last = received[event.stream], event.seq <= last {
            fault(.order, "\(event.stream) \(event.kind) \(event.seq) came after \(last)")
        }
        received[event.stream] = event.seq
    }

    mutating func apply(_ event: Event) {
        let after = event.after ?? event.seq - 1
        switch event.stream {
        case .user(let id):
            guard id == user else { return fault(.refusal, "an event of \(id)'s stream") }
            guard event.seq > position else { return }
            if after > position { fault(.gap, "user stream: \(event.kind) \(after)…\(event.seq) at \(position)") }
            position = event.seq
            apply(own: event.rows)
        case .channel(let id):
            guard var held = channels[id] else {
                if let end = left[id], event.seq > end { fault(.afterLeaving, "\(id): \(event.kind) \(event.seq), left at \(end)") }
                return
            }
            guard event.seq > held.position else { return }
            if after > held.position { fault(.gap, "\(id): \(event.kind) \(after)…\(event.seq) at \(held.position)") }
            let before = held.position
            for message in event.rows.messages ?? [] where message.seq > before && held.messages[message.seq] != nil {
                fault(.twice, "\(id): \(message.seq)")
            }
            take(event.rows, into: &held, of: id)
            if event.kind == .messageNew, event.rows.counters == nil { held.counters.add(event.rows) }
            held.position = event.seq
            for message in event.rows.messages ?? [] where message.seq > before {
                Unread.receive(message, as: user, in: &held.membership)
            }
            channels[id] = held
        }
    }

    private mutating func apply(own rows: Rows) {
        for membership in rows.memberships ?? [] {
            let id = membership.channelId
            if membership.state != .member {
                if let held = channels[id], held.position > membership.channelSeq {
                    fault(.afterLeaving, "\(id): held \(held.position), left at \(membership.channelSeq)")
                }
                channels[id] = nil
                left[id] = membership.channelSeq
            } else if let held = channels[id], held.position >= membership.joinedSeq {
                let own = held.messages.values.filter { $0.sender == user && $0.seq <= held.position }
                channels[id]?.membership = Unread.advancing(membership, as: user, with: own)
            } else if let channel = rows.channel {
                let seq = channel.counters.seq
                let start = channel.counters.messageCount == 0 ? 0 : seq + 1
                channels[id] = Held(position: seq, windowStart: start, counters: channel.counters, membership: membership)
                left[id] = nil
            }
        }
    }

    // MARK: Answers to a resume

    mutating func apply(_ resumption: Resumption) {
        apply(own: resumption.user.rows)
        position = max(position, resumption.user.seq)
        for changes in resumption.channels {
            guard case .channel(let id) = changes.stream else { continue }
            if changes.isFresh == true { begin(id, with: changes) }
            guard var held = channels[id] else { continue }
            take(changes.rows, into: &held, of: id)
            held.membership = changes.rows.memberships?.last ?? held.membership
            held.position = changes.seq
            channels[id] = held
        }
    }

    private mutating func begin(_ id: ChannelID, with changes: Changes) {
        guard let channel = changes.rows.channel, let membership = changes.rows.memberships?.last else {
            return fault(.refusal, "\(id): fresh without its channel or membership")
        }
        if channels[id] != nil { freshCount += 1 }
        let messages = changes.rows.messages ?? []
        let start = messages.count == channel.counters.messageCount ? 0 : messages.map(\.seq).min() ?? changes.seq + 1
        channels[id] = Held(position: changes.seq, windowStart: start, counters: channel.counters, membership: membership)
        left[id] = nil
    }

    private mutating func take(_ rows: Rows, into held: inout Held, of id: ChannelID) {
        for counters in [rows.channel?.counters, rows.counters].compactMap({ $0 }) where counters.seq >= held.counters.seq {
            held.counters = counters
        }
        for message in rows.messages ?? [] where message.seq >= held.windowStart {
            let key = "\(message.sender)/\(message.clientId)"
            if let seq = held.seqs[key], seq != message.seq { fault(.twice, "\(id): \(key) at \(seq) and \(message.seq)") }
            held.seqs[key] = message.seq
            if message.changeSeq >= held.messages[message.seq]?.changeSeq ?? 0 { held.messages[message.seq] = message }
        }
    }
}
#endif
