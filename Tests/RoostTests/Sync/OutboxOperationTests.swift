import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Operations in the outbox besides sending.
@Suite("Outbox: operations")
struct OutboxOperationTests {
    private static let channel = Harness.channel
    private let hide = OutboxOperation.hide(HideChannel(channel: channel))
    private let unhide = OutboxOperation.unhide(UnhideChannel(channel: channel))

    private func offline() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.stop)
        client.forgetCalls()
        return client
    }

    private func edit(_ text: String, of client: ClientID? = nil, _ id: Int64 = 2) -> OutboxOperation {
        .edit(EditMessage(channel: Self.channel, message: MessageID(rawValue: id), text: text), of: client)
    }

    private func deletion(_ messages: Int64...) -> OutboxOperation {
        .deleteMany(DeleteMessages(channel: Self.channel, messages: messages.map { MessageID(rawValue: $0) }))
    }

    private func reconnect(_ client: inout Harness, server: String = "server") async throws {
        try await client.connect(server: server)
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
    }

    @Test("an operation requested offline is shown at once, kept over a restart, and sent with the next connection, with a key")
    func shown() async throws {
        var before = try await offline()
        for operation in [
            .read(MarkRead(channel: Self.channel)), hide, .preferences(UpdatePreferences(autoAcceptInvitations: false)),
        ]
            as [OutboxOperation]
        { try await before.enqueue(operation) }
        var client = try await before.restarted()
        #expect(try await client.unread() == 0)
        #expect(try await client.view()?.hiddenState == .hiddenAllowAutoUnhide)
        #expect(try await client.store.read { try $0.preferences() } == Preferences(autoAcceptInvitations: false))
        try await reconnect(&client)
        #expect(client.calls.values.sorted() == ["preferences.update", "reading.mark"])
        #expect(client.keys["reading.mark"]?.map { $0?.count } == [36])
        try await client.answer("reading.mark", with: UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: 3))
        #expect(client.keys["channel.hide"]?.first??.count == 36)
    }

    @Test("after a lost reply the call is sent again with its key, even after a restart; a completed operation isn't repeated")
    func lostReply() async throws {
        var before = try await Harness()
        try await before.connectWithChannel()
        try await before.enqueue(hide)
        let first = before.keys["channel.hide"]
        var client = try await before.restarted()
        try await reconnect(&client)
        #expect(first?.count == 1 && client.keys["channel.hide"] == first)
        try await client.answerDone("channel.hide")
        #expect(try await client.outbox.items() == [])
        #expect(try await client.store.read { try $0.overlays() } == [:])
    }

    @Test("if the server keeps no more keys of the user, an operation is sent again without; another refusal is final")
    func noMoreKeys() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        let full = RoostError.limitExceeded(IdempotencyKey.member, limit: 10_000, unit: "keys of a user at a time")
        for isCarriedOut in [true, false] {
            try await client.enqueue(hide)
            try await client.refuse("channel.hide", with: full)
            #expect(client.keys["channel.hide"]?.suffix(2).map { $0?.count } == [36, nil])
            #expect(try await client.view()?.hiddenState == .hiddenAllowAutoUnhide)
            if isCarriedOut {
                try await client.answer("channel.hide", with: Done())
            } else {
                try await client.refuse("channel.hide", with: full)
            }
            #expect(try await client.outbox.items().map(\.failure) == (isCarriedOut ? [] : [full]))
        }
    }

    @Test("unsent preferences are one change, and a refused one is kept until a later one decides the same")
    func preferences() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        func kept() async throws -> [OutboxOperation] { try await client.outbox.items().map(\.operation) }
        let refused = OutboxOperation.preferences(UpdatePreferences(sharesPresence: false))
        try await client.enqueue(refused)
        try await client.refuse("preferences.update", with: RoostError(.notPermitted, "No."))
        // Two clients of one folder may leave one each.
        let unsent = [UpdatePreferences(autoAcceptInvitations: false, sharesTyping: true), UpdatePreferences(sharesTyping: false)]
        for (id, update) in zip([-2, -1] as [Int64], unsent) {
            let item = OutboxItem(
                id: id, number: 1000, operation: .preferences(update), createdAt: Timestamp(milliseconds: 0), server: "server")
            try await client.outbox.apply([.put(item)])
        }
        client = try await client.restarted()
        try await client.enqueue(.preferences(UpdatePreferences(sharesReading: false)))
        var whole = UpdatePreferences(autoAcceptInvitations: false, sharesTyping: false, sharesReading: false)
        #expect(try await kept() == [refused, .preferences(whole)])
        try await client.enqueue(.preferences(UpdatePreferences(sharesPresence: true)))
        whole.sharesPresence = true
        #expect(try await kept() == [.preferences(whole)])
    }

    @Test("operations with the same number, which two clients of one folder may give, are all sent")
    func sameNumber() async throws {
        let items = (1...3 as ClosedRange<Int64>).map { id in
            OutboxItem(
                id: id * 7 % 5, number: 1,
                operation: .send(SendMessage(channel: Self.channel, clientId: ClientID("c\(id)"), text: "hi")),
                createdAt: Timestamp(milliseconds: 0))
        }
        var queue = OutboxQueue()
        for item in items { queue.put(item, for: nil) }
        for _ in items {
            let next = try #require(queue.next)
            // Another state of it, as before it is sent.
            queue.put(next, for: nil)
            #expect(queue.next == next)
            _ = queue.remove(next.id)
        }
        #expect(queue.isIdle)
        for item in items { queue.put(item, for: nil) }
        for item in items { _ = queue.remove(item.id) }
        #expect(queue.isIdle)
    }

    @Test("if only the last counts, the last is sent: the highest read position, the last of hiding, all of the preferences")
    func coalesced() async throws {
        var client = try await offline()
        for operation in [
            .read(MarkRead(channel: Self.channel, seq: 2)), hide, .read(MarkRead(channel: Self.channel, seq: 3)), unhide, hide,
            .read(MarkRead(channel: Self.channel, seq: 1)), .leave(LeaveChannel(channel: Self.channel)),
            .leave(LeaveChannel(channel: Self.channel)),
        ] as [OutboxOperation] { try await client.enqueue(operation) }
        #expect(
            try await client.outbox.items().map(\.operation) == [
                .read(MarkRead(channel: Self.channel, seq: 3)), .hide(HideChannel(channel: Self.channel, upTo: 3)),
                .leave(LeaveChannel(channel: Self.channel)),
            ])
        #expect(try await client.listed() == [])
    }

    @Test(
        "D-29 muting a channel for oneself is shown and out of the total at once; the last one is sent, and a refusal reverses it")
    func muting() async throws {
        var client = try await offline()
        func mutedUntil() async throws -> Timestamp? { try await client.view()?.membership?.notificationsMutedUntil }
        func total() async throws -> Int {
            try await client.store.read { database in
                try ChannelQuery(hidden: .all).places(in: database).reduce(0) { $0 + $1.countedUnread }
            }
        }
        let before = try await total()
        #expect(before > 0)
        let mute = OutboxOperation.mute(MuteNotifications(channel: Self.channel))
        try await client.enqueue(.mute(MuteNotifications(channel: Self.channel, seconds: 60)))
        #expect(try await mutedUntil().map { $0 < .forever } == true)
        try await client.enqueue(mute)
        #expect(try await mutedUntil() == .forever)
        #expect(try await total() == 0)
        try await client.enqueue(.unmute(UnmuteNotifications(channel: Self.channel)))
        #expect(try await mutedUntil() == nil)
        try await client.enqueue(mute)
        #expect(try await client.outbox.items().map(\.operation) == [mute])
        client = try await client.restarted()
        #expect(try await mutedUntil() == .forever)
        try await reconnect(&client)
        try await client.refuse("channel.muteNotifications", with: RoostError(.notPermitted, "No."))
        #expect(try await mutedUntil() == nil)
        #expect(try await total() == before)
    }

    @Test("D-29 a channel is muted for up to a hundred years: a longer time, or zero, is refused and not kept")
    @MainActor func longestMute() async throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let configuration = Chat.Configuration(storage: .inMemory, logger: logger, transport: TinyServer())
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let (room, longest) = (chat.channel(Self.channel), Duration.seconds(Limits.durationSeconds))
        for (duration, code) in [(longest + .milliseconds(1), .limitExceeded), (.zero, .invalidArgument)]
            as [(Duration, RoostError.Code)]
        {
            let refusal = await #expect(throws: RoostError.self) { try await room.muteNotifications(for: duration) }
            #expect(refusal?.code == code && refusal?.field == "seconds")
        }
        try await room.muteNotifications(for: longest)
        #expect(try await chat.driver.files().outbox.count() == 1)
    }

    @Test("an edit of an unsent message changes it, and deleting it leaves no trace")
    func unsentMessage() async throws {
        var client = try await offline()
        try await client.send("a", clientId: "c1")
        try await client.send("b", clientId: "c2")
        try await client.enqueue(edit("a2", of: "c1", 0))
        #expect(try await client.texts() == ["one", "two", "a2…", "b…"])
        try await client.enqueue(.delete(DeleteMessage(channel: Self.channel, message: MessageID(rawValue: 0)), of: "c1"))
        #expect(try await client.texts() == ["one", "two", "b…"])
        #expect(try await client.outbox.count() == 1)
    }

    @Test("SB-58 SB-59 an edit isn't lost by a deletion that is reversed before it is sent, or that the server refuses")
    func editBeforeDeletion() async throws {
        let delete = OutboxOperation.delete(DeleteMessage(channel: Self.channel, message: MessageID(rawValue: 2)))
        for isTakenBack in [true, false] {
            var client = try await offline()
            try await client.enqueue(edit("uno"))
            try await client.enqueue(delete)
            if isTakenBack {
                try await client.enqueue(.undelete(UndeleteMessage(channel: Self.channel, message: MessageID(rawValue: 2))))
                #expect(try await client.outbox.items().map(\.operation) == [edit("uno")])
            } else {
                #expect(try await client.outbox.items().map(\.operation) == [edit("uno"), delete])
                // Deleted, restored and deleted: one deletion.
                try await client.enqueue(.undelete(UndeleteMessage(channel: Self.channel, message: MessageID(rawValue: 2))))
                try await client.enqueue(delete)
                #expect(try await client.outbox.items().map(\.operation) == [edit("uno"), delete])
            }
            try await reconnect(&client)
            #expect(client.calls.values.contains("message.edit"))
            var edited = message(2, "uno", changedAt: 4)
            edited.editedAt = edited.createdAt
            try await client.answer("message.edit", with: edited)
            guard !isTakenBack else { continue }
            try await client.refuse("message.delete", with: RoostError(.notPermitted, "No."))
            #expect(try await client.outbox.items().map(\.operation) == [delete])
        }
    }

    @Test("SB-59 a message that is deleted and restored repeatedly offline ends in the last requested state")
    func restoredLast() async throws {
        let message = MessageID(rawValue: 2)
        let delete = OutboxOperation.delete(DeleteMessage(channel: Self.channel, message: message))
        let undelete = OutboxOperation.undelete(UndeleteMessage(channel: Self.channel, message: message))
        // It is deleted on the server.
        var client = try await offline()
        for operation in [undelete, delete, undelete, delete, undelete] { try await client.enqueue(operation) }
        #expect(try await client.outbox.items().map(\.operation) == [undelete])

        // The server may have deleted it: the reply is lost.
        client = try await Harness()
        try await client.connectWithChannel()
        try await client.enqueue(delete)
        try await client.feed(.stop)
        client.forgetCalls()
        for operation in [undelete, delete, undelete] { try await client.enqueue(operation) }
        #expect(try await client.outbox.items().map(\.operation) == [delete, undelete])
        // Restored in between, it would be published for a moment.
        try await client.enqueue(delete)
        #expect(try await client.outbox.items().map(\.operation) == [delete, delete])
        try await client.enqueue(undelete)
        #expect(try await client.outbox.items().map(\.operation) == [delete, undelete])

        // It is deleted with another one, and both again. The first deletion, of the other one, is carried out even if the second one is refused.
        client = try await offline()
        for operation in [deletion(2, 3), undelete, deletion(2, 3), deletion(2, 3)] { try await client.enqueue(operation) }
        #expect(try await client.outbox.items().map(\.operation) == [deletion(3), deletion(2, 3)])
    }

    @Test("SB-59 deleting a message is requested beside a deletion of several, which the server may refuse for another one")
    func deletedBesideSeveral() async throws {
        let delete = OutboxOperation.delete(DeleteMessage(channel: Self.channel, message: MessageID(rawValue: 2)))
        var client = try await offline()
        for operation in [deletion(2, 3), delete, delete] { try await client.enqueue(operation) }
        #expect(try await client.outbox.items().map(\.operation) == [deletion(2, 3), delete])
        try await reconnect(&client)
        try await client.refuse("message.deleteMany", with: RoostError(.notMessageOwner, "No."))
        #expect(client.calls.values.sorted() == ["message.delete"])
    }

    @Test("changes of a message that may have been sent follow it, with the id that it gets")
    func sentMessage() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("a", clientId: "c1")
        try await client.enqueue(edit("a2", of: "c1", 0))
        try await client.enqueue(edit("a3", of: "c1", 0))
        #expect(try await client.outbox.items().map(\.operation.changed) == [[], [.sent("c1")]])
        let stored = message(4, "a", by: "ann", clientId: "c1")
        try await client.receive(sent(stored, messages: 3))
        #expect(client.calls.values.contains("message.edit"))
        #expect(
            try await client.outbox.items().map(\.operation) == [
                .edit(EditMessage(channel: Self.channel, message: stored.messageId, text: "a3"))
            ])
    }

    @Test("a refusal removes the overlay, and stays with its error until it is retried or given up")
    func refused() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.enqueue(.leave(LeaveChannel(channel: Self.channel)))
        #expect(try await client.listed() == [])
        try await client.refuse("member.leave", with: RoostError(.kindForbids, "No."))
        #expect(try await client.listed() == [Self.channel])
        let item = try #require(try await client.outbox.items().first)
        #expect(item.failure?.code == .kindForbids)
        try await client.feed(.retry(.operation(item.id, of: Self.channel)))
        #expect(try await client.listed() == [])
        #expect(client.calls.values.contains("member.leave"))
        try await client.feed(.discard(.operation(item.id, of: Self.channel)))
        #expect(try await client.listed() == [Self.channel])
        #expect(try await client.outbox.count() == 0)
    }

    @Test("a queue waits for the end of a temporary refusal, and continues in order; with the setting it continues at once")
    func waiting() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("a", clientId: "c1")
        try await client.send("b", clientId: "c2")
        let until = Timestamp(milliseconds: 60_000)
        try await client.refuse("message.send", with: RoostError(.muted, "Muted.", until: until))
        #expect(client.take().contains(.startTimer(.outbox(Self.channel), .seconds(60))))
        #expect(try await client.outbox.items().map(\.isWaiting) == [true, false])
        #expect(client.inFlight == nil)
        try await client.feed(.timer(.outbox(Self.channel)))
        #expect(client.inFlight == "c1")
        try await client.refuse("message.send", with: RoostError(.muted, "Muted.", until: .forever))
        #expect(client.inFlight == "c2")
        // Deleting the awaited message has the next one sent.
        try await client.send("c", clientId: "c3")
        try await client.refuse("message.send", with: RoostError(.muted, "Muted.", until: until))
        #expect(client.inFlight == nil)
        _ = client.take()
        try await client.enqueue(.delete(DeleteMessage(channel: Self.channel, message: MessageID(rawValue: 0)), of: "c2"))
        #expect(client.inFlight == "c3")
        #expect(client.take().contains(.cancelTimer(.outbox(Self.channel))))
    }

    @Test("restoring a message whose deletion waits has the next operation sent, and so does replacing a waiting operation")
    func noLongerWaiting() async throws {
        let delete = OutboxOperation.delete(DeleteMessage(channel: Self.channel, message: MessageID(rawValue: 2)))
        let refusal = RoostError(.muted, "Muted.", until: Timestamp(milliseconds: 60_000))
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.enqueue(delete)
        try await client.send("a", clientId: "c1")
        try await client.refuse("message.delete", with: refusal)
        #expect(client.inFlight == nil)
        try await client.enqueue(.undelete(UndeleteMessage(channel: Self.channel, message: MessageID(rawValue: 2))))
        #expect(client.inFlight == "c1")

        client = try await Harness()
        try await client.connectWithChannel()
        try await client.enqueue(hide)
        try await client.refuse("channel.hide", with: refusal)
        try await client.enqueue(unhide)
        #expect(client.calls.values.contains("channel.unhide"))
    }

    @Test("after a restore of the same server unsent operations are sent; for another server they wait until the app decides")
    func otherServer() async throws {
        var client = try await offline()
        try await client.send("a", clientId: "c1")
        try await client.enqueue(hide)
        try await client.connect(epoch: "second", server: "other")
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(client.calls.isEmpty)
        #expect(try await client.outbox.items().allSatisfy { $0.server == "server" })
        try await client.send("b", clientId: "c2")
        #expect(client.inFlight == "c2")
        try await client.feed(.resolveOthers(discard: false))
        #expect(try await client.outbox.items().map(\.server) == ["other", "other", "other"])

        var same = try await offline()
        try await same.enqueue(hide)
        try await same.connect(epoch: "second")
        try await same.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(same.calls.values.contains("channel.hide"))
    }

    @Test(
        "operations sent or left by another process count when the files come back, or are read again after a failure",
        arguments: [true, false])
    func reopened(isAfterFailure: Bool) async throws {
        var client = try await offline()
        try await client.send("mine", clientId: "c1")
        try await client.enqueue(hide)
        var other = try await client.restarted()
        try await reconnect(&other)
        let stored = message(4, "mine", by: "ann", clientId: "c1")
        try await other.receive(sent(stored, messages: 3))
        try await other.answer("message.send", with: stored)
        try await other.answer("channel.hide", with: Done())
        try await other.feed(.stop)
        try await other.send("left", clientId: "c2")

        _ = client.take()
        let (saved, outbox) = (try await client.store.savedState(), try await client.outbox.saved())
        try await client.feed(isAfterFailure ? .storeFailed(saved, outbox, "disk full") : .reopened(saved, outbox))
        let reported = client.take().compactMap { output in
            if case .settled(let key, .failure) = output { key.clientId } else { nil }
        }
        #expect(reported == ["c1"])
        try await reconnect(&client)
        #expect(client.calls.values.sorted() == ["message.send"] && client.inFlight == "c2")
        #expect(try await client.texts() == ["one", "two", "mine", "left…"])
    }

    @Test(
        "ST-03 joining cancels the user's leaving, unless that is in flight, by the channel's id and as `type:id`",
        arguments: ["general", "community:general"] as [ChannelID])
    func joining(name: ChannelID) async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("a", clientId: "c1")
        try await client.enqueue(.leave(LeaveChannel(channel: Self.channel)))
        try await client.feed(.call(1, JoinChannel(channel: name)))
        #expect(try await client.outbox.items().map(\.operation.sent?.clientId) == ["c1"])
        #expect(try await client.listed() == [Self.channel])
    }

    @Test("ST-03 joining a channel whose own id looks like `type:id` doesn't cancel leaving another one")
    func joiningOther() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        client.sync.saved.channels["community:general"] = Position(cursor: 1, windowStart: 0, messageCount: 0)
        let leave = OutboxOperation.leave(LeaveChannel(channel: Self.channel))
        try await client.send("a", clientId: "c1")
        try await client.enqueue(leave)
        try await client.feed(.call(1, JoinChannel(channel: "community:general")))
        #expect(try await client.outbox.items().map(\.operation).last == leave)
    }

    @Test("a device's clock that jumps doesn't affect any order, and keys have the server's time")
    func clock() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        for (number, time) in ([5_000_000_000_000, -1, 0, .max] as [Int64]).enumerated() {
            let message = SendMessage(channel: Self.channel, clientId: ClientID("c\(number)"), text: "\(number)")
            try await client.feed(
                .enqueue(CallToken(number + 1), .send(message), id: Int64(-number - 1), at: Timestamp(milliseconds: time)))
        }
        #expect(try await client.restarted().texts() == ["one", "two", "0…", "1…", "2…", "3…"])
        try await client.feed(
            .enqueue(9, .preferences(UpdatePreferences(autoAcceptInvitations: false)), id: 9, at: Timestamp(milliseconds: .min)))
        let key = try IdempotencyKey(try #require(client.keys["preferences.update"]?.first ?? nil))
        #expect(key.madeAt == Timestamp(milliseconds: 0))
    }

    @Test("a server of an older protocol, which sends neither its name nor the time and knows no keys, still gets operations")
    func olderServer() async throws {
        var client = try await Harness()
        try await client.feed(.start)
        try await client.feed(.token("token"))
        try await client.feed(.transport(client.sync.connection, .opened))
        try await client.receive(text: #"{"welcome":{"user":"ann","epoch":"first","pingIntervalSeconds":30}}"#)
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
        try await client.send("a", clientId: "c1")
        #expect(client.inFlight == "c1" && client.sync.server == nil)
        try await client.receive(sent(message(4, "a", by: "ann", clientId: "c1"), messages: 3))
        try await client.enqueue(hide)
        let refusal = RoostError(.invalidArgument, "isn't a member of a call", field: "key")
        try await client.refuse("channel.hide", with: refusal)
        #expect(try await client.outbox.items().map(\.failure) == [refusal])
        #expect(try await client.view()?.hiddenState == .unhidden)
    }

    @Test("100,000 operations without a connection are accepted, coalesced, read again after a restart and given up")
    func many() async throws {
        var sync = Sync(user: "ann", client: "test", random: NoChance())
        let count: Int64 = 100_000
        for number in 1...count {
            let message = SendMessage(channel: Self.channel, clientId: ClientID("c\(number)"), text: "hi")
            _ = sync.handle(.enqueue(number, .send(message), id: number, at: Timestamp(milliseconds: 0)))
            _ = sync.handle(
                .enqueue(-number, .read(MarkRead(channel: Self.channel, seq: number)), id: -number, at: Timestamp(milliseconds: 0)))
        }
        let queue = try #require(sync.queues[Self.channel])
        #expect(queue.items.count == Int(count) + 1)
        var restarted = Sync(
            user: "ann", client: "test", outbox: SavedOutbox(items: queue.items.values.sorted { $0.number < $1.number }),
            random: NoChance())
        for number in 1...count { _ = restarted.handle(.discard(.operation(number, of: Self.channel))) }
        #expect(restarted.queues[Self.channel]?.next?.operation == .read(MarkRead(channel: Self.channel, seq: count)))
    }
}
