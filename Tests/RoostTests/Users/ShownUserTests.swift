import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Names and pictures in shown rows.
@MainActor @Suite("Users: names in rows", .timeLimit(.minutes(5)))
struct ShownUserTests {
    private func chat(_ transport: any Transport = TinyServer()) -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = transport
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    private func named(_ id: UserID, _ name: String, version: Int64 = 1) -> UserSummary {
        UserSummary(userId: id, displayName: name, avatarFileId: "\(name).png", version: version)
    }

    /// A member of the channel with these messages.
    private func begin(_ messages: [Message]) -> [StoreWrite] {
        [
            .channel(channel(counters(3, messages: messages.count))), .membership(membership(readSeq: 3, readCount: 0)),
            .messages(messages, of: Harness.channel), .position(Harness.channel, Position(cursor: 3, windowStart: 0)),
        ]
    }

    @Test("rows show names known to the store, without a connection, and change when a newer one arrives, but not for an older one")
    func rows() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        try await store.write(
            begin([message(2, "one"), message(3, "two", by: "cat")]) + [.users([named("bob", "Bob", version: 2)])])
        try await store.write([.invitation(invitation(by: "bob")), .channel(channel(counters(3, messages: 2)))])
        let messages = chat.channel(Harness.channel).messages()
        let channels = chat.channels()
        let room = chat.channel(Harness.channel)
        let invitations = chat.invitations()
        let user = chat.user("cat")
        try await messages.loaded()
        try await channels.loaded()
        try await room.loaded()
        try await invitations.loaded()
        try await user.loaded()
        #expect(messages.items.map(\.sender) == [named("bob", "Bob", version: 2), UserSummary(userId: "cat")])
        #expect(messages.items.map(\.sender.name) == ["Bob", "cat"])
        #expect(
            [channels.items.first?.lastSender, room.lastSender, user.user] == Array(repeating: UserSummary(userId: "cat"), count: 3)
        )
        #expect(invitations.items.map(\.inviter.name) == ["Bob"])

        try await store.write([.users([named("cat", "Cat"), named("bob", "older")])])
        try await until { messages.items.last?.sender.name == "Cat" && channels.items.first?.lastSender?.name == "Cat" }
        try await until { room.lastSender == named("cat", "Cat") && user.user == named("cat", "Cat") }
        try await store.write([.users([named("bob", "Robert", version: 3)])])
        try await until { messages.items.first?.sender.name == "Robert" && invitations.items.first?.inviter.name == "Robert" }
        #expect(messages.items.map(\.text) == ["one", "two"])
    }

    @Test("when a name arrives, no message or channel is read again, and rows of others stay the same")
    func identity() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        try await store.write(begin([message(2, "one"), message(3, "two", by: "cat")]))
        var window = MessageWindow(pageSize: 10)
        window = try await store.read { [window] database in
            var window = window
            try window.read(.stay, of: Harness.channel, in: database)
            return window
        }
        let channels = StoredChannels(ChannelQuery(), pageSize: 10, driver: chat.driver)
        try await channels.follow(.everything)
        try await channels.complete()
        let before = (window.rows, try #require(channels.items?.first))
        try await store.write([.users([named("cat", "Cat")])])
        // Any repeated read fails.
        try await store.change { database in
            try database.execute(sql: "UPDATE messages SET text = NULL")
            try database.execute(sql: "UPDATE channel_attributes SET type = NULL")
        }
        window = try await store.read { [window] database in
            var window = window
            try window.refreshUsers(["cat"], in: database)
            return window
        }
        #expect(window.rows[0].item.row === before.0[0].item.row && window.rows[1].item.message == before.0[1].item.message)
        #expect(window.rows[1].item.sender == named("cat", "Cat"))
        try await channels.follow(StoreChange(users: ["cat"]))
        let row = try #require(channels.items?.first)
        #expect(row.lastSender == named("cat", "Cat") && row.row.view == before.1.row.view)
        let difference = try #require(channels.difference)
        #expect(difference.applied(to: [before.1]) == [row] && !difference.isEmpty)
        // A user whom nothing shows changes nothing.
        try await channels.follow(StoreChange(users: ["zoe"]))
        #expect(channels.items?.first?.row === row.row && channels.difference?.isEmpty ?? true)
    }

    @Test("the user's own new name is on all of their rows at once, pending ones included")
    func own() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        try await store.write(begin([message(2, "one", by: "ann")]))
        let room = chat.channel(Harness.channel)
        try await room.send("two")
        let messages = room.messages()
        try await messages.loaded()
        #expect(messages.items.map(\.sender.name) == ["ann", "ann"])
        let ann = User(
            userId: "ann", displayName: "Ann", createdAt: Timestamp(milliseconds: 0), updatedAt: Timestamp(milliseconds: 0),
            version: 2)
        try await store.write([.rows(Rows([ann]), of: .user("ann"))])
        try await until { messages.items.map(\.sender.name) == ["Ann", "Ann"] }
    }

    @Test("a sender known only by id is requested once, however many rows and lists show them; an unknown one too")
    func asks() async throws {
        let bob = User(
            userId: "bob", displayName: "Bob", createdAt: Timestamp(milliseconds: 0), updatedAt: Timestamp(milliseconds: 0))
        let server = ScriptedServer { call in
            guard call.operation == "user.listChanged" else { return .error(.notFound("operation")) }
            // A server doesn't return users whom it wasn't asked for.
            let isAboutBob =
                if case .object(let fields) = call.with, case .object(let versions) = fields["versions"] {
                    versions["bob"] != nil
                } else {
                    false
                }
            return .result(ChangedUsers(users: isAboutBob ? [bob.summary] : [], hasMore: false))
        }
        let clock = ManualClock()
        let chat = try await server.connected(clock)
        let (room, channels) = (chat.channel(Harness.channel), chat.channels())
        let messages = room.messages()
        try await server.send(
            mine(
                1, .memberJoined, membership(readSeq: 1, readCount: 0, channelSeq: 1, userSeq: 1),
                channel: channel(counters(1, messages: 0))))
        for (seq, sender) in [(2, "bob"), (3, "nobody"), (4, "bob"), (5, "nobody")] as [(Seq, UserID)] {
            try await server.send(sent(message(seq, "\(seq)", by: sender), messages: Int(seq) - 1))
        }
        // A user found to exist after the request for them may be requested again.
        try await until { messages.items.count == 4 }
        try await until { await Set(chat.driver.machine?.userRequests.waiting ?? []).isSuperset(of: ["bob", "nobody"]) }
        try await until { clock.ends.contains(.milliseconds(20)) }
        clock.advance(by: .milliseconds(20))
        try await until { messages.items.map(\.sender.name) == ["Bob", "nobody", "Bob", "nobody"] }
        try await server.send(sent(message(6, "six"), messages: 5))
        try await until {
            messages.items.count == 5 && channels.items.first?.lastSender?.name == "Bob" && room.lastSender?.name == "Bob"
        }
        await letOthersRun()
        clock.advance(by: .seconds(1))
        await letOthersRun()
        let asked = await server.calls.filter { $0.operation == "user.listChanged" }.compactMap { call -> JSONValue? in
            if case .object(let fields) = call.with { fields["versions"] } else { nil }
        }
        let ids = asked.flatMap { versions -> [String] in if case .object(let users) = versions { Array(users.keys) } else { [] } }
        #expect(ids.sorted() == ["bob", "nobody"], "\(asked)")
        await chat.disconnect()
    }

    @Test("SB-61 an impossible user id, which any message may mention, doesn't keep other names from arriving")
    func impossible() async throws {
        let server = ScriptedServer { call in
            guard call.operation == "user.listChanged", case .object(let fields) = call.with,
                case .object(let versions) = fields["versions"]
            else { return .error(.notFound("operation")) }
            guard (try? ListChangedUsers(versions: versions.mapValues { _ in 0 }).validate()) != nil else {
                return .error(.invalidArgument("versions", "must not contain control characters, '/' or ','"))
            }
            let bob = UserSummary(userId: "bob", displayName: "Bob", version: 1)
            return .result(ChangedUsers(users: versions["bob"] == nil ? [] : [bob], hasMore: false))
        }
        let chat = chat(server)
        _ = try await chat.driver.prepare()
        let (impossible, bob) = (chat.user("a/b"), chat.user("bob"))
        try await impossible.loaded()
        try await bob.loaded()
        // With the connection, all users shown by then are one request.
        try await until { await chat.driver.machine?.userRequests.waiting.contains("bob") == true }
        try await chat.connect()
        try await until { bob.user.name == "Bob" }
        #expect(impossible.user == UserSummary(userId: "a/b") && impossible.phase == .loaded)
        await chat.disconnect()
    }

    @Test(
        "SB-02 SB-61 the readers of a row's message have their names: from the answer, from a request after a signal, and changed ones"
    )
    func readers() async throws {
        let (bob, cat) = (named("bob", "Bob"), named("cat", "Cat"))
        let server = ScriptedServer { call in
            switch call.operation {
            case "reading.listReaders": return .result(Page(items: [ReadPosition(userId: "bob", readSeq: 3)], users: [bob]))
            case "user.listChanged": return .result(ChangedUsers(users: [cat], hasMore: false))
            default: return .error(.notFound("operation"))
            }
        }
        let chat = try await server.connectedInGeneral()
        let receipts = chat.channel("general").receipts()
        var heard: [String] = []
        let token = receipts.observe { _ in heard.append(receipts.user("bob").name) }
        try await receipts.loaded()
        try await until { receipts.user("bob") == bob }
        let item = MessageItem(message(3, "two", by: "ann"), sender: UserSummary(userId: "ann"))
        #expect(receipts.readers(of: item) == ["bob"] && receipts.recipients(of: item) == ["bob"])
        // One whom this device doesn't know yet.
        let update = ReadUpdate(readers: [ReadPosition(userId: "cat", readSeq: 3)], isWhole: true)
        try await server.send(Signal(kind: .readUpdated, channel: "general", read: update))
        try await until { Set(receipts.readers(of: item).map { receipts.user($0).name }) == ["Bob", "Cat"] }
        try await chat.driver.files().store.write([.users([named("bob", "Robert", version: 2)])])
        try await until { heard.last == "Robert" }
        token.invalidate()
        await chat.disconnect()
    }

    @Test("users returned by a page, a resume and the app's own requests are stored")
    func stored() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer(
            "stream.resume",
            with: Resumption(
                user: changes(user: 0), channels: [fresh()], hasMore: false,
                users: [named("bob", "Bob"), named("cat", "Cat", version: 4)]))
        func name(_ user: UserID) async throws -> String { try await client.store.read { try $0.summary(of: user).name } }
        #expect(try await [name("bob"), name("cat")] == ["Bob", "Cat"])
        try await client.feed(.call(1, ListMembers(channel: Harness.channel)))
        let member = Member(
            userId: "bob", role: .member, state: .member, joinedAt: Timestamp(milliseconds: 1), joinedSeq: 1, changeSeq: 1)
        let user = User(
            userId: "bob", displayName: "Bobby", createdAt: Timestamp(milliseconds: 1), updatedAt: Timestamp(milliseconds: 1),
            version: 2)
        try await client.answer("member.list", with: Page(items: [MemberEntry(member: member, user: user, isOnline: false)]))
        #expect(try await name("bob") == "Bobby")
    }

    @Test("a page of messages, or of mentions, that the app requests teaches the users in it")
    func pagesOfMessages() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.call(1, ListMessages(channel: Harness.channel)))
        let page = MessagePage(
            messages: [message(2, "one", by: "eve")], hasOlder: false, hasNewer: false, seq: 3, users: [named("eve", "Eve")])
        try await client.answer("message.list", with: page)
        try await client.feed(.call(2, ListMentions()))
        try await client.answer("mention.list", with: Page(items: [message(3, "two", by: "fay")], users: [named("fay", "Fay")]))
        for (user, name) in [("eve", "Eve"), ("fay", "Fay")] as [(UserID, String)] {
            #expect(try await client.store.read { try $0.summary(of: user).name } == name)
        }
    }

    @Test("unreferenced users are dropped once there are many; referenced ones stay, and the chat's own")
    func trimmed() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        var mentioning = message(3, "two")
        mentioning.content.mentionees = [.channel, .users(["cat"])]
        try await store.write(begin([message(2, "one"), mentioning]) + [.invitation(invitation(by: "eve"))])
        let known = [named("ann", "Ann"), named("bob", "Bob"), named("cat", "Cat"), named("eve", "Eve")]
        try await store.write([.users((0..<50).map { named(UserID("u\($0)"), "U") } + known)])
        func users() async throws -> [String] {
            try await store.read { try String.fetchAll($0, sql: "SELECT user_id FROM users ORDER BY user_id") }
        }
        try await store.change { try $0.trimUsers(of: "ann", keeping: 54) }
        #expect(try await users().count == 54)
        try await store.change { try $0.trimUsers(of: "ann", keeping: 53) }
        #expect(try await users() == ["ann", "bob", "cat", "eve"])
    }

    @Test("AM-29 a live user is freed with its last owner")
    func released() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        var user: LiveUser? = chat.user("bob")
        try await user?.loaded()
        weak let released = user
        user = nil
        try await until { released == nil }
        try await store.write([.users([named("bob", "Bob")])])
    }
}
