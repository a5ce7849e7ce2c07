import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// An operator's settings: options of the whole app, and the operator's own channel types and roles.
@Suite struct OptionTests {
    @Test("SB-14 D-11 with the history option off, a new member sees only later messages")
    func history() async throws {
        let options = AppOptions(showsHistoryToNewMembers: false)
        let server = try await TestServer(options: options)
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        try await ann.call(CreateChannel(channel: "general"))
        try await ann.call(SendMessage(channel: "general", clientId: "1", text: "before"))
        try await bob.call(JoinChannel(channel: "general"))
        let after = try await ann.call(SendMessage(channel: "general", clientId: "2", text: "after"))
        #expect(try await bob.call(ListMessages(channel: "general")).messages == [after])
        #expect(try await bob.call(GetConfiguration()).options == options)
        try await server.stop()
    }

    @Test("§8.7 X-20 the option for channels of one user holds: at it, and one over")
    func channelLimit() async throws {
        let server = try await TestServer(options: AppOptions(channelsPerUser: 2))
        let ann = try await server.socket("ann")
        for id in ["one", "two"] { try await ann.call(CreateChannel(channel: ChannelID(id))) }
        let error = await #expect(throws: RoostError.self) { try await ann.call(CreateChannel(channel: "three")) }
        #expect([error?.code.rawValue, error?.limit.map(String.init)] == ["channel_limit", "2"])
        try await server.stop()
    }

