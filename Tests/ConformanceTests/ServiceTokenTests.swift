import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// An app's own backend: a service's token over plain HTTP, in its own name and in a user's.
@Suite struct ServiceTokenTests {
    @Test("SB-12 R41 a backend creates a channel, invites, accepts in the user's name and reads as an admin")
    func backend() async throws {
        let server = try await TestServer()
        let service = try await server.token("backend", role: .service)
        let admin = try await server.token("root", role: .admin)
        for user in ["ann", "bob"] { _ = try await server.request("PUT", "/v1/users/\(user)", token: admin, body: "{}") }
        let asBob = ["Roost-Act-As: bob"]
        let preferences = try await server.call(
            "preferences.update", #"{"autoAcceptInvitations":false}"#, token: service, headers: asBob)
        #expect(try preferences.decoded(Preferences.self).autoAcceptInvitations == false)

        let made = try await server.call("channel.create", #"{"channel":"room","type":"group","users":["ann"]}"#, token: service)
        let view = try made.decoded(ChannelView.self)
        #expect(view.channel.counters.memberCount == 1 && view.membership == nil)

        let invited = try await server.call("invitation.send", #"{"channel":"room","users":["bob"]}"#, token: service)
        #expect(try invited.decoded(MemberResults.self).results == [MemberResult(userId: "bob", outcome: .invited)])
        let accepted = try await server.call("invitation.accept", #"{"channel":"room"}"#, token: service, headers: asBob)
        #expect(try accepted.decoded(ChannelView.self).membership?.state == .member)

        // On behalf of a user the user's rights apply, not the backend's.
        let deleting = try await server.call("channel.delete", #"{"channel":"room"}"#, token: service, headers: asBob)
        #expect([String(deleting.status), deleting.code] == ["403", "not_permitted"])
        let listed = try await server.call("channel.query", "{}", token: service, headers: asBob)
        #expect(try listed.decoded(Page<ChannelView>.self).items.map(\.channel.channelId) == ["room"])
        try await server.stop()
    }

    @Test("SB-12 a user in whose name a backend acts exists from then on, whatever characters the id has")
    func admitted() async throws {
        let server = try await TestServer()
        let service = try await server.token("backend", role: .service)
        for (header, user) in [("zoe", "zoe"), ("%E6%97%A5%E6%9C%AC", "日本"), ("50%25", "50%"), ("a%20b", "a b")] {
            let answer = try await server.request("GET", "/v1/me", token: service, headers: ["Roost-Act-As: \(header)"])
            #expect(try answer.decoded(User.self).userId == UserID(user))
        }
        try await server.stop()
    }

    @Test("SB-12 only a service acts in another's name, and only in a valid one", arguments: AppRole.allCases)
    func actingAs(_ role: AppRole) async throws {
        let server = try await TestServer()
        let token = try await server.token("someone", role: role)
        func ask(_ headers: String...) async throws -> [String?] {
            let answer = try await server.request("GET", "/v1/me", token: token, headers: headers)
            return [String(answer.status), answer.code, try answer.decoded(JSONValue.self)["field"]?.text]
        }
        guard role == .service else {
            #expect(try await ask("Roost-Act-As: ann") == ["403", "not_permitted", "Roost-Act-As"])
            return try await server.stop()
        }
        #expect(try await ask("Roost-Act-As: ann") == ["200", nil, nil])
        for bad in ["a%2Fb", "a,b", "a%00b", "cafe%CC%81", "50%", "", ".."] {
            #expect(try await ask("Roost-Act-As: \(bad)") == ["400", "invalid_argument", "Roost-Act-As"])
        }
        let long = String(repeating: "a", count: 129)
        #expect(try await ask("Roost-Act-As: \(long)") == ["413", "limit_exceeded", "Roost-Act-As"])
        for other in ["bob", "ann"] {
            #expect(try await ask("Roost-Act-As: ann", "Roost-Act-As: \(other)") == ["400", "invalid_argument", "Roost-Act-As"])
        }
        try await server.stop()
    }

    @Test(
        "SB-12 I21 an operation's header is refused by its name on a request for a socket",
        arguments: ["Roost-Act-As: ann", "Idempotency-Key: 0192f3a0-5c1e-7d3b-9a4f-6e2b8c0d1e2f", #"If-Match: "7""#])
    func openingSocket(_ header: String) async throws {
        let server = try await TestServer()
        let token = try await server.token("backend", role: .service)
        let upgrade = [
            "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ]
        let answer = try await server.request("GET", "/v1/socket", token: token, headers: upgrade + [header])
        let found = [String(answer.status), answer.code, try answer.decoded(JSONValue.self)["field"]?.text]
        #expect(found == ["400", "invalid_argument", String(header.prefix { $0 != ":" })])
        try await server.stop()
    }

    @Test("SB-12 R41 the header Idempotency-Key works like the field, quoted or bare")
    func idempotencyKey() async throws {
        let server = try await TestServer()
        let token = try await server.token("backend", role: .service)
        func create(_ fields: String, _ headers: String...) async throws -> TestServer.Answer {
            try await server.call("channel.create", fields, token: token, headers: headers)
        }
        let first = try await create(#"{"type":"group"}"#, #"Idempotency-Key: "order \"7\"""#)
        let again = [
            try await create(#"{"type":"group"}"#, #"Idempotency-Key: "order \"7\"""#),
            try await create(#"{"type":"group","idempotencyKey":"order \"7\""}"#),
            try await create(#"{"type":"group","idempotencyKey":"order \"7\""}"#, #"Idempotency-Key: "order \"7\"""#),
        ]
        let id = try first.decoded(ChannelView.self).channel.channelId
        #expect(try again.map { try $0.decoded(ChannelView.self).channel.channelId } == [id, id, id])
        #expect(try await create(#"{"type":"group"}"#, "Idempotency-Key: bare").decoded(ChannelView.self).channel.channelId != id)

        let reused = try await create(#"{"type":"community"}"#, "Idempotency-Key: bare")
        #expect([String(reused.status), reused.code] == ["422", "key_reused"])
        for headers in [
            [#"Idempotency-Key: "one"#], [#"Idempotency-Key: "one", "two""#], [#"Idempotency-Key: "a\b""#], ["Idempotency-Key:"],
            ["Idempotency-Key: one", "Idempotency-Key: two"], ["Idempotency-Key: one", "Idempotency-Key: one"],
        ] {
            let refused = try await server.call("channel.create", #"{"type":"group"}"#, token: token, headers: headers)
            #expect([String(refused.status), refused.code] == ["400", "invalid_argument"])
        }
        let two = try await create(#"{"type":"group","idempotencyKey":"one"}"#, "Idempotency-Key: two")
        #expect([two.code, try two.decoded(JSONValue.self)["field"]?.text] == ["invalid_argument", "Idempotency-Key"])
        try await server.stop()
    }

    @Test("SB-12 I21 a header that an operation doesn't take is refused, not ignored")
    func refusedHeaders() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        _ = try await server.call("channel.create", #"{"channel":"general","type":"community"}"#, token: token)
        for (operation, fields) in [
            ("message.send", #"{"channel":"general","clientId":"1","text":"x"}"#), ("channel.get", #"{"channel":"general"}"#),
            ("member.leave", #"{"channel":"general"}"#), ("user.updateMe", #"{"displayName":"Ann"}"#),
        ] {
            let takesKey = operation == "member.leave" || operation == "user.updateMe"
            for header in takesKey ? ["If-Match"] : ["Idempotency-Key", "If-Match"] {
                let answer = try await server.call(operation, fields, token: token, headers: ["\(header): \"1\""])
                let problem = try answer.decoded(JSONValue.self)
                #expect([answer.code, problem["field"]?.text] == ["invalid_argument", header])
                #expect(problem["detail"]?.text?.contains(operation) == true)
            }
        }
        let channel = try await server.call("channel.get", #"{"channel":"general"}"#, token: token).decoded(ChannelView.self)
        #expect(channel.channel.counters.memberCount == 1 && channel.channel.counters.messageCount == 0)
        try await server.stop()
    }

    @Test("AM-36 R10 with If-Match, metadata replaces only the named version")
    func ifMatch() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        _ = try await server.call("channel.create", #"{"channel":"general","type":"community","metadata":{"n":0}}"#, token: token)
        func update(_ number: Int, _ header: String) async throws -> TestServer.Answer {
            try await server.call(
                "channel.update", #"{"channel":"general","metadata":{"n":\#(number)}}"#, token: token,
                headers: ["If-Match: \(header)"])
        }
        let first = try await update(1, #""1""#)
        #expect(try first.decoded(Channel.self).metadataVersion == 2)
        let late = try await update(2, #""1""#)
        #expect([String(late.status), late.code] == ["412", "conflict_version"])
        for bad in ["*", "1", #"W/"1""#, #""1", "2""#, #""x""#, ""] {
            let refused = try await update(3, bad)
            #expect([refused.code, try refused.decoded(JSONValue.self)["field"]?.text] == ["invalid_argument", "If-Match"])
        }
        let now = try await server.call("channel.get", #"{"channel":"general"}"#, token: token)
        #expect(try now.decoded(ChannelView.self).channel.metadata == ["n": 1])
        #expect(now.headers["etag"] == nil)
        try await server.stop()
    }

    @Test("AM-34 R09 values of a list in a query are separated by commas, and a comma in a value is percent-encoded")
    func commas() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        for (id, tag) in [("one", "a"), ("two", "b"), ("three", "a,b")] {
            let fields = #"{"channel":"\#(id)","type":"group","tags":["\#(tag)"]}"#
            _ = try await server.call("channel.create", fields, token: token)
        }
        func found(_ query: String) async throws -> [ChannelID] {
            let answer = try await server.request("GET", "/v1/channels?" + query, token: token)
            return try answer.decoded(Page<ChannelView>.self).items.map(\.channel.channelId).sorted()
        }
        #expect(try await found("includingTags=a,b") == ["one", "two"])
        #expect(try await found("includingTags=a&includingTags=b") == ["one", "two"])
        #expect(try await found("includingTags=a%2Cb") == ["three"])
        try await server.stop()
    }
}
