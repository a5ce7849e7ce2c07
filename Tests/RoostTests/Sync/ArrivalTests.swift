import RoostAPI
import Testing

@testable import Roost

/// Messages that have arrived, and their reports to the server.
@Suite("Sync: arrivals")
struct ArrivalTests {
    private func arrived(_ client: inout Harness) -> [[ChannelID: Seq]] {
        client.take().compactMap { if case .arrived(let arrivals) = $0 { arrivals } else { nil } }
    }

    @Test(
        "X-33 several messages of others are reported together, after a while, by the last of them; own, threaded and silent ones aren't"
    )
    func together() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.timer(.arrivals))
        _ = client.take()
        try await client.receive(sent(message(4, "a", by: "bob"), messages: 3))
        let timers = client.take().compactMap { if case .startTimer(.arrivals, let pause) = $0 { pause } else { nil } }
        #expect(timers == [.seconds(3)])
        try await client.receive(sent(message(5, "b", by: "cid"), messages: 4))
        var answer = message(6, "c", by: "bob")
        answer.parentId = MessageID(rawValue: 4)
        try await client.receive(sent(answer, messages: 5))
        try await client.receive(sent(message(7, "d", by: Harness.user), messages: 6))
        var silent = message(8, "e", by: "bob")
        silent.isSilent = true
        var uncounted = counters(8, messages: 7)
        uncounted.ordinal = 6
        try await client.receive(
            Event(
                kind: .messageNew, stream: .channel(Harness.channel), seq: 8, actor: "bob",
                rows: Rows(counters: uncounted, [silent])))
        #expect(client.take().allSatisfy { if case .startTimer(.arrivals, _) = $0 { false } else { true } })
        try await client.feed(.timer(.arrivals))
        #expect(arrived(&client) == [[Harness.channel: 5]])
        try await client.feed(.timer(.arrivals))
        #expect(arrived(&client) == [])
    }

    /// A channel of a type, with its own policy.
    private func channel(_ id: ChannelID, _ policy: PolicyChanges? = nil, memberCount: Int = 2) -> Channel {
        var channel = Channel(
            channelId: id, type: .community, counters: counters(3, messages: 2), createdBy: "bob",
            createdAt: Timestamp(milliseconds: 0), updatedAt: Timestamp(milliseconds: 0))
        channel.policy = policy
        channel.counters.memberCount = memberCount
        return channel
    }

    @Test("X-33 a channel's own rule doesn't affect others of its type, and holds until it changes")
    func rules() {
        var rules = ArrivalRules()
        let (plain, other) = (channel("plain"), channel("other"))
        #expect(rules.wants(plain) && !rules.wants(channel("silent", PolicyChanges(readEvents: false))))
        // The server refuses the report in a large channel.
        #expect(rules.wants(channel("small", memberCount: Limits.largeChannelMembers)))
        #expect(!rules.wants(channel("large", memberCount: Limits.largeChannelMembers + 1)))
        // Its own rule wasn't known yet.
        rules.refused(channel("closed", PolicyChanges(send: .operators)), by: nil)
        #expect(!rules.wants(channel("closed", PolicyChanges(send: .operators))) && rules.wants(channel("closed")))
        rules.refused(channel("silent", PolicyChanges(readEvents: false)), by: PolicyName.readEvents.rawValue)
        #expect(rules.wants(plain) && rules.mayWant(.community, hasPolicy: false))
        #expect(!rules.wants(channel("silent", PolicyChanges(readEvents: false))))
        #expect(rules.wants(channel("silent", PolicyChanges(readEvents: true))))
        // The type's rule holds for all channels without their own.
        rules.refused(plain, by: PolicyName.deliveryEvents.rawValue)
        #expect(!rules.wants(other) && !rules.mayWant(.community, hasPolicy: false) && rules.mayWant(.live, hasPolicy: false))
        #expect(rules.wants(channel("wanted", PolicyChanges(deliveryEvents: true))))
        rules.refused(channel("wanted", PolicyChanges(deliveryEvents: true)), by: PolicyName.readEvents.rawValue)
        #expect(!rules.wants(channel("second", PolicyChanges(deliveryEvents: true))))
        #expect(rules.wants(channel("third", PolicyChanges(readEvents: true, deliveryEvents: true))))
    }

    @Test("X-33 arrivals that can't be reported wait for the next connection")
    func offline() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.timer(.arrivals))
        try await client.receive(sent(message(4, "a", by: "bob"), messages: 3))
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        _ = client.take()
        try await client.feed(.timer(.arrivals))
        #expect(arrived(&client) == [])
        client.forgetCalls()
        try await client.connect()
        try await client.answer(
            "stream.resume", with: Resumption(user: changes(user: client.sync.saved.userCursor), channels: [], hasMore: false))
        try await client.feed(.timer(.arrivals))
        #expect(arrived(&client) == [[Harness.channel: 4]])
        try await client.feed(.unreported([Harness.channel: 4]))
        try await client.feed(.timer(.arrivals))
        #expect(arrived(&client) == [[Harness.channel: 4]])
    }

    @Test("X-33 arrivals of a history that the server no longer has aren't reported to the next one")
    func otherHistory() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(sent(message(4, "a", by: "bob"), messages: 3))
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        _ = client.take()
        try await client.connect(epoch: "second")
        let page = fresh(messages: [message(2, "one")], counters: counters(2, messages: 1))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [page], hasMore: false))
        try await client.feed(.timer(.arrivals))
        #expect(arrived(&client) == [[Harness.channel: 2]])
        // The answer that it couldn't be reported may arrive after the next history has begun.
        try await client.feed(.unreported([Harness.channel: 4]))
        try await client.feed(.timer(.arrivals))
        #expect(arrived(&client) == [])
    }

    @Test("X-33 arrivals are reported later if the store can't be read: which channels have the reports, or one channel's row")
    func unreadableStore() async throws {
        for table in ["channels", "channel_attributes"] {
            let clock = ManualClock()
            let server = ScriptedServer { call in
                call.operation == "reading.markDelivered" ? .result(Done()) : .error(.notFound("operation"))
            }
            let chat = try await server.connectedInGeneral(clock)
            let store = try await chat.driver.files().store
            let unread = membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 2)
            try await server.send(mine(2, .readingUnmarked, unread))
            try await until { try await store.read { try $0.channelView("general")?.membership?.readSeq } == 1 }
            try await store.change { try $0.run("ALTER TABLE \(table) RENAME TO hidden") }
            await chat.driver.report(["general": 3])
            try await store.change { try $0.run("ALTER TABLE hidden RENAME TO \(table)") }
            try await until { clock.ends.contains(.seconds(3)) }
            #expect(await !server.operations().contains("reading.markDelivered"))
            clock.advance(by: .seconds(3))
            try await until { await server.operations().contains("reading.markDelivered") }
            await chat.disconnect()
        }
    }
}