    @Test("§8.7 X-20 a server doesn't start with an option outside its limits", arguments: [0, -1, 20_001])
    func invalid(_ count: Int) async throws {
        let error = await #expect(throws: RoostError.self) {
            _ = try await TestServer(options: AppOptions(channelsPerUser: count))
        }
        #expect(error?.field == "channelsPerUser")
    }

    @Test(
        "§8.7 D-25 MN-01 SB-45 a server doesn't start with an option for mentions outside its limits, and names it",
        arguments: [
            (AppOptions(mentionsPerMessage: 0), "mentionsPerMessage", nil),
            (AppOptions(mentionsPerMessage: 31), "mentionsPerMessage", 30),
            (AppOptions(mentionNotifyCap: -1), "mentionNotifyCap", nil),
            (AppOptions(mentionNotifyCap: 31), "mentionNotifyCap", 30),
        ] as [(AppOptions, String, Int64?)])
    func invalidMentions(options: AppOptions, field: String, limit: Int64?) async throws {
        let error = await #expect(throws: RoostError.self) { _ = try await TestServer(options: options) }
        #expect(error?.field == field && error?.limit == limit)
    }

    @Test(
        "§8.7 D-25 MN-01 SB-45 a server starts with the options for mentions at their limits",
        arguments: [
            AppOptions(mentionsPerMessage: 1, mentionNotifyCap: 0), AppOptions(mentionsPerMessage: 30, mentionNotifyCap: 30),
        ])
    func validMentions(options: AppOptions) async throws {
        let server = try await TestServer(options: options)
        #expect(try await server.socket("ann").call(GetConfiguration()).options == options)
        try await server.stop()
    }

    // MARK: Types and roles

    private static func file(_ text: String) throws -> URL {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = directory.appending(path: "types.json")
        try Data(text.utf8).write(to: file)
        return file
    }

    private static let definitions = """
        {"types": [{"type": "announcements", "basedOn": "community", "policy": {"send": "operators"}}],
         "roles": [{"role": "guide", "rank": 10, "permissions": ["member.remove"]}]}
        """

    @Test("R03 R33 types and roles of a file hold from the start, and stay when they are removed from the file")
    func fromFile() async throws {
        let file = try Self.file(Self.definitions)
        let server = try await TestServer { $0.channelTypes = file }
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        try await ann.call(CreateChannel(channel: "news", type: "announcements"))
        try await bob.call(JoinChannel(channel: "news"))
        try await ann.call(SendMessage(channel: "news", clientId: "1", text: "x"))
        let error = await #expect(throws: RoostError.self) {
            try await bob.call(SendMessage(channel: "news", clientId: "1", text: "x"))
        }
        #expect(error?.code == .sendNotAllowed)
        #expect(
            try await ann.call(ListRoles()).last == RoleDefinition(role: "guide", rank: 10, permissions: [.memberRemove]))
        try await server.stop()

        try Data(#"{"roles":[{"role":"guide","rank":20,"permissions":[]}]}"#.utf8).write(to: file)
        let again = try await TestServer(directory: server.directory) { $0.channelTypes = file }
        let cat = try await again.socket("cat")
        #expect(try await cat.call(ListChannelTypes()).last?.type == "announcements")
        #expect(try await cat.call(ListRoles()).last == RoleDefinition(role: "guide", rank: 20, permissions: []))
        try await again.stop()
    }

    struct UnusableFile: Sendable, CustomTestStringConvertible {
        let text: String
        let parts: [String]
        var testDescription: String { text.count > 100 ? "\(text.prefix(100))…" : text }
        init(_ text: String, _ parts: String...) {
            self.text = text
            self.parts = parts
        }
    }

    static let bad: [UnusableFile] = [
        UnusableFile("{", "JSON"),
        UnusableFile("[]", "must be a JSON object"),
        UnusableFile(#"{"typs":[]}"#, "the key typs is unknown"),
        UnusableFile(#"{"types":{}}"#, "types", "must be an array"),
        UnusableFile(#"{"types":[],"types":[]}"#, "types is given more than once"),
        UnusableFile(#"{"types":[7]}"#, "types[0]"),
        UnusableFile(#"{"types":[{"basedOn":"group"}]}"#, "types[0]", "field type", "is missing"),
        UnusableFile(#"{"types":[{"type":"own","polcy":{}}]}"#, "types[0] (own)", "field polcy", "is not a field"),
        UnusableFile(#"{"types":[{"type":"own","policy":{"sned":"nobody"}}]}"#, "types[0] (own)", "field policy.sned"),
        UnusableFile(
            #"{"types":[{"type":"own","policy":{"send":"sometimes"}}]}"#, "types[0] (own)", "field policy.send",
            "must be one of: everyone"),
        UnusableFile(#"{"types":[{"type":"one"},{"type":"group"}]}"#, "types[1] (group)", "field type", "choose another name"),
        UnusableFile(#"{"types":[{"type":"own"},{"type":"own"}]}"#, "types[1] (own)", "field type", "another entry has the same"),
        UnusableFile(#"{"types":[{"type":"own","basedOn":"nothing"}]}"#, "types[0] (own)", "field basedOn", "no preset nothing"),
        UnusableFile(#"{"roles":[{"role":"guide","rank":100,"permissions":[]}]}"#, "roles[0] (guide)", "field rank", "0 to 99"),
        UnusableFile(#"{"roles":[{"role":"guide","rank":1,"permissions":["fly"]}]}"#, "roles[0] (guide)", "field permissions"),
        UnusableFile(
            #"{"roles":[{"role":"owner","rank":1,"permissions":[]}]}"#, "roles[0] (owner)", "field role", "can't be changed"),
        UnusableFile(
            "{\"types\":[" + (1...51).map { "{\"type\":\"own-\($0)\"}" }.joined(separator: ",") + "]}", "types[50] (own-51)",
            "limit of 50"),
    ]

    @Test("R03 R33 an unusable file prevents the start, is refused with the entry and field, and changes nothing", arguments: bad)
    func unusable(_ bad: UnusableFile) async throws {
        let file = try Self.file(bad.text)
        let directory = TemporaryDirectory.make()
        let error = await #expect(throws: Definitions.Unusable.self) {
            _ = try await TestServer(directory: directory) { $0.channelTypes = file }
        }
        let description = error?.description ?? ""
        #expect(([file.path] + bad.parts).filter { !description.contains($0) } == [], "\(description)")
        let server = try await TestServer(directory: directory)
        let ann = try await server.socket("ann")
        #expect(try await ann.call(ListChannelTypes()) == ChannelPolicy.presets)
        #expect(try await ann.call(ListRoles()) == RoleDefinition.builtIn)
        try await server.stop()
    }

    @Test("R03 a missing file prevents the start")
    func missing() async throws {
        let error = await #expect(throws: Definitions.Unusable.self) {
            _ = try await TestServer { $0.channelTypes = URL(filePath: "/nowhere/types.json") }
        }
        #expect(
            error?.description
                == "The channel types of /nowhere/types.json can't be read: No such file or directory.")
    }

    // MARK: Who is online

    @Test("R15 SB-63 a list of members, a search and a single member show who is online")
    func online() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        _ = try await server.request("GET", "/v1/me", token: try await server.token("cat"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob", "cat"]))
        _ = try await bob.nextEvent()
        let listed = try await ann.call(ListMembers(channel: "general", sort: .userId)).items
        #expect(listed.map(\.isOnline) == [true, true, false])
        #expect(try await ann.call(SearchMembers(channel: "general", text: "bob")).items.map(\.isOnline) == [true])
        #expect(try await ann.call(GetMember(channel: "community:general", user: "cat")).isOnline == false)
        #expect(try await ann.call(GetMember(channel: "community:general", user: "bob")).isOnline == true)
        try await server.stop()
    }
}
