import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// Refused calls: each has its code and its field, over a socket and over HTTP where both can carry it, and changes nothing.
@Suite struct BadCallTests {
    struct BadCall: Sendable {
        let name: String
        let frame: String
        /// The same over HTTP: a method, a path and maybe a body. Nil if only a frame can have the mistake, or a path can't hold it.
        var request: String?
        let code: RoostError.Code
        var field: String?
    }

    /// A message with fields beside its client id.
    private static func sending(_ name: String, _ fields: String, _ code: RoostError.Code, _ field: String) -> BadCall {
        BadCall(
            name: name, frame: #"{"call":1,"operation":"message.send","with":{"channel":"general","clientId":"c",\#(fields)}}"#,
            request: #"POST /v1/channels/general/messages {"clientId":"c",\#(fields)}"#, code: code, field: field)
    }

    private static func nested(_ levels: Int) -> String {
        #""text":"x","metadata":{"a":\#(String(repeating: "[", count: levels))\#(String(repeating: "]", count: levels))}"#
    }

    static let cases: [BadCall] = [
        BadCall(
            name: "an unknown operation", frame: #"{"call":1,"operation":"message.sent","with":{}}"#, code: .unknownOperation,
            field: "operation"),
        BadCall(name: "no operation", frame: #"{"call":1}"#, code: .invalidArgument, field: "operation"),
        BadCall(
            name: "a missing field", frame: #"{"call":1,"operation":"member.join","with":{}}"#, code: .invalidArgument,
            field: "channel"),
        BadCall(
            name: "a field of the wrong type", frame: #"{"call":1,"operation":"member.join","with":{"channel":7}}"#,
            code: .invalidArgument, field: "channel"),
        BadCall(
            name: "a null field", frame: #"{"call":1,"operation":"member.join","with":{"channel":null}}"#, code: .invalidArgument,
            field: "channel"),
        BadCall(
            name: "an unknown field", frame: #"{"call":1,"operation":"member.join","with":{"channel":"general","chanel":"x"}}"#,
            request: #"POST /v1/channels/general/join {"chanel":"x"}"#, code: .invalidArgument, field: "chanel"),
        sending(
            "a misspelt field of an entry", #""text":"x","mentionees":[{"type":"user","userIds":["bob"]}]"#, .invalidArgument,
            "mentionees[0].userIds"),
        sending("an entry that is no text", #""text":"x","tags":["1",1]"#, .invalidArgument, "tags[1]"),
        sending("an entry that is no object", #""text":"x","mentionees":["bob"]"#, .invalidArgument, "mentionees[0]"),
        sending(
            "an entry of a type that there isn't", #""text":"x","mentionees":[{"type":"users","users":["bob"]}]"#, .invalidArgument,
            "mentionees[0].type"),
        sending("a kind that there isn't", #""text":"x","kind":"poll""#, .invalidArgument, "kind"),
        sending("a push option that there isn't", #""text":"x","pushOption":"later""#, .invalidArgument, "pushOption"),
        BadCall(
            name: "a filter by an unknown kind",
            frame: #"{"call":1,"operation":"message.list","with":{"channel":"general","kinds":["text","poll"]}}"#,
            request: "GET /v1/channels/general/messages?kinds=text&kinds=poll", code: .invalidArgument, field: "kinds[1]"),
        sending("an entry of a named list", #""text":"x","metaArrays":{"5":["1",2]}"#, .invalidArgument, "metaArrays.5[1]"),
        BadCall(
            name: "fields that aren't an object", frame: #"{"call":1,"operation":"member.join","with":[]}"#, code: .invalidArgument,
            field: "with"),
        BadCall(
            name: "fields that are null", frame: #"{"call":1,"operation":"member.join","with":null}"#, code: .invalidArgument,
            field: "with"),
        BadCall(
            name: "a misspelt member of the frame", frame: #"{"call":1,"operation":"channel.create","wiht":{"channel":"mine"}}"#,
            code: .invalidArgument, field: "wiht"),
        BadCall(
            name: "an empty id", frame: #"{"call":1,"operation":"member.join","with":{"channel":""}}"#, code: .invalidArgument,
            field: "channel"),
        BadCall(
            name: "an id with a control character", frame: #"{"call":1,"operation":"member.join","with":{"channel":"a\u0000b"}}"#,
            request: "POST /v1/channels/a%00b/join", code: .invalidArgument, field: "channel"),
        BadCall(
            name: "an id with a slash", frame: #"{"call":1,"operation":"member.join","with":{"channel":"a/b"}}"#,
            request: "POST /v1/channels/a%2Fb/join", code: .invalidArgument, field: "channel"),
        BadCall(
            name: "an unknown channel", frame: #"{"call":1,"operation":"member.join","with":{"channel":"nowhere"}}"#,
            request: "POST /v1/channels/nowhere/join", code: .notFound, field: "channel"),
        BadCall(
            name: "not a member",
            frame: #"{"call":1,"operation":"message.send","with":{"channel":"other","clientId":"c","text":"x"}}"#,
            request: #"POST /v1/channels/other/messages {"clientId":"c","text":"x"}"#, code: .notMember),
        sending("no text", #""tags":[]"#, .invalidArgument, "text"),
        sending("an empty text", #""text":"""#, .invalidArgument, "text"),
        sending("a text that is a number", #""text":7"#, .invalidArgument, "text"),
        sending("metadata that is no object", #""text":"x","metadata":[1]"#, .invalidArgument, "metadata"),
        sending("deep metadata", nested(33), .limitExceeded, "metadata"),
        sending("very deep metadata", nested(300), .limitExceeded, "metadata"),
        sending("metadata that Foundation doesn't read", nested(9000), .limitExceeded, "metadata"),
        sending("six tags", #""text":"x","tags":["1","2","3","4","5","6"]"#, .limitExceeded, "tags"),
        sending("an unknown parent", #""text":"x","parentId":"12345""#, .notFound, "parentId"),
        sending("a parent that is no id", #""text":"x","parentId":"abc""#, .invalidArgument, "parentId"),
        BadCall(
            name: "a negative seq", frame: #"{"call":1,"operation":"reading.mark","with":{"channel":"general","seq":-1}}"#,
            request: #"POST /v1/channels/general/read {"seq":-1}"#, code: .invalidArgument, field: "seq"),
        BadCall(
            name: "a seq that isn't a whole number",
            frame: #"{"call":1,"operation":"reading.mark","with":{"channel":"general","seq":1.5}}"#,
            request: #"POST /v1/channels/general/read {"seq":1.5}"#, code: .invalidArgument, field: "seq"),
        BadCall(
            name: "a fraction among positions",
            frame: #"{"call":1,"operation":"stream.resume","with":{"after":0,"channels":{"a":1.5}}}"#,
            request: #"POST /v1/me/resume {"after":0,"channels":{"a":1.5}}"#, code: .invalidArgument, field: "channels.a"),
        BadCall(
            name: "a fraction among versions",
            frame: #"{"call":1,"operation":"user.listChanged","with":{"versions":{"ann":1,"bob":1.5,"cid":2.5}}}"#,
            request: #"POST /v1/users/changed {"versions":{"ann":1,"bob":1.5,"cid":2.5}}"#, code: .invalidArgument,
            field: "versions.bob"),
        BadCall(
            name: "a page of 0", frame: #"{"call":1,"operation":"message.list","with":{"channel":"general","limit":0}}"#,
            request: "GET /v1/channels/general/messages?limit=0", code: .invalidArgument, field: "limit"),
        BadCall(
            name: "a page of 101", frame: #"{"call":1,"operation":"message.list","with":{"channel":"general","limit":101}}"#,
            request: "GET /v1/channels/general/messages?limit=101", code: .limitExceeded, field: "limit"),
        BadCall(
            name: "two positions",
            frame: #"{"call":1,"operation":"message.list","with":{"channel":"general","before":5,"after":1}}"#,
            request: "GET /v1/channels/general/messages?before=5&after=1", code: .invalidArgument, field: "before"),
        BadCall(
            name: "two positions without the first",
            frame: #"{"call":1,"operation":"message.list","with":{"channel":"general","around":5,"after":1}}"#,
            request: "GET /v1/channels/general/messages?around=5&after=1", code: .invalidArgument, field: "after"),
        BadCall(
            name: "changes from the future",
            frame: #"{"call":1,"operation":"stream.channelChanges","with":{"channel":"general","after":999999}}"#,
            request: "GET /v1/channels/general/changes?after=999999", code: .resyncRequired, field: "after"),
        BadCall(
            name: "an unknown type", frame: #"{"call":1,"operation":"channel.create","with":{"type":"secret"}}"#,
            request: #"POST /v1/channels {"type":"secret"}"#, code: .invalidArgument, field: "type"),
        BadCall(
            name: "an id that is taken",
            frame: #"{"call":1,"operation":"channel.create","with":{"channel":"general","type":"community"}}"#,
            request: #"POST /v1/channels {"channel":"general","type":"community"}"#, code: .alreadyExists, field: "channel"),
        BadCall(
            name: "an unknown first member",
            frame: #"{"call":1,"operation":"channel.create","with":{"type":"community","users":["nobody"]}}"#,
            request: #"POST /v1/channels {"type":"community","users":["nobody"]}"#, code: .notFound, field: "users"),
        BadCall(
            name: "someone else's message",
            frame: #"{"call":1,"operation":"message.edit","with":{"channel":"general","message":"MESSAGE","text":"mine"}}"#,
            request: #"PATCH /v1/channels/general/messages/MESSAGE {"text":"mine"}"#, code: .notMessageOwner),
        BadCall(
            name: "an admin's operation", frame: #"{"call":1,"operation":"user.upsert","with":{"user":"zoe"}}"#,
            request: "PUT /v1/users/zoe {}", code: .notPermitted),
    ]

    @Test("I21 AM-23 AM-26 SB-58 a refused call names its code and field, and changes nothing")
    func refused() async throws {
        let server = try await TestServer()
        let owner = try await server.socket("owner")
        try await owner.call(CreateChannel(channel: "general"))
        try await owner.call(CreateChannel(channel: "other"))
        let message = try await owner.call(SendMessage(channel: "general", clientId: "first", text: "hello"))
        try await server.socket("ann").call(JoinChannel(channel: "general"))
        let before = try await owner.call(Resume(after: 0, channels: [:]))
        for bad in Self.cases {
            let socket = try await server.socket("ann")
            let id = message.messageId.description
            try await socket.send(text: bad.frame.replacing("MESSAGE", with: id))
            let error = await #expect(throws: RoostError.self, "\(bad.name)") {
                _ = try await socket.reply(to: 1, as: JSONValue.self)
            }
            var seen = [[error?.code.rawValue, bad.field == nil ? nil : error?.field]]
            if let request = bad.request?.replacing("MESSAGE", with: id) {
                seen.append(try await Self.refusal(of: request, namesField: bad.field != nil, on: server))
            }
            #expect(seen.allSatisfy { $0 == [bad.code.rawValue, bad.field] }, "\(bad.name): \(seen)")
            #expect(try await owner.call(Resume(after: 0, channels: [:])) == before, "\(bad.name)")
            await socket.close()
        }
        try await server.stop()
    }

    /// The code of ann's refusal over HTTP, and its field if requested.
    private static func refusal(of request: String, namesField: Bool, on server: TestServer) async throws -> [String?] {
        let parts = request.split(separator: " ", maxSplits: 2).map { String($0) }
        let body: String? = parts.count > 2 ? parts[2] : parts[0] == "GET" ? nil : ""
        let answer = try await server.request(parts[0], parts[1], token: try await server.token("ann"), body: body)
        #expect(answer.headers["content-type"] == "application/problem+json", "\(request.prefix(100))")
        let field = try answer.decoded(JSONValue.self)["field"]?.text
        return [answer.code, namesField ? field : nil]
    }

    @Test(
        "I21 frames that aren't calls are answered without closing the socket",
        arguments: [
            "", "{", "[]", "7", "null", "{}", #"{"call":"x"}"#, #"{"call":9223372036854775808,"operation":"user.me"}"#,
            #"{"authenticate":{"token":"x"},"call":1}"#, "[[7]]",
        ])
    func malformed(_ frame: String) async throws {
        let server = try await TestServer.shared()
        // A user who gets no events from other tests on this server.
        let socket = try await server.socket("malformed")
        try await socket.send(text: frame)
        guard case .text(let text) = await socket.next() else { throw Missed("an answer") }
        #expect(text.hasPrefix(#"{"error":{"code":"invalid_argument""#))
        #expect(try await socket.call(GetMe()).userId == "malformed")
        await socket.close()
    }

    struct Limit: Sendable, CustomTestStringConvertible {
        let field: String
        let most: Int
        /// What the limit counts, if the field has several limits.
        var counted: String?
        let make: @Sendable (Int) -> SendMessage
        var testDescription: String { counted.map { "\(field): \($0)" } ?? field }
    }

    static let limits: [Limit] = [
        Limit(field: "text", most: Limits.messageTextLength) { SendMessage(channel: "general", clientId: "c", text: letters($0)) },
        Limit(field: "data", most: Limits.messageDataLength) {
            SendMessage(channel: "general", clientId: "c", text: "x", data: letters($0))
        },
        Limit(field: "customType", most: Limits.customTypeLength) {
            SendMessage(channel: "general", clientId: "c", text: "x", customType: letters($0))
        },
        Limit(field: "clientId", most: Limits.identifierLength) {
            SendMessage(channel: "general", clientId: ClientID(letters($0)), text: "x")
        },
        Limit(field: "tags", most: Limits.messageTags) {
            SendMessage(channel: "general", clientId: "c", text: "x", tags: (0..<$0).map { "t\($0)" })
        },
        Limit(field: "metadata", most: Limits.metadataSizeBytes) { size in
            SendMessage(channel: "general", clientId: "c", text: "x", metadata: ["k": .string(letters(size - 8))])
        },
        Limit(field: "mentionees", most: Limits.mentionees) {
            let entries: [Mentionee] = [.users(["owner"]), .channel, .channel]
            return SendMessage(channel: "general", clientId: "c", text: "x", mentionees: Array(entries.prefix($0)))
        },
        Limit(field: "metaArrays", most: Limits.metaArrays, counted: "lists") { listed(names($0).map { ($0, []) }) },
        Limit(field: "metaArrays", most: Limits.metaArrayNameLength, counted: "a name") { listed([(letters($0), [])]) },
        Limit(field: "metaArrays", most: Limits.metaArrayValues, counted: "values") { listed([("k", names($0))]) },
        Limit(field: "metaArrays", most: Limits.metaArrayValueLength, counted: "a value") { listed([("k", [letters($0)])]) },
        Limit(field: "targetLanguages", most: Limits.targetLanguages, counted: "languages") { count in
            let languages = (1...count).map { "de-\($0)" }
            return SendMessage(channel: "general", clientId: "c", text: "x", targetLanguages: languages)
        },
        Limit(field: "targetLanguages", most: Limits.languageLength, counted: "a language") { length in
            // In parts of eight letters at most.
            let language = String(String(repeating: "aaaaaaaa-", count: 4).prefix(length - 1)) + "a"
            return SendMessage(channel: "general", clientId: "c", text: "x", targetLanguages: [language])
        },
    ]

    private static func names(_ count: Int) -> [String] { (1...count).map { "n\($0)" } }

    private static func listed(_ lists: [(String, [String])]) -> SendMessage {
        SendMessage(
            channel: "general", clientId: "c", text: "x", metaArrays: Dictionary(uniqueKeysWithValues: lists.map { ($0.0, $0.1) }))
    }

    private static func letters(_ count: Int) -> String { String(repeating: "a", count: count) }

    @Test("§8.7 each limit of a message holds: at it, and one over", arguments: limits)
    func holds(_ limit: Limit) async throws {
        let server = try await TestServer()
        let owner = try await server.socket("owner")
        try await owner.call(CreateChannel(channel: "general"))
        let token = try await server.token("owner")
        func post(_ size: Int) async throws -> TestServer.Answer {
            var fields = try JSONDecoder().decode(JSONValue.self, from: Data(try JSONWriter.bytes(of: limit.make(size))))
            if case .object(var object) = fields {
                object["channel"] = nil
                fields = .object(object)
            }
            return try await server.request(
                "POST", "/v1/channels/general/messages", token: token,
                body: String(decoding: try JSONWriter.bytes(of: fields), as: UTF8.self))
        }
        func refusal(_ size: Int) async throws -> RoostError? {
            let frame = CallFrame(call: 1000, with: limit.make(size))
            try await owner.send(text: String(decoding: try JSONWriter.bytes(of: frame), as: UTF8.self))
            do {
                _ = try await owner.reply(to: 1000, as: Message.self)
                return nil
            } catch let error as RoostError {
                return error
            }
        }
        let over = try await post(limit.most + 1)
        let problem = try over.decoded(JSONValue.self)
        #expect([String(over.status), over.code, problem["field"]?.text] == ["413", "limit_exceeded", limit.field])
        #expect(problem["limit"] == .integer(Int64(limit.most)))
        let refused = try await refusal(limit.most + 1)
        #expect(refused?.code == .limitExceeded && refused?.field == limit.field && refused?.limit == Int64(limit.most))
        #expect(try await owner.call(GetChannel(channel: "general")).channel.counters.messageCount == 0)
        #expect(try await post(limit.most).status == 200)
        // A repeat with the same client id is the same message.
        #expect(try await refusal(limit.most) == nil)
        #expect(try await owner.call(GetChannel(channel: "general")).channel.counters.messageCount == 1)
        try await server.stop()
    }
}

extension JSONValue {
    var text: String? { if case .string(let text) = self { text } else { nil } }
}
