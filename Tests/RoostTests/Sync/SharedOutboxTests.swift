import RoostAPI
import Testing

@testable import Roost

/// Two chats of one directory: operations that both find in the outbox are done once.
@Suite("Outbox: two chats of one directory")
struct SharedOutboxTests {
    private static let channel = Harness.channel
    private static let purge = PurgeMessage(channel: channel, message: MessageID(rawValue: 3))

    /// Two clients that have read the same outbox, empty or with an operation that was requested without a connection.
    private func clients(_ operation: OutboxOperation? = nil) async throws -> (Harness, Harness) {
        var client = try await Harness()
        try await client.connectWithChannel()
        try await client.feed(.stop)
        if let operation { try await client.enqueue(operation) }
        return (try await client.restarted(), try await client.restarted())
    }

    private func connect(_ client: inout Harness, at milliseconds: Int64) async throws {
        try await client.connect(at: Timestamp(milliseconds: milliseconds))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
    }

    @Test("R08 I4 an operation that both send has one name, which the server knows, whenever each of them has connected")
    func oneKey() async throws {
        var (first, second) = try await clients(.purge(Self.purge))
        try await connect(&first, at: 1000)
        try await connect(&second, at: 60_000)
        let keys = (first.keys["message.purge"] ?? []).compactMap(\.self)
        #expect(keys.count == 1 && second.keys["message.purge"] == keys)
        try await first.answer("message.purge", with: Done())
        try await second.answerDone("message.purge")
        #expect(try await first.outbox.count() == 0)
    }

    @Test("R08 I4 an operation that waited for the end of a refusal in both is sent under one new name")
    func oneKeyAfterRefusal() async throws {
        var (first, second) = try await clients(.purge(Self.purge))
        try await connect(&first, at: 1000)
        try await first.refuse("message.purge", with: RoostError(.channelMuted, "Wait.", until: Timestamp(milliseconds: 50_000)))
        second = try await first.restarted()
        try await first.feed(.transport(first.sync.connection, .closed(code: nil, reason: "")))
        first.forgetCalls()
        try await connect(&first, at: 60_000)
        try await connect(&second, at: 90_000)
        let keys = (first.keys["message.purge"] ?? []).compactMap(\.self)
        #expect(Set(keys).count == 2 && second.keys["message.purge"] == Array(keys.suffix(1)))
    }

