import RoostAPI
import Testing

@testable import Roost

/// Pending changes, as shown by everything that shows the changed rows.
@Suite("Outbox: pending changes are shown everywhere")
struct PendingChangeTests {
    private static let channel = Harness.channel
    private let hide = OutboxOperation.hide(HideChannel(channel: channel, hidePreviousMessages: true))

    private func edit(_ text: String, _ id: Int64 = 3) -> OutboxOperation {
        .edit(EditMessage(channel: Self.channel, message: MessageID(rawValue: id), text: text))
    }

    private func delete(_ id: Int64 = 3) -> OutboxOperation {
        .delete(DeleteMessage(channel: Self.channel, message: MessageID(rawValue: id)))
    }

    private func offline() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.stop)
        client.forgetCalls()
        return client
    }

    private func reconnect(_ client: inout Harness) async throws {
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
    }

    @Test(
        "SB-58 SB-59 the last message shows its edits and its deletion at once, even after a restart, and is restored by their refusals"
    )
    func lastMessage() async throws {
        var client = try await offline()
        let known = try #require(try await client.store.read { try $0.channelRow(Self.channel) })
        try await client.enqueue(edit("zwei"))
        try await client.enqueue(edit("other", 2))
        let edited = try await client.store.read { try $0.channelRow(Self.channel, known: known) }
        #expect(edited?.view.lastMessage?.text == "zwei" && edited?.view.lastMessage?.editedAt != nil)
        try await client.enqueue(delete())
        client = try await client.restarted()
        #expect(try await client.view()?.lastMessage?.deletedAt != nil)
        #expect(try await client.view()?.lastMessage?.text == "")

        try await reconnect(&client)
        // The edit is sent first: it stays when the deletion is refused.
        try await client.refuse("message.edit", with: RoostError(.notPermitted, "No."))
        try await client.answer("message.edit", with: message(2, "other", changedAt: 4))
        try await client.refuse("message.delete", with: RoostError(.notPermitted, "No."))
        #expect(try await client.view() == known.view)
    }

    /// A client that has marked its channel as read, and gets the answer while it fetches events missed before that of the mark.
    private func answeredWhileCatchingUp(hasKeys: Bool = true) async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        if !hasKeys { while client.sync.keyAllowance.take(at: Timestamp(milliseconds: 0)) {} }
        try await client.enqueue(.read(MarkRead(channel: Self.channel)))
        // The messages at 4 and 5 didn't arrive.
        try await client.receive(sent(message(6, "five"), messages: 5))
        try await client.receive(mine(2, .readingMarked, membership(readSeq: 3, readCount: 2, userSeq: 2)))
        try await client.answer("reading.mark", with: UnreadCount(channelId: Self.channel, unreadCount: 0, readSeq: 3))
        #expect(client.sync.phase == .catchingUp)
        return client
    }

    @Test("a change that is answered during a catch-up is shown until its event is stored")
    func answeredEarly() async throws {
        var client = try await answeredWhileCatchingUp()
        #expect(try await client.unread() == 0)
        #expect(try await client.outbox.items().count == 1)
        let missed = Rows(counters: counters(6, messages: 5), [message(4, "three"), message(5, "four"), message(6, "five")])
        let page = Resumption(user: changes(user: 1), channels: [changes(channel: 6, missed)], hasMore: false)
        try await client.answer("stream.resume", with: page)
        #expect(client.sync.phase == .online)
        #expect(try await client.unread() == 3)
        #expect(try await client.outbox.items() == [])
        #expect(try await client.store.read { try $0.overlays() } == [:])
    }

    @Test(
        "a change that was answered before a connection was lost is shown until the next one delivers its event, and isn't sent again",
        arguments: [true, false])
    func answeredAndLost(hasKeys: Bool) async throws {
        var client = try await answeredWhileCatchingUp(hasKeys: hasKeys)
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        #expect(try await client.unread() == 0)
        // Later operations wait.
        try await client.enqueue(.send(SendMessage(channel: Self.channel, clientId: "c1", text: "behind")))
        try await reconnect(&client)
        #expect(client.keys["reading.mark"]?.count == 1)
        #expect(client.sync.heldAnswers == [])
        #expect(try await client.outbox.items().map(\.message?.clientId) == ["c1"])
        try await client.answer("message.send", with: message(4, "behind", by: "ann", clientId: "c1"))
    }

    @Test(
        "a change that was answered before a connection was lost holds up nothing, even if the outbox couldn't be written since",
        arguments: [true, false])
    func answeredAndNotWritten(hasKeys: Bool) async throws {
        var client = try await answeredWhileCatchingUp(hasKeys: hasKeys)
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        let saved = try await client.outbox.saved()
        let notKept = SendMessage(channel: Self.channel, clientId: "c1", text: "not kept")
        _ = client.sync.handle(.enqueue(.max, .send(notKept), id: .max, at: Timestamp(milliseconds: 0)))
        try await client.feed(.outboxFailed(saved, "It is full."))
        #expect(client.sync.heldAnswers.count == 1)
        try await reconnect(&client)
        #expect(client.keys["reading.mark"]?.count == 1)
        #expect(client.sync.heldAnswers == [])
        #expect(try await client.outbox.items() == [])
        try await client.send("behind", clientId: "c2")
        try await client.answer("message.send", with: message(4, "behind", by: "ann", clientId: "c2"))
    }

    @Test(
        "a change that was answered before the store failed is sent again with its key; one without a key is done",
        arguments: [true, false])
    func answeredAndNotStored(hasKeys: Bool) async throws {
        var client = try await answeredWhileCatchingUp(hasKeys: hasKeys)
        try await client.feed(.storeFailed(client.sync.saved, try await client.outbox.saved(), "broken"))
        #expect(client.sync.heldAnswers == [])
        #expect(try await client.outbox.items().count == (hasKeys ? 1 : 0))
    }

    @Test("a message that was edited in flight shows the edit as the last message once it has arrived")
    func arrived() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.send("a", clientId: "c1")
        let change = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), text: "b")
        try await client.enqueue(.edit(change, of: "c1"))
        try await client.receive(sent(message(4, "a", by: "ann", clientId: "c1"), messages: 3))
        #expect(try await client.view()?.lastMessage?.text == "b")
    }

    @Test("SB-26 hiding the messages so far conceals them at once, and no later ones; a refusal restores them")
    func concealed() async throws {
        var client = try await offline()
        try await client.enqueue(.send(SendMessage(channel: Self.channel, clientId: "c1", text: "before")))
        try await client.enqueue(hide)
        client = try await client.restarted()
        #expect(try await client.texts() == ["before…"])
        #expect(try await client.window().hasOlder == false)
        #expect(try await client.view()?.lastMessage == nil)
        #expect(try await client.unread() == 0)

        try await reconnect(&client)
        try await client.receive(sent(message(4, "later"), messages: 3))
        #expect(try await client.window().rows.map(\.item.text) == ["later"])
        #expect(try await client.view()?.lastMessage?.text == "later")
        #expect(try await client.unread() == 1)
        // An edit of a concealed message is kept until then.
        try await client.receive(edited(message(2, "uno", changedAt: 5), messages: 3))
        try await client.refuse("message.send", with: RoostError(.notPermitted, "No."))
        try await client.refuse("channel.hide", with: RoostError(.notPermitted, "No."))
        #expect(try await client.window().rows.map(\.item.text) == ["uno", "two", "later"])
        #expect(try await client.unread() == 3)
        #expect(try await client.store.read { try $0.overlays() } == [:])
    }

    @Test("hiding the messages so far again replaces the earlier hiding; showing the channel doesn't")
    func concealedTwice() async throws {
        var client = try await offline()
        for operation in [hide, .unhide(UnhideChannel(channel: Self.channel))] { try await client.enqueue(operation) }
        #expect(try await client.view()?.hiddenState == .unhidden)
        #expect(try await client.texts() == [])
        #expect(try await client.outbox.count() == 2)
        try await client.enqueue(hide)
        let seen = HideChannel(channel: Self.channel, hidePreviousMessages: true, upTo: 3)
        #expect(try await client.outbox.items().map(\.operation) == [.hide(seen)])
        #expect(try await client.outbox.items().map(\.concealedSeq) == [3])
    }

    @Test("100,000 edits and deletions of as many messages are accepted, shown and sent, whatever their outcomes")
    func many() async throws {
        var sync = Sync(user: "ann", client: "test", random: NoChance())
        let count: Int64 = 100_000
        for number in 1...count {
            // Of every second message from the end on: in neither order.
            let id = number.isMultiple(of: 2) ? number : count * 2 - number
            _ = sync.handle(
                .enqueue(number, number.isMultiple(of: 3) ? delete(id) : edit("x", id), id: number, at: Timestamp(milliseconds: 0)))
            _ = sync.handle(.kept(number, number, of: Self.channel))
        }
        let overlay = try #require(sync.overlays[Self.channel])
        #expect(overlay.messages.map(\.message.rawValue) == (0..<8).reversed().map { count * 2 - 1 - $0 * 2 })
        let items = try #require(sync.queues[Self.channel]).items.values.sorted { $0.number < $1.number }
        var restarted = Sync(user: "ann", client: "test", outbox: SavedOutbox(items: items), random: NoChance())
        #expect(restarted.overlays == sync.overlays)
        for number in 1...count { _ = restarted.handle(.discard(.operation(number, of: Self.channel))) }
        #expect(restarted.queues.isEmpty && restarted.overlays.isEmpty)
    }
}
