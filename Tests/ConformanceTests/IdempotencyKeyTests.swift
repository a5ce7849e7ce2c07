import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// Keys of calls over both transports.
@Suite("Idempotency keys over the network") struct IdempotencyKeyTests {
    private func key(_ random: UInt64 = .random(in: 0...UInt64.max)) -> IdempotencyKey {
        IdempotencyKey(madeAt: Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)), random: random)
    }

    /// The reply to a frame.
    private func reply(to frame: String, _ socket: RawSocket) async throws -> JSONValue {
        try await socket.send(text: frame)
        while true {
            guard let text = await socket.nextText() else { throw Missed("the reply to \(frame)") }
            let value = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
            if value["reply"] != nil { return value }
        }
    }

    @Test("SB-12 the key of a call over a socket holds over HTTP too, and the repeat has no result")
    func bothTransports() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        try await socket.call(CreateChannel(channel: "general"))
        let key = key()
        let frame = #"{"call":50,"operation":"channel.hide","key":"\#(key)","with":{"channel":"general"}}"#
        #expect(try await reply(to: frame, socket)["result"] != nil)
        try await socket.call(UnhideChannel(channel: "general"))
        #expect(try await reply(to: frame, socket) == ["reply": 50, "done": true])
        let token = try await server.token("ann")
        for text in ["\(key)", "\"\(key.rawValue.uppercased())\""] {
            let answer = try await server.call(
                "channel.hide", #"{"channel":"general"}"#, token: token, headers: ["Idempotency-Key: \(text)"])
            #expect(answer.status == 204 && answer.body.isEmpty)
        }
        let reused = try await server.call(
            "channel.unhide", #"{"channel":"general"}"#, token: token, headers: ["Idempotency-Key: \(key)"])
        let problem = try reused.decoded(JSONValue.self)
        #expect([String(reused.status), reused.code, problem["field"]?.text] == ["422", "key_reused", "Idempotency-Key"])
        #expect(try await socket.call(GetChannel(channel: "general")).membership?.hiddenState == .unhidden)
        try await server.stop()
    }

    @Test("I21 ST-02 AM-45 an invalid key, and a key for a call that takes none, are refused with the field")
    func refused() async throws {
        let server = try await TestServer.shared()
        let socket = try await server.socket("key-cid")
        let calls: [(operation: String, with: String)] = [
            ("user.me", "{}"), ("message.send", #"{"channel":"a","clientId":"1","text":"x"}"#),
            // These apply to one connection: on the next one a repeat without effect would be wrong.
            ("channel.watch", #"{"channel":"a"}"#), ("channel.queryAndWatch", #"{"query":{}}"#),
            ("channel.unwatch", #"{"channel":"a"}"#),
            ("reading.start", #"{"channel":"a"}"#), ("reading.stop", #"{"channel":"a"}"#),
        ]
        for (operation, key, with) in [("user.updateMe", "1", "{}")] + calls.map({ ($0.operation, key().rawValue, $0.with) }) {
            let fields = #","with":\#(with)"#
            let reply = try await reply(to: #"{"call":7,"operation":"\#(operation)","key":"\#(key)"\#(fields)}"#, socket)
            #expect(reply["error"]?["code"]?.text == "invalid_argument" && reply["error"]?["field"]?.text == "key")
        }
    }

    @Test("the welcome names the server")
    func welcome() async throws {
        let server = try await TestServer()
        func name() async throws -> String? {
            let socket = try await RawSocket.open(port: server.port)
            try await socket.send(json: AuthenticateFrame(token: try await server.token("ann")))
            guard case .text(let text) = await socket.next() else { return nil }
            return try JSONDecoder().decode(WelcomeFrame.self, from: Data(text.utf8)).welcome.server
        }
        let first = try await name()
        #expect(first?.count == 36)
        #expect(try await name() == first)
        try await server.stop()
    }
}
