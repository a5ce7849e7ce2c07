import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Bad input to the operations on channels, members, invitations, types and roles: each is refused with its code, field and limit, alike over
/// HTTP and over a socket, and changes nothing.
@Suite struct BadChannelCallTests {
    struct BadCall: Sendable, CustomStringConvertible {
        let name: String
        let operation: String
        /// The operation's fields as JSON text.
        let fields: String
        let refusal: Refusal
        var isAdmins = false
        var description: String { "\(operation): \(name)" }

        init(_ name: String, _ operation: String, _ fields: String, _ code: RoostError.Code, _ field: String?, limit: Int64? = nil)
        {
            self.name = name
            self.operation = operation
            self.fields = fields
            refusal = Refusal(code: code.rawValue, field: field, limit: limit)
        }

        var byAdmin: BadCall {
            var copy = self
            copy.isAdmins = true
            return copy
        }
    }

    struct Refusal: Hashable, Sendable, Decodable {
        let code: String
        let field: String?
        let limit: Int64?
    }

    // MARK: Text of JSON

    private static func letters(_ count: Int) -> String { String(repeating: "a", count: count) }
    private static func list(_ count: Int) -> String { "[" + (1...count).map { "\"x\($0)\"" }.joined(separator: ",") + "]" }
    private static func creating(_ fields: String) -> String { #"{"type":"group",\#(fields)}"# }
    private static func updating(_ fields: String) -> String { #"{"channel":"general",\#(fields)}"# }
    private static func nested(_ levels: Int) -> String {
        String(repeating: #"{"a":"#, count: levels - 1) + "{}" + String(repeating: "}", count: levels - 1)
    }

    // MARK: Cases

    static let identities: [BadCall] = [
        BadCall("a control character", "channel.create", creating(#""channel":"a\u0001b""#), .invalidArgument, "channel"),
        BadCall("U+0000", "channel.create", creating(#""channel":"a\u0000b""#), .invalidArgument, "channel"),
        BadCall("a line separator", "channel.create", creating(#""channel":"a\u2028b""#), .invalidArgument, "channel"),
        BadCall("a slash", "channel.create", creating(#""channel":"a/b""#), .invalidArgument, "channel"),
        BadCall("a comma", "channel.create", creating(#""channel":"a,b""#), .invalidArgument, "channel"),
        BadCall("two dots", "channel.create", creating(#""channel":"..""#), .invalidArgument, "channel"),
        BadCall("not in form C", "channel.create", creating(#""channel":"cafe\u0301""#), .invalidArgument, "channel"),
        BadCall(
            "129 characters", "channel.create", creating(#""channel":"\#(letters(129))""#), .limitExceeded, "channel", limit: 128),
        BadCall("a taken id", "channel.create", creating(#""channel":"general""#), .alreadyExists, "channel"),
        BadCall(
            "another name of a taken id", "channel.create", #"{"type":"community","channel":"community:general"}"#, .alreadyExists,
            "channel"),
        BadCall("an invalid user", "channel.create", creating(#""users":["a/b"]"#), .invalidArgument, "users"),
        BadCall("an unknown user", "channel.create", creating(#""users":["nobody"]"#), .notFound, "users"),
        BadCall("an id with a slash in a path", "channel.get", #"{"channel":"a/b"}"#, .invalidArgument, "channel"),
        BadCall("a user with a control character", "member.get", updating(#""user":"a\u0001b""#), .invalidArgument, "user"),
    ]

    static let attributes: [BadCall] = [
        BadCall("an unknown type", "channel.create", #"{"type":"secret"}"#, .invalidArgument, "type"),
        BadCall("a type in capitals", "channel.create", #"{"type":"Community"}"#, .invalidArgument, "type"),
        BadCall("a type nobody creates", "channel.create", #"{"type":"standard"}"#, .kindForbids, nil),
        BadCall("metadata that is an array", "channel.create", creating(#""metadata":[]"#), .invalidArgument, "metadata"),
        BadCall(
            "metadata of 100,001 bytes", "channel.create", creating(#""metadata":{"k":"\#(letters(99_993))"}"#), .limitExceeded,
            "metadata", limit: 100_000),
        BadCall(
            "metadata of a megabyte", "channel.create", creating(#""metadata":{"k":"\#(letters(1_000_000))"}"#), .limitExceeded,
            "metadata", limit: 100_000),
        BadCall(
            "metadata of 33 levels", "channel.update", updating(#""metadata":\#(nested(33))"#), .limitExceeded, "metadata",
            limit: 32
        ),
        BadCall(
            "metadata of a megabyte in an update", "channel.update", updating(#""metadata":{"k":"\#(letters(1_000_000))"}"#),
            .limitExceeded, "metadata", limit: 100_000),
        BadCall("21 tags", "channel.create", creating(#""tags":\#(list(21))"#), .limitExceeded, "tags", limit: 20),
        BadCall("an empty tag", "channel.update", updating(#""tags":[""]"#), .invalidArgument, "tags"),
        BadCall(
            "a tag of 65 characters", "channel.update", updating(#""tags":["\#(letters(65))"]"#), .limitExceeded, "tags", limit: 64
        ),
        BadCall("a tag that is a number", "channel.update", updating(#""tags":["x",7]"#), .invalidArgument, "tags[1]"),
        BadCall(
            "a name of 129 characters", "channel.update", updating(#""displayName":"\#(letters(129))""#), .limitExceeded,
            "displayName", limit: 128),
        BadCall(
            "a picture that is a script", "channel.update", updating(#""coverUrl":"javascript:alert(1)""#), .invalidArgument,
            "coverUrl"),
        BadCall(
            "data of 20,001 characters", "channel.update", updating(#""data":"\#(letters(20_001))""#), .limitExceeded, "data",
            limit: 20_000),
        BadCall("101 users", "channel.create", creating(#""users":\#(list(101))"#), .limitExceeded, "users", limit: 100),
        BadCall(
            "101 operators", "channel.create", creating(#""operators":\#(list(101))"#), .limitExceeded, "operators", limit: 100),
        BadCall(
            "isPublic and a policy", "channel.create", creating(#""isPublic":true,"policy":{"join":"nobody"}"#), .invalidArgument,
            "isPublic"),
        BadCall(
            "a policy that is no object", "channel.create", creating(#""policy":"open""#), .invalidArgument, "policy"),
        BadCall(
            "an unknown field of the policy", "channel.create", creating(#""policy":{"sned":"nobody"}"#), .invalidArgument,
            "policy.sned"),
        BadCall(
            "an unknown audience", "channel.create", creating(#""policy":{"send":"sometimes"}"#), .invalidArgument, "policy.send"),
        BadCall(
            "room for nobody", "channel.create", creating(#""policy":{"maxMembers":0}"#), .invalidArgument, "policy.maxMembers"),
        BadCall(
            "room for a half", "channel.create", creating(#""policy":{"maxMembers":1.5}"#), .invalidArgument, "policy.maxMembers"),
        BadCall(
            "room for 300,001", "channel.create", creating(#""policy":{"maxMembers":300001}"#), .limitExceeded,
            "policy.maxMembers", limit: 300_000),
        BadCall("an empty key", "channel.create", creating(#""idempotencyKey":"""#), .invalidArgument, "idempotencyKey"),
        BadCall(
            "a key of 129 characters", "channel.create", creating(#""idempotencyKey":"\#(letters(129))""#), .limitExceeded,
            "idempotencyKey", limit: 128),
        BadCall(
            "a version without metadata", "channel.update", updating(#""ifMetadataVersion":0"#), .invalidArgument,
            "ifMetadataVersion"),
        BadCall(
            "another version", "channel.update", updating(#""metadata":{},"ifMetadataVersion":7"#), .conflictVersion,
            "ifMetadataVersion", limit: 0),
    ]

    /// Attributes that can't change aren't fields of an update.
    static let unchangeable: [BadCall] = [
        BadCall("another type", "channel.update", updating(#""type":"live""#), .invalidArgument, "type"),
        BadCall("ephemeral from now on", "channel.update", updating(#""isEphemeral":true"#), .invalidArgument, "isEphemeral"),
        BadCall("another creator", "channel.update", updating(#""createdBy":"ann""#), .invalidArgument, "createdBy"),
    ]

    static let states: [BadCall] = [
        BadCall("0 seconds", "channel.silence", updating(#""seconds":0"#), .invalidArgument, "seconds"),
        BadCall("-2 seconds", "channel.silence", updating(#""seconds":-2"#), .invalidArgument, "seconds"),
        BadCall(
            "a hundred years and a second", "channel.silence", updating(#""seconds":3155760001"#), .limitExceeded, "seconds",
            limit: 3_155_760_000),
        BadCall("more than 64 bits", "channel.silence", updating(#""seconds":99999999999999999999"#), .invalidArgument, "seconds"),
        BadCall("half a second", "channel.silence", updating(#""seconds":0.5"#), .invalidArgument, "seconds"),
        BadCall("0 messages", "channel.setRateLimit", updating(#""messages":0,"windowSeconds":1"#), .invalidArgument, "messages"),
        BadCall(
            "1,001 messages", "channel.setRateLimit", updating(#""messages":1001,"windowSeconds":1"#), .limitExceeded, "messages",
            limit: 1000),
        BadCall(
            "no window", "channel.setRateLimit", updating(#""messages":1,"windowSeconds":0"#), .invalidArgument, "windowSeconds"),
        BadCall(
            "3,601 seconds", "channel.setRateLimit", updating(#""messages":1,"windowSeconds":3601"#), .limitExceeded,
            "windowSeconds", limit: 3600),
        BadCall("a word for a flag", "channel.hide", updating(#""allowAutoUnhide":"yes""#), .invalidArgument, "allowAutoUnhide"),
    ]

    static let queries: [BadCall] = [
        BadCall("an unknown filter", "channel.query", #"{"typ":["group"]}"#, .invalidArgument, "typ"),
        BadCall("21 types", "channel.query", #"{"types":\#(list(21))}"#, .limitExceeded, "types", limit: 20),
        BadCall("no types", "channel.query", #"{"types":[]}"#, .invalidArgument, "types"),
        BadCall("21 tags", "channel.query", #"{"includingTags":\#(list(21))}"#, .limitExceeded, "includingTags", limit: 20),
        BadCall("101 ids", "channel.query", #"{"ids":\#(list(101))}"#, .limitExceeded, "ids", limit: 100),
        BadCall("101 users", "channel.query", #"{"exactUsers":\#(list(101))}"#, .limitExceeded, "exactUsers", limit: 100),
        BadCall("an invalid id", "channel.query", #"{"createdBy":"a/b"}"#, .invalidArgument, "createdBy"),
        BadCall("an empty name", "channel.query", #"{"nameContains":""}"#, .invalidArgument, "nameContains"),
        BadCall("an unknown sort", "channel.query", #"{"sort":"newest"}"#, .invalidArgument, "sort"),
        BadCall("an unknown state", "channel.query", #"{"hidden":"maybe"}"#, .invalidArgument, "hidden"),
        BadCall("hidden ones of others", "channel.query", #"{"membership":"all","hidden":"all"}"#, .invalidArgument, "hidden"),
        BadCall(
            "a match without users", "channel.query", #"{"includingUsersMatch":"any"}"#, .invalidArgument, "includingUsersMatch"),
        BadCall("a page of 0", "channel.query", #"{"limit":0}"#, .invalidArgument, "limit"),
        BadCall("a page of 101", "channel.query", #"{"limit":101}"#, .limitExceeded, "limit", limit: 100),
        BadCall("a page of 1.5", "channel.query", #"{"limit":1.5}"#, .invalidArgument, "limit"),
        BadCall("a forged cursor", "channel.query", #"{"cursor":"forged"}"#, .invalidArgument, "cursor"),
        BadCall(
            "a cursor over its limit", "channel.query", #"{"cursor":"\#(letters(Limits.cursorLength + 1))"}"#, .limitExceeded,
            "cursor",
            limit: Int64(Limits.cursorLength)),
        BadCall("an unknown state", "member.list", updating(#""states":["asleep"]"#), .invalidArgument, "states[0]"),
        BadCall("11 roles", "member.list", updating(#""roles":\#(list(11))"#), .limitExceeded, "roles", limit: 10),
        BadCall("an invalid role", "member.list", updating(#""roles":["Boss"]"#), .invalidArgument, "roles"),
        BadCall("a page of 101", "member.list", updating(#""limit":101"#), .limitExceeded, "limit", limit: 100),
        BadCall("a forged cursor", "member.list", updating(#""cursor":"forged""#), .invalidArgument, "cursor"),
        BadCall("no text", "member.search", #"{"channel":"general"}"#, .invalidArgument, "text"),
        BadCall("an empty text", "member.search", updating(#""text":"""#), .invalidArgument, "text"),
        BadCall("129 characters", "member.search", updating(#""text":"\#(letters(129))""#), .limitExceeded, "text", limit: 128),
        BadCall("a forged cursor", "member.search", updating(#""text":"x","cursor":"forged""#), .invalidArgument, "cursor"),
        BadCall("a forged cursor", "invitation.list", updating(#""cursor":"forged""#), .invalidArgument, "cursor"),
        BadCall("a forged cursor", "invitation.mine", #"{"cursor":"forged"}"#, .invalidArgument, "cursor"),
        BadCall("a page of 0", "invitation.mine", #"{"limit":0}"#, .invalidArgument, "limit"),
        BadCall("an unknown permission", "permission.explain", updating(#""permission":"fly""#), .invalidArgument, "permission"),
    ]

    static let invalidChannels: [BadCall] = [
        BadCall("a slash", "member.list", #"{"channel":"a/b"}"#, .invalidArgument, "channel"),
        BadCall("a slash", "member.search", #"{"channel":"a/b","text":"x"}"#, .invalidArgument, "channel"),
        BadCall("a slash", "member.add", #"{"channel":"a/b","users":["bob"]}"#, .invalidArgument, "channel"),
    ]

    static let people: [BadCall] = [
        BadCall("101 users", "member.add", updating(#""users":\#(list(101))"#), .limitExceeded, "users", limit: 100),
        BadCall("nobody", "member.add", updating(#""users":[]"#), .invalidArgument, "users"),
        BadCall("a user twice", "member.add", updating(#""users":["ann","ann"]"#), .invalidArgument, "users"),
        BadCall("a user that is a number", "member.remove", updating(#""users":[7]"#), .invalidArgument, "users[0]"),
        BadCall("101 users", "member.remove", updating(#""users":\#(list(101))"#), .limitExceeded, "users", limit: 100),
        BadCall("an unknown role", "member.setRole", updating(#""users":["ann"],"role":"boss""#), .notFound, "role"),
        BadCall("an invalid role", "member.setRole", updating(#""users":["ann"],"role":"Boss""#), .invalidArgument, "role"),
        BadCall(
            "two owners", "member.setRole", updating(#""users":["ann","bob"],"role":"owner""#), .limitExceeded, "users", limit: 1),
        BadCall("101 users", "invitation.send", updating(#""users":\#(list(101))"#), .limitExceeded, "users", limit: 100),
        BadCall(
            "a welcome of 501 characters", "invitation.send", updating(#""users":["bob"],"welcome":"\#(letters(501))""#),
            .limitExceeded, "welcome", limit: 500),
        BadCall("no invitation to accept", "invitation.decline", #"{"channel":"general"}"#, .notInvited, nil),
    ]

    static let definitions: [BadCall] = [
        BadCall("a preset's name", "type.put", #"{"type":"community"}"#, .immutableField, "type").byAdmin,
        BadCall("an unknown preset", "type.put", #"{"type":"own","basedOn":"nothing"}"#, .notFound, "basedOn").byAdmin,
        BadCall("65 characters", "type.put", #"{"type":"\#(letters(65))"}"#, .limitExceeded, "type", limit: 64).byAdmin,
        BadCall("an unknown audience", "type.put", #"{"type":"own","policy":{"join":7}}"#, .invalidArgument, "policy.join").byAdmin,
        BadCall("a preset", "type.delete", #"{"type":"group"}"#, .immutableField, "type").byAdmin,
        BadCall("a caller who isn't an admin", "type.put", #"{"type":"own"}"#, .notPermitted, nil),
        BadCall("a role that all have", "role.put", #"{"role":"owner","rank":1,"permissions":[]}"#, .immutableField, "role")
            .byAdmin,
        BadCall("a rank of 100", "role.put", #"{"role":"own","rank":100,"permissions":[]}"#, .invalidArgument, "rank").byAdmin,
        BadCall(
            "what no role grants", "role.put", #"{"role":"own","rank":1,"permissions":["member.join"]}"#, .invalidArgument,
            "permissions"
        ).byAdmin,
        BadCall(
            "an unknown permission", "role.put", #"{"role":"own","rank":1,"permissions":["fly"]}"#, .invalidArgument,
            "permissions[0]"
        ).byAdmin,
    ]

    @Test("§8.7 AM-13 AM-23 SB-09 R02 invalid and taken ids are refused")
    func identity() async throws { try await check(Self.identities) }

    @Test("§8.7 AM-35 AM-36 SB-09 SB-11 SB-12 R01 R10 attributes outside their limits are refused")
    func attribute() async throws { try await check(Self.attributes) }

    @Test("§8.7 R11 SB-04 an update refuses attributes of a channel that can't change, with the field")
    func unchanging() async throws { try await check(Self.unchangeable) }

    @Test("§8.7 AM-38 an operation on the members of a channel with an invalid id is refused with the id's field")
    func invalidChannel() async throws { try await check(Self.invalidChannels) }

    @Test("§8.7 AM-07 AM-08 SB-26 R27 R28 times, rate limits and flags outside their limits are refused")
    func state() async throws { try await check(Self.states) }

    @Test("§8.7 AM-32 AM-34 AM-39 SB-31 MN-14 R09 R15 unknown filters and forged cursors are refused")
    func query() async throws { try await check(Self.queries) }

    @Test("§8.7 AM-40 SB-13 EM-24 R13 R14 lists of people outside their limits are refused")
    func person() async throws { try await check(Self.people) }

    @Test("§8.7 R03 R33 types and roles that can't be defined are refused")
    func definition() async throws { try await check(Self.definitions) }

    @Test("R09 a cursor of another query is refused")
    func otherCursor() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        for name in ["one", "two"] { try await ann.call(CreateChannel(channel: ChannelID(name))) }
        let cursor = try #require(try await ann.call(QueryChannels(sort: .created, limit: 1)).nextCursor)
        let error = await #expect(throws: RoostError.self) {
            try await ann.call(QueryChannels(sort: .name, limit: 1, cursor: cursor))
        }
        #expect([error?.code.rawValue, error?.field] == ["invalid_argument", "cursor"])
        try await server.stop()
    }

    // MARK: Checking

    /// Tries all of them on one server, and checks that each leaves it unchanged.
    private func check(_ cases: [BadCall]) async throws {
        let server = try await TestServer()
        let (user, admin) = (try await server.socket("owner"), try await server.socket("owner", role: .admin))
        for name in ["ann", "bob"] { _ = try await server.socket(UserID(name)) }
        try await user.call(CreateChannel(channel: "general", users: ["ann"]))
        let before = try await user.call(Resume(after: 0, channels: [:]))
        for (number, bad) in cases.enumerated() {
            let owner = bad.isAdmins ? admin : user
            let call = 1000 + number
            try await owner.send(text: #"{"call":\#(call),"operation":"\#(bad.operation)","with":\#(bad.fields)}"#)
            let error = await #expect(throws: RoostError.self, "\(bad)") {
                _ = try await owner.reply(to: Int64(call), as: JSONValue.self)
            }
            #expect(error.map { Refusal(code: $0.code.rawValue, field: $0.field, limit: $0.limit) } == bad.refusal, "\(bad)")

            let token = try await server.token("owner", role: bad.isAdmins ? .admin : .user)
            let answer = try await server.call(bad.operation, bad.fields, token: token)
            #expect((400..<500).contains(answer.status) && answer.headers["content-type"] == "application/problem+json", "\(bad)")
            #expect(try answer.decoded(Refusal.self) == bad.refusal, "\(bad)")
            #expect(try await user.call(Resume(after: 0, channels: [:])) == before, "\(bad)")
        }
        try await server.stop()
    }
}

extension TestServer {
    /// Calls an operation over HTTP by its name, with its fields where the method has them.
    func call(_ operation: String, _ fields: String, token: String, headers: [String] = []) async throws -> Answer {
        let type = try #require(OperationTable.named(operation)).type
        guard case .object(var values) = try JSONDecoder().decode(JSONValue.self, from: Data(fields.utf8)) else {
            throw Missed("an object")
        }
        var path = type.path
        for (name, value) in values where path.contains("{\(name)}") {
            path = path.replacing("{\(name)}", with: Self.encoded(value))
            values[name] = nil
        }
        guard type.method == .get || type.method == .delete else {
            let body = String(decoding: try JSONWriter.bytes(of: JSONValue.object(values)), as: UTF8.self)
            return try await request(type.method.rawValue, path, token: token, body: body, headers: headers)
        }
        let query = values.flatMap { name, value in
            guard case .array(let elements) = value else { return ["\(name)=\(Self.encoded(value))"] }
            return elements.isEmpty ? ["\(name)="] : elements.map { "\(name)=\(Self.encoded($0))" }
        }
        if !query.isEmpty { path += "?" + query.joined(separator: "&") }
        return try await request(type.method.rawValue, path, token: token, headers: headers)
    }

    private static func encoded(_ value: JSONValue) -> String {
        let text = value.text ?? String(decoding: (try? JSONWriter.bytes(of: value)) ?? [], as: UTF8.self)
        return text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? text
    }
}
