import Logging
import RoostAPI
import TaskSteps
import Testing

@testable import Roost

/// The user's own deletions and pending changes, in what the app gets outside of lists.
@MainActor @Suite("Messages: own deletions and pending changes outside of lists", .timeLimit(.minutes(5)))
struct OwnChangeTests {
    private let channelId = Harness.channel

    /// A chat in a channel with two messages of bob's, and no answer to anything.
    private func connected(_ server: ScriptedServer) async throws -> Chat {
        let chat = try await server.connected()
        let store = try await chat.driver.files().store
        try await server.send(
            Event(
                kind: .memberJoined, stream: .user("ann"), seq: 1, actor: "ann",
                rows: Rows(channel: channel(counters(1, messages: 0)), [membership(readSeq: 1, readCount: 0, userSeq: 1)])))
        try await until { try await store.savedState().channels[Harness.channel] != nil }
        try await server.send(alone(message(2, "one")))
        try await server.send(alone(message(3, "two")))
        try await until { try await store.savedState().channels[Harness.channel]?.cursor == 3 }
        return chat
    }

    @Test("SB-59 an event about a message that the user has deleted for themselves has no content, nor has the delegate's")
    func concealedEvent() async throws {
        let server = ScriptedServer { _ in .nothing }
        let chat = try await connected(server)
        let delegate = RecordingDelegate()
        chat.add(delegate, identifier: "test")
        var events = chat.events.makeAsyncIterator()
        var deletion = Event(
            kind: .messageDeletedForMe, stream: .user("ann"), seq: 2, actor: "ann", rows: Rows(counters: counters(3, messages: 2)))
        deletion.rows = Rows()
        deletion.rows.ownDeletions = [
            OwnDeletion(channelId: channelId, seq: 2, deletedAt: Timestamp(milliseconds: 9), userSeq: 2)
        ]
        try await server.send(deletion)
        try await server.send(edited(message(2, "secret", changedAt: 4), messages: 2))
        try await server.send(edited(message(3, "zwei", changedAt: 5), messages: 2))
        var updated: [Message] = []
        while updated.count < 2, case .happened(let news)? = await events.next() {
            if news.kind == .messageUpdated, let message = news.message { updated.append(message) }
        }
        #expect(updated.map(\.text) == ["", "zwei"] && updated.map(\.isDeletedForMe) == [true, false])
        try await until { delegate.updated.count == 2 }
        #expect(delegate.updated == updated)
        await chat.disconnect()
    }

    private final class RecordingDelegate: ChannelDelegate {
        var updated: [Message] = []
        var purged: [Seq] = []
        func channel(_ channel: ChannelID, updated message: Message) { updated.append(message) }
        func channel(_ channel: ChannelID, purged message: PurgedMessage) { purged.append(message.seq) }
    }

