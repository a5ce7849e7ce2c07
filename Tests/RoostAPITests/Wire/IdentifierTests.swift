import Foundation
import RoostAPI
import Testing

@Suite("Identifiers")
struct IdentifierTests {
    /// Returns an identifier's refusal; nil if it is valid.
    private func code(_ text: String) -> RoostError.Code? {
        do {
            try ChannelID(text).validate(field: "channel")
            return nil
        } catch {
            return error.field == "channel" ? error.code : .internalError
        }
    }

    private static let family = "👩‍👩‍👧‍👦"

    @Test(
        "AM-13 an id is 1 to 128 characters",
        arguments: [
            ("", .invalidArgument), ("a", nil), (String(repeating: "a", count: 128), nil),
            (String(repeating: "a", count: 129), .limitExceeded),
            (String(repeating: "é", count: 128), nil), (String(repeating: "語", count: 129), .limitExceeded),
            (String(repeating: "😀", count: 128), nil), (String(repeating: "😀", count: 129), .limitExceeded),
            (String(repeating: family, count: 20), nil), (String(repeating: family, count: 21), .limitExceeded),
            ("x" + String(repeating: "\u{301}", count: 255), nil), ("x" + String(repeating: "\u{301}", count: 256), .limitExceeded),
        ] as [(String, RoostError.Code?)])
    func length(text: String, expected: RoostError.Code?) {
        #expect(code(text) == expected)
    }

    @Test(
        "AM-13 an id with too many bytes is refused with both of its limits, however few characters it has",
        arguments: [
            (String(repeating: family, count: 21), "128 characters and 512 bytes"),
            ("x" + String(repeating: "\u{301}", count: 256), "128 characters and 512 bytes"),
            (String(repeating: "a", count: 129), "128 characters"),
        ] as [(String, String)])
    func size(text: String, limits: String) {
        let refusal = #expect(throws: RoostError.self) { try ChannelID(text).validate(field: "channel") }
        #expect(refusal?.message == "channel has a limit of \(limits).")
        #expect(refusal?.limit == 128)
    }

    @Test(
        "a device's id with too many bytes is refused with both of its limits, too",
        arguments: [
            (String(repeating: family, count: 21), "64 characters and 512 bytes"),
            (String(repeating: "a", count: 65), "64 characters"),
        ] as [(String, String)])
    func sizeOfDevice(text: String, limits: String) {
        let refusal = #expect(throws: RoostError.self) { try DeviceID(text).validateLength(field: "device") }
        #expect(refusal?.message == "device has a limit of \(limits).")
    }

    @Test(
        "AM-13 an id may contain anything but control characters, line ends, '/' and ','",
        arguments: [
            ("general", nil), ("a b", nil), ("a:b", nil), ("a.b", nil), ("...", nil), ("%2F", nil), ("a?b#c", nil), ("ünï", nil),
            ("😀", nil),
            ("'; DROP TABLE users; --", nil), ("a/b", .invalidArgument), ("/", .invalidArgument), ("a,b", .invalidArgument),
            ("a\nb", .invalidArgument), ("a\u{0}", .invalidArgument), ("\u{7f}", .invalidArgument), ("a\u{85}", .invalidArgument),
            ("a\u{2028}b", .invalidArgument), ("a\u{2029}", .invalidArgument), (".", .invalidArgument), ("..", .invalidArgument),
        ] as [(String, RoostError.Code?)])
    func characters(text: String, expected: RoostError.Code?) {
        #expect(code(text) == expected)
    }

    @Test(
        "AM-13 the ids '.' and '..' are refused by name: they contain no character that ids may not contain",
        arguments: [".", ".."])
    func dots(text: String) {
        let refusal = #expect(throws: RoostError.self) { try ChannelID(text).validate(field: "channel") }
        #expect(refusal?.message == "channel must not be '.' or '..'.")
    }

    @Test(
        "AM-13 the patterns in API descriptions match the same ids, '.' and '..' excluded",
        arguments: [VisibleText.identifierPattern, VisibleText.newIdentifierPattern])
    func patterns(pattern: String) throws {
        let expression = try NSRegularExpression(pattern: pattern)
        func isMatched(_ text: String) -> Bool {
            expression.firstMatch(in: text, range: NSRange(text.startIndex..., in: text)) != nil
        }
        #expect(["", ".", "..", "a/b", ",", "a\u{0}b", "a\u{2028}b", ".\u{85}", "../a"].filter(isMatched) == [])
        let ids = ["a", "a b", "...", "....", ".a", "..a", "a.", "a..", ". a", ".. .", "... a", "50%", "日本", "é"]
        #expect(ids.filter { !isMatched($0) } == [])
        #expect(ids.compactMap(code) == [])
    }

