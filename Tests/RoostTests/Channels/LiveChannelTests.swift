import Foundation
import Logging
import Roost
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Channels: live", .timeLimit(.minutes(5)))
struct LiveChannelTests {
    private func chat(_ server: any Transport = TinyServer()) -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server
        configuration.backoff = .milliseconds(1)...(.milliseconds(5))
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    @Test("AM-31 AM-29 SB-22 SB-29 AM-48 a live channel shows the user's membership and permissions, and their changes")
    func standing() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        let live = chat.channel("general")
        var updates = live.updates.makeAsyncIterator()
        #expect(await updates.next() == .some(nil))
        #expect(live.currentUserMembership == .none)
        #expect(live.myRole == nil)

        let invited = invitation(to: "general")
        try await store.write([.channel(channel(counters(3, messages: 2))), .invitation(invited)])
        _ = await updates.next()
        #expect(live.currentUserMembership == .invited(invited))

        let role = membership(
            readSeq: 1, readCount: 0, role: .operator, hidden: .hiddenPreventAutoUnhide, channelSeq: 3, userSeq: 2)
        try await store.write([
            .membership(role), .invitation(invitation(to: "general", .accepted, revision: 2)),
            .capabilities("general", Capabilities.Own(permissions: [.channelFreeze], userSeq: 2, channelSeq: 3)),
        ])
        _ = await updates.next()
        #expect(live.currentUserMembership == .member)
        #expect(live.myRole == .operator)
        #expect(live.hiddenState == .hiddenPreventAutoUnhide)
        #expect(live.unreadCount == 2)
        #expect([Permission.channelFreeze, .channelDelete].map(live.hasPermission) == [true, false])