    @Test("SB-60 the permanent deletion of a message isn't reported to users who have concealed it, nor to their delegates")
    func concealedPurge() async throws {
        let server = ScriptedServer { _ in .nothing }
        let chat = try await connected(server)
        let delegate = RecordingDelegate()
        chat.add(delegate, identifier: "test")
        var events = chat.events.makeAsyncIterator()
        // The user has reset their history up to the first message.
        let reset = membership(readSeq: 2, readCount: 1, floor: 2, userSeq: 2)
        try await server.send(Event(kind: .channelHistoryReset, stream: .user("ann"), seq: 2, actor: "ann", rows: Rows([reset])))
        for (seq, changeSeq) in [(2, 4), (3, 5)] as [(Seq, Seq)] {
            let purged = PurgedMessage(seq: seq, changeSeq: changeSeq, counts: true)
            try await server.send(
                Event(
                    kind: .messageDeleted, stream: .channel(channelId), seq: changeSeq, actor: "bob",
                    rows: Rows(counters: counters(changeSeq, messages: Int(5 - changeSeq)), [purged])))
        }
        var purged: [Seq] = []
        while purged.last != 3, case .happened(let news)? = await events.next() {
            if news.kind == .messageDeleted { purged.append(try #require(news.purged?.seq)) }
        }
        #expect(purged == [3])
        try await until { delegate.purged.last == 3 }
        #expect(delegate.purged == [3])
        await chat.disconnect()
    }

    @Test("R08 a message fetched by its id is as lists show it, with the user's pending changes")
    func messageByID() async throws {
        let server = ScriptedServer { call in
            guard call.operation == "message.get" else { return .nothing }
            return .result(message(1, "before the window"))
        }
        let chat = try await connected(server)
        let general = chat.channel(channelId)
        #expect(try await general.message(MessageID(rawValue: 2)).text == "one")
        try await general.edit(MessageID(rawValue: 2), text: "uno")
        try await general.delete(MessageID(rawValue: 3))
        #expect(try await general.message(MessageID(rawValue: 2)).text == "uno")
        #expect(try await general.message(MessageID(rawValue: 3)).deletedAt != nil)
        // One that isn't on this device is fetched, and changed in the same way.
        try await general.deleteForMe([MessageID(rawValue: 1)])
        let first = try await general.message(MessageID(rawValue: 1))
        #expect(first.text == "" && first.isDeletedForMe)
        try await general.resetHistory()
        for id in 1...3 as ClosedRange<Int64> {
            let error = await #expect(throws: RoostError.self) { try await general.message(MessageID(rawValue: id)) }
            #expect(error?.code == .notFound)
        }
        await chat.disconnect()
    }

    @Test("R08 SB-60 a message that the user has concealed isn't returned to a call that is cancelled, at any of its waits")
    func cancelledMessage() async throws {
        let chat = try await connected(ScriptedServer { _ in .nothing })
        let general = chat.channel(channelId)
        try await general.resetHistory()
        let stepCount = await Moment.withEach { moment in
            let steps = StepExecutor()
            let call = Task(executorPreference: steps) { try await general.message(MessageID(rawValue: 2)).text }
            steps.run({ call.cancel() }, at: moment)
            let ended = await result(of: call)
            switch ended {
            case .failure(is CancellationError)?: break
            case .failure(let error as RoostError)? where error.code == .notFound: break
            case .success?, .failure?, nil: Issue.record("cancelled \(moment): \(String(describing: ended))")
            }
            return steps.end()
        }
        #expect((1..<Moment.stepsMax).contains(stepCount))
        await chat.disconnect()
    }

    @Test(
        "R08 SB-60 AM-29 concealing an unfollowed channel can be cancelled while the server is asked; for a followed one it is kept"
    )
    func cancelledConcealing() async throws {
        let server = ScriptedServer { _ in .nothing }
        let chat = try await connected(server)
        let other = chat.channel("other")
        let asking = Task { try await other.resetHistory() }
        try await until { await server.operations().contains(ResetHistory.name) }
        // The second one is cancelled before it asks.
        let early = Task { try await other.hide(hidePreviousMessages: true) }
        early.cancel()
        asking.cancel()
        for call in [asking, early] {
            let ended = await result(of: call)
            guard case .failure(is CancellationError)? = ended else {
                Issue.record("\(String(describing: ended))")
                continue
            }
        }
        let kept = Task { try await chat.channel(channelId).resetHistory() }
        kept.cancel()
        try await kept.value
        #expect(try await chat.driver.files().outbox.items().map(\.channel) == [channelId])
        await chat.disconnect()
    }

    @Test("R08 a message fetched by its id has the user's changes of it, however many newer messages were changed since")
    func manyChanged() async throws {
        let server = ScriptedServer { _ in .nothing }
        let chat = try await connected(server)
        let store = try await chat.driver.files().store
        for seq: Seq in 4...20 { try await server.send(alone(message(seq, "m\(seq)"))) }
        try await until { try await store.savedState().channels[Harness.channel]?.cursor == 20 }
        let general = chat.channel(channelId)
        for seq: Seq in 2...20 { try await general.edit(MessageID(rawValue: seq), text: "edited") }
        let list = general.messages()
        try await list.loaded()
        for item in list.items {
            let stored = try #require(item.message)
            #expect(item.text == "edited")
            #expect(try await general.message(stored.messageId).text == "edited")
        }
        #expect(list.items.count == 19)
        await chat.disconnect()
    }

    @Test("R08 changes made while a message was in flight count; refused ones, and ones for another server, don't")
    func changesThatCount() {
        func item(_ text: String, of client: ClientID? = nil, server: String? = "server", isRefused: Bool = false) -> OutboxItem {
            let edit = EditMessage(channel: channelId, message: MessageID(rawValue: client == nil ? 2 : 0), text: text)
            let failure = isRefused ? RoostError(.notPermitted, "No.") : nil
            return OutboxItem(
                id: 1, number: 1, operation: .edit(edit, of: client), createdAt: Timestamp(milliseconds: 5), server: server,
                failure: failure)
        }
        let own = message(2, "old", by: "ann", clientId: "c1")
        func text(_ change: OutboxItem, _ message: Message) -> String? {
            SavedOutbox(items: [change], server: "server").applied(to: message, of: "ann").text
        }
        #expect(text(item("new"), own) == "new" && text(item("new", of: "c1"), own) == "new")
        #expect(text(item("new", of: "c1"), message(2, "old", clientId: "c1")) == "old")
        #expect(text(item("new", server: "other"), own) == "old" && text(item("new", isRefused: true), own) == "old")
    }

    @Test("R08 SB-59 a row shows the result of several pending changes, as the last message of a list does")
    func row() throws {
        let (id, other) = (MessageID(rawValue: 2), MessageID(rawValue: 3))
        func row(_ operations: OutboxOperation...) -> MessageItem {
            let items = operations.enumerated().map { index, operation in
                OutboxItem(
                    id: Int64(index), number: Int64(index), operation: operation, createdAt: Timestamp(milliseconds: 5), server: nil
                )
            }
            let row = MessageItem(message(2, "old"), sender: UserSummary(userId: "bob")).changed(by: items)
            let shown = Overlay(items).applied(to: message(2, "old"))
            #expect(row.text == shown.text && row.isDeleted == (shown.deletedAt != nil))
            #expect(row.isDeletedForMe == shown.isDeletedForMe)
            return row
        }
        let edit = OutboxOperation.edit(EditMessage(channel: channelId, message: id, text: "new"))
        let deletion = OutboxOperation.deleteMany(DeleteMessages(channel: channelId, messages: [id, other]))
        let undeletion = OutboxOperation.undelete(UndeleteMessage(channel: channelId, message: id))
        let forMe = OutboxOperation.deleteForMe(DeleteMessagesForMe(channel: channelId, messages: [id]))
        #expect(row(edit, deletion, undeletion).text == "new")
        #expect(row(deletion, edit).text == "")
        #expect(row(forMe, undeletion).isDeletedForMe && row(forMe, undeletion).text == "")
        #expect(row(deletion, forMe, undeletion).isDeleted)
    }

    @Test(
        "SB-26 SB-60 hiding and resetting a channel apply to what the user had of it, and to all of it after a pending message of theirs"
    )
    func seen() async throws {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.stop)
        let hide = OutboxOperation.hide(HideChannel(channel: channelId, hidePreviousMessages: true))
        try await client.enqueue(.reset(ResetHistory(channel: channelId)))
        try await client.enqueue(hide)
        try await client.enqueue(.send(SendMessage(channel: channelId, clientId: "c1", text: "mine")))
        try await client.enqueue(.reset(ResetHistory(channel: channelId)))
        #expect(
            try await client.outbox.items().map(\.operation) == [
                .hide(HideChannel(channel: channelId, hidePreviousMessages: true, upTo: 3)),
                .send(SendMessage(channel: channelId, clientId: "c1", text: "mine")), .reset(ResetHistory(channel: channelId)),
            ])
    }

