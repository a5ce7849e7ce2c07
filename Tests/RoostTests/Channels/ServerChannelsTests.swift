import Foundation
import Logging
import Roost
import RoostAPI
import Synchronization
import Testing

@testable import Roost

@MainActor @Suite("Channels: lists from the server", .timeLimit(.minutes(5)))
struct ServerChannelsTests {
    private func chat(_ server: ScriptedServer) -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    private func view(_ id: ChannelID, createdAt: Int64) -> ChannelView {
        let at = Timestamp(milliseconds: createdAt)
        return ChannelView(
            channel: Channel(
                channelId: id, type: .community,
                counters: ChannelCounters(seq: 1, memberCount: 1, messageCount: 0, lastActivity: at), createdBy: "bob",
                createdAt: at, updatedAt: at), membership: nil)
    }

    private func joined(_ view: ChannelView, seq: Seq) -> Event {
        Event(
            kind: .memberJoined, stream: .user("ann"), seq: seq, actor: "ann",
            rows: Rows(
                channel: view.channel,
                [
                    Membership(
                        channelId: view.channel.channelId, role: .member, state: .member, joinedAt: Timestamp(milliseconds: 0),
                        joinedSeq: 1,
                        readSeq: 0, readCount: 0, channelSeq: 1, userSeq: seq)
                ]))
    }

    private func left(_ view: ChannelView, seq: Seq) -> Event {
        var event = joined(view, seq: seq)
        event.kind = .memberLeft
        event.rows.memberships?[0].state = .none
        return event
    }

    @Test("AM-33 SB-23 ST-09 R08 channels that the user isn't in load page by page, and one that the user joins leaves the list")
    func notMember() async throws {
        let (first, second, third) = (view("a", createdAt: 3), view("b", createdAt: 2), view("c", createdAt: 1))
        let server = ScriptedServer { call in
            guard call.operation == "channel.query", case .object(let fields) = call.with else {
                return .error(.notFound("operation"))
            }
            // A page without rows isn't the end.
            return switch fields["cursor"] {
            case nil: .result(Page(items: [first, second], nextCursor: "1"))
            case .string("1")?: .result(Page<ChannelView>(items: [], nextCursor: "2"))
            default: .result(Page(items: [third]))
            }
        }
        let chat = chat(server)
        try await chat.connect()
        let list = chat.channels(matching: ChannelQuery(membership: .notMember), pageSize: 2)
        var updates = list.updates.makeAsyncIterator()
        #expect(await updates.next()?.items.map(\.id) == ["a", "b"])
        try await list.loadMore()
        #expect(list.items.map(\.id) == ["a", "b", "c"])
        #expect(!list.hasMore)
        try await server.send(joined(second, seq: 1))
        try await until { list.items.count < 3 }
        #expect(list.items.map(\.id) == ["a", "c"])
        await chat.disconnect()
    }

    @Test("AM-33 R08 a channel returns to the list of those to join each time the user leaves it")
    func leftAgain() async throws {
        let only = view("a", createdAt: 1)
        let server = ScriptedServer { call in
            call.operation == "channel.query" ? .result(Page(items: [only])) : .error(.notFound("operation"))
        }
        let chat = chat(server)
        try await chat.connect()
        let list = chat.channels(matching: ChannelQuery(membership: .notMember), pageSize: 2)
        try await list.loaded()
        for round in 1...3 as ClosedRange<Int64> {
            try await server.send(joined(only, seq: 2 * round - 1))
            try await until { list.items.isEmpty }
            try await server.send(left(only, seq: 2 * round))
            try await until { !list.items.isEmpty }
        }
        await chat.disconnect()
    }

    @Test(
        "AM-33 R08 after a change for which the store couldn't be read, the server is asked again, once the store is readable",
        arguments: [true, false])
    func missedChange(isReadInTime: Bool) async throws {
        let only = view("a", createdAt: 1)
        let server = ScriptedServer { call in
            call.operation == "channel.query" ? .result(Page(items: [only])) : .error(.notFound("operation"))
        }
        func askedCount() async -> Int { await server.operations().count { $0 == "channel.query" } }
        let clock = ManualClock()
        let chat = try await server.connected(clock)
        let list = chat.channels(matching: ChannelQuery(membership: .notMember), pageSize: 2)
        try await list.loaded()
        let store = try await chat.driver.files().store
        // The changes of everything that a list starts with have passed.
        await letOthersRun()
        try await store.change { try $0.run("ALTER TABLE channels RENAME TO hidden") }
        store.signals.signal(StoreChange(channels: ["a"]))
        try await until { list.phase.error != nil && clock.ends.contains(.milliseconds(250)) }
        if !isReadInTime {
            let before = list.phase
            clock.advance(by: .milliseconds(250))
            // The request starts by reading the store. The reason names the failed statement, which is another one.
            try await until { list.phase != before }
        }
        #expect(await askedCount() == 1)
        try await store.change { try $0.run("ALTER TABLE hidden RENAME TO channels") }
        if !isReadInTime {
            store.signals.signal(StoreChange(channels: ["b"]))
            try await until { clock.ends.contains(.milliseconds(500)) }
        }
        clock.advance(by: .milliseconds(250))
        try await until { await askedCount() == 2 }
        try await until { list.phase == .loaded }
        await chat.disconnect()
    }

    @Test("SB-31 SB-32 a list by members is requested again when the user or another user joins a channel; a refusal is the list's")
    func byMembers() async throws {
        let (one, other) = (view("a", createdAt: 1), view("b", createdAt: 2))
        let found = Mutex([one])
        let server = ScriptedServer { call in
            guard case .object(let fields) = call.with, fields["exactUsers"] != nil else {
                return .error(RoostError(.notPermitted, "No."))
            }
            return .result(Page(items: found.withLock { $0 }))
        }
        let clock = ManualClock()
        let chat = try await server.connected(clock)
        var query = ChannelQuery()
        query.exactUsers = ["bob"]
        let list = chat.channels(matching: query)
        var updates = list.updates.makeAsyncIterator()
        #expect(await updates.next()?.items.map(\.id) == ["a"])
        found.withLock { $0 = [one, other] }
        try await server.send(joined(other, seq: 1))
        try await until { clock.ends.contains(.milliseconds(250)) }
        clock.advance(by: .milliseconds(250))
        try await until { list.items.count == 2 }
        #expect(list.items.map(\.id) == ["b", "a"])

        // With a third member the channel no longer has exactly these.
        found.withLock { $0 = [one] }
        let time = Timestamp(milliseconds: 3)
        let cat = Member(userId: "cat", role: .member, state: .member, joinedAt: time, joinedSeq: 2, changeSeq: 2)
        let counters = ChannelCounters(seq: 2, memberCount: 3, messageCount: 0, lastActivity: time)
        await letOthersRun()
        #expect(!clock.ends.contains(.milliseconds(500)))
        try await server.send(
            Event(kind: .memberJoined, stream: .channel("b"), seq: 2, actor: "cat", rows: Rows(counters: counters, [cat])))
        try await until { clock.ends.contains(.milliseconds(500)) }
        clock.advance(by: .milliseconds(250))
        try await until { list.items.map(\.id) == ["a"] }

        let refused = chat.channels(matching: ChannelQuery(includeDeleted: true))
        let refusal = await #expect(throws: RoostError.self) { try await refused.loaded() }
        #expect(refusal?.code == .notPermitted)
        await chat.disconnect()
    }
}