    @Test("R08 I4 an operation that one of them sends isn't changed or taken back by the other, which says so")
    func inFlight() async throws {
        let message = SendMessage(channel: Self.channel, clientId: "c1", text: "hi")
        let edit = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), text: "changed")
        let deletion = DeleteMessage(channel: Self.channel, message: MessageID(rawValue: 0))
        for change in [.edit(edit, of: "c1"), .delete(deletion, of: "c1")] as [OutboxOperation] {
            var (first, second) = try await clients(.send(message))
            try await connect(&first, at: 1000)
            try await second.enqueue(change)
            let refusals = second.take().compactMap { if case .reply(_, .failure(let error)) = $0 { error.code } else { nil } }
            #expect(refusals == [.notFound])
            // It may have to be sent again, and later operations come after it.
            #expect(second.sync.queues[Self.channel]?.items.values.map { $0.firstSentAt != nil } == [true])
            #expect(try await first.outbox.items().map(\.operation) == [.send(message)])
        }
    }

    @Test("SB-59 R08 I4 a deletion that one of them sends isn't taken back or changed by the other's undeletion, which says so")
    func deletionInFlight() async throws {
        let message = Self.purge.message
        let both = DeleteMessages(channel: Self.channel, messages: [message, MessageID(rawValue: 2)])
        for deletion in [.purge(Self.purge), .deleteMany(both)] as [OutboxOperation] {
            var (first, second) = try await clients(deletion)
            try await connect(&first, at: 1000)
            try await second.enqueue(.undelete(UndeleteMessage(channel: Self.channel, message: message)))
            let refusals = second.take().compactMap { if case .reply(_, .failure(let error)) = $0 { error.code } else { nil } }
            #expect(refusals == [.notFound])
            #expect(second.sync.queues[Self.channel]?.items.values.map(\.operation) == [deletion])
            #expect(try await first.outbox.items().map(\.operation) == [deletion])
        }
    }

    @Test("SB-59 R08 I4 restoring a message cancels its unsent deletions, also one that only the other chat knows")
    func deletionOfOther() async throws {
        let (message, purge) = (Self.purge.message, OutboxOperation.purge(Self.purge))
        let undelete = OutboxOperation.undelete(UndeleteMessage(channel: Self.channel, message: message))
        func deletion(_ messages: [MessageID]) -> OutboxOperation {
            .deleteMany(DeleteMessages(channel: Self.channel, messages: messages))
        }
        let other = MessageID(rawValue: 2)
        let cases: [(known: OutboxOperation?, rest: [OutboxOperation])] = [
            (nil, []), (deletion([message, other]), [deletion([other])]),
            // It is deleted on the server.
            (undelete, [undelete]),
        ]
        for (known, rest) in cases {
            var (first, second) = try await clients(known)
            try await first.enqueue(purge)
            try await second.feed(.outboxRead(try await shared(second)))
            try await second.enqueue(undelete)
            #expect(try await second.outbox.items().map(\.operation) == rest)
            #expect((second.sync.queues[Self.channel]?.items.values.map(\.operation) ?? []) == rest)
            let failures = second.take().filter { if case .reply(_, .failure) = $0 { true } else { false } }
            #expect(failures.isEmpty)
        }

        // A connected one doesn't send it before that.
        var (first, second) = try await clients()
        try await connect(&second, at: 1000)
        try await first.enqueue(purge)
        try await second.feed(.outboxRead(try await shared(second)))
        try await second.enqueue(undelete)
        #expect(second.calls.isEmpty && second.sync.queues.isEmpty)
        #expect(try await second.outbox.count() == 0)

        // The file is read once for several requests.
        let mute = OutboxOperation.mute(MuteNotifications(channel: Self.channel))
        (first, second) = try await clients()
        try await first.enqueue(purge)
        try await second.feed(.outboxRead(try await shared(second)))
        for operation in [mute, undelete] { try await second.enqueue(operation) }
        #expect(try await second.outbox.items().map(\.operation) == [mute])

        // The queues are read again meanwhile, as before a connection.
        (first, second) = try await clients()
        try await first.enqueue(purge)
        try await second.feed(.outboxRead(try await shared(second)))
        try await reopen(&second)
        try await second.enqueue(undelete)
        let failures = second.take().filter { if case .reply(_, .failure) = $0 { true } else { false } }
        #expect(try await second.outbox.count() == 0 && failures.isEmpty)
    }

    @Test("SB-59 R08 I3 an undeletion follows the deletion that the other chat is sending, also if only that chat knew of it")
    func deletionSentByOther() async throws {
        let delete = OutboxOperation.delete(DeleteMessage(channel: Self.channel, message: Self.purge.message))
        let undelete = OutboxOperation.undelete(UndeleteMessage(channel: Self.channel, message: Self.purge.message))
        var (first, second) = try await clients()
        try await connect(&first, at: 1000)
        try await first.enqueue(delete)
        try await second.feed(.outboxRead(try await shared(second)))
        try await second.enqueue(undelete)
        #expect(try await second.outbox.items().map(\.operation) == [delete, undelete])
        try await connect(&second, at: 60_000)
        #expect(second.calls.values.sorted() == ["message.delete"])
        #expect(second.keys["message.delete"]?.count == 1 && second.keys["message.delete"] == first.keys["message.delete"])
    }

    @Test("R08 I4 a refused message that only the other one knows is sent again, or discarded", arguments: [true, false])
    func refusedByOther(isRetried: Bool) async throws {
        let row = OutboxRow.message(MessageKey(channel: Self.channel, clientId: "c1"))
        var (first, second) = try await clients()
        try await connect(&first, at: 1000)
        try await connect(&second, at: 2000)
        try await first.send("hi", clientId: "c1")
        // One that isn't refused stays with the other.
        try await second.feed(.outboxRead(try await shared(second)))
        try await second.feed(.retry(row))
        #expect(second.calls.isEmpty && second.sync.queues.isEmpty)
        try await first.refuse("message.send", with: RoostError(.notPermitted, "No."))
        try await second.feed(.outboxRead(try await shared(second)))
        try await second.feed(isRetried ? .retry(row) : .discard(row))
        #expect(second.calls.values.sorted() == (isRetried ? ["message.send"] : []))
        #expect(try await second.outbox.count() == (isRetried ? 1 : 0))
    }

    @Test("R08 I4 operations for another server that only the other one knows are sent or discarded too", arguments: [true, false])
    func otherServer(isDiscarded: Bool) async throws {
        var (first, second) = try await clients()
        try await second.connect(epoch: "second", server: "other")
        try await second.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        try await first.enqueue(.mute(MuteNotifications(channel: Self.channel)))
        #expect(try await first.outbox.items().map(\.server) == ["server"])
        try await second.feed(.outboxRead(try await shared(second)))
        try await second.feed(.resolveOthers(discard: isDiscarded))
        #expect(second.calls.values.sorted() == (isDiscarded ? [] : ["channel.muteNotifications"]))
        #expect(try await second.outbox.count() == (isDiscarded ? 0 : 1))
    }

    /// Two clients that have read the same outbox, with a message for an ephemeral channel.
    private func clientsInEphemeralChannel() async throws -> (Harness, Harness) {
        var client = try await Harness()
        try await client.connect()
        var page = fresh()
        page.rows.channel?.isEphemeral = true
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [page], hasMore: false))
        try await client.feed(.stop)
        try await client.send("hi", clientId: "c1")
        return (try await client.restarted(), try await client.restarted())
    }

    /// The contents of the outbox, as read by a chat next to another one.
    private func shared(_ client: Harness) async throws -> SavedOutbox {
        var outbox = try await client.outbox.saved()
        outbox.others = client.outbox.startedByOtherChats(than: client.chat)
        return outbox
    }

    /// Has a client without a connection continue from the files.
    private func reopen(_ client: inout Harness) async throws {
        let (saved, outbox) = (try await client.store.savedState(), try await shared(client))
        try await client.feed(.reopened(saved, outbox))
    }

    /// When a client reads that another one has started to send: never, while it continues, before it connects, or when it is made.
    enum Reading: CaseIterable, Sendable { case never, beside, anew, first }

    @Test(
        "SB-04 I4 a message of an ephemeral channel that a client was sending itself is sent again by it, unless it is answered",
        arguments: [true, false])
    func ephemeralOwn(isAnswered: Bool) async throws {
        var (first, _) = try await clientsInEphemeralChannel()
        try await connect(&first, at: 1000)
        if isAnswered { try await first.answer("message.send", with: message(4, "hi", by: "ann", clientId: "c1")) }
        try await first.feed(.stop)
        first.forgetCalls()
        try await reopen(&first)
        #expect(try await first.outbox.count() == (isAnswered ? 0 : 1))
        try await connect(&first, at: 60_000)
        #expect(first.calls.values.sorted() == (isAnswered ? [] : ["message.send"]))
    }

    @Test("SB-04 I4 an answered message of an ephemeral channel isn't sent again after the cache was replaced")
    func ephemeralAnswered() async throws {
        var (first, _) = try await clientsInEphemeralChannel()
        try await connect(&first, at: 1000)
        try await first.answer("message.send", with: message(4, "hi", by: "ann", clientId: "c1"))
        #expect(first.sync.acknowledged.count == 1)
        try await first.feed(.storeFailed(SavedState(), try await first.outbox.saved(), "damaged"))
        first.forgetCalls()
        #expect(try await first.outbox.count() == 0)
        try await connect(&first, at: 60_000)
        #expect(!first.calls.values.contains("message.send"))
    }

    @Test(
        "SB-04 I4 a message of an ephemeral channel, which has no client ids, is sent by the client that has started to",
        arguments: Reading.allCases)
    func ephemeral(reading: Reading) async throws {
        var (first, second) = try await clientsInEphemeralChannel()
        try await connect(&first, at: 1000)
        #expect(first.calls.values.sorted() == ["message.send"])
        switch reading {
        case .never: break
        case .beside: try await second.feed(.outboxRead(try await shared(second)))
        case .anew: try await reopen(&second)
        case .first:
            let (saved, outbox) = (try await second.store.savedState(), try await shared(second))
            second.sync = Sync(user: Harness.user, client: "test", saved: saved, outbox: outbox, random: NoChance())
        }
        try await connect(&second, at: 60_000)
        #expect(second.calls.isEmpty && second.sync.queues.isEmpty)
        #expect(try await second.outbox.count() == 1)
        // Unless that one is gone.
        second.outbox.begun.leave(first.chat)
        try await second.feed(.left(try await second.outbox.saved()))
        #expect(second.calls.values.sorted() == ["message.send"])
    }

    @Test("R08 I4 a change that one of them is sending isn't replaced by one in the other, which comes after it")
    func inFlightBefore() async throws {
        let edits = ["a", "b"].map {
            OutboxOperation.edit(EditMessage(channel: Self.channel, message: MessageID(rawValue: 2), text: $0))
        }
        var (first, second) = try await clients(edits[0])
        try await connect(&first, at: 1000)
        try await second.enqueue(edits[1])
        let refusals = second.take().compactMap { if case .reply(_, .failure(let error)) = $0 { error.code } else { nil } }
        #expect(refusals == [.notFound])
        // As an app's call does then.
        try await second.enqueue(edits[1])
        #expect(try await second.outbox.items().map(\.operation) == edits)
        try await connect(&second, at: 60_000)
        #expect(second.keys["message.edit"]?.count == 1 && second.keys["message.edit"] == first.keys["message.edit"])
        try await second.answerDone("message.edit")
        #expect(second.keys["message.edit"]?.count == 2)

        let (mute, unmute) = (
            OutboxOperation.mute(MuteNotifications(channel: Self.channel)),
            OutboxOperation.unmute(UnmuteNotifications(channel: Self.channel))
        )
        (first, second) = try await clients(mute)
        try await connect(&first, at: 1000)
        try await second.enqueue(unmute)
        #expect(try await second.outbox.items().map(\.operation) == [mute, unmute])
        #expect(second.sync.queues[Self.channel]?.others.map(\.operation) == [mute, unmute])
    }

    @Test("R08 I4 an operation that one of them has done or given up isn't sent or shown by the other")
    func gone() async throws {
        var (first, second) = try await clients(.purge(Self.purge))
        try await connect(&first, at: 1000)
        try await first.answer("message.purge", with: Done())
        try await connect(&second, at: 60_000)
        #expect(second.calls.isEmpty && second.sync.queues.isEmpty && second.sync.overlays.isEmpty)
        // Later operations are sent.
        try await second.enqueue(.mute(MuteNotifications(channel: Self.channel)))
        #expect(second.calls.values.sorted() == ["channel.muteNotifications"])

        let message = SendMessage(channel: Self.channel, clientId: "c1", text: "hi")
        (first, second) = try await clients(.send(message))
        try await first.feed(.discard(.message(MessageKey(channel: Self.channel, clientId: "c1"))))
        try await connect(&second, at: 1000)
        #expect(second.calls.isEmpty && second.sync.queues.isEmpty)
        let ends = second.take().compactMap { if case .settled(_, .failure(let error)) = $0 { error.code } else { nil } }
        #expect(ends == [.unavailable])
    }
    @Test("R08 I4 an operation that one of them has changed is sent by the other in its new state")
    func changed() async throws {
        var (first, second) = try await clients(.send(SendMessage(channel: Self.channel, clientId: "c1", text: "old")))
        let edit = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), text: "new")
        try await first.enqueue(.edit(edit, of: "c1"))
        try await connect(&second, at: 1000)
        let frames = second.take().compactMap { output in
            if case .send(let bytes) = output { String(decoding: bytes, as: UTF8.self) } else { nil }
        }
        #expect(frames.filter { $0.contains("message.send") }.map { $0.contains(#""text":"new""#) } == [true])
        #expect(second.sync.item(.message(MessageKey(channel: Self.channel, clientId: "c1")))?.operation.sent?.text == "new")
    }

    @Test("R08 I4 an operation that one of them is sending, or has had done, counts in the other once it has read the file again")
    func readAgain() async throws {
        let edits = ["a", "b"].map {
            OutboxOperation.edit(EditMessage(channel: Self.channel, message: MessageID(rawValue: 2), text: $0))
        }
        var (first, second) = try await clients(edits[0])
        try await connect(&first, at: 1000)
        try await second.feed(.outboxRead(try await second.outbox.saved()))
        // The other may have sent it already: this one comes after it.
        try await second.enqueue(edits[1])
        #expect(try await second.outbox.items().map(\.operation) == edits)
        try await first.answer("message.edit", with: message(2, "a", changedAt: 4))
        try await second.feed(.outboxRead(try await second.outbox.saved()))
        #expect(second.sync.queues[Self.channel]?.items.values.map(\.operation) == [edits[1]])
    }

    @Test("R08 I4 a wait for a message that the other has sent, given up or had refused ends once the file was read again")
    func toldAgain() async throws {
        let key = MessageKey(channel: Self.channel, clientId: "c1")
        let message = SendMessage(channel: key.channel, clientId: key.clientId, text: "hi")
        for isRefused in [true, false] {
            var (first, second) = try await clients(.send(message))
            if isRefused {
                try await connect(&first, at: 1000)
                try await first.refuse("message.send", with: RoostError(.notPermitted, "No."))
            } else {
                try await first.feed(.discard(.message(key)))
            }
            try await second.feed(.outboxRead(try await second.outbox.saved()))
            let ends = second.take().compactMap { if case .settled(key, .failure(let error)) = $0 { error.code } else { nil } }
            #expect(ends == [isRefused ? .notPermitted : .unavailable])
            #expect(second.sync.item(.message(key))?.isRefused == (isRefused ? true : nil))
        }
    }

    /// A client whose message "hi" may have been sent, and another one that has read so.
    private func clientsOfSent() async throws -> (Harness, Harness) {
        var first = try await Harness()
        try await first.connectWithChannel()
        try await first.send("hi", clientId: "c1")
        try await first.feed(.stop)
        first.forgetCalls()
        return (first, try await first.restarted())
    }

    @Test("SB-58 R08 a change known to one of them, of a message in flight, names the message by its id once the other has sent it")
    func changeOfSent() async throws {
        var (first, second) = try await clientsOfSent()
        let edit = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), text: "changed")
        try await first.enqueue(.edit(edit, of: "c1"))
        try await connect(&second, at: 1000)
        try await second.receive(alone(message(4, "hi", by: "ann", clientId: "c1")))
        let resolved = EditMessage(channel: Self.channel, message: MessageID(rawValue: 4), text: "changed")
        #expect(try await second.outbox.items().map(\.operation) == [.edit(resolved)])
        // Whether it reads the file while it continues, or starts over.
        try await first.feed(.outboxRead(try await first.outbox.saved()))
        #expect(first.sync.queues[Self.channel]?.items.values.map(\.operation) == [.edit(resolved)])
        first = try await first.restarted()
        try await connect(&first, at: 2000)
        #expect(first.calls.values.sorted() == ["message.edit"])
    }

    @Test("SB-58 R08 a change of a message that the other has sent, or given up, isn't kept without it", arguments: [true, false])
    func changeWithoutMessage(isGivenUp: Bool) async throws {
        var (first, second) = try await clientsOfSent()
        let edit = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), text: "changed")
        // A change unknown to the other goes with its message.
        if isGivenUp { try await first.enqueue(.edit(edit, of: "c1")) }
        if isGivenUp {
            try await second.feed(.discard(.message(MessageKey(channel: Self.channel, clientId: "c1"))))
        } else {
            try await connect(&second, at: 1000)
            try await second.receive(alone(message(4, "hi", by: "ann", clientId: "c1")))
        }
        #expect(try await first.outbox.count() == 0)
        _ = first.take()
        let customised = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), customType: "note")
        try await first.enqueue(.edit(customised, of: "c1"))
        let refusals = first.take().compactMap { if case .reply(_, .failure(let error)) = $0 { error.code } else { nil } }
        #expect(refusals == [.notFound])
        #expect(try await first.outbox.count() == 0)
    }

    @Test("R08 I4 an operation that one of them gives up before any server is known isn't revived by the other's first connection")
    func firstServer() async throws {
        var first = try await Harness()
        try await first.send("hi", clientId: "c1")
        var second = try await first.restarted()
        try await first.feed(.discard(.message(MessageKey(channel: Self.channel, clientId: "c1"))))
        try await connect(&second, at: 1000)
        #expect(second.calls.isEmpty && second.sync.queues.isEmpty)
        #expect(try await second.outbox.count() == 0)
    }

    @Test("R08 I4 a change of a message in flight that one of them has had made isn't revived when the other's is answered")
    func changeDone() async throws {
        var first = try await Harness()
        try await first.connectWithChannel()
        try await first.send("hi", clientId: "c1")
        let edit = EditMessage(channel: Self.channel, message: MessageID(rawValue: 0), text: "changed")
        try await first.enqueue(.edit(edit, of: "c1"))
        try await first.feed(.stop)
        first.forgetCalls()
        var second = try await first.restarted()
        try await connect(&first, at: 1000)
        let sent = message(4, "hi", by: "ann", clientId: "c1")
        try await first.answer("message.send", with: sent)
        try await first.answer("message.edit", with: message(4, "changed", by: "ann", clientId: "c1", changedAt: 5))
        try await connect(&second, at: 60_000)
        try await second.answer("message.send", with: sent)
        #expect(second.keys["message.edit"] == nil && second.calls.isEmpty)
        #expect(try await second.outbox.items().map(\.message?.clientId) == ["c1"])
    }
}
