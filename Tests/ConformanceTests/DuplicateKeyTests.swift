import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// Duplicate keys in an object, one of whose values would be lost: nothing is accepted and then dropped.
@Suite struct DuplicateKeyTests {
    struct DuplicateKey: Sendable, CustomTestStringConvertible {
        let fields: String
        let field: String
        var testDescription: String { fields.count > 80 ? "\(fields.prefix(80))…" : fields }
    }

    private static let many = (1...30).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
    static let twice: [DuplicateKey] = [
        DuplicateKey(fields: #"{"type":"group","displayName":"a","displayName":"b"}"#, field: "displayName"),
        DuplicateKey(fields: #"{"type":"group","displayName":"a","displayN\u0061me":"b"}"#, field: "displayName"),
        DuplicateKey(fields: #"{"type":"group","metadata":{"k":1,"l":{},"k":1}}"#, field: "metadata.k"),
        DuplicateKey(fields: #"{"type":"group","metadata":{"a":[1,{"b":{"c":1,"d":[],"c":2}}]}}"#, field: "metadata.a.b.c"),
        // The same letter as one scalar and as two: a dictionary holds one of them.
        DuplicateKey(fields: "{\"type\":\"group\",\"metadata\":{\"caf\u{e9}\":1,\"cafe\u{301}\":2}}", field: "metadata.caf\u{e9}"),
        DuplicateKey(fields: #"{"type":"group","metadata":{\#(many),"k7":0}}"#, field: "metadata.k7"),
        DuplicateKey(fields: #"{"type":"group","policy":{"send":"nobody","send":"everyone"}}"#, field: "policy.send"),
    ]

    @Test("AM-35 R10 I21 an object that has a key twice is refused, and the key named", arguments: twice)
    func refused(_ bad: DuplicateKey) async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        try await socket.send(text: #"{"call":1,"operation":"channel.create","with":\#(bad.fields)}"#)
        let error = await #expect(throws: RoostError.self) { _ = try await socket.reply(to: 1, as: JSONValue.self) }
        #expect([error?.code.rawValue, error?.field] == ["invalid_argument", bad.field])

        let answer = try await server.request("POST", "/v1/channels", token: try await server.token("ann"), body: bad.fields)
        let problem = try answer.decoded(JSONValue.self)
        #expect([String(answer.status), answer.code, problem["field"]?.text] == ["400", "invalid_argument", bad.field])
        #expect(try await socket.call(QueryChannels()).items.isEmpty)
        try await server.stop()
    }

    @Test("I21 a frame whose call can't be told gets no reply, and closes nothing")
    func frames() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        try await socket.send(text: #"{"call":1,"operation":"user.me","call":2}"#)
        guard case .text(let text) = await socket.next() else { throw Missed("an error frame") }
        #expect(text.hasPrefix(#"{"error":{"code":"invalid_argument","message":"call is given more than once.""#))
        #expect(try await socket.call(GetMe()).userId == "ann")
        try await server.stop()
    }

    @Test("AM-35 R10 the same key in different objects, and keys that only look alike, are kept")
    func distinct() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        let metadata = #"{"a":{"k":1},"b":[{"k":1},{"k":2}],"K":1,"k":"\"k\":1,","k ":0,"":{"":{}},"\"":1,"\\":2}"#
        try await socket.send(text: #"{"call":1,"operation":"channel.create","with":{"type":"group","metadata":\#(metadata)}}"#)
        let made = try await socket.reply(to: 1, as: ChannelView.self)
        #expect(made.channel.metadata == (try JSONDecoder().decode(JSONValue.self, from: Data(metadata.utf8))))
        try await server.stop()
    }
}
