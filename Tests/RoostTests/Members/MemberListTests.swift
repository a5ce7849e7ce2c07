import Foundation
import Logging
import Roost
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Members: lists from the server", .timeLimit(.minutes(5)))
struct MemberListTests {
    private func member(_ user: UserID, _ seq: Seq, state: MembershipState = .member, at changeSeq: Seq? = nil) -> Member {
        Member(
            userId: user, role: .member, state: state, joinedAt: Timestamp(milliseconds: 0), joinedSeq: seq,
            changeSeq: changeSeq ?? seq)
    }

    private func entry(_ user: UserID, _ seq: Seq) -> MemberEntry {
        MemberEntry(
            member: member(user, seq),
            user: User(userId: user, createdAt: Timestamp(milliseconds: 0), updatedAt: Timestamp(milliseconds: 0)), isOnline: true)
    }

    private func change(_ seq: Seq, _ members: [Member]) -> Event {
        Event(
            kind: .memberJoined, stream: .channel("general"), seq: seq, actor: "ann",
            rows: Rows(counters: counters(seq, messages: 0), members))
    }

    @Test("AM-39 SB-22 SB-62 a member list follows joins and leaves, and learns who the members are")
    func follow() async throws {
        let known = [entry("ann", 1), entry("bob", 2)]
        let cat = entry("cat", 4)
        let server = ScriptedServer { call in
            switch call.operation {
            case "member.list": .result(Page(items: known))
            case "user.listChanged": .result(ChangedUsers(users: [cat.user?.summary].compactMap { $0 }, hasMore: false))
            default: .error(.notFound("operation"))
            }
        }
        let chat = try await server.connectedInGeneral()
        let list = chat.channel("general").members()
        var updates = list.updates.makeAsyncIterator()
        #expect(list.presenceAsOf == nil)
        #expect(await updates.next()?.items == known.map(MemberItem.init))
        #expect(list.presenceAsOf != nil)
        try await server.send(change(4, [cat.member]))
        try await server.send(change(5, [member("bob", 2, state: .none, at: 5)]))
        try await until { list.items.map(\.id) == ["ann", "cat"] && list.items.last?.user.version != 0 }
        #expect(list.items.map(\.user) == [entry("ann", 1), cat].compactMap(\.user?.summary))
        #expect(list.items.map(\.profile) == [entry("ann", 1).user, nil])
        // Cat's presence wasn't requested.
        #expect(list.items.map(\.isOnline) == [true, nil])
        await chat.disconnect()
    }

    @Test("MN-14 MN-15 R16 a search is repeated when members change, and a refusal is the list's")
    func search() async throws {
        let found = [entry("bob", 2)]
        let later = [entry("bea", 5), entry("bob", 2)]
        let asked = Turn()
        let server = ScriptedServer { call in
            guard call.operation == "member.search" else { return .error(.notFound("operation")) }
            if case .object(let fields) = call.with, fields["states"] != nil { return .error(RoostError(.notPermitted, "No.")) }
            return .result(Page(items: asked.next() == 0 ? found : later))
        }
        let chat = try await server.connectedInGeneral()
        let list = chat.channel("general").searchMembers("b")
        var updates = list.updates.makeAsyncIterator()
        #expect(await updates.next()?.items == found.map(MemberItem.init))
        try await server.send(change(4, [member("bea", 5, at: 4)]))
        try await until { list.items == later.map(MemberItem.init) }
        let banned = chat.channel("general").searchMembers("b", states: [.banned])
        let refusal = await #expect(throws: RoostError.self) { try await banned.loaded() }
        #expect(refusal?.code == .notPermitted)
        #expect(banned.items == [])
        await chat.disconnect()
    }

