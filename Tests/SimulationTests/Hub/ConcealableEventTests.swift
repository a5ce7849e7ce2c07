import NIOCore
import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// Events with messages hidden from some receivers, as the hub writes them.
@Suite("Old events")
struct ConcealableEventTests {
    private static func event(_ kind: Event.Kind, _ seq: Seq, messages: [Seq]) -> Event {
        let rows = messages.map { message in
            Message(
                messageId: MessageID(rawValue: message), channelId: "general", seq: message, changeSeq: seq, sender: "ann",
                clientId: ClientID("\(message)"), text: "é \"quoted\"", metadata: ["n": .number(1.5)],
                createdAt: Timestamp(milliseconds: 0))
        }
        return Event(kind: kind, stream: .channel("general"), seq: seq, actor: "ann", rows: Rows(rows))
    }

    private static func frames(_ events: [Event]) -> EventFrames.Frames {
        var frames = EventFrames.Frames()
        for event in events { frames.append(event.members(isConcealable: event.oldestMessage != nil), at: event.seq) }
        return frames
    }

    private static func committed(_ events: [Event]) -> Committed {
        Committed(notices: events.map { .event($0, .channel("general")) }, answer: .waiting {})
    }

    /// The part of a step that a test compares.
    private static func bytes(_ step: EventFrames.Step) -> (isOld: Bool, bytes: ByteBuffer)? {
        switch step {
        case .send(_, let frames): (false, frames.notification)
        case .sendConcealable(_, let event): (true, event.frames.notification)
        default: nil
        }
    }

    @Test("I10 I3 new messages share a buffer; an event with an old one has its own, in order between theirs")
    func steps() {
        let events = [
            Self.event(.messageNew, 2, messages: [2]), Self.event(.messageNew, 3, messages: [3]),
            Self.event(.messageUpdated, 4, messages: [2]), Self.event(.messageNew, 5, messages: [5]),
            Self.event(.channelUpdated, 6, messages: []), Self.event(.messageDeleted, 7, messages: [3]),
        ]
        let steps = EventFrames.steps(for: [Self.committed(events)]).compactMap(Self.bytes)
        #expect(steps.map(\.isOld) == [false, true, false, true])
        let expected = [events[0...1], events[2...2], events[3...4], events[5...5]].map { Self.frames(Array($0)).notification }
        #expect(steps.map(\.bytes) == expected)
    }

    @Test("I10 SB-26 a receiver gets an old event without the messages up to the floor, as if it had been written so")
    func forms() {
        let event = Self.event(.changes, 9, messages: [4, 6, 9])
        let old = ConcealableEvent(event.members(isConcealable: true), of: "general", at: 9, oldestMessage: 4)
        var forms = ConcealableEventForms(of: old)
        // Floors that hide the same messages share a form.
        for floor: Seq in [0, 3, 4, 5, 6, 8, 9, 100, 4] {
            let expected = Self.frames([event.concealing(messagesUpTo: floor)])
            let found = forms.frames(above: floor)
            #expect([found?.watching, found?.notification] == [expected.watching, expected.notification], "floor \(floor)")
        }
        #expect(event.concealing(messagesUpTo: 9).rows.messages == nil)
    }

    @Test("I10 I21 an unreadable event is sent whole to users who may see all of it, and to no others")
    func damaged() {
        var forms = ConcealableEventForms(of: ConcealableEvent(Array(#""event":"#.utf8), of: "general", at: 5, oldestMessage: 4))
        #expect(forms.frames(above: 3) != nil)
        #expect(forms.frames(above: 4) == nil)
    }

    @Test("I10 items between nodes carry the oldest message and the floors, each on its own stream")
    func items() {
        let edit = Self.event(.messageUpdated, 4, messages: [2])
        let new = Self.event(.messageNew, 5, messages: [5])
        let hidden = Event(kind: .channelHidden, stream: .user("bob"), seq: 7, actor: "bob", rows: Rows())
        let items = StreamItem.items(of: [
            .event(edit, .channel("general")), .event(new, .channel("general")), .floor("bob", "general", 5),
            .event(hidden, .user("bob")),
        ]).items
        #expect(
            items == [
                StreamItem(stream: edit.stream, after: 3, seq: 4, oldestMessage: 2, json: edit.members(isConcealable: true)),
                StreamItem(stream: new.stream, after: 4, seq: 5, json: new.members(isConcealable: false)),
                StreamItem(
                    stream: hidden.stream, after: 6, seq: 7, floors: [.init(channel: "general", seq: 5)],
                    json: hidden.members(isConcealable: true)),
            ])
    }
}
