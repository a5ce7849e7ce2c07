import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// Calls that are refused: each with its code and its field, over a socket and over HTTP where both can carry it, and nothing changed.
@Suite struct BadCallTests {
    struct BadCall: Sendable {
        let name: String
        let frame: String
        let code: RoostError.Code
        var field: String?
    }

    private static func send(_ fields: String) -> String {
        #"{"call":1,"operation":"message.send","with":{"channel":"general","clientId":"c","text":"x","# + fields + "}}"
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
            code: .invalidArgument, field: "chanel"),
        BadCall(
            name: "fields that are no object", frame: #"{"call":1,"operation":"member.join","with":[]}"#, code: .invalidArgument,
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
            code: .invalidArgument, field: "channel"),
        BadCall(
            name: "an id with a slash", frame: #"{"call":1,"operation":"member.join","with":{"channel":"a/b"}}"#,
            code: .invalidArgument, field: "channel"),
        BadCall(
            name: "an unknown channel", frame: #"{"call":1,"operation":"member.join","with":{"channel":"nowhere"}}"#,
            code: .notFound, field: "channel"),
        BadCall(
            name: "not a member",
            frame: #"{"call":1,"operation":"message.send","with":{"channel":"other","clientId":"c","text":"x"}}"#, code: .notMember
        ),
        BadCall(
            name: "an empty text",
            frame: #"{"call":1,"operation":"message.send","with":{"channel":"general","clientId":"c","text":""}}"#,
            code: .invalidArgument, field: "text"),
        BadCall(name: "metadata that is no object", frame: send(#""metadata":[1]"#), code: .invalidArgument, field: "metadata"),
        BadCall(
            name: "deep metadata",
            frame: send(#""metadata":{"a":"# + String(repeating: "[", count: 33) + String(repeating: "]", count: 33) + "}"),
            code: .limitExceeded, field: "metadata"),
        BadCall(
            name: "very deep metadata",
            frame: send(#""metadata":{"a":"# + String(repeating: "[", count: 300) + String(repeating: "]", count: 300) + "}"),
            code: .limitExceeded, field: "metadata"),
        BadCall(
            name: "metadata that Foundation doesn't read",
            frame: send(#""metadata":{"a":"# + String(repeating: "[", count: 9000) + String(repeating: "]", count: 9000) + "}"),
            code: .limitExceeded, field: "metadata"),
        BadCall(name: "six tags", frame: send(#""tags":["1","2","3","4","5","6"]"#), code: .limitExceeded, field: "tags"),
        BadCall(name: "an unknown parent", frame: send(#""parentId":"12345""#), code: .notFound, field: "parentId"),
        BadCall(name: "a parent that is no id", frame: send(#""parentId":"abc""#), code: .invalidArgument, field: "parentId"),
        BadCall(
            name: "a negative seq", frame: #"{"call":1,"operation":"reading.mark","with":{"channel":"general","seq":-1}}"#,
            code: .invalidArgument, field: "seq"),
        BadCall(
            name: "a seq that is no whole number",
            frame: #"{"call":1,"operation":"reading.mark","with":{"channel":"general","seq":1.5}}"#, code: .invalidArgument,
            field: "seq"),
        BadCall(
            name: "a page of 0", frame: #"{"call":1,"operation":"message.list","with":{"channel":"general","limit":0}}"#,
            code: .invalidArgument, field: "limit"),
        BadCall(
            name: "a page of 101", frame: #"{"call":1,"operation":"message.list","with":{"channel":"general","limit":101}}"#,
            code: .limitExceeded, field: "limit"),
        BadCall(
            name: "two positions",
            frame: #"{"call":1,"operation":"message.list","with":{"channel":"general","before":5,"after":1}}"#,
            code: .invalidArgument, field: "before"),
        BadCall(
            name: "changes of the future",
            frame: #"{"call":1,"operation":"stream.channelChanges","with":{"channel":"general","after":999999}}"#,
            code: .resyncRequired, field: "after"),
        BadCall(
            name: "an unknown type", frame: #"{"call":1,"operation":"channel.create","with":{"type":"secret"}}"#,
            code: .invalidArgument, field: "type"),
        BadCall(
            name: "an id that is taken",
            frame: #"{"call":1,"operation":"channel.create","with":{"channel":"general","type":"community"}}"#,
            code: .alreadyExists, field: "channel"),
        BadCall(
            name: "an unknown first member",
            frame: #"{"call":1,"operation":"channel.create","with":{"type":"community","users":["nobody"]}}"#, code: .notFound,
            field: "users"),
        BadCall(
            name: "someone else's message",
            frame: #"{"call":1,"operation":"message.edit","with":{"channel":"general","message":"MESSAGE","text":"mine"}}"#,
            code: .notMessageOwner),
        BadCall(
            name: "an admin's operation", frame: #"{"call":1,"operation":"user.upsert","with":{"user":"zoe"}}"#,
            code: .notPermitted),
    ]

    @Test("R21 AM-23 AM-26 SB-58 a call that is refused tells its code and field, and changes nothing")
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
            try await socket.send(text: bad.frame.replacing("MESSAGE", with: message.messageId.description))
            let error = await #expect(throws: RoostError.self, "\(bad.name)") {
                _ = try await socket.reply(to: 1, as: JSONValue.self)
            }
            let seen = [error?.code.rawValue ?? "", bad.field == nil ? "" : error?.field ?? ""]
            #expect(seen == [bad.code.rawValue, bad.field ?? ""], "\(bad.name)")
            #expect(try await owner.call(Resume(after: 0, channels: [:])) == before, "\(bad.name)")
            await socket.close()
        }
        try await server.stop()
    }

    @Test(
        "R21 frames that are no calls are answered without ending the socket",
        arguments: [
            "", "{", "[]", "7", "null", "{}", #"{"call":"x"}"#, #"{"call":9223372036854775808,"operation":"user.me"}"#,
            #"{"authenticate":{"token":"x"},"call":1}"#, "[[7]]",
        ])
    func malformed(_ frame: String) async throws {
        let server = try await TestServer.shared()
        // A user for whom no other test of this server causes events.
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
        let make: @Sendable (Int) -> SendMessage
        var testDescription: String { field }
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
    ]

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
        let over = try await post(limit.most + 1)
        #expect(
            [String(over.status), over.code, try over.decoded(JSONValue.self)["field"]?.text] == [
                "413", "limit_exceeded", limit.field,
            ])
        #expect(try await owner.call(GetChannel(channel: "general")).channel.counters.messageCount == 0)
        #expect(try await post(limit.most).status == 200)
        try await server.stop()
    }
}

extension JSONValue {
    var text: String? { if case .string(let text) = self { text } else { nil } }
}