    @Test(
        "SB-26 SB-60 if this device has nothing of a channel, concealing its messages is sent to the server at once, or refused",
        arguments: [true, false])
    func unfollowed(isHiding: Bool) async throws {
        let operation: OutboxOperation =
            isHiding
            ? .hide(HideChannel(channel: channelId, hidePreviousMessages: true)) : .reset(ResetHistory(channel: channelId))
        let name = type(of: operation.operation).name
        var client = try await Harness()
        try await client.enqueue(operation)
        let refusals = client.take().compactMap { if case .reply(_, .failure(let error)) = $0 { error } else { nil } }
        #expect(refusals.map(\.code) == [.notConnected] && refusals.map(\.field) == ["channel"])
        #expect(try await client.outbox.count() == 0)
        try await client.connectWithChannel()
        #expect(client.calls.isEmpty)

        // Hiding the channel alone conceals nothing.
        client = try await Harness()
        try await client.enqueue(.hide(HideChannel(channel: channelId)))
        #expect(try await client.outbox.count() == 1)
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        try await client.answer("channel.hide", with: membership(readSeq: 1, readCount: 0))
        _ = client.take()
        try await client.enqueue(operation)
        #expect(client.calls.values.sorted() == [name])
        #expect(try await client.outbox.count() == 0)
        try await client.refuse(name, with: RoostError(.notMember, "You aren't a member."))
        let refused = client.take().compactMap { if case .reply(_, .failure(let error)) = $0 { error.code } else { nil } }
        #expect(refused == [.notMember])
    }
}
