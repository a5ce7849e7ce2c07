import NIOCore
import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// What happens to reading when its user may no longer read.
@Suite("Reading without the right")
struct EndedReadingTests {
    private typealias Action = Subscriptions<String>.Action

    private static let everybody = Readers(others: .user)
    private static let operators = Readers(members: .nobody, others: .nobody, roles: [.operator])
    private let ann = ConnectionID(rawValue: 1)
    private let bob = ConnectionID(rawValue: 2)
    private var subscriptions = Subscriptions<String>()

    init() {
        subscriptions.add("ann", as: ann)
        subscriptions.add("bob", as: bob)
        _ = endings(of: [
            .connected(ann, "ann", UserStreams(user: 0, channels: ["general": 1])),
            .connected(bob, "bob", UserStreams(user: 0, channels: ["general": 1], roles: ["general": .operator])),
        ])
    }

    /// An event of the channel, with a message or without one.
    private func event(_ seq: Seq, _ readers: Readers = everybody, hasMessage: Bool = false) -> Notice {
        let message = Message(
            messageId: MessageID(rawValue: seq), channelId: "general", seq: seq, changeSeq: seq, sender: "root", clientId: "c",
            text: "hi",
            createdAt: Timestamp(milliseconds: 0))
        let event = Event(
            kind: hasMessage ? .messageNew : .channelUpdated, stream: .channel("general"), seq: seq, actor: "root",
            rows: hasMessage ? Rows([message]) : Rows())
        return .event(event, .channel("general", readers))
    }

