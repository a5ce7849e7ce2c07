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
        "AM-13 an id has one spelling: ids that Swift considers equal are equal to the database",
        arguments: ["cafe\u{301}", "\u{212b}", "\u{1100}\u{1161}", "q\u{323}\u{307}x\u{307}\u{323}", "\u{2126}"])
    func isNormalized(text: String) throws {
        let normalized = text.precomposedStringWithCanonicalMapping
        #expect([code(text), code(normalized)] == [.invalidArgument, nil])
        #expect(UserID(text) == UserID(normalized))
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

    @Test("a message, a user, a device and an invitation are identified by their ids, whatever else changes in them")
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
