import Foundation
import Logging
import Roost
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Members: lists from the server", .timeLimit(.minutes(1)))
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

    /// Connected, in the channel `general` at seq 3.
    private func connected(_ server: ScriptedServer) async throws -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        try await server.send(
            Event(
                kind: .memberJoined, stream: .user("ann"), seq: 1, actor: "ann",
                rows: Rows(
                    channel: channel(counters(3, messages: 0)), [membership(readSeq: 3, readCount: 0, channelSeq: 3, userSeq: 1)])))
        return chat
    }

    private func change(_ seq: Seq, _ members: [Member]) -> Event {
        Event(
            kind: .memberJoined, stream: .channel("general"), seq: seq, actor: "ann",
            rows: Rows(counters: counters(seq, messages: 0), members))
    }

    @Test("AM-39 SB-22 A member list follows who joins and leaves, and learns who they are")
    func follow() async throws {
        let known = [entry("ann", 1), entry("bob", 2)]
        let cat = entry("cat", 4)
        let server = ScriptedServer { call in
            switch call.operation {
            case "member.list": .result(Page(items: known))
            case "user.getMany": .result([cat.user].compactMap { $0 })
            default: .error(.notFound("operation"))
            }
        }
        let chat = try await connected(server)
        let list = chat.channel("general").members()
        var updates = list.updates.makeAsyncIterator()
        #expect(list.presenceAsOf == nil)
        #expect(await updates.next()?.items == known.map(MemberItem.init))
        #expect(list.presenceAsOf != nil)
        try await server.send(change(4, [cat.member]))
        try await server.send(change(5, [member("bob", 2, state: .none, at: 5)]))
        while list.items.map(\.id) != ["ann", "cat"] || list.items.last?.user.version == 0 { _ = await updates.next() }
        #expect(list.items.map(\.user) == [entry("ann", 1), cat].compactMap(\.user?.summary))
        #expect(list.items.map(\.profile) == [entry("ann", 1).user, nil])
        // Nobody asked whether cat is online.
        #expect(list.items.map(\.wasOnline) == [true, nil])
        await chat.disconnect()
    }

    @Test("MN-14 MN-15 R16 A search is asked again when members change, and a refusal is the list's")
    func search() async throws {
        let found = [entry("bob", 2)]
        let later = [entry("bea", 5), entry("bob", 2)]
        let asked = Turn()
        let server = ScriptedServer { call in
            guard call.operation == "member.search" else { return .error(.notFound("operation")) }
            if case .object(let fields) = call.with, fields["states"] != nil { return .error(RoostError(.notPermitted, "No.")) }
            return .result(Page(items: asked.next() == 0 ? found : later))
        }
        let chat = try await connected(server)
        let list = chat.channel("general").searchMembers("b")
        var updates = list.updates.makeAsyncIterator()
        #expect(await updates.next()?.items == found.map(MemberItem.init))
        try await server.send(change(4, [member("bea", 5, at: 4)]))
        while list.items != later.map(MemberItem.init) { _ = await updates.next() }
        let banned = chat.channel("general").searchMembers("b", states: [.banned])
        let refusal = await #expect(throws: RoostError.self) { try await banned.loaded() }
        #expect(refusal?.code == .notPermitted)
        #expect(banned.items == [])
        await chat.disconnect()
    }
}
