import RoostAPI
import RoostCore

@testable import RoostServer

/// The strictest possible client: it resumes once after connecting, and from then on any event that doesn't follow is a fault of the node.
struct RelayClient {
    let user: UserID
    /// The user's floors when the client started to connect.
    let floors: [ChannelID: Seq]
    /// Nil until the resume is answered; events are held until then.
    private(set) var positions: [StreamID: Seq]?
    private var held: [StreamItem] = []
    private(set) var faults: [String] = []
    /// The newest event of each stream that arrived on this connection.
    private var received: [StreamID: Seq] = [:]

    /// A call that waits for its answer: its channel, its events, and where it starts to watch.
    struct Call {
        let channel: ChannelID?
        let items: [StreamItem]
        var watches: Seq?
        var endsWatching = false
        /// The user's membership period in the channel, by its first seq; 0 for none. A reply is checked against its events if the period is
        /// still this one.
        var membershipPeriod: Seq = 0
    }
    private(set) var calls: [Int: Call] = [:]
    /// Channels whose events it may get as a non-member, those whose events have to be marked, and how far it has them.
    private var mayGet: Set<ChannelID> = []
    private var watching: Set<ChannelID> = []
    private(set) var watchPositions: [ChannelID: Seq] = [:]
    /// Channels that it watched before it learnt that its user has joined: it gets their events again from the joining on.
    private var repeated: Set<ChannelID> = []

    init(user: UserID, floors: [ChannelID: Seq]) {
        self.user = user
        self.floors = floors
    }

    mutating func resumed(_ streams: UserStreams) {
        var positions: [StreamID: Seq] = [.user(user): streams.user]
        for (channel, seq) in streams.channels { positions[.channel(channel)] = seq }
        self.positions = positions
        let events = held
        held = []
        for event in events { apply(event) }
    }

    // MARK: Calls

    var isLive: Bool { positions != nil }

    mutating func call(_ number: Int, _ items: [StreamItem], in channel: ChannelID?, membershipPeriod: Seq) {
        calls[number] = Call(channel: channel, items: items, membershipPeriod: membershipPeriod)
    }

    mutating func watches(_ channel: ChannelID, from seq: Seq, after call: Int) { calls[call]?.watches = seq }

    /// From here on no event is expected; until the answer, some may still arrive.
    mutating func unwatches(_ channel: ChannelID, after call: Int) {
        calls[call]?.endsWatching = true
        expectNothing(of: channel)
    }

    /// The user has left, which ends watching too: from here on no event may arrive.
    mutating func leaves(_ channel: ChannelID) {
        mayGet.remove(channel)
        repeated.remove(channel)
        expectNothing(of: channel)
    }

    /// - Parameter isFirst: Whether the user was never a member before. Then their watch continues, from an unknown position on.
    mutating func joins(_ channel: ChannelID, forTheFirstTime isFirst: Bool) {
        if mayGet.contains(channel) { repeated.insert(channel) }
        let continues = isFirst && watching.contains(channel)
        expectNothing(of: channel)
        if continues { watching.insert(channel) }
    }

    private mutating func expectNothing(of channel: ChannelID) {
        watching.remove(channel)
        watchPositions[channel] = nil
        for (number, call) in calls where call.channel == channel { calls[number]?.watches = nil }
    }

    mutating func answered(_ number: Int, from database: RelayDatabase) {
        guard let call = calls.removeValue(forKey: number) else { return faults.append("\(user) got a second answer to \(number)") }
        if let earlier = calls.filter({ $0.value.channel == call.channel && $0.key < number }).keys.min() {
            faults.append("\(user) got the answer to \(number) before that to \(earlier)")
        }
        let isSettled = database.membershipPeriod(of: user, in: call.channel) == call.membershipPeriod
        for item in call.items where isSettled {
            guard let position = positions?[item.stream], position < item.seq else { continue }
            faults.append("\(user) got an answer before \(item.stream) \(item.seq), at \(position)")
        }
        guard let channel = call.channel else { return }
        if call.endsWatching, watchPositions[channel] == nil { mayGet.remove(channel) }
        guard let seq = call.watches else { return }
        watching.insert(channel)
        mayGet.insert(channel)
        guard positions?[.channel(channel)] == nil else { return }
        watchPositions[channel] = max(watchPositions[channel] ?? 0, seq)
        if database.isMember(user, of: channel) { repeated.insert(channel) }
    }

    // MARK: Events

    mutating func receive(_ item: StreamItem, isWatching: Bool, from database: RelayDatabase) {
        if item.seq <= received[item.stream] ?? 0, !repeated.contains(where: { .channel($0) == item.stream }) {
            faults.append("\(user) got \(item.stream) \(item.seq) after \(received[item.stream] ?? 0)")
        }
        received[item.stream] = item.seq
        if case .channel(let channel) = item.stream {
            let isMember = database.mayHave(user, channel, item.seq)
            if !isMember, !mayGet.contains(channel) {
                faults.append("\(user) got \(item.stream) \(item.seq) without being a member there or watching")
            }
            if watching.contains(channel), !isWatching {
                faults.append("\(user) got \(item.stream) \(item.seq) as if they didn't watch")
            }
            if let position = watchPositions[channel] {
                if item.after > position {
                    faults.append("\(user) misses \(channel) between \(position) and \(item.seq), watching")
                }
                watchPositions[channel] = max(position, item.seq)
            }
        }
        if case .channel(let channel) = item.stream, let message = item.oldestMessage,
            message <= max(database.floor(of: user, channel, at: item.seq), floors[channel] ?? 0)
        {
            faults.append("\(user) got the hidden message \(message) of \(channel) in \(item.seq)")
        }
        if positions == nil { held.append(item) } else { apply(item) }
    }

    private mutating func apply(_ item: StreamItem) {
        guard let position = positions?[item.stream], item.seq > position else { return }
        if item.after > position { faults.append("\(user) misses \(item.stream) between \(position) and \(item.seq)") }
        positions?[item.stream] = item.seq
        let parts = String(decoding: item.json, as: UTF8.self).split(separator: " ")
        guard case .user = item.stream, parts.count == 4, let joinedSeq = Seq(parts[1]), let head = Seq(parts[2]) else { return }
        let stream = StreamID.channel(ChannelID(String(parts[3])))
        if parts[0] == "-" {
            positions?[stream] = nil
        } else if positions?[stream] ?? -1 < joinedSeq {
            // A membership period that began after the client's position is another one. Events that a watcher got since aren't missing: while
            // those since the joining are sent to the member again, newer ones still go to the watcher.
            positions?[stream] = mayGet.contains(ChannelID(String(parts[3]))) ? max(head, received[stream] ?? 0) : head
        }
    }
}
