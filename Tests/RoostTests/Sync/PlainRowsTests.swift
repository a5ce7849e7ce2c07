import Foundation
import RoostAPI
import Testing

@testable import Roost

/// Plainly written rows aren't read by Foundation: they must mean the same.
@Suite("Plainly written rows")
struct PlainRowsTests {
    /// The forms of a text, as a server may write them, and as none does.
    private static let texts = [
        "hi", "", "é 🐦 日本", "\"quotes\" and \\ and /", "a\nb\tc\r", "\u{1}\u{8}\u{C}\u{1F}\u{7F}", "null", "{}[],:",
    ]

    @Test("a model that reads itself equals what Foundation reads", arguments: texts)
    func models(text: String) throws {
        var message = message(1, text)
        try expectSame(message)
        message.content.customType = text
        message.content.metadata = .object([
            text: .array([.string(text), .integer(-7), .boolean(true), .null, .number(-1.5)]), "b": .object([:]),
        ])
        message.content.tags = [text]
        message.content.mentionees = [.users([UserID(text)]), .channel]
        message.content.metaArrays = [text: [text], "c": []]
        message.content.kind = .custom
        message.content.pushOption = .suppress
        message.content.isSilent = true
        message.content.parentId = MessageID(rawValue: .max)
        message.editedAt = Timestamp(milliseconds: 1)
        message.deletedAt = Timestamp(milliseconds: 253_402_300_799_999)
        message.isDeletedForMe = true
        message.droppedMentions = [UserID(text)]
        try expectSame(message)
        try expectSame(UserSummary(userId: UserID(text), displayName: text, status: nil, version: 3))
        try expectSame(
            Member(userId: UserID(text), role: "member", state: .none, joinedAt: message.createdAt, joinedSeq: 0, changeSeq: 1))
        try expectSame(ChannelMention(seq: 1, changeSeq: 2, mentionSeq: nil, sender: UserID(text)))
        var membership = Membership(
            channelId: ChannelID(text), role: "member", state: .member, joinedAt: message.createdAt, joinedSeq: 1, readSeq: 2,
            readCount: 3, channelSeq: 4, userSeq: 5)
        try expectSame(membership)
        membership.mentionSeq = 7
        membership.mentionMessage = MessageID(rawValue: 0)
        membership.notificationsMutedUntil = message.createdAt
        try expectSame(membership)
        let counters = ChannelCounters(seq: 1, memberCount: 2, messageCount: 3, ordinal: 2, lastActivity: message.createdAt)
        try expectSame(counters)
        try expectSame(
            Channel(
                channelId: ChannelID(text), type: "community", displayName: text, data: nil, metadata: .string(text), tags: [text],
                rateLimit: 5, counters: counters, createdAt: message.createdAt, updatedAt: message.createdAt))
    }

    private func expectSame<Model: PlainReadable & Encodable & Equatable>(_ model: Model) throws {
        let bytes = try JSONWriter.bytes(of: model)
        let decoded = try JSONDecoder().decode(Model.self, from: Data(bytes))
        var json = PlainJSON(bytes)
        #expect(Model(plainly: &json) == decoded && json.isAtEnd)
        #expect(decoded == model)
    }