        var banned = membership(readSeq: 1, readCount: 0, state: .none, channelSeq: 3, userSeq: 3)
        banned.bannedUntil = .forever
        try await store.write([.membership(banned), .leave("general")])
        _ = await updates.next()
        #expect(live.currentUserMembership == .banned(until: .forever))
        #expect(live.myRole == nil)
        #expect(!live.hasPermission(.channelFreeze))
    }

    @Test("AM-07 AM-08 whether a channel is silenced or rate-limited follows from the clock, not from the stored state")
    func timedStates() async throws {
        let chat = chat()
        var silenced = channel(counters(3, messages: 2))
        silenced.mutedUntil = Timestamp(milliseconds: 1)
        silenced.isMuted = true
        silenced.rateLimitedUntil = .forever
        try await chat.driver.prepare().store.write([.channel(silenced)])
        let live = chat.channel("general")
        for await view in live.updates where view != nil { break }
        #expect([live.channel?.isMuted, live.channel?.isRateLimited] == [false, true])
    }

    @Test("AM-07 AM-31 the end of a silence and of a ban is reported without an event")
    func ends() async throws {
        let chat = chat()
        let soon = Timestamp(milliseconds: chat.driver.environment.now().milliseconds + 300)
        var silenced = channel(counters(3, messages: 2))
        silenced.mutedUntil = soon
        var banned = membership(readSeq: 1, readCount: 0, state: .none, channelSeq: 3, userSeq: 3)
        banned.bannedUntil = soon
        try await chat.driver.prepare().store.write([.channel(silenced), .membership(banned)])
        let live = chat.channel("general")
        for await view in live.updates where view?.channel.isMuted == false { break }
        #expect(live.currentUserMembership == .none)
    }

    @Test("AM-48 a muted member may send again at the end of the mute, without an event")
    func muteEnds() async throws {
        let chat = chat()
        var muted = membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 2)
        muted.mutedUntil = Timestamp(milliseconds: chat.driver.environment.now().milliseconds + 300)
        let byRole = Capabilities.ByRole(permissions: ["member": [.channelRead, .messageSend]], channelSeq: 4)
        try await chat.driver.prepare().store.write([
            .channel(channel(counters(4, messages: 2))), .membership(muted), .roleCapabilities("general", byRole),
        ])
        let live = chat.channel("general")
        for await view in live.updates where view?.ownCapabilities == [.channelRead, .messageSend] { break }
        #expect(live.hasPermission(.messageSend))
    }

    @Test("AM-37 AM-29 an update of a channel shows in a live channel, and its observers are notified once")
    func updated() async throws {
        let server = ScriptedServer { _ in .nothing }
        let chat = try await server.connectedInGeneral()
        let live = chat.channel("general")
        try await live.loaded()
        var reported: [Channel?] = []
        let token = live.observe { reported.append($0?.channel) }
        let before = live.channel
        var after = channel(counters(4, messages: 0))
        after.attributes.displayName = "Rome"
        after.attributes.avatarFileId = "rome.png"
        after.tags = ["travel"]
        after.metadata = ["year": 2026]
        after.metadataVersion = 1
        try await server.send(
            Event(kind: .channelUpdated, stream: .channel("general"), seq: 4, actor: "bob", rows: Rows(channel: after)))
        try await until { live.channel == after }
        await letOthersRun()
        #expect(reported == [before, after])
        token.invalidate()
        await chat.disconnect()
    }

    @Test("SB-12 AM-23 a creation whose answer is lost is sent again with the same key, and makes one channel")
    func lostCreation() async throws {
        let turn = Turn()
        let created = ChannelView(
            channel: channel(counters(1, messages: 0)), membership: membership(readSeq: 1, readCount: 0, userSeq: 1))
        let server = ScriptedServer { call in
            call.operation == "channel.create" && turn.next() == 0 ? .lost : .result(created)
        }
        let chat = chat(server)
        try await chat.connect()
        let live = try await chat.createChannel(displayName: "General")
        #expect(live.id == "general")
        let keys = await server.calls.filter { $0.operation == "channel.create" }.map { call -> JSONValue? in
            if case .object(let fields) = call.with { fields["idempotencyKey"] } else { nil }
        }
        #expect(keys.count == 2 && keys.first == keys.last && keys.first != .some(nil))
        await chat.disconnect()
    }

    @Test("SB-12 a creation that is cancelled while it waits for another connection reports that, and not that there is none")
    func cancelledCreation() async throws {
        let clock = ManualClock()
        let server = ScriptedServer { $0.operation == "channel.create" ? .lost : .error(.notFound("operation")) }
        let chat = try await server.connected(clock)
        let creation = Task { _ = try await chat.createChannel(displayName: "General") }
        try await until { await server.operations().contains("channel.create") && chat.driver.statuses.current != .online }
        await chat.disconnect()
        // A moment later it waits for a connection, for the timeout of a call.
        try await until { clock.ends.contains(.milliseconds(50)) }
        clock.advance(by: .milliseconds(50))
        try await until { clock.ends.contains(.milliseconds(30_050)) }
        creation.cancel()
        await #expect(throws: CancellationError.self) { try await creation.value }
    }

    @Test("AM-25 AM-26 AM-27 AM-28 ST-03 a conversation, a join and a fetch return the channel by its own id")
    func getAndJoin() async throws {
        let view = ChannelView(
            channel: channel(counters(3, messages: 0)),
            membership: membership(readSeq: 3, readCount: 0, channelSeq: 3, userSeq: 1), ownCapabilities: [.messageSend])
        var seen = view
        seen.membership = nil
        let unjoined = seen
        let server = ScriptedServer { call in .result(call.operation == "channel.get" ? unjoined : view) }
        let chat = chat(server)
        try await chat.connect()
        let live = try await chat.getChannel("community:general")
        for await view in live.updates where view != nil { break }
        #expect(live.id == "general")
        #expect(live.currentUserMembership == .none)
        _ = try await chat.createConversation(with: ["bob"])
        for await view in live.updates where view?.membership != nil { break }
        #expect(try await chat.joinChannel("general").id == "general")
        #expect(live.currentUserMembership == .member)
        #expect(await server.operations().dropFirst() == ["channel.get", "channel.create", "member.join"])
        await chat.disconnect()
    }

    @Test("AM-26 SB-15 SB-20 SB-26 AM-43 a live channel shows the result of its own call when the call returns")
    func shownOnReturn() async throws {
        let view = ChannelView(
            channel: channel(counters(3, messages: 2)),
            membership: membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 1), ownCapabilities: [.messageSend])
        for isInvited in [true, false] {
            let chat = try await ScriptedServer { call in
                ["member.join", "invitation.accept"].contains(call.operation) ? .result(view) : .nothing
            }.connected()
            let live = chat.channel("general")
            try await live.loaded()
            if isInvited { try await live.acceptInvitation() } else { try await live.join() }
            #expect(live.currentUserMembership == .member && live.hasPermission(.messageSend) && live.unreadCount == 2)
            try await live.markRead()
            #expect(live.unreadCount == 0)
            try await live.hide()
            #expect(live.hiddenState == .hiddenAllowAutoUnhide)
            try await live.leave()
            #expect(live.currentUserMembership == .none)
            await chat.disconnect()
        }
    }

    @Test("AM-07 AM-08 a duration is whole seconds on the wire, nil is forever, and zero is refused")
    func durations() async throws {
        let durations: [Duration] = [.seconds(60), .milliseconds(1), .milliseconds(1500), .zero, .seconds(-1)]
        #expect(durations.map(\.wholeSeconds) == [60, 1, 2, 0, 0])
        await #expect(throws: RoostError.invalidArgument("seconds", "must be 1 or more, or -1 (forever)")) {
            try await chat().channel("general").silence(for: .seconds(-1))
        }
    }

    @Test("SB-15 SB-16 SB-18 R14 invitations are a live list that fetches the channels it doesn't know; preferences are live too")
    func invitations() async throws {
        let chat = chat(
            ScriptedServer { call in
                guard call.operation == "invitation.mine" else { return .error(.notFound("operation")) }
                return .result(
                    Page(items: [InvitationEntry(invitation: invitation(to: "general"), channel: channel(counters(1, messages: 0)))]
                    ))
            })
        try await chat.connect()
        let list = chat.invitations()
        let preferences = chat.preferences
        var updates = list.updates.makeAsyncIterator()
        _ = await updates.next()
        let store = try await chat.driver.prepare().store
        try await store.write([
            .invitation(invitation(to: "general")), .rows(Rows([Preferences(autoAcceptInvitations: false)]), of: .user("ann")),
        ])
        try await until { list.items.first?.channel != nil }
        #expect(list.items.map(\.invitation) == [invitation(to: "general")])
        for await state in preferences.updates where !state.autoAcceptInvitations { break }
        #expect(!preferences.autoAcceptInvitations)
        try await store.write([.invitation(invitation(to: "general", .declined, revision: 2))])
        try await until { list.items.isEmpty }
        await chat.disconnect()
    }

    @Test("SB-15 SB-16 R14 the channel of an invitation is requested once in each connection, though an old row of it is stored")
    func renamedChannelOfInvitation() async throws {
        let (old, new, newest) = (named("Plans"), named("Trip"), named("Rome"))
        let turn = Turn()
        let server = ScriptedServer { call in
            guard call.operation == "invitation.mine" else { return .error(.notFound("operation")) }
            return .result(
                Page(items: [InvitationEntry(invitation: invitation(to: "general"), channel: turn.next() == 0 ? new : newest)]))
        }
        let chat = chat(server)
        try await chat.connect()
        let store = try await chat.driver.prepare().store
        // The row from when the user left.
        try await store.write([.channel(old)])
        let list = chat.invitations()
        try await list.loaded()
        func name(of channel: ChannelID) -> String? { list.items.first { $0.id.channelId == channel }?.channel?.displayName }
        try await store.write([.invitation(invitation(to: "general"))])
        try await until { name(of: "general") == "Trip" }

        // An invitation that arrives with its channel is no reason to ask.
        var other = named("Other")
        other.channelId = "private"
        try await server.send(
            Event(
                kind: .invitationReceived, stream: .user("ann"), seq: 1, actor: "bob", rows: Rows(channel: other, [invitation()])))
        try await until { name(of: "private") == "Other" }
        await letOthersRun()
        #expect(await server.operations().count { $0 == "invitation.mine" } == 1)

        await chat.disconnect()
        try await chat.connect()
        try await until { name(of: "general") == "Rome" }
        await chat.disconnect()
    }

    private func named(_ name: String) -> Channel {
        var named = channel(counters(1, messages: 0))
        named.attributes.displayName = name
        return named
    }

    @Test(
        "SB-15 R14 the channels of invitations are requested again if the server couldn't answer for now",
        arguments: [true, false])
    func invitationsAskedAgain(passes: Bool) async throws {
        let turn = Turn()
        let refusal = RoostError(passes ? .rateLimited : .notPermitted, "Not now.")
        let server = ScriptedServer { call in
            guard call.operation == "invitation.mine" else { return .error(.notFound("operation")) }
            guard turn.next() > 0 else { return .error(refusal) }
            return .result(
                Page(items: [InvitationEntry(invitation: invitation(to: "general"), channel: channel(counters(1, messages: 0)))]))
        }
        let chat = chat(server)
        try await chat.connect()
        let list = chat.invitations()
        try await list.loaded()
        try await chat.driver.prepare().store.write([.invitation(invitation(to: "general"))])
        try await until { list.items.count == 1 }
        if passes {
            try await until { list.items.first?.channel != nil }
        } else {
            try await until { await server.operations().contains("invitation.mine") }
            await letOthersRun()
            // A permanent refusal isn't retried, and the list stays.
            #expect(await server.operations().count { $0 == "invitation.mine" } == 1)
        }
        #expect(list.phase == .loaded)
        await chat.disconnect()
    }

    @Test("SB-15 R14 the channels of invitations are requested on a new connection, however long the server asked to wait before")
    func invitationsAskedOnConnection() async throws {
        let turn = Turn()
        let refusal = RoostError(.rateLimited, "Not now.", retryAfterMilliseconds: 60_000)
        let server = ScriptedServer { call in
            guard call.operation == "invitation.mine" else { return .error(.notFound("operation")) }
            guard turn.next() > 0 else { return .error(refusal) }
            return .result(
                Page(items: [InvitationEntry(invitation: invitation(to: "general"), channel: channel(counters(1, messages: 0)))]))
        }
        let clock = ManualClock()
        let chat = try await server.connected(clock)
        let list = chat.invitations()
        try await list.loaded()
        try await chat.driver.prepare().store.write([.invitation(invitation(to: "general"))])
        try await until { clock.ends.contains(.seconds(60)) }
        #expect(list.items.first?.channel == nil)
        await chat.disconnect()
        try await chat.connect()
        try await until { list.items.first?.channel != nil }
        #expect(await server.operations().count { $0 == "invitation.mine" } == 2)
        await chat.disconnect()
    }

    @Test("I20 after a server with another history, live objects show its rows, and no earlier ones with the same stamps")
    func otherHistory() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        func history(_ text: String) -> [StoreWrite] {
            [
                .forget("general"), .channel(channel(counters(3, messages: 1))),
                .membership(membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 2)),
                .messages([message(3, text)], of: "general"),
                .position("general", Position(cursor: 3, windowStart: 0, messageCount: 1)),
            ]
        }
        try await store.write(history("before"))
        let (live, messages, list) = (chat.channel("general"), chat.channel("general").messages(), chat.channels())
        func shown() -> [String?] { [live.lastMessage?.text, messages.items.last?.text, list.items.first?.lastMessage?.text] }
        try await until { shown() == ["before", "before", "before"] }
        try await store.write([.erase(epoch: "second")] + history("after"))
        try await until { shown() == ["after", "after", "after"] }
        #expect(messages.items.count == 1 && list.items.count == 1)
    }
}
