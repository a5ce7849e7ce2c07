import Foundation
import RoostAPI
import RoostCore

/// An event of a channel that contains messages older than itself: an edit, a deletion, several changes in one event.
///
/// Such a message may be hidden from some receivers. They get the event without that message, the others unchanged (SB-14, SB-26). If not
/// every member may read, every event with messages is one of these.
struct ConcealableEvent: Sendable {
    let channel: ChannelID
    let seq: Seq
    /// Receivers whose floor is below this seq get the event unchanged.
    let oldestMessage: Seq
    /// Whether messages from before its seq may be in a later event.
    let isPartial: Bool
    let readers: Readers
    /// The members of the event in JSON, without the braces.
    let members: [UInt8]
    /// The unchanged event.
    let frames: EventFrames.Frames

    init(
        _ members: [UInt8], of channel: ChannelID, at seq: Seq, oldestMessage: Seq, isPartial: Bool = false,
        readers: Readers = Readers()
    ) {
        self.channel = channel
        self.seq = seq
        self.isPartial = isPartial
        self.readers = readers
        self.oldestMessage = oldestMessage
        self.members = members
        var frames = EventFrames.Frames()
        frames.append(members, at: seq, isPartial: isPartial)
        self.frames = frames
    }
}

/// The forms of a concealable event in one delivery. Each is made once, and only if a receiver needs it.
struct ConcealableEventForms {
    private let event: ConcealableEvent
    /// Decoded from its JSON, which is the only form sent between nodes.
    private var decoded: Event?
    /// By the number of rows left out: members with many floors share few forms.
    private var concealed: [Int: EventFrames.Frames] = [:]

    init(of event: ConcealableEvent) { self.event = event }

    /// The event for a receiver from whom messages up to a floor are hidden.
    ///
    /// Nil if it can't be decoded, which would be a fault of the node that wrote it. The receiver then finds a gap, and requests the missing events.
    mutating func frames(above floor: Seq) -> EventFrames.Frames? {
        guard floor >= event.oldestMessage else { return event.frames }
        if decoded == nil { decoded = Event(members: event.members) }
        guard let whole = decoded else { return nil }
        let hiddenCount = whole.rows.count(concealedUpTo: floor)
        if let frames = concealed[hiddenCount] { return frames }
        var frames = EventFrames.Frames()
        frames.append(whole.concealing(messagesUpTo: floor).members(isConcealable: true), at: event.seq)
        concealed[hiddenCount] = frames
        return frames
    }
}

extension Event {
    /// Reads what ``members(isConcealable:)`` wrote of a concealable event.
    fileprivate init?(members: [UInt8]) {
        let json = Data("{".utf8) + members + Data("}".utf8)
        guard let event = try? JSONDecoder().decode(Event.self, from: json) else { return nil }
        self = event
    }
}
