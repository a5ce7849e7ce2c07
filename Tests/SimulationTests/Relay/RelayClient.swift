import RoostAPI
import RoostCore

@testable import RoostServer

/// A client as strict as can be: it resumes once after connecting, and from then on takes it for a fault of the node when an event doesn't follow.
struct RelayClient {
    let user: UserID
    /// What was hidden from the user when the client began to connect.
    let floors: [ChannelID: Seq]
    /// Nil until the resume is answered; events are held until then.
    private(set) var positions: [StreamID: Seq]?
    private var held: [StreamItem] = []
    private(set) var faults: [String] = []

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

    mutating func receive(_ item: StreamItem, from database: RelayDatabase) {
        if case .channel(let channel) = item.stream, !database.mayHave(user, channel, item.seq) {
            faults.append("\(user) got \(item.stream) \(item.seq) without being a member there")
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
            // A stay that began later than where the client stands is another one.
            positions?[stream] = head
        }
    }
}
