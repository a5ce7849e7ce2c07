import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// Parts of `/openapi.json` and `/asyncapi.json` that the interop test can't compare with a list of its own.
@Suite struct DescriptionTests {
    @Test("status 429 is described for exactly the operations with a rate limit per user")
    func rateLimited() throws {
        let paths = try #require(OpenAPI.document(version: "1")["paths"])
        let described = OperationTable.handled.filter { type in
            paths[type.path]?[type.method.rawValue.lowercased()]?["responses"]?["429"] != nil
        }
        #expect(described.map { $0.name } == OperationTable.handled.filter { $0.userRate != nil }.map { $0.name })
        #expect(
            described.map { $0.name }.sorted() == [
                "device.signOut", "preferences.update", "signal.send", "typing.start", "typing.stop", "user.listPresence",
            ])
    }

    @Test("status 415 is described for each operation that can be refused with it, also for one whose body has no fields")
    func mediaType() async throws {
        let paths = try #require(OpenAPI.document(version: "1")["paths"])
        let undescribed = OperationTable.handled.filter { type in
            paths[type.path]?[type.method.rawValue.lowercased()]?["responses"]?["415"] == nil
        }
        let withoutBody = OperationTable.handled.filter { $0.method == .get || $0.method == .delete }
        #expect(undescribed.map { $0.name } == withoutBody.map { $0.name })

        let server = try await TestServer.shared()
        let answer = try await server.request(
            "POST", "/v1/channels/none/join", token: try await server.token("ann"), body: "{}",
            headers: ["Content-Type: text/plain"])
        #expect(answer.status == 415)
    }

    @Test("an operation refused with 429 has the header Retry-After over HTTP")
    func tooOften() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        // Even on a slow machine, more than ten of these arrive within one second.
        let answers = try await withThrowingTaskGroup(of: TestServer.Answer.self) { group in
            for _ in 0..<60 {
                group.addTask { try await server.request("POST", "/v1/users/presence", token: token, body: #"{"users":["ann"]}"#) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let refused = answers.filter { $0.status != 200 }
        #expect(refused.contains { $0.status == 429 && $0.code == "rate_limited" && $0.headers["retry-after"] == "1" })
        try await server.stop()
    }

    @Test("the channel that channel.watch can create is described without the fields that it refuses there")
    func createOfWatch() throws {
        let watch = FieldLimits(of: try #require(OperationTable.named("channel.watch")))
        let create = try #require(OperationTable.named("channel.create")).schema.fields.map(\.name)
        let field = try #require(OperationTable.named("channel.watch")?.schema.fields.first { $0.name == "create" })
        guard case .object(let members)? = Self.object(watch.ownSchema(of: field))["properties"] else { throw Missed("properties") }
        #expect(Set(create).subtracting(members.keys) == ["channel", "idempotencyKey"])
        #expect(Set(members.keys).subtracting(create) == [])
    }

    @Test("the query of channel.queryAndWatch is described with each field of channel.query")
    func queryOfWatch() throws {
        let entry = try #require(OperationTable.named("channel.queryAndWatch"))
        let query = try #require(OperationTable.named("channel.query")).schema.fields.map(\.name)
        let field = try #require(entry.schema.fields.first { $0.name == "query" })
        guard case .object(let members)? = FieldLimits(of: entry).ownSchema(of: field)["properties"] else {
            throw Missed("properties")
        }
        #expect(Set(members.keys) == Set(query))
    }

    @Test("SB-32 a field of channel.queryAndWatch's query is described with the cases that channel.query has")
    func casesOfQueryOfWatch() throws {
        guard case .object(let members)? = try Self.schema(of: "query", in: "channel.queryAndWatch")["properties"] else {
            throw Missed("properties")
        }
        for field in try #require(OperationTable.named("channel.query")).schema.fields {
            let own = JSONValue.object(try Self.schema(of: field.name, in: "channel.query").orNull(unless: field.isRequired))
            let nested = try #require(members[field.name])
            #expect(nested["enum"] == own["enum"], "\(field.name)")
            #expect(nested["items"]?["enum"] == own["items"]?["enum"], "\(field.name)")
        }
        #expect(members["includingUsersMatch"]?["enum"] == ["all", "any", .null])
    }

    @Test("R19 a message's clientId is described with room for the server's own ids, and a call's with the sender's limit")
    func clientID() throws {
        let entry = try #require(OperationTable.named("message.send"))
        let sent = try #require(entry.schema.fields.first { $0.name == "clientId" })
        #expect(FieldLimits(of: entry).ownSchema(of: sent)["pattern"] == .string(VisibleText.identifierPattern))
        let received = try #require(try Schema.of(Message.self).fields.first { $0.name == "clientId" })
        #expect(received.schema == .string(maxLength: Limits.identifierLength))
    }

    @Test("MN-04 an entry of mentionees is described with its required type and with names that may be empty")
    func mentionees() throws {
        let entry = try #require(OperationTable.named("message.send"))
        let field = try #require(entry.schema.fields.first { $0.name == "mentionees" })
        let list = Self.object(FieldLimits(of: entry).ownSchema(of: field))
        let item = try #require(list["items"])
        #expect(item["required"] == ["type"])
        let users = try #require(item["properties"]?["users"])
        #expect(users["minItems"] == nil && users["maxItems"] == .integer(Int64(Limits.membersPerCall)))
        #expect(item["properties"]?["type"]?["enum"] == ["user", "channel"])
        #expect(users["items"]?["maxLength"] != nil)
        for operation in ["message.send", "message.sendAdmin", "message.edit"] {
            let mentionees = try Self.schema(of: "mentionees", in: operation)
            #expect(mentionees["maxItems"] == .integer(Int64(Limits.mentionees)), "\(operation)")
            #expect(mentionees["uniqueItems"] == true, "\(operation)")
        }
    }

    @Test("a call that deletes messages is described with the most it takes")
    func messagesToDelete() throws {
        for operation in ["message.deleteMany", "message.deleteForMe"] {
            let messages = try Self.schema(of: "messages", in: operation)
            #expect(messages["minItems"] == 1 && messages["uniqueItems"] == true, "\(operation)")
            #expect(messages["maxItems"] == .integer(Int64(Limits.messagesPerCall)), "\(operation)")
        }
    }

    @Test("SB-37 lists of texts are described with the length limit of their names, as are ids that are names in an object")
    func propertyNames() throws {
        let lists = [
            ("message.send", "metaArrays"), ("message.updateMetaArrays", "add"), ("message.updateMetaArrays", "removeValues"),
        ]
        for (operation, field) in lists {
            let names = try Self.schema(of: field, in: operation)["propertyNames"]
            #expect(names == ["maxLength": .integer(Int64(Limits.metaArrayNameLength))], "\(operation) \(field)")
        }
        let channels = try Self.schema(of: "channels", in: "stream.resume")["propertyNames"]
        #expect(channels?["maxLength"] == .integer(Int64(Limits.identifierLength)) && channels?["pattern"] != nil)
    }

    @Test("the metadata of a signal is described, and refused, with its own limit of bytes, lower than that of a message")
    func metadata() throws {
        for (operation, limit) in [("signal.send", Limits.signalSizeBytes), ("message.send", Limits.metadataSizeBytes)] {
            let description = try Self.schema(of: "metadata", in: operation)["description"]
            let expected = "At most \(limit) bytes of UTF-8 as JSON, \(Limits.metadataDepth) levels of nesting."
            #expect(description == .string(expected), "\(operation)")
        }
        let metadata: JSONValue = ["a": .string(String(repeating: "a", count: Limits.metadataSizeBytes + 1))]
        let refusal = #expect(throws: RoostError.self) {
            try SendSignal(channel: "general", type: "wave", metadata: metadata).validate()
        }
        #expect(refusal?.limit == Int64(Limits.signalSizeBytes))
    }

    /// The schema of an operation's field, with its limits.
    private static func schema(of name: String, in operation: String) throws -> [String: JSONValue] {
        let entry = try #require(OperationTable.named(operation))
        return FieldLimits(of: entry).ownSchema(of: try #require(entry.schema.fields.first { $0.name == name }))
    }

    /// The schema of an object or of a nullable object.
    private static func object(_ schema: [String: JSONValue]) -> [String: JSONValue] {
        guard case .array(let forms)? = schema["anyOf"], case .object(let first)? = forms.first else { return schema }
        return first
    }
}
