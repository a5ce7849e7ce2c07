import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// Contents that messages can't have, over a socket and over HTTP, by sending and by editing: each is refused with its code, field and limit,
/// and changes nothing.
@Suite struct RefusedMessageTests {
    private typealias Refusal = BadChannelCallTests.Refusal

    /// Fields as JSON text, and what they are refused with.
    private struct Refused {
        let fields: String
        let refusal: Refusal

        init(_ fields: String, _ code: RoostError.Code, _ field: String, limit: Int? = nil) {
            self.fields = fields
            refusal = Refusal(code: code.rawValue, field: field, limit: limit.map { Int64($0) })
        }
    }

    private static let users = (1...31).map { UserID("u\($0)") }
    private static func list(_ count: Int) -> String { "[" + (1...count).map { "\"u\($0)\"" }.joined(separator: ",") + "]" }

    // MARK: Mentions

    private static let refusedMentions = [
        Refused(#"[{"type":"user","users":\#(list(31))}]"#, .mentionLimit, "mentionees", limit: 30),
        // Beyond the limit of the app's option, and before anything is looked up.
        Refused(#"[{"type":"user","users":\#(list(101))}]"#, .limitExceeded, "mentionees", limit: 100),
        Refused(#"[{"type":"channel"},{"type":"channel"}]"#, .mentionInvalid, "mentionees"),
        Refused(#"[{"type":"user","users":["u1"]},{"type":"user","users":["u2"]}]"#, .mentionInvalid, "mentionees"),
        Refused(#"[{"type":"channel","users":["u1"]}]"#, .mentionInvalid, "mentionees"),
        Refused(
            #"[{"type":"user","users":["u1"]},{"type":"channel"},{"type":"user","users":["u2"]}]"#, .limitExceeded, "mentionees",
            limit: 2),
        Refused(#"[{"type":"channel"}]"#, .mentionAllDisabled, "mentionees"),
        Refused(#"[{"type":"user","users":["u1"]},{"type":"channel"}]"#, .mentionAllDisabled, "mentionees"),
    ]

    @Test(
        "§8.9 MN-01 MN-04 MN-13 D-25 R34 mentions that a message can't have are refused over a socket and over HTTP, by sending and by editing"
    )
    func mentions() async throws {
        let server = try await TestServer(options: AppOptions(isMentionAllEnabled: false))
        let ann = try await Self.room(on: server)
        let message = try await ann.send("general", "first").messageId
        let before = try await ann.call(Resume(after: 0, channels: [:]))
        for refused in Self.refusedMentions {
            for (operation, fields) in [
                ("message.send", #""clientId":"new","text":"x""#), ("message.edit", #""message":"\#(message)""#),
            ] {
                let call = #"{"channel":"general",\#(fields),"mentionees":\#(refused.fields)}"#
                let refusals = try await server.refusals(of: operation, call, by: ann, as: "ann")
                #expect(refusals == [refused.refusal, refused.refusal], "\(operation) \(refused.fields.prefix(80))")
                #expect(try await ann.call(Resume(after: 0, channels: [:])) == before)
            }
        }
        try await server.stop()
    }

    @Test("MN-01 D-25 R34 a message mentions 30 members, over a socket and over HTTP, by sending and by editing")
    func thirty() async throws {
        let server = try await TestServer()
        let ann = try await Self.room(on: server)
        let thirty = [Mentionee.users(Array(Self.users.prefix(30)))]
        let sent = try await ann.call(SendMessage(channel: "general", clientId: "1", text: "x", mentionees: thirty))
        #expect(sent.mentionees == thirty && sent.droppedMentions == nil)
        let plain = try await ann.send("general", "2").messageId
        #expect(try await ann.call(EditMessage(channel: "general", message: plain, mentionees: thirty)).mentionees == thirty)

        let mentionees = #""mentionees":[{"type":"user","users":\#(Self.list(30))}]"#
        let token = try await server.token("ann")
        let third = try await ann.send("general", "3").messageId
        for (operation, fields) in [
            ("message.send", #""clientId":"4","text":"x""#), ("message.edit", #""message":"\#(third)""#),
        ] {
            let answer = try await server.call(operation, #"{"channel":"general",\#(fields),\#(mentionees)}"#, token: token)
            #expect(try answer.status == 200 && answer.decoded(Message.self).mentionees == thirty, "\(operation)")
        }
        try await server.stop()
    }

    /// A channel of ann's with 31 other members.
    private static func room(on server: TestServer) async throws -> RawSocket {
        let root = try await server.socket("root", role: .admin)
        for user in users { try await root.call(UpsertUser(user: user)) }
        await root.close()
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "general", users: users))
        return ann
    }

    // MARK: Combining marks

    /// A megabyte that is one character, of marks whose order takes the square of their number.
    private static let pile = "a" + String(repeating: "\u{301}", count: 250_000) + String(repeating: "\u{316}", count: 250_000)

    /// A key of few enough marks for this test's own reading of JSON, and too many for the server's. `CombiningMarkTests` has longer ones.
    private static let key = "a" + String(repeating: "\u{301}", count: 100) + String(repeating: "\u{316}", count: 100)

    private static let piles = [
        #""text":"\#(pile)""#, #""text":"x","data":"\#(pile)""#, #""text":"x","customType":"\#(pile)""#,
        #""text":"x","tags":["\#(pile)"]"#,
        #""text":"x","metadata":{"k":"\#(pile)"}"#, #""text":"x","metadata":{"\#(key)":1}"#, #""text":"x","\#(key)":1"#,
    ].map { Refused($0, .limitExceeded, "body", limit: Limits.combiningMarks) }

    @Test("§8.7 I21 a megabyte of combining marks on one letter is refused over a socket and over HTTP, and the server continues")
    func combiningMarks() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "general"))
        let message = try await ann.send("general", "first").messageId
        let before = try await ann.call(Resume(after: 0, channels: [:]))
        let lists = Refused(
            #""text":"x","metaArrays":{"k":["\#(Self.pile)"]}"#, .limitExceeded, "body", limit: Limits.combiningMarks)
        let sends = (Self.piles + [lists]).map { ("message.send", #""clientId":"new""#, $0) }
        // An edit has all of these but the lists.
        let edits = Self.piles.map { ("message.edit", #""message":"\#(message)""#, $0) }
        for (operation, fields, refused) in sends + edits {
            let call = #"{"channel":"general",\#(fields),\#(refused.fields)}"#
            let refusals = try await server.refusals(of: operation, call, by: ann, as: "ann")
            #expect(refusals == [refused.refusal, refused.refusal], "\(operation) \(refused.refusal.field ?? "")")
            #expect(try await ann.call(Resume(after: 0, channels: [:])) == before)
        }
        // Both still work, and a letter with a few marks is one character.
        let letter = "a" + String(repeating: "\u{301}", count: 7)
        let text = String(repeating: letter, count: 100)
        #expect(try await ann.call(SendMessage(channel: "general", clientId: "after", text: text)).text == text)
        let answer = try await server.call(
            "message.send", #"{"channel":"general","clientId":"http","text":"\#(text)"}"#,
            token: try await server.token("ann"))
        #expect(try answer.status == 200 && answer.decoded(Message.self).text == text)
        try await server.stop()
    }
}

extension TestServer {
    /// Tries a call over a user's socket, and over HTTP as the same user. Returns the refusal of each; nil if it succeeded.
    func refusals(
        of operation: String, _ fields: String, by socket: RawSocket, as user: UserID
    ) async throws -> [BadChannelCallTests.Refusal?] {
        let overSocket = try await socket.refusal(of: operation, fields)
        let answer = try await call(operation, fields, token: try await token(user))
        return [overSocket, try answer.status == 200 ? nil : answer.decoded(BadChannelCallTests.Refusal.self)]
    }
}

extension RawSocket {
    /// Tries a call whose fields are JSON text. Returns its refusal; nil if it succeeded.
    fileprivate func refusal(of operation: String, _ fields: String) async throws -> BadChannelCallTests.Refusal? {
        // The socket's own calls begin at one, and don't reach this number.
        let call: Int64 = 1_000_000
        try await send(text: #"{"call":\#(call),"operation":"\#(operation)","with":\#(fields)}"#)
        do {
            _ = try await reply(to: call, as: JSONValue.self)
            return nil
        } catch let error as RoostError {
            return BadChannelCallTests.Refusal(code: error.code.rawValue, field: error.field, limit: error.limit)
        }
    }
}