    @Test("AM-39 without a connection a list reports why it isn't loaded, and shows known members; it loads once there is one")
    func offline() async throws {
        let known = [entry("ann", 1), entry("bob", 2), entry("cat", 4)]
        let server = ScriptedServer { call in
            call.operation == "member.list" ? .result(Page(items: known)) : .error(.notFound("operation"))
        }
        let chat = try await server.connectedInGeneral()
        for await view in chat.channel("general").updates where view != nil { break }
        try await server.send(change(4, [known[2].member, member("dan", 3, state: .none, at: 4)]))
        for await view in chat.channel("general").updates where view?.channel.counters.seq == 4 { break }
        await chat.disconnect()

        let (list, search) = (chat.channel("general").members(), chat.channel("general").searchMembers("a"))
        var updates = list.updates.makeAsyncIterator()
        #expect(await updates.next()?.items.map(\.id) == ["cat"])
        try await until { list.phase != .loading && search.phase != .loading }
        let away = RoostError(.notConnected, "The client isn't connected.")
        #expect(list.phase == .unavailable(away) && search.phase == .unavailable(away) && list.presenceAsOf == nil)
        let others = chat.channels(matching: ChannelQuery(membership: .notMember))
        try await until { others.phase != .loading }
        #expect(others.phase == .unavailable(away))
        let own = chat.channels()
        try await own.loaded()
        own.query = ChannelQuery(membership: .all)
        try await until { own.phase != .loading }
        #expect(own.phase == .unavailable(away) && own.items.count == 1)

        async let isLoaded: Void = list.loaded()
        try await chat.connect()
        try await isLoaded
        #expect(list.phase == .loaded && list.items == known.map(MemberItem.init))
        await chat.disconnect()
        #expect(list.phase == .loaded)
    }

    @Test("SB-62 R08 users who left while this device was away aren't on the list, although the store has them")
    func leftMeanwhile() async throws {
        let known = [entry("ann", 1), entry("bob", 2), entry("cat", 4)]
        let server = ScriptedServer { call in
            call.operation == "member.list" ? .result(Page(items: Array(known.prefix(2)))) : .error(.notFound("operation"))
        }
        let chat = try await server.connectedInGeneral()
        for await view in chat.channel("general").updates where view != nil { break }
        try await server.send(change(4, [known[2].member]))
        for await view in chat.channel("general").updates where view?.channel.counters.seq == 4 { break }
        await chat.disconnect()
        let list = chat.channel("general").members()
        var updates = list.updates.makeAsyncIterator()
        #expect(await updates.next()?.items.map(\.id) == ["cat"])
        try await chat.connect()
        try await list.loaded()
        #expect(list.items.map(\.id) == ["ann", "bob"])
        await chat.disconnect()
    }

    @Test("AM-38 a list or search of members of a channel with an impossible id is refused, and the server isn't asked")
    func invalidChannel() async throws {
        let server = ScriptedServer { _ in .error(.notFound("operation")) }
        let chat = try await server.connectedInGeneral()
        for list in [chat.channel("a/b").members(), chat.channel("a/b").searchMembers("b")] {
            let refusal = await #expect(throws: RoostError.self) { try await list.loaded() }
            #expect([refusal?.code.rawValue, refusal?.field] == ["invalid_argument", "channel"])
            #expect(list.phase.error == refusal)
        }
        let asked = await server.operations()
        #expect(!asked.contains("member.list") && !asked.contains("member.search"))
        await chat.disconnect()
    }

    @Test("AM-39 if no connection can be made, waiting for a list ends with the reason")
    func noConnection() async throws {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            backoff: .seconds(60)...(.seconds(60)))
        configuration.transport = ScriptedServer { _ in .nothing }
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) {
            throw RoostError(.overloaded, "No token today.")
        }
        let list = chat.channel("general").members()
        chat.start()
        let error = await #expect(throws: RoostError.self) { try await list.loaded() }
        #expect(error?.code == .notConnected && error?.message.contains("No token today.") == true)
        await chat.disconnect()
    }

    @Test("AM-39 a user who left, got another name and came back has the new one")
    func comesBackRenamed() async throws {
        let server = ScriptedServer { [known = [entry("ann", 1), entry("bob", 2)]] call in
            switch call.operation {
            case "member.list": .result(Page(items: known))
            case "user.listChanged": .result(ChangedUsers(users: [], hasMore: false))
            default: .error(.notFound("operation"))
            }
        }
        let chat = try await server.connectedInGeneral()
        let store = try await chat.driver.files().store
        let list = chat.channel("general").members()
        try await list.loaded()
        try await store.write([.users([UserSummary(userId: "bob", displayName: "Bob", version: 2)])])
        try await until { list.items.last?.user.displayName == "Bob" }
        try await server.send(change(4, [member("bob", 2, state: .none, at: 4)]))
        try await until { list.items.map(\.id) == ["ann"] }
        try await store.write([.users([UserSummary(userId: "bob", displayName: "Robert", version: 3)])])
        try await server.send(change(5, [member("bob", 5)]))
        try await until { list.items.last?.id == "bob" }
        #expect(list.items.last?.user.displayName == "Robert")
        await chat.disconnect()
    }
}
