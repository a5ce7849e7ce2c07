import Foundation
import RoostAPI
import Testing

@testable import Roost

/// Lists of a server that always has a next page, or the same one.
@MainActor @Suite("Live objects: pages without an end", .timeLimit(.minutes(5)))
struct EndlessPageTests {
    private static let time = Timestamp(milliseconds: 0)

    private func count(_ operation: String, at server: ScriptedServer) async -> Int {
        await server.operations().count { $0 == operation }
    }

    @Test(
        "SB-02 receipts follow a cursor that never ends for as many pages as there can be, and are loaded",
        arguments: [true, false])
    func receipts(areEmpty: Bool) async throws {
        let server = ScriptedServer { call in
            guard call.operation == "reading.listReaders" else { return .error(.notFound("operation")) }
            return .result(Page(items: areEmpty ? [] : [ReadPosition(userId: "bob", readSeq: 3)], nextCursor: "again"))
        }
        let chat = try await server.connected()
        let receipts = chat.channel("general").receipts()
        try await receipts.loaded()
        #expect(receipts.positions.keys.sorted() == (areEmpty ? [] : ["bob"]))
        #expect(await count("reading.listReaders", at: server) == 30)
        await chat.disconnect()
    }

    @Test(
        "SB-15 invitations whose channel the server doesn't return are requested once in a connection, for as many pages as there can be"
    )
    func invitations() async throws {
        var channel = RoostTests.channel(counters(1, messages: 0))
        channel.channelId = "other"
        let entry = InvitationEntry(invitation: invitation(to: "other"), channel: channel)
        let server = ScriptedServer { call in
            guard call.operation == "invitation.mine" else { return .error(.notFound("operation")) }
            return .result(Page(items: [entry], nextCursor: "again"))
        }
        let chat = try await server.connected()
        let list = chat.invitations()
        try await list.loaded()
        func receive(_ invitation: Invitation, at seq: Seq) async throws {
            let rows = Rows([invitation])
            try await server.send(Event(kind: .invitationReceived, stream: .user("ann"), seq: seq, actor: "bob", rows: rows))
            try await until { list.items.contains { $0.invitation == invitation } }
        }
        try await receive(invitation(to: "private"), at: 1)
        try await until { await count("invitation.mine", at: server) >= 30 }
        // The contents of the answers are read again, and are no reason to ask.
        try await until { list.items.count == 2 }
        await letOthersRun()
        #expect(await count("invitation.mine", at: server) == 30)
        // Another invitation is.
        try await receive(invitation(to: "third"), at: 2)
        try await until { await count("invitation.mine", at: server) == 60 }
        await letOthersRun()
        #expect(await count("invitation.mine", at: server) == 60)
        await chat.disconnect()
    }

    @Test("lists of members and of channels stop at as many pages as well")
    func others() async throws {
        let server = ScriptedServer { call in
            switch call.operation {
            case "member.list", "member.search": .result(Page<MemberEntry>(items: [], nextCursor: "again"))
            case "channel.query": .result(Page<ChannelView>(items: [], nextCursor: "again"))
            default: .error(.notFound("operation"))
            }
        }
        let chat = try await server.connected()
        let (members, search) = (chat.channel("general").members(), chat.channel("general").searchMembers("a"))
        let channels = chat.channels(matching: ChannelQuery(membership: .all))
        try await members.loaded()
        try await search.loaded()
        try await channels.loaded()
        #expect(members.hasMore && search.hasMore && channels.hasMore)
        let counts = [await count("member.list", at: server), await count("channel.query", at: server)]
        #expect(counts == [21, 21])
        await chat.disconnect()
    }

    @Test("MN-14 AM-39 a search, and the members of a channel the user isn't in, are requested once, and again only after a change")
    func onlyOnce() async throws {
        let clock = ManualClock()
        let server = ScriptedServer { call in
            switch call.operation {
            case "member.list", "member.search": .result(Page<MemberEntry>(items: []))
            default: .error(.notFound("operation"))
            }
        }
        let chat = try await server.connected(clock)
        let (members, search) = (chat.channel("others").members(), chat.channel("others").searchMembers("a"))
        try await members.loaded()
        try await search.loaded()
        for _ in 0..<4 {
            await letOthersRun(200)
            clock.advance(by: .milliseconds(500))
        }
        await letOthersRun(200)
        let counts = [await count("member.list", at: server), await count("member.search", at: server)]
        #expect(counts == [1, 1])
        await chat.disconnect()
    }
}