    /// Values in the place of a message's text, and whether the message is readable.
    private static let values: [(json: String, isRead: Bool)] = [
        (#""hi""#, true), (#" "hi" "#, true), (#""\u0041\ud83d\udc26""#, true), (#""\/\b\f""#, true), ("null", false), ("7", false),
        ("{}", false), (#"["a"]"#, false), ("true", false), (#""\ud83d""#, false), (#""a\#u{1}""#, false), ("nul", false),
        (#""hi","text":"ho""#, true), (#""hi","more":{"a":[1,"}]",null,-1.5e3]}"#, true), (#""hi","kind":"poll""#, true),
        (#""hi","kind":7"#, false), (#""hi","pushOption":"later""#, true), (#""hi","mentionees":[{"type":"team"}]"#, true),
        (#""hi","tags":null"#, true), (#""hi","tags":[1]"#, false), (#""hi","isSilent":"yes""#, false),
        (#""hi","metadata":{"a":null,"b":-1,"c":1.5}"#, true), (#""hi","parentId":7"#, false), (#""hi","changeSeq":7"#, true),
        (#""hi","changeSeq":null"#, true), (#""hi","changeSeq":"7""#, false),
    ]

    @Test("an event's frame is read as by Foundation, and unreadable parts are left out", arguments: values)
    func frames(value: (json: String, isRead: Bool)) throws {
        let message = """
            {"messageId":"1","channelId":"c","seq":1,"sender":"u","clientId":"x","text":\(value.json),\
            "createdAt":"2026-03-01T12:30:05.250Z"}
            """
        let event = #"{"watching":true,"event":"message.edited","actor":"u","stream":"channel:c","seq":1,"rows":{"messages":["#
        let other = message.replacing(#""messageId":"1""#, with: #""messageId":"2""#).replacing(
            #""text":\#(value.json)"#, with: #""text":"ho""#)
        for text in [
            event + message + "]}}", event + message + #"],"unknown":[{}]},"unknown":1}"#,
            #"{"watching":true,"message":\#(message)}"#,
            // Repeated parts.
            event + message + #"],"messages":[\#(other)]}}"#, event + message + #"]},"rows":{}}"#,
        ] {
            let outcomes = [IncomingFrame.init(_:_:), IncomingFrame.init(byFoundation:_:)].map { read in
                (try? read(Array(text.utf8), .standard)).map { frame in
                    (
                        frame.event?.rows.rows, frame.event?.rows.problems.count, frame.event?.seq, frame.event?.stream,
                        frame.event?.isWatched
                    )
                }
            }
            switch (outcomes[0], outcomes[1]) {
            case (nil, nil): #expect(!value.isRead)
            case let (one?, other?):
                #expect(one == other && one.4 == true, "\(text)")
                #expect((one.0?.messages?.count == 1) == value.isRead)
            default: Issue.record("\(text)")
            }
        }
    }

    @Test(
        "a reply is distinguished from its result by what precedes it; a null result with an error is an error, and partial frames aren't read"
    )
    func replies() throws {
        let error = #""error":{"code":"not_found","message":"There is none."}"#
        let replies: [(text: String, error: RoostError.Code?)] = [
            (#"{"reply":7,"result":{"a":[1,"}"]}}"#, nil), (#"{"result":{"reply":8},"reply":7}"#, nil),
            (#"{"reply":7,"done":true}"#, nil),
            (#"{"reply":7,\#(error)}"#, .notFound), (#"{"reply":7,"result":null,\#(error)}"#, .notFound),
        ]
        for (text, code) in replies {
            for read in [IncomingFrame.init(_:_:), IncomingFrame.init(byFoundation:_:)] {
                let frame = try read(Array(text.utf8), .standard)
                #expect(frame.reply == 7 && frame.error?.code == code && frame.event == nil, "\(text)")
            }
        }
        #expect(throws: (any Error).self) { try IncomingFrame(Array(#"{"reply":7,"result":{"a":[1"#.utf8)) }
    }

    @Test("a resumption is read as by Foundation")
    func resumption() throws {
        let changes = #"""
            {"stream":"channel:c","seq":5,"isFresh":true,"rows":{"messages":[
            {"messageId":"1","channelId":"c","seq":1,"changeSeq":1,"sender":"u","clientId":"x","text":"a\n","createdAt":"2026-03-01T12:30:05.250Z"},
            {"messageId":"1","text":null,"createdAt":"today"}, 7],
            "counters":{"seq":5,"memberCount":1,"messageCount":1,"ordinal":1,"lastActivity":"2026-03-01T12:30:05.250Z"},
            "ownCapabilities":{"c":["message.send","unknown"]},"capabilities":null,"\#(PurgedMessage.kind)":[{"seq":1,"changeSeq":2,"counts":true}]}}
            """#
        for more in ["", #","users":[{"userId":"u"},7]"#, #","users":[{"userId":"u","version":1}]"#, #","unknown":{}"#] {
            let text = #"{"reply":1,"result":{"user":\#(changes),"channels":[\#(changes),\#(changes)],"hasMore":false\#(more)}}"#
            let bytes = Array(text.utf8)
            let plain = try ReplyResult<IncomingResumption>.decode(bytes)
            let other = try JSONDecoder().decode(ReplyResult<IncomingResumption>.self, from: Data(bytes)).result
            #expect(plain.channels.map(\.rows.rows) == other.channels.map(\.rows.rows) && plain.users?.users == other.users?.users)
            #expect(plain.user.rows.problems.count == 2 && other.user.rows.problems.count == 2)
            #expect(plain.user.seq == 5 && plain.channels[1].isFresh == true && !plain.hasMore)
            #expect(plain.user.rows.rows.messages?.count == 1 && plain.user.rows.rows[PurgedMessage.self]?.count == 1)
        }
        for text in ["{", #"{"reply":1,"result":{"user":{}}}"#, #"{"reply":1}"#, "", #"{"result":{"#, "7"] {
            #expect(throws: (any Error).self) { try ReplyResult<IncomingResumption>.decode(Array(text.utf8)) }
        }
    }

    @Test("I21 random bytes, and frames with one change, never end the process")
    func rubbish() {
        var chance = SeededChance(seed: 7)
        let frame = Array(
            #"{"event":"a","stream":"user:u","seq":1,"rows":{"members":[{"userId":"\n"}],"counters":{"seq":1}}}"#.utf8)
        for _ in 0..<20_000 {
            var bytes = frame
            for _ in 0..<Int.random(in: 1...3, using: &chance) {
                bytes[Int.random(in: bytes.indices, using: &chance)] = UInt8.random(in: .min ... .max, using: &chance)
            }
            _ = try? IncomingFrame(Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &chance))))
        }
    }
}
