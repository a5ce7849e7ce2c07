import RoostAPI
import Testing

@Suite("Limits")
struct LimitsTests {
    private func code(_ body: () throws -> Void) -> RoostError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? RoostError)?.code
        }
    }

    @Test("X-01 a text of characters that take several bytes may be as long as any other")
    func characters() {
        let family = "👩‍👩‍👧‍👦"
        let codes = [
            code { try Limits.check(String(repeating: "😀", count: 128), length: 128, field: "x") },
            code { try Limits.check(String(repeating: "😀", count: 129), length: 128, field: "x") },
            code { try Limits.check(String(repeating: family, count: 40), length: 128, field: "x") },
            code { try Limits.check(String(repeating: family, count: 41), length: 128, field: "x") },
            code { try Limits.check("a" + String(repeating: "\u{301}", count: 511), length: 128, field: "x") },
            code { try Limits.check("a" + String(repeating: "\u{301}", count: 512), length: 128, field: "x") },
            code { try Limits.check("\r\n", length: 1, field: "x") }, code { try Limits.check(nil, length: 0, field: "x") },
        ]
        #expect(codes == [nil, .limitExceeded, nil, .limitExceeded, nil, .limitExceeded, nil, nil])
    }

    @Test("X-01 the refusal of a text with too many bytes names the limit in bytes, besides that in characters")
    func bytes() {
        func message(_ text: String) -> String? {
            do {
                try SendMessage(channel: "a", clientId: "1", text: text).validate()
                return nil
            } catch {
                return error.message
            }
        }
        let families = String(repeating: "👩‍👩‍👧‍👦", count: 7000)
        #expect(families.utf8.count > Limits.messageTextLength * 8)
        #expect(message(families) == "text has a limit of 20000 characters and 160000 bytes.")
        #expect(message(String(repeating: "é", count: 20_001)) == "text has a limit of 20000 characters.")
        #expect(message(String(repeating: "👩‍👩‍👧‍👦", count: 6400)) == nil)
    }

    private func message(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch {
            return (error as? RoostError)?.message
        }
    }

    @Test("§8.7 a list of 101 users is refused in the same sentence by every operation that has one")
    func users() {
        let users = (0...100).map { UserID("user\($0)") }
        let messages = [
            message { try AddMembers(channel: "a", users: users).validate() },
            message { try RemoveMembers(channel: "a", users: users).validate() },
            message { try SetMemberRole(channel: "a", users: users, role: .operator).validate() },
            message { try InviteMembers(channel: "a", users: users).validate() },
            message { try WithdrawInvitations(channel: "a", users: users).validate() },
            message { try CreateChannel(users: users).validate() }, message { try GetUsers(users: users).validate() },
            message { try ListUserPresence(users: users).validate() },
        ]
        let expected = [String?](repeating: "users has a limit of 100 users.", count: 8)
        #expect(messages == expected)
    }

    @Test("§8.7 a duplicate is refused in one sentence, except in lists of users to look up or of a new channel")
    func duplicates() {
        let id = MessageID(rawValue: 1)
        let messages = [
            message { try AddMembers(channel: "a", users: ["ann", "ann"]).validate() },
            message { try SendAdminMessage(channels: ["a", "a"], clientId: "1", text: "x").validate() },
            message { try DeleteMessages(channel: "a", messages: [id, id]).validate() },
            message { try SendMessage(channel: "a", clientId: "1", text: "x", tags: ["b", "b"]).validate() },
            message { try GetUsers(users: ["ann", "ann"]).validate() },
            message { try CreateChannel(users: ["ann", "ann"]).validate() },
        ]
        let refusals: [String?] = ["users", "channels", "messages", "tags"].map { "\($0) must not contain duplicates." }
        #expect(messages == refusals + [nil, nil])
    }

    @Test("U+0000, which PostgreSQL can't store, is refused on every database")
    func nothing() {
        let codes = ["\u{0}", "a\u{0}b", "a\u{1}b"].map { text in code { try Limits.check(text, length: 10, field: "x") } }
        #expect(codes == [.invalidArgument, .invalidArgument, nil])
    }

    @Test("AM-35 metadata is an object, at most 32 levels deep")
    func depth() {
        var deepest: JSONValue = 1
        for _ in 1..<Limits.metadataDepth { deepest = ["a": deepest] }
        let codes = [
            code { try Limits.check(metadata: deepest) }, code { try Limits.check(metadata: ["a": deepest]) },
            code { try Limits.check(metadata: [1]) }, code { try Limits.check(metadata: "text") },
            code { try Limits.check(metadata: .null) },
            code { try Limits.check(metadata: [:]) }, code { try Limits.check(metadata: nil) },
        ]
        #expect(
            codes == [nil, .limitExceeded, .invalidArgument, .invalidArgument, .invalidArgument, nil, nil])
    }

    @Test("AM-35 metadata is at most 100 kB as JSON, in bytes of UTF-8", arguments: ["a", "é", "\n"])
    func size(character: String) throws {
        // {"k":"…"} is 8 bytes besides the text; a line end takes two bytes in JSON, as é does in UTF-8.
        let width = character == "a" ? 1 : 2
        let fitting: JSONValue = ["k": .string(String(repeating: character, count: (Limits.metadataSizeBytes - 8) / width))]
        let larger: JSONValue = ["k": .string(String(repeating: character, count: (Limits.metadataSizeBytes - 8) / width + 1))]
        #expect([fitting.sizeBytes, Limits.metadataSizeBytes] == [Limits.metadataSizeBytes, 100_000])
        #expect(
            [code { try Limits.check(metadata: fitting) }, code { try Limits.check(metadata: larger) }] == [nil, .limitExceeded])
    }

    @Test("a place in a stream is 0 to 2⁵³ − 1")
    func places() {
        let codes = [nil, 0, Limits.seqMax, Limits.seqMax + 1, .max, -1, .min].map { seq in
            code { try Limits.check(seq: seq, field: "seq") }
        }
        #expect(Limits.seqMax == 9_007_199_254_740_991)
        #expect(codes == [nil, nil, nil, .invalidArgument, .invalidArgument, .invalidArgument, .invalidArgument])
    }

    @Test("X-20 an operator may allow a user 1 to 20,000 channels, and a token 1 second to ten years")
    func options() {
        let channels = [0, 1, 20_000, 20_001].map { count in code { try AppOptions(channelsPerUser: count).validate() } }
        let lifetimes = [0, 1, 315_360_000, 315_360_001].map { seconds in
            code { try AppOptions(tokenLifetimeSecondsMax: seconds).validate() }
        }
        for codes in [channels, lifetimes] { #expect(codes == [.invalidArgument, nil, nil, .limitExceeded]) }
    }

    @Test("a page has 1 row at least, and its most")
    func pages() throws {
        let bounds = (standard: 30, max: 100)
        #expect(try [Limits.page(nil, bounds), Limits.page(1, bounds), Limits.page(100, bounds)] == [30, 1, 100])
        let codes = [0, -1, .min, 101, .max].map { limit in code { _ = try Limits.page(limit, bounds) } }
        #expect(codes == [.invalidArgument, .invalidArgument, .invalidArgument, .limitExceeded, .limitExceeded])
    }
}
