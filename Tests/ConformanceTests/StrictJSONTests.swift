import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// Strict JSON (RFC 8259), over both transports and inside metadata: nothing is guessed, and everything is kept as it was written.
@Suite struct StrictJSONTests {
    /// Texts in place of the metadata's value `k`.
    static let malformed = [
        "[1,]", "{\"a\":1,}", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}", "{'a':1}", "01", "-", "+1", "1.", ".5", "1e", "0x1",
        "NaN",
        "Infinity", "-Infinity", "True", "nul", "\"a\u{1}b\"", "\"a\tb\"", #""\x41""#, #""\ud800""#, #""\udc00\ud800""#,
        #""\u12g4""#,
        "\"a", "[1}", "{\"a\":1]", "1,", "// x\n1", "/* x */1", "undefined", "", "\u{feff}1", "1 \u{a0}", "{\"a\":1,,\"b\":2}",
        "[[]",
    ]
    static let inexact = [
        "9223372036854775808", "-9223372036854775809", "18446744073709551615", "123456789012345678901234567890", "1e400", "-1e400",
        "1e-400", "0.12345678901234567890123", "9007199254740993.0", "3.141592653589793238462643383279", "123456789012345678e1",
    ]
    static let exact = [
        "9223372036854775807", "-9223372036854775808", "9007199254740993", "0.1", "0.30000000000000004", "0.10000000000000001",
        "1e20",
        "1.7976931348623157e308", "5e-324", "-0.0", "1.00000000000000000000", "1E+2", "100000000000000000000e-10", "-1",
    ]

    private static func fields(_ value: String) -> String { #"{"type":"group","metadata":{"k":\#(value)}}"# }

    private static func refusals(_ value: String, _ server: TestServer, _ socket: RawSocket) async throws -> [String?] {
        let body = fields(value)
        let answer = try await server.request("POST", "/v1/channels", token: try await server.token("ann"), body: body)
        let field = try answer.decoded(JSONValue.self)["field"]?.text
        try await socket.send(text: #"{"call":1,"operation":"channel.create","with":\#(body)}"#)
        guard let text = await socket.nextText() else { throw Missed("an answer") }
        let reply = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
        return [String(answer.status), answer.code, field, reply["error"]?["code"]?.text, reply["error"]?["field"]?.text]
    }

    @Test("AM-35 I21 anything but strict JSON is refused over both transports, in metadata too")
    func refusesMalformed() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        for value in Self.malformed {
            let refusals = try await Self.refusals(value, server, socket)
            #expect(refusals == ["400", "invalid_argument", nil, "invalid_argument", nil], "\(value)")
        }
        #expect(try await socket.call(QueryChannels()).items.isEmpty)
        try await server.stop()
    }

    @Test("§8.7 I21 too many combining marks in a row are refused in a query and in a path too")
    func combiningMarks() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        let marks = String(repeating: "%CC%81", count: 128)
        for (path, field) in [("/v1/channels?nameContains=a\(marks)", "nameContains"), ("/v1/channels/a\(marks)", "channel")] {
            let few = try await server.request("GET", path, token: token)
            #expect(try few.decoded(JSONValue.self)["limit"] != .integer(128))
            let many = try await server.request("GET", path + "%CC%96", token: token)
            #expect(many.status == 413 && many.code == "limit_exceeded")
            #expect(try many.decoded(JSONValue.self)["field"]?.text == field)
            #expect(try many.decoded(JSONValue.self)["limit"] == .integer(128))
        }
        try await server.stop()
    }

    @Test("R19 I21 half a surrogate pair in any text of a message is refused, on sending and on editing, and nothing changes")
    func loneSurrogates() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        let token = try await server.token("ann")
        try await socket.call(CreateChannel(channel: "room"))
        let message = try await socket.call(SendMessage(channel: "room", clientId: "1", text: "x"))
        let bad = [
            #""text":"a\ud800""#, #""text":"\udc00\ud800""#, #""text":"\ud83d x""#, #""customType":"\udfff""#,
            #""tags":["a","\ud800"]"#,
            #""metaArrays":{"k":["\ud800"]}"#, #""metaArrays":{"\ud800":["v"]}"#, #""data":{"k":"\ud800"}"#,
            #""metadata":{"\udc00":1}"#,
        ]
        for field in bad {
            // A duplicate field would be refused as such.
            let sending = #"{"clientId":"2","# + (field.hasPrefix(#""text""#) ? "" : #""text":"x","#) + field + "}"
            let requests = [
                ("POST", "/v1/channels/room/messages", sending),
                ("PATCH", "/v1/channels/room/messages/\(message.messageId)", "{\(field)}"),
            ]
            for (method, path, body) in requests {
                let answer = try await server.request(method, path, token: token, body: body)
                #expect(answer.status == 400 && answer.code == "invalid_argument", "\(method) \(field): \(answer.status)")
            }
            try await socket.send(
                text: #"{"call":9,"operation":"message.send","with":{"channel":"room",\#(sending.dropFirst())}"#)
            guard let text = await socket.nextText() else { throw Missed("a refusal of \(field)") }
            #expect(text.contains(#""code":"invalid_argument""#), "\(field): \(text.prefix(200))")
        }
        let page = try await socket.call(ListMessages(channel: "room"))
        #expect(page.messages == [message])
        // A whole pair is a character.
        let whole = try await server.request(
            "POST", "/v1/channels/room/messages", token: token, body: #"{"clientId":"3","text":"\ud83d\ude00"}"#)
        #expect(try whole.decoded(Message.self).text == "😀")
        try await server.stop()
    }

    @Test("AM-35 I21 a body in another encoding, with a byte-order mark or with trailing bytes is refused")
    func refusesDisguised() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        for body in ["\u{feff}{}", "{}{}", "{} x", "{}\u{0}", "\u{0}{\u{0}}\u{0}", " ", "null", "7"] {
            #expect(try await server.request("POST", "/v1/channels", token: token, body: body).status == 400, "\(body)")
        }
        try await server.stop()
    }

    @Test("I21 a body has 25,000 JSON values at most, counted as objects, arrays and commas: at it, and one over")
    func valueCount() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        func answer(zeros count: Int) async throws -> TestServer.Answer {
            let zeros = Array(repeating: "0", count: count).joined(separator: ",")
            return try await server.request("POST", "/v1/channels", token: token, body: Self.fields("[\(zeros)]"))
        }
        // Two objects, an array, the comma between two fields, and a comma less than zeros.
        #expect(try await answer(zeros: Limits.jsonValues - 3).status == 200)
        let over = try await answer(zeros: Limits.jsonValues - 2)
        #expect([String(over.status), over.code] == ["413", "limit_exceeded"])
        // On a socket the error names the call, if its number comes first, so no client waits for an answer in vain.
        let socket = try await server.socket("ann")
        let fields = Self.fields("[\(Array(repeating: "0", count: Limits.jsonValues).joined(separator: ","))]")
        for (frame, start) in [
            (#"{"call":7,"operation":"channel.create","with":\#(fields)}"#, #"{"reply":7,"error":{"code":"limit_exceeded""#),
            (#"{"operation":"channel.create","call":7,"with":\#(fields)}"#, #"{"error":{"code":"limit_exceeded""#),
            (
                #"{"call":1.5,"operation":"user.me"}"#,
                #"{"error":{"code":"invalid_argument","message":"call must be a whole number"#
            ),
        ] {
            try await socket.send(text: frame)
            guard let text = await socket.nextText() else { throw Missed("a refusal") }
            #expect(text.hasPrefix(start), "\(text.prefix(200))")
        }
        try await server.stop()
    }

    @Test(
        "I21 JSON has 128 levels at most, in a body and in a frame: at the limit only metadata's own refuses it, one over this one does"
    )
    func depth() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        func fields(levels: Int) -> String {
            Self.fields(String(repeating: "[", count: levels - 2) + String(repeating: "]", count: levels - 2))
        }
        func limits(levels: Int) async throws -> [JSONValue?] {
            let answer = try await server.request(
                "POST", "/v1/channels", token: try await server.token("ann"), body: fields(levels: levels))
            // The frame adds a level.
            try await socket.send(text: #"{"call":1,"operation":"channel.create","with":\#(fields(levels: levels - 1))}"#)
            guard let text = await socket.nextText() else { throw Missed("a reply") }
            let reply = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
            return [try answer.decoded(JSONValue.self)["limit"], reply["error"]?["limit"]]
        }
        #expect(try await limits(levels: Limits.jsonDepth) == [32, 32])
        #expect(try await limits(levels: Limits.jsonDepth + 1) == [128, 128])
        try await server.stop()
    }

    @Test("AM-35 I21 a number that can't be kept exactly is refused by its place, and any other is kept")
    func numbers() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        for value in Self.inexact {
            let refusals = try await Self.refusals(value, server, socket)
            #expect(refusals == ["400", "invalid_argument", "metadata.k", "invalid_argument", "metadata.k"], "\(value)")
        }
        for value in Self.exact {
            try await socket.send(text: #"{"call":1,"operation":"channel.create","with":\#(Self.fields(value))}"#)
            let made = try await socket.reply(to: 1, as: ChannelView.self).channel.metadata?["k"]
            switch made {
            case .integer(let number): #expect(Decimal(string: value) == Decimal(string: "\(number)"), "\(value)")
            case .number(let number): #expect(Double(value) == number, "\(value)")
            default: Issue.record("\(value) came back as \(String(describing: made))")
            }
        }
        try await server.stop()
    }
}
