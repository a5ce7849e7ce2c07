import RoostAPI
import Testing

@testable import Roost

@Suite("Sync: the user's permissions")
struct CapabilityTests {
    private let all: [Permission] = [.channelRead, .messageSend, .historyRead]

    private func granted(_ client: Harness) async throws -> [Permission]? { try await client.view()?.ownCapabilities }

    /// A change of the whole channel, with permissions by role.
    private func change(_ seq: Seq, _ capabilities: [String: [Permission]], _ counters: ChannelCounters) -> Event {
        Event(
            kind: .channelFrozen, stream: .channel(Harness.channel), seq: seq, actor: "bob",
            rows: Rows(channel: channel(counters), capabilities: capabilities))
    }

    private func mine(_ seq: Seq, _ membership: Membership, may permissions: [Permission]) -> Event {
        Event(
            kind: .memberRoleChanged, stream: .user(Harness.user), seq: seq, actor: "bob",
            rows: Rows(ownCapabilities: ["general": permissions], [membership]))
    }

    private func left(_ seq: Seq) -> Event {
        Event(
            kind: .memberRemoved, stream: .user(Harness.user), seq: seq, actor: "bob",
            rows: Rows([membership(readSeq: 1, readCount: 0, state: .none, userSeq: seq)]))
    }