    /// The frame that reports the end of reading.
    private static var ended: ByteBuffer {
        var frame = ByteBuffer()
        frame.writeTextFrame("", Array(#"{"readingEnded":{"channel":"general"}}"#.utf8))
        return frame
    }

    /// Refuses a mark that ann's connection made in a session. Returns the connections notified that they no longer read.
    private mutating func endings(byRefusalIn session: Int64?) -> [String] {
        let ended = Self.ended
        var sockets: [String] = []
        subscriptions.endReading(of: "general", ann, inSession: session) {
            if case .send(ended, 0, let socket) = $0 { sockets.append(socket) }
        }
        return sockets
    }

    /// Delivers, and returns the connections notified that they no longer read.
    private mutating func endings(of notices: [Notice]) -> [String] {
        let ended = Self.ended
        var sockets: [String] = []
        for step in EventFrames.steps(for: [Committed(notices: notices, answer: .waiting {})]) {
            subscriptions.deliver(step) { if case .send(ended, 0, let socket) = $0 { sockets.append(socket) } }
        }
        return sockets
    }

    /// What connections were given while their users read.
    private mutating func readable() -> [String: [ChannelID: Seq]] {
        Dictionary(subscriptions.takeReadable(1).map { ($0.0, $0.1) }, uniquingKeysWith: { first, _ in first })
    }

    @Test("AM-45 MN-16 it ends with the right, and the connection is notified: missed messages aren't read when the right returns")
    func byPolicy() {
        var test = self
        // Earlier messages stay to be confirmed.
        let ended = test.endings(of: [
            .reading(ann, "general", since: 1, at: 1), .reading(bob, "general", since: 1, at: 1), event(2, hasMessage: true),
            event(3, Self.operators),
            event(4, Self.operators, hasMessage: true), event(5), event(6, hasMessage: true),
        ])
        #expect(ended == ["ann"])
        let given = test.readable()
        #expect(given == ["ann": ["general": 2], "bob": ["general": 6]])
    }

    @Test("AM-45 R23 it ends with the role that gave the right")
    func byRole() {
        var test = self
        let ended = test.endings(of: [
            .reading(bob, "general", since: 1, at: 1), event(2, Self.operators, hasMessage: true),
            .role("bob", "general", .member, at: 3),
            event(4, Self.operators, hasMessage: true), .role("bob", "general", .operator, at: 5),
            event(6, Self.operators, hasMessage: true),
        ])
        #expect(ended == ["bob"])
        let given = test.readable()
        #expect(given == ["bob": ["general": 2]])
    }

    @Test("AM-45 R23 reading continues with another role that has gained the right since the last event")
    func byNewerRole() {
        var test = self
        let helpers = Readers(members: .nobody, others: .nobody, roles: ["helper", .operator])
        let ended = test.endings(of: [
            .reading(bob, "general", since: 1, at: 1), event(2, Self.operators), .role("bob", "general", "helper", at: 3),
            event(3, helpers), event(4, helpers, hasMessage: true),
        ])
        #expect(ended == [])
        let given = test.readable()
        #expect(given == ["bob": ["general": 4]])
    }

    @Test(
        "AM-45 a user who starts to read may, though the channel's last event said otherwise; it ends if the next one says so too")
    func begunAgain() {
        var test = self
        var ended = test.endings(of: [event(2, Self.operators), .reading(ann, "general", since: 1, at: 1)])
        #expect(ended == [])
        ended = test.endings(of: [event(3, Self.operators), event(4)])
        #expect(ended == ["ann"])
        var given = test.readable()
        #expect(given.isEmpty)
        ended = test.endings(of: [.reading(ann, "general", since: 1, at: 1), event(5, hasMessage: true)])
        given = test.readable()
        #expect(ended == [] && given == ["ann": ["general": 5]])
    }

    @Test("AM-45 an event that arrives late doesn't end a session that began after it, and isn't read in it")
    func olderEvent() {
        var test = self
        // Another node has stored 11 and 12, and ann may read as of 12.
        var ended = test.endings(of: [
            event(10, Self.operators), .reading(ann, "general", since: 1, at: 1, channelSeq: 12),
            event(11, Self.operators, hasMessage: true),
        ])
        var given = test.readable()
        #expect(ended == [] && given.isEmpty)
        ended = test.endings(of: [event(12, hasMessage: true)])
        given = test.readable()
        #expect(ended == [] && given == ["ann": ["general": 12]])
        ended = test.endings(of: [event(13, Self.operators)])
        #expect(ended == ["ann"])
    }

    @Test("AM-45 a refused mark ends the session in which it was made, and none that its user has started since")
    func refusedMark() {
        var test = self
        _ = test.endings(of: [.reading(ann, "general", since: 1, at: 1)])
        let first = test.subscriptions.readingSession(of: "general", ann)
        // Another device marks as unread, and this one starts over before it learns that its mark was refused.
        var ended = test.endings(of: [.markedUnread("ann", "general", at: 1), .reading(ann, "general", since: 1, at: 1)])
        #expect(ended == ["ann"])
        ended = test.endings(byRefusalIn: first)
        #expect(ended == [])
        let second = test.subscriptions.readingSession(of: "general", ann)
        // It may start over at any time.
        _ = test.endings(of: [.reading(ann, "general", since: 1, at: 1)])
        ended = test.endings(byRefusalIn: second)
        #expect(ended == [])
        _ = test.endings(of: [event(2, hasMessage: true)])
        let given = test.readable()
        #expect(given == ["ann": ["general": 2]])
        ended = test.endings(byRefusalIn: test.subscriptions.readingSession(of: "general", ann))
        #expect(ended == ["ann"])
        ended = test.endings(byRefusalIn: nil)
        #expect(ended == [])
    }

    @Test("AM-45 I9 a late end of a former membership ends no session of the one that its user has joined since")
    func joinedAgain() {
        var test = self
        _ = test.endings(of: [.reading(ann, "general", since: 1, at: 1), event(2, hasMessage: true)])
        // Another node has stored that ann left at 3 and joined again at 4. Her request to this node arrives first.
        let ended = test.endings(of: [
            .reading(ann, "general", since: 4, at: 1), .left("ann", "general", at: 3), event(3),
            .joined("ann", "general", at: 4, as: .member), event(4), event(5, hasMessage: true),
        ])
        var given = test.readable()
        #expect(ended == [] && given == ["ann": ["general": 5]])
        // If events were missed, a former membership ends where the newest one begins.
        _ = test.endings(of: [
            .left("ann", "general", at: 4), .joined("ann", "general", at: 4, as: .member), event(6, hasMessage: true),
        ])
        given = test.readable()
        #expect(given == ["ann": ["general": 6]])
        // Its own end ends it: joining again doesn't bring it back.
        _ = test.endings(of: [
            .left("ann", "general", at: 7), .joined("ann", "general", at: 8, as: .member), event(9, hasMessage: true),
        ])
        given = test.readable()
        #expect(given.isEmpty)
        #expect(test.subscriptions.readingSession(of: "general", ann) == nil)
    }

    @Test(
        "AM-45 missed events of which a part is still to come aren't read: a message in that part may be older",
        arguments: [nil, 1] as [Seq?])
    func partOfMissedEvents(oldestMessage: Seq?) {
        var test = self
        // Cat doesn't get the channel's events yet.
        let cat = ConnectionID(rawValue: 3)
        test.subscriptions.add("cat", as: cat)
        _ = test.endings(of: [
            .connected(cat, "cat", UserStreams(user: 0)), .reading(ann, "general", since: 1, at: 1),
            .reading(cat, "general", since: 1, at: 1),
        ])
        func deliver(_ after: Seq, _ seq: Seq, isPartial: Bool) {
            let item = StreamItem(
                stream: .channel("general"), after: after, seq: seq, readers: Self.everybody, oldestMessage: oldestMessage,
                isPartial: isPartial, json: Array(#""event":{}"#.utf8))
            let decided: [Relay.Step] = [.event(item), .past(item, .connection(cat, "cat"))]
            for step in EventFrames.steps(for: decided).steps { test.subscriptions.deliver(step) { _ in } }
        }
        deliver(1, 101, isPartial: true)
        var given = test.readable()
        #expect(given.isEmpty)
        deliver(101, 300, isPartial: false)
        given = test.readable()
        #expect(given == ["ann": ["general": 300], "cat": ["general": 300]])
    }

    @Test("AM-45 a late mark as unread ends no session that began after it, and a newer one does")
    func markedBefore() {
        var test = self
        // Another node has stored the mark at 3 of ann's stream. She starts over here, which moves her position at 4, before the mark
        // arrives twice.
        let late = Notice.markedUnread("ann", "general", at: 3)
        var ended = test.endings(of: [
            .reading(ann, "general", since: 1, at: 4), late, event(2, hasMessage: true), late, event(3, hasMessage: true),
        ])
        var given = test.readable()
        #expect(ended == [] && given == ["ann": ["general": 3]])
        // A mark that moves nothing is at the same place.
        ended = test.endings(of: [.markedUnread("ann", "general", at: 4), event(4, hasMessage: true)])
        given = test.readable()
        #expect(ended == ["ann"] && given.isEmpty)
    }
}
