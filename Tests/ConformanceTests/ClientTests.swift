import Foundation
import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// The SDK against the real server: what an app sees.
@MainActor @Suite struct ClientTests {
    @Test("R19 SB-35 AM-02 two people talk: pending, sent, received, in one order")
    func talk() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        let bob = chat("bob", at: server)
        try await ann.connect()
        try await bob.connect()
        let general = try await ann.createChannel("general", displayName: "General")
        let atBob = bob.channel("general")
        try await atBob.join()
        let annSees = general.messages()
        let bobSees = atBob.messages()
        for number in 1...5 {
            try await general.send("ann \(number)")
            try await atBob.send("bob \(number)")
        }
        func texts(_ list: MessageList) -> [String] { list.items.filter { $0.state == .sent }.map(\.text) }
        try await wait("ten messages at both") { texts(annSees).count == 10 && texts(bobSees).count == 10 }
        #expect(texts(annSees) == texts(bobSees))
        #expect(texts(annSees).filter { $0.hasPrefix("ann") } == (1...5).map { "ann \($0)" })
        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()
    }

    @Test("AM-43 AM-44 AM-45 unread is exact at every moment, and marking on one device reaches the other")
    func unread() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        let phone = chat("bob", at: server)
        let laptop = chat("bob", at: server)
        for client in [ann, phone, laptop] { try await client.connect() }
        let general = try await ann.createChannel("general")
        try await phone.channel("general").join()
        let onPhone = phone.channels()
        let onLaptop = laptop.channels()
        for number in 1...3 { try await general.sendConfirmed(MessageDraft(text: "\(number)")) }
        try await wait("3 unread on both") { onPhone.totalUnreadCount == 3 && onLaptop.totalUnreadCount == 3 }
        try await laptop.channel("general").sendConfirmed(MessageDraft(text: "own"))
        try await wait("an own message that isn't unread") {
            onPhone.items.first?.lastMessage?.text == "own" && onPhone.totalUnreadCount == 3 && onLaptop.totalUnreadCount == 3
        }
        try await phone.channel("general").markRead()
        try await wait("0 unread on both") { onPhone.totalUnreadCount == 0 && onLaptop.totalUnreadCount == 0 }
        #expect(try await phone.call(GetTotalUnread()) == TotalUnread(unreadCount: 0, unreadChannelCount: 0))
        for client in [ann, phone, laptop] { await client.disconnect() }
        try await server.stop()
    }

    @Test("R39 SB-61 messages sent while the server is down arrive once, in order, and missed ones are fetched")
    func restart() async throws {
        let directory = TemporaryDirectory.make()
        let port = try LoopbackPort.free()
        let first = try await TestServer(directory: directory) { $0.port = port }
        let ann = chat("ann", at: first)
        let bob = chat("bob", at: first)
        try await ann.connect()
        try await bob.connect()
        let general = try await ann.createChannel("general")
        try await bob.channel("general").join()
        try await general.sendConfirmed(MessageDraft(text: "before"))
        let bobSees = bob.channel("general").messages()
        try await first.stop()
        for number in 1...3 { try await general.send("away \(number)") }
        let annSees = general.messages()
        try await wait("three pending messages") { annSees.items.filter { $0.state == .pending }.count == 3 }

        let second = try await TestServer(directory: directory) { $0.port = port }
        try await wait("all four at bob") { bobSees.items.count == 4 }
        #expect(bobSees.items.map(\.text) == ["before", "away 1", "away 2", "away 3"])
        try await wait("nothing pending") { annSees.items.allSatisfy { $0.state == .sent } }
        #expect(annSees.items.map(\.text) == ["before", "away 1", "away 2", "away 3"])
        await ann.disconnect()
        await bob.disconnect()
        try await second.stop()
    }

    @Test("ST-04 R06 the refusal of a watch, a join and a query reaches the caller, with its code and field")
    func refusals() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        let unknown = ann.channel("unknown")
        let expected = RoostError.notFound("channel")
        await #expect(throws: expected) { try await unknown.watch() }
        await #expect(throws: expected) { try await ann.joinChannel("unknown") }
        let query = QueryChannels(cursor: "forged")
        let refusal = await #expect(throws: RoostError.self) { try await ann.call(query) }
        #expect(refusal?.code == .invalidArgument && refusal?.field == "cursor")
        await ann.disconnect()
        try await server.stop()
    }

    @Test("AM-44 R25 the unread count of all channels is the server's total after every change, and is available offline")
    func totalUnread() async throws {
        let server = try await TestServer()
        let store = TemporaryDirectory.make()
        let bob = try await server.socket("bob")
        let ann = chat("ann", at: server, in: store)
        let unread = ann.unread
        var heard: [TotalUnread] = []
        let token = unread.observe { heard.append($0) }
        try await ann.connect()
        try await unread.loaded()
        for id in ["one", "two", "three"] as [ChannelID] { try await bob.call(CreateChannel(channel: id, users: ["ann"])) }
        var number = 0
        func send(_ channel: ChannelID) async throws {
            number += 1
            try await bob.call(SendMessage(channel: channel, clientId: ClientID("\(number)"), text: "\(number)"))
        }
        let steps: [(what: String, messages: Int, channels: Int, step: () async throws -> Void)] = [
            ("a message", 1, 1, { try await send("one") }),
            ("another", 2, 1, { try await send("one") }),
            ("one elsewhere", 3, 2, { try await send("two") }),
            ("one of her own, which marks none as read", 3, 2, { try await ann.channel("one").sendConfirmed("mine") }),
            ("a hidden channel", 3, 2, { _ = try await ann.call(HideChannel(channel: "two")) }),
            ("one in each", 6, 3, { for id in ["one", "two", "three"] as [ChannelID] { try await send(id) } }),
            ("read", 3, 2, { _ = try await ann.call(MarkRead(channel: "one")) }),
            ("left", 2, 1, { _ = try await ann.call(LeaveChannel(channel: "three")) }),
            ("deleted", 0, 0, { try await bob.call(DeleteChannel(channel: "two")) }),
            ("joined again", 0, 0, { _ = try await ann.call(JoinChannel(channel: "three")) }),
            ("one there", 1, 1, { try await send("three") }),
        ]
        for (what, messages, channels, step) in steps {
            try await step()
            let expected = TotalUnread(unreadCount: messages, unreadChannelCount: channels)
            #expect(try await ann.call(GetTotalUnread()) == expected, "\(what)")
            try await wait(what) { unread.total == expected }
        }
        #expect(heard.last == unread.total)
        token.invalidate()
        await ann.disconnect()
        let offline = chat("ann", at: server, in: store)
        try await offline.unread.loaded()
        #expect(offline.unread.total == unread.total)
        try await server.stop()
    }

    @Test("AM-30 R22 a client that starts offline shows its stored messages; older pages load on request")
    func offlineStart() async throws {
        let server = try await TestServer()
        let store = TemporaryDirectory.make()
        let writer = try await server.socket("ann")
        try await writer.call(CreateChannel(channel: "general"))
        for number in 1...100 {
            try await writer.call(SendMessage(channel: "general", clientId: ClientID("\(number)"), text: "\(number)"))
        }
        let first = chat("ann", at: server, in: store)
        try await first.connect()
        let list = first.channel("general").messages(pageSize: 30)
        try await wait("the newest messages") { !list.items.isEmpty }
        while list.hasOlder { try await list.loadOlder() }
        try await wait("all hundred") { list.items.map(\.text) == (1...100).map(String.init) }
        await first.disconnect()
        try await server.stop()

        let offline = chat("ann", at: server, in: store)
        offline.start()
        let shown = offline.channel("general").messages()
        try await wait("the stored messages") { shown.items.last?.text == "100" }
        try await offline.channel("general").send("later")
        try await wait("a pending message") { shown.items.last?.state == .pending }
        await offline.disconnect()
    }

    @Test("SB-35 a message that the server refuses is marked as failed with the code")
    func refusedMessage() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        _ = try await server.socket("bob").call(CreateChannel(channel: "closed"))
        let closed = ann.channel("closed")
        let list = closed.messages()
        try await closed.send("not a member")
        try await wait("a failed message") {
            if case .failed(let error) = list.items.first?.state { error.code == .notMember } else { false }
        }
        await ann.disconnect()
        try await server.stop()
    }

    @Test("R39 an expiring token is renewed through the provider without any action of the app")
    func renewal() async throws {
        let server = try await TestServer()
        let tokens = Mailbox<Void>()
        let ann = Chat(url: server.url, user: "ann", configuration: .init(storage: .inMemory)) {
            tokens.put(())
            return try await server.token("ann", expiresIn: 5)
        }
        try await ann.connect()
        for _ in 0..<3 { guard await tokens.next() != nil else { throw Missed("another token") } }
        await ann.disconnect()
        try await server.stop()
    }

    @Test("§8.8 an answer is decoded off the main actor, even if the main actor awaits it")
    func answersOffTheMainActor() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        #expect(try await ann.call(WhereItIsRead()).isOnMainThread == false)
        await ann.disconnect()
        try await server.stop()
    }
}

/// `user.me`, whose answer says where it was decoded.
private struct WhereItIsRead: RoostAPI.Operation {
    struct Response: Codable, Hashable, Sendable {
        var isOnMainThread: Bool

        init(from decoder: any Decoder) throws { isOnMainThread = Thread.isMainThread }
    }
    static let name = GetMe.name
    static let method = GetMe.method
    static let path = GetMe.path
    static let permission = GetMe.permission
    static let summary = GetMe.summary

    func validate() throws(RoostError) {}
}