    @Test(
        "AM-13 an id has one spelling: of texts that Swift considers equal, only the one in form C is accepted",
        arguments: [
            ("cafe\u{301}", "caf\u{e9}"), ("\u{212b}", "\u{c5}"), ("\u{1100}\u{1161}", "\u{ac00}"), ("\u{2126}", "\u{3a9}"),
            ("q\u{323}\u{307}x\u{307}\u{323}", "q\u{323}\u{307}\u{1e8b}\u{323}"),
            // A final consonant apart excuses nothing else.
            ("\u{1100}\u{1161}\u{11a8}", "\u{ac01}"), ("cafe\u{301} \u{ac00}\u{11a8}", "caf\u{e9} \u{ac01}"),
        ] as [(String, String)])
    func isNormalized(text: String, normalized: String) {
        #expect(text == normalized)
        #expect([code(text), code(normalized)] == [.invalidArgument, nil])
    }

    @Test(
        "AM-13 R02 a new id can't have a Korean syllable with its final consonant apart; existing ids keep it, on every system",
        arguments: [
            ("\u{ac00}\u{11a8}", "\u{ac01}"), ("\u{d558}\u{11ab}\u{ad6d}", "\u{d55c}\u{ad6d}"), ("\u{d788}\u{11c2}", "\u{d7a3}"),
            ("caf\u{e9} \u{ac00}\u{11a8}", "caf\u{e9} \u{ac01}"),
        ])
    func finalConsonants(text: String, normalized: String) throws {
        #expect(text == normalized)
        #expect(code(text) == nil)
        let refusal = #expect(throws: RoostError.self) { try UserID(text).validateNew(field: "user") }
        #expect(refusal?.message == "user must be in Unicode's normalization form C.")
        try UserID(normalized).validateNew(field: "user")
    }

    /// Pairs that Swift considers equal. Of some the check of the form accepts both spellings: characters newer than the tables of Foundation, and Korean
    /// syllables in existing ids.
    private static let spellings = [
        ("\u{105c9}", "\u{105d2}\u{307}"), ("a\u{897}\u{323}", "\u{1ea1}\u{897}"), ("caf\u{e9}", "cafe\u{301}"),
        ("\u{ac01} and a longer text", "\u{ac00}\u{11a8} and a longer text"),
    ]