    @Test("AM-48 R08 a freeze sent by role changes the permissions of members of that role, and no admin's")
    func byRole() async throws {
        let frozen = ["member": [Permission.channelRead, .historyRead], "operator": all]
        let expectations: [(AppRole, [Permission]?)] = [
            (.user, frozen["member"]), (.admin, all), (.service, all), (.moderator, all),
        ]
        for (role, expected) in expectations {
            var client = try await Harness()
            try await client.connectWithChannel(role: role)
            try await client.receive(mine(2, membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 2), may: all))
            #expect(try await granted(client) == all)
            try await client.receive(change(4, frozen, counters(4, messages: 2)))
            #expect(try await granted(client) == expected, "\(role)")
        }
    }

    @Test("AM-48 of permissions sent to the user and by role, those of the channel's later change hold, in either order")
    func later() async throws {
        let frozen = ["member": [Permission.channelRead, .historyRead], "operator": all]
        let promoted = membership(readSeq: 1, readCount: 0, role: .operator, channelSeq: 4, userSeq: 2)
        for isOwnFirst in [true, false] {
            var client = try await Harness()
            try await client.connectWithChannel()
            let role = mine(2, promoted, may: [.channelUpdate, .historyRead])
            let counted = Event(
                kind: .memberRoleChanged, stream: .channel(Harness.channel), seq: 4, actor: "bob",
                rows: Rows(counters: counters(4, messages: 2)))
            let freeze = change(5, frozen, counters(5, messages: 2))
            if isOwnFirst { try await client.receive(role) }
            try await client.receive(counted)
            try await client.receive(freeze)
            if !isOwnFirst { try await client.receive(role) }
            #expect(try await granted(client) == all, "own first: \(isOwnFirst)")
        }
    }

    @Test("AM-48 a freeze or its end, sent by role, gives a muted member or operator nothing that the mute takes until it is over")
    func muted() async throws {
        let reported: [Permission] = [.channelRead, .messageSend, .messageEditOwn, .messageEditAny, .historyRead]
        let withoutMuted: [Permission] = [.channelRead, .messageEditAny, .historyRead]
        let expectations: [(milliseconds: Int64, permissions: [Permission])] = [(4, withoutMuted), (5, reported)]
        for role in [ChannelRole.member, .operator] {
            var client = try await Harness()
            try await client.connectWithChannel()
            var muted = membership(readSeq: 1, readCount: 0, role: role, channelSeq: 3, userSeq: 2)
            muted.mutedUntil = .forever
            try await client.receive(mine(2, muted, may: withoutMuted))
            try await client.receive(change(4, [role.rawValue: reported], counters(4, messages: 2)))
            #expect(try await granted(client) == withoutMuted, "\(role)")

            (muted.mutedUntil, muted.userSeq) = (Timestamp(milliseconds: 5), 3)
            try await client.store.write([.membership(muted)])
            for (milliseconds, expected) in expectations {
                let now = Timestamp(milliseconds: milliseconds)
                let stored: [[Permission]?] = try await client.store.read { database in
                    [
                        try database.channelRow(Harness.channel, now: now)?.view.ownCapabilities,
                        try database.permissions(in: Harness.channel, now: now),
                    ]
                }
                #expect(stored == [expected, expected], "\(role)")
            }
        }
    }

    @Test("AM-07 AM-48 an answer that an event has overtaken still sets the user's permissions, unless the event took them")
    func overtaken() async throws {
        let counted = Event(
            kind: .channelUpdated, stream: .channel(Harness.channel), seq: 4, actor: "bob",
            rows: Rows(counters: counters(4, messages: 2)))
        let frozen = change(4, ["member": [.channelRead], "operator": all], counters(4, messages: 2))
        for (event, expected) in [(counted, all), (frozen, [.channelRead])] {
            var client = try await Harness()
            try await client.connectWithChannel()
            let own = membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 2)
            try await client.receive(mine(2, own, may: [.channelRead, .historyRead]))
            try await client.feed(.call(1, GetChannel(channel: Harness.channel)))
            try await client.receive(event)
            try await client.answer(
                "channel.get",
                with: ChannelView(channel: channel(counters(3, messages: 2)), membership: own, ownCapabilities: all))
            #expect(try await granted(client) == expected)
            // The rest of it is older than the stream's state.
            #expect(try await client.view()?.channel.counters.seq == 4)
        }
    }

    @Test("AM-48 users other than ordinary ones request their own permissions when an event has others', one request at a time")
    func asked() async throws {
        let frozen = ["member": [Permission.channelRead], "operator": all]
        let own = membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 2)
        for role in AppRole.allCases {
            var client = try await Harness()
            try await client.connectWithChannel(role: role)
            try await client.receive(mine(2, own, may: [.channelRead, .historyRead]))
            for seq: Seq in [4, 5] { try await client.receive(change(seq, frozen, counters(seq, messages: 2))) }
            guard role != .user else {
                #expect(client.calls.isEmpty)
                continue
            }
            #expect(Array(client.calls.values) == ["channel.get"], "\(role)")
            // The events arrived after the request.
            try await client.answer("channel.get", with: view(3, own, may: [.channelRead, .historyRead]))
            #expect(Array(client.calls.values) == ["channel.get"], "\(role)")
            try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
            client.forgetCalls()
            try await client.connect(role: role)
            try await client.answer(
                "stream.resume", with: Resumption(user: changes(user: 2), channels: [], hasMore: false))
            try await client.answer("channel.get", with: view(5, own, may: all))
            #expect(try await granted(client) == all, "\(role)")
            #expect(client.calls.isEmpty, "\(role)")
        }
    }

    @Test("AM-48 an answer about permissions counts even if another event has overtaken it")
    func overtakenRequest() async throws {
        let own = membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 2)
        var client = try await Harness()
        try await client.connectWithChannel(role: .guest)
        try await client.receive(change(4, ["member": [Permission.channelRead]], counters(4, messages: 2)))
        #expect(Array(client.calls.values) == ["channel.get"])
        try await client.receive(sent(message(5, "meanwhile"), messages: 3))
        try await client.answer("channel.get", with: view(4, own, may: [.channelRead]))
        #expect(client.sync.saved.channels[Harness.channel]?.hasHole == true)
    }

    private func view(_ seq: Seq, _ own: Membership, may permissions: [Permission]) -> ChannelView {
        ChannelView(channel: channel(counters(seq, messages: 2)), membership: own, ownCapabilities: permissions)
    }

    @Test("AM-48 R13 the user's permissions are dropped when the membership ends, and return with rejoining")
    func forgotten() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(mine(2, membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 2), may: all))
        try await client.receive(left(3))
        #expect(try await granted(client) == [])
        var back = membership(readSeq: 9, readCount: 2, channelSeq: 9, userSeq: 4)
        back.joinedSeq = 9
        try await client.receive(
            Event(
                kind: .memberJoined, stream: .user(Harness.user), seq: 4, actor: "ann",
                rows: Rows(channel: channel(counters(9, messages: 2)), ownCapabilities: ["general": [.channelRead]], [back])))
        #expect(try await granted(client) == [.channelRead])
    }

    @Test("AM-34 AM-48 a deleted channel has no members and no permissions")
    func deleted() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(mine(2, membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 2), may: all))
        let deleted = channel(counters(4, messages: 2), deletedAt: Timestamp(milliseconds: 4))
        try await client.receive(
            Event(kind: .channelDeleted, stream: .channel(Harness.channel), seq: 4, actor: "bob", rows: Rows(channel: deleted)))
        let view = try await client.view()
        #expect(view?.membership?.state == MembershipState.none)
        #expect(view?.ownCapabilities == [])
    }

    @Test("a permission unknown to this version is left out, and the rest is accepted")
    func newerServer() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.receive(
            text: """
                {"watching":false,"event":"channel.frozen","stream":"channel:general","seq":4,
                 "rows":{"capabilities":{"member":["message.sing","channel.read"]}}}
                """)
        #expect(try await granted(client) == [.channelRead])
    }
}
