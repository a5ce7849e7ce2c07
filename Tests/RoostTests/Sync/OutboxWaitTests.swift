import RoostAPI
import Testing

@testable import Roost

/// Which operations wait in the outbox, for how long, and which don't wait with them.
@Suite("Outbox: waiting")
struct OutboxWaitTests {
    private static let channel = Harness.channel
    private let read = OutboxOperation.read(MarkRead(channel: channel))
    private let leave = OutboxOperation.leave(LeaveChannel(channel: channel))

    private func draft(_ text: String) -> OutboxOperation { .draft(SetDraft(channel: Self.channel, text: text)) }

    private func client() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        return client
    }

    private func pauses(_ client: inout Harness) -> [Duration] {
        client.take().compactMap { if case .startTimer(.outbox(Self.channel), let pause) = $0 { pause } else { nil } }
    }

    @Test("SB-35 R08 a message that the server can't store is refused in the end, however much the user types and reads meanwhile")
    func internalErrors() async throws {
        var client = try await client()
        try await client.send("hi", clientId: "c1")
        let error = RoostError(.internalError, "Something.")
        for number in 1...client.sync.settings.internalErrorsMax {
            try await client.refuse("message.send", with: error)
            try await client.enqueue(draft("\(number)"))
            try await client.enqueue(.mute(MuteNotifications(channel: Self.channel)))
            try await client.feed(.timer(.outbox(Self.channel)))
        }
        let key = MessageKey(channel: Self.channel, clientId: "c1")
        #expect(client.take().contains(.settled(key, .failure(error))))
        #expect(client.calls.values.contains("channel.muteNotifications"))
    }

    @Test("R08 SB-59 a purge doesn't wait behind an undeletion that waits for the end of a mute")
    func purgeAfterWaitingUndeletion() async throws {
        var client = try await client()
        let message = MessageID(rawValue: 2)
        try await client.enqueue(.undelete(UndeleteMessage(channel: Self.channel, message: message)))
        try await client.refuse("message.undelete", with: RoostError(.muted, "Muted.", until: Timestamp(milliseconds: 60_000)))
        #expect(client.calls.isEmpty)
        try await client.enqueue(.purge(PurgeMessage(channel: Self.channel, message: message)))
        #expect(client.calls.values.sorted() == ["message.purge"])
    }

    @Test(
        "R08 SB-59 a purge doesn't wait behind an undeletion that is refused until the end of a mute after the purge was requested")
    func purgeBeforeRefusedUndeletion() async throws {
        var client = try await client()
        let message = MessageID(rawValue: 2)
        let purge = OutboxOperation.purge(PurgeMessage(channel: Self.channel, message: message))
        try await client.enqueue(.undelete(UndeleteMessage(channel: Self.channel, message: message)))
        try await client.enqueue(purge)
        #expect(client.calls.values.sorted() == ["message.undelete"])
        try await client.refuse("message.undelete", with: RoostError(.muted, "Muted.", until: Timestamp(milliseconds: 60_000)))
        #expect(client.calls.values.sorted() == ["message.purge"])
        #expect(try await client.outbox.items().map(\.operation) == [purge])
    }

    @Test("R08 a busy server is asked at growing intervals, at the earliest when it says")
    func backoff() async throws {
        var client = try await client()
        try await client.send("hi", clientId: "c1")
        for _ in 0..<4 {
            try await client.refuse("message.send", with: RoostError(.overloaded, "Later.", retryAfterMilliseconds: 500))
            try await client.feed(.timer(.outbox(Self.channel)))
        }
        #expect(pauses(&client) == [.milliseconds(500), .seconds(1), .seconds(2), .seconds(4)])
        try await client.refuse("message.send", with: RoostError(.rateLimited, "Later.", retryAfterMilliseconds: 60_000))
        #expect(pauses(&client) == [.seconds(60)])
    }

    @Test("R08 a refusal whose end seems past, since the server's clock was set back, is retried at growing intervals")
    func endThatSeemsPast() async throws {
        var client = try await Harness()
        try await client.connect(at: Timestamp(milliseconds: 3_600_000))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
        _ = client.take()
        try await client.send("hi", clientId: "c1")
        for _ in 0..<4 {
            try await client.refuse(
                "message.send", with: RoostError(.channelMuted, "Silenced.", until: Timestamp(milliseconds: 60_000)))
            #expect(client.calls.isEmpty)
            try await client.feed(.timer(.outbox(Self.channel)))
            #expect(client.inFlight == "c1")
        }
        #expect(pauses(&client) == [.milliseconds(500), .seconds(1), .seconds(2), .seconds(4)])
    }

    @Test("R08 AM-43 a queue waits as long as the server says that a refusal lasts, whatever the clocks say of its end")
    func restOfRefusal() async throws {
        var client = try await client()
        try await client.send("hi", clientId: "c1")
        for until in [1000, 7_200_000] as [Int64] {
            let refusal = RoostError(
                .channelMuted, "Silenced.", until: Timestamp(milliseconds: until), retryAfterMilliseconds: 60_000)
            try await client.refuse("message.send", with: refusal)
            #expect(pauses(&client) == [.seconds(60)])
            try await client.feed(.timer(.outbox(Self.channel)))
        }
    }

    @Test("R08 without the setting, a temporary refusal counts as final: the next operation is sent at once")
    func notWaiting() async throws {
        var settings = Sync.Settings()
        settings.waitsForEndOfRefusal = false
        var client = try await Harness(settings: settings)
        try await client.connectWithChannel()
        for id in ["c1", "c2"] as [ClientID] { try await client.send("hi", clientId: id) }
        _ = client.take()
        let refusal = RoostError(.channelMuted, "Silenced.", until: Timestamp(milliseconds: 60_000))
        try await client.refuse("message.send", with: refusal)
        #expect(client.inFlight == "c2" && pauses(&client).isEmpty)
        #expect(try await client.outbox.items().map(\.failure) == [refusal, nil])
        #expect(try await client.outbox.items().map(\.isRefused) == [true, false])
        let key = MessageKey(channel: Self.channel, clientId: "c1")
        try await client.feed(.retry(.message(key)))
        try await client.answer("message.send", with: message(4, "hi", by: "ann", clientId: "c2"))
        #expect(client.inFlight == "c1")
    }

    @Test(
        "R08 AM-43 while a message waits for the end of a silence, reading, drafts, muting and leaving overtake it, but edits don't"
    )
    func overtaking() async throws {
        var client = try await client()
        let silenced = RoostError(.channelMuted, "Silenced.", until: Timestamp(milliseconds: 7_200_000))
        for id in ["c1", "c2"] as [ClientID] { try await client.send("hi", clientId: id) }
        try await client.refuse("message.send", with: silenced)
        #expect(pauses(&client) == [.seconds(3600)] && client.calls.isEmpty)
        let edit = EditMessage(channel: Self.channel, message: MessageID(rawValue: 2), text: "hello")
        try await client.enqueue(.edit(edit, of: nil))
        try await client.enqueue(read)
        #expect(client.calls.values.sorted() == ["reading.mark"])
        // One is sent after the other.
        try await client.enqueue(.mute(MuteNotifications(channel: Self.channel)))
        try await client.enqueue(draft("what"))
        try await client.feed(.timer(.draft(Self.channel)))
        #expect(client.calls.count == 1)
        try await client.answer("reading.mark", with: UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: 3))
        #expect(client.calls.values.sorted() == ["channel.muteNotifications"])
        try await client.answer("channel.muteNotifications", with: Done())
        #expect(client.calls.values.sorted() == ["draft.set"])
        try await client.enqueue(leave)
        try await client.answer("draft.set", with: Done())
        #expect(client.calls.values.sorted() == ["member.leave"])
        try await client.answer("member.leave", with: Done())
        // The messages wait as before.
        #expect(client.calls.isEmpty && pauses(&client) == [])
        try await client.feed(.timer(.outbox(Self.channel)))
        #expect(client.inFlight == "c1")
        try await client.refuse("message.send", with: RoostError(.notMember, "No."))
        #expect(client.inFlight == "c2")
    }

    @Test("SB-26 SB-60 hiding and resetting overtake a message that waits for the end of a silence, up to what the user has seen")
    func concealing() async throws {
        var client = try await client()
        try await client.send("hi", clientId: "c1")
        let reset = OutboxOperation.reset(ResetHistory(channel: Self.channel))
        let seen = OutboxOperation.reset(ResetHistory(channel: Self.channel, upTo: 3))
        // The message in flight is included.
        try await client.enqueue(reset)
        #expect(try await client.outbox.items().map(\.operation).contains(reset))
        try await client.refuse(
            "message.send", with: RoostError(.channelMuted, "Silenced.", until: Timestamp(milliseconds: 7_200_000)))
        #expect(client.calls.isEmpty)
        try await client.enqueue(reset)
        #expect(try await client.outbox.items().map(\.operation).contains(seen))
        #expect(client.calls.values.sorted() == ["channel.resetHistory"])
        try await client.answer("channel.resetHistory", with: Done())
        try await client.enqueue(.hide(HideChannel(channel: Self.channel)))
        #expect(try await client.outbox.items().map(\.operation).last == .hide(HideChannel(channel: Self.channel, upTo: 3)))
        try await client.answer("channel.hide", with: Done())
        try await client.enqueue(.unhide(UnhideChannel(channel: Self.channel)))
        #expect(client.calls.values.sorted() == ["channel.unhide"])
    }

    @Test("SB-26 SB-60 concealing overtakes only messages, not an edit queued after them, nor does showing overtake hiding")
    func concealingInOrder() async throws {
        var client = try await client()
        let hide = OutboxOperation.hide(HideChannel(channel: Self.channel, hidePreviousMessages: true))
        try await client.send("hi", clientId: "c1")
        try await client.enqueue(hide)
        try await client.refuse(
            "message.send", with: RoostError(.channelMuted, "Silenced.", until: Timestamp(milliseconds: 7_200_000)))
        try await client.enqueue(.unhide(UnhideChannel(channel: Self.channel)))
        #expect(client.calls.isEmpty)
        try await client.enqueue(
            .edit(EditMessage(channel: Self.channel, message: MessageID(rawValue: 2), text: "edited"), of: nil))
        try await client.enqueue(.reset(ResetHistory(channel: Self.channel)))
        #expect(client.calls.isEmpty)
        // Other operations continue.
        try await client.enqueue(read)
        #expect(client.calls.values.sorted() == ["reading.mark"])
    }

    @Test("SB-60 a reset next to a message for another server conceals only what the user has seen")
    func concealingBesideOthers() async throws {
        var client = try await client()
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        try await client.send("hi", clientId: "c1")
        client.forgetCalls()
        try await client.connect(server: "other")
        try await client.enqueue(.reset(ResetHistory(channel: Self.channel)))
        #expect(try await client.outbox.items().map(\.operation).last == .reset(ResetHistory(channel: Self.channel, upTo: 3)))
    }

    @Test("R08 an operation that overtakes a waiting message and can't be accepted now is retried with it")
    func overtakingRefused() async throws {
        var client = try await client()
        let silenced = RoostError(.channelMuted, "Silenced.", until: Timestamp(milliseconds: 7_200_000))
        try await client.send("hi", clientId: "c1")
        try await client.refuse("message.send", with: silenced)
        try await client.enqueue(read)
        try await client.refuse("reading.mark", with: RoostError(.overloaded, "Later.", retryAfterMilliseconds: 500))
        try await client.feed(.timer(.outbox(Self.channel)))
        try await client.refuse("message.send", with: silenced)
        #expect(client.calls.values.sorted() == ["reading.mark"])
        // A new connection finds out whether the silence is over.
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(client.inFlight == "c1")
    }

    @Test("R08 an operation that overtakes a waiting message, and is refused for longer, doesn't delay the message")
    func notPutOff() async throws {
        var client = try await client()
        func silenced(_ seconds: Int64) -> RoostError {
            RoostError(.channelMuted, "Silenced.", until: Timestamp(milliseconds: 1000 * seconds))
        }
        try await client.send("hi", clientId: "c1")
        try await client.refuse("message.send", with: silenced(600))
        #expect(pauses(&client) == [.seconds(600)])
        try await client.enqueue(read)
        try await client.refuse("reading.mark", with: silenced(7200))
        try await client.enqueue(.mute(MuteNotifications(channel: Self.channel)))
        try await client.refuse(
            "channel.muteNotifications", with: RoostError(.overloaded, "Later.", retryAfterMilliseconds: 3_600_000))
        #expect(pauses(&client) == [])
        try await client.feed(.timer(.outbox(Self.channel)))
        #expect(client.inFlight == "c1")
        // It may advance the retry.
        try await client.refuse("message.send", with: silenced(600))
        try await client.refuse("channel.muteNotifications", with: silenced(60))
        #expect(pauses(&client) == [.seconds(600), .seconds(60)])
    }

    @Test("R08 an operation that may overtake doesn't overtake itself while it waits for the end of its own refusal")
    func overtakingItself() async throws {
        var client = try await client()
        let banned = RoostError(.banned, "Banned.", until: Timestamp(milliseconds: 7_200_000))
        let operations: [(OutboxOperation, name: String)] = [
            (.mute(MuteNotifications(channel: Self.channel)), "channel.muteNotifications"),
            (.unread(MarkUnread(channel: Self.channel, seq: 2)), "reading.markUnread"),
        ]
        for (operation, name) in operations {
            try await client.enqueue(operation)
            try await client.refuse(name, with: banned)
            #expect(client.calls.isEmpty && pauses(&client) == [.seconds(3600)])
            try await client.feed(.timer(.outbox(Self.channel)))
            #expect(client.calls.values.sorted() == [name])
            try await client.answer(name, with: Done())
        }
        #expect(try await client.outbox.count() == 0)
    }

    @Test("EM-35 R08 a delayed draft is sent before leaving, and operations refused after the membership are dropped")
    func left() async throws {
        var client = try await client()
        try await client.enqueue(draft("hey"))
        try await client.enqueue(leave)
        #expect(client.calls.values.sorted() == ["draft.set"])
        try await client.answer("draft.set", with: Done())
        #expect(client.calls.values.sorted() == ["member.leave"])
        try await client.answer("member.leave", with: Done())
        try await client.feed(.timer(.draft(Self.channel)))
        #expect(try await client.outbox.count() == 0 && client.calls.isEmpty)
        // Another user ends it.
        for operation in [draft("hey"), read] { try await client.enqueue(operation) }
        try await client.refuse("reading.mark", with: RoostError(.notMember, "No."))
        try await client.feed(.timer(.draft(Self.channel)))
        try await client.refuse("draft.set", with: RoostError(.notMember, "No."))
        #expect(try await client.outbox.count() == 0 && client.calls.isEmpty)
        #expect(try await client.store.read { try $0.overlays() } == [:])
        // The channel is deleted.
        for operation in [draft("hey"), read] { try await client.enqueue(operation) }
        try await client.refuse("reading.mark", with: RoostError(.notPermitted, "The channel is deleted."))
        try await client.feed(.timer(.draft(Self.channel)))
        try await client.refuse("draft.set", with: RoostError(.notPermitted, "The channel is deleted."))
        #expect(try await client.outbox.count() == 0 && client.calls.isEmpty)
    }
}