    @Test(
        "AM-13 ids are compared and hashed by their bytes, as in a database, also if Swift considers their texts equal",
        arguments: spellings)
    func comparesBytes(text: String, other: String) {
        #expect(text == other)
        func differ<Value: Hashable>(_ make: (String) -> Value) -> Bool {
            let (one, another) = (make(text), make(other))
            return one != another && !(one == another) && Set([one, another, make(text)]).count == 2
        }
        #expect(
            [differ { UserID($0) }, differ { ChannelID($0) }, differ { ClientID($0) }, differ { DeviceID($0) }] == [
                true, true, true, true,
            ])
        #expect([differ { StreamID.channel(ChannelID($0)) }, differ { UserID?.some(UserID($0)) }] == [true, true])
        let (one, another) = (UserID(text), UserID(other))
        #expect(one != another)
        #expect((one == another) == false)
        #expect((one < another) == text.utf8.lexicographicallyPrecedes(other.utf8))
        #expect((another < one) == other.utf8.lexicographicallyPrecedes(text.utf8))
    }

    @Test(
        "AM-13 ids with the same bytes are equal, however they are stored",
        arguments: ["", "ann", "a-long-id-outside-of-its-value", "caf\u{e9}"])
    func sameBytes(text: String) {
        let (one, copy) = (UserID(text), UserID(String(decoding: Array(text.utf8), as: UTF8.self)))
        #expect(one == copy)
        #expect((one != copy) == false)
        #expect(Set([one, copy]).count == 1)
        #expect(one != UserID(text + "b"))
        #expect([one < copy, one < UserID(text + "b"), UserID(text + "b") < one] == [false, true, false])
    }

    @Test("AM-13 a stream is read from its name, also if its id begins with a mark that belongs to the character before it")
    func streams() {
        for id in ["general", "\u{301}x", "a:b", ""] {
            for stream in [StreamID.channel(ChannelID(id)), .user(UserID(id))] { #expect(StreamID(stream.description) == stream) }
        }
        #expect(StreamID("channels:general") == nil && StreamID("user") == nil)
    }

    @Test("AM-13 ids are ordered as their bytes are, which is the database's order")
    func ordersByBytes() {
        let texts = ["é", "f", "z", "Z", "a", "ａ", "😀", "\u{fffd}", "語", "x\u{301}", "가", "\u{e000}"]
        let ids = texts.map(UserID.init).sorted()
        let bytes = texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        #expect(texts.compactMap(code) == [])
        #expect(ids.map(\.rawValue) == bytes)
    }

    @Test("I4 a random client id has 128 bits in 22 characters, and every server accepts it")
    func clientIDs() throws {
        let ids = (0..<1000).map { _ in ClientID.random() }
        #expect(Set(ids).count == ids.count)
        for id in ids { try id.validate(field: "clientId") }
        #expect(ids.filter { $0.rawValue.utf8.count != 22 || Base64URL.decode($0.rawValue.utf8)?.count != 16 } == [])
    }

    @Test(
        "a message id is decimal digits in a string",
        arguments: [
            ("\"0\"", 0), ("\"9223372036854775807\"", .max), ("\"-1\"", nil), ("7", nil), ("\"\"", nil), ("\"0x10\"", nil),
            ("\"1e3\"", nil),
            ("\"9223372036854775808\"", nil), ("\" 1\"", nil), ("null", nil), ("\"+1\"", nil), ("\"01\"", nil), ("\"00\"", nil),
            ("\"-0\"", nil),
        ] as [(String, Int64?)])
    func messageIDs(json: String, expected: Int64?) {
        let decoded = try? JSONDecoder().decode([MessageID].self, from: Data("[\(json)]".utf8))
        #expect(decoded?.first?.rawValue == expected)
        var plain = PlainJSON(Array(json.utf8))
        #expect(plain.messageID()?.rawValue == expected)
        // Read from its text alone, as in a link.
        guard json.hasPrefix("\"") else { return }
        let id = MessageID(String(json.dropFirst().dropLast()))
        #expect(id?.rawValue == expected && id.flatMap { MessageID("\($0)") } == id)
    }

    @Test("models are identified by their ids, whatever else changes in them")
    func identity() {
        func id<Value: Identifiable>(_ value: Value) -> Value.ID { value.id }
        let time = Timestamp(milliseconds: 1)
        let message = Message(
            messageId: MessageID(rawValue: 7), channelId: "general", seq: 1, changeSeq: 1, sender: "ann", clientId: "c", text: "hi",
            createdAt: time)
        #expect(id(message) == MessageID(rawValue: 7))
        #expect(id(User(userId: "ann", createdAt: time, updatedAt: time)) == "ann")
        #expect(id(Device(deviceId: "d", createdAt: time, lastUsedAt: time, isCurrent: true)) == "d")
        let invitations = [("bob", InvitationState.pending, 1), ("bob", .declined, 2), ("cid", .pending, 1)].map {
            Invitation(
                channelId: "general", userId: "ann", inviter: UserID($0.0), state: $0.1, invitedAt: time, revision: $0.2)
        }
        #expect(id(invitations[0]) == id(invitations[1]) && id(invitations[0]) != id(invitations[2]))
        let channel = Channel(
            channelId: "general", type: .community,
            counters: ChannelCounters(seq: 2, memberCount: 2, messageCount: 1, lastActivity: time),
            createdBy: nil, createdAt: time, updatedAt: time)
        let draft = ChannelDraft(channelId: "general", text: "h", updatedAt: time, userSeq: 1)
        let channels: [ChannelID] = [id(channel), id(ChannelView(channel: channel)), id(draft)]
        #expect(channels == ["general", "general", "general"])
        let member = Member(userId: "ann", role: .member, state: .member, joinedAt: time, joinedSeq: 1, changeSeq: 1)
        let users: [UserID] = [
            id(UserSummary(userId: "ann")), id(UserPresence(userId: "ann", isOnline: true)),
            id(MemberEntry(member: member, isOnline: true)),
        ]
        #expect(users == ["ann", "ann", "ann"])
    }

    @Test(
        "a stream is named by its kind and id",
        arguments: [
            ("channel:general", .channel("general")), ("user:ann", .user("ann")), ("user:a:b", .user("a:b")), ("general", nil),
            ("Channel:x", nil), ("", nil),
        ] as [(String, StreamID?)])
    func streams(text: String, expected: StreamID?) {
        #expect([StreamID(text)] == [expected])
        if let expected { #expect(expected.description == text) }
    }
}
