import RoostAPI
import Testing

@testable import Roost

/// Changes of messages and the history, in the outbox: they survive a restart, and are made once even if a reply is lost.
@Suite("Outbox: changes of messages and of the history")
struct OutboxChangeTests {
    private static let channel = Harness.channel
    private static let (first, last) = (MessageID(rawValue: 2), MessageID(rawValue: 3))

    static let operations: [OutboxOperation] = [
        .purge(PurgeMessage(channel: channel, message: last)),
        .deleteMany(DeleteMessages(channel: channel, messages: [first, last])),
        .deleteForMe(DeleteMessagesForMe(channel: channel, messages: [last])),
        .undelete(UndeleteMessage(channel: channel, message: last)),
        .metaArrays(UpdateMetaArrays(channel: channel, message: last, create: ["k"], add: ["k": ["v"]])),
        .reset(ResetHistory(channel: channel, upTo: 3)),
    ]

    private func name(_ operation: OutboxOperation) -> String { type(of: operation.operation).name }

    /// A client with two messages, of which the last is deleted if it is to be restored.
    private func client(for operation: OutboxOperation) async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        if operation.isUndeletion {
            var gone = message(3, "", changedAt: 4)
            gone.deletedAt = Timestamp(milliseconds: 4)
            try await client.receive(edited(gone, messages: 2))
        }
        return client
    }

    private func offline(for operation: OutboxOperation) async throws -> Harness {
        var client = try await client(for: operation)
        try await client.feed(.stop)
        client.forgetCalls()
        return client
    }

    private func reconnect(_ client: inout Harness) async throws {
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
    }

    /// Checks that the channel's newest message is shown as the operation will make it.
    private func expectShown(_ operation: OutboxOperation, by client: Harness) async throws {
        let newest = try await client.view()?.lastMessage
        switch operation {
        case .purge, .deleteMany: #expect(newest?.text == "" && newest?.deletedAt != nil && newest?.isDeletedForMe == false)
        case .deleteForMe: #expect(newest?.text == "" && newest?.isDeletedForMe == true)
        // Its content arrives with the answer.
        case .undelete: #expect(newest?.text == "" && newest?.deletedAt != nil)
        case .metaArrays: #expect(newest?.text == "two" && newest?.metaArrays == ["k": ["v"]])
        case .reset:
            #expect(newest == nil)
            #expect(try await client.texts() == [])
            #expect(try await client.unread() == 0)
        default: Issue.record("\(operation) isn't among the operations of this test.")
        }
    }

    private func expectDone(_ client: Harness) async throws {
        #expect(try await client.outbox.items() == [])
        #expect(try await client.store.read { try $0.overlays() } == [:])
    }

    @Test(
        "SB-37 SB-59 SB-60 R24 a change waits offline and over a restart, is shown meanwhile, and is sent once with a key",
        arguments: operations)
    func waits(operation: OutboxOperation) async throws {
        var before = try await offline(for: operation)
        try await before.enqueue(operation)
        try await expectShown(operation, by: before)
        var client = try await before.restarted()
        #expect(try await client.outbox.items().map(\.operation) == [operation])
        try await expectShown(operation, by: client)
        try await reconnect(&client)
        let keys = client.keys[name(operation)] ?? []
        #expect(keys.map { $0?.count } == [36])
        try await client.answerDone(name(operation))
        try await expectDone(client)
    }

    @Test(
        "SB-37 SB-59 SB-60 R24 after a lost reply a change is sent again with its key, even after a restart", arguments: operations)
    func lostReply(operation: OutboxOperation) async throws {
        var before = try await client(for: operation)
        try await before.enqueue(operation)
        let keys = before.keys[name(operation)]
        #expect(keys?.count == 1)
        // On another connection first, and then by another process.
        try await before.feed(.transport(before.sync.connection, .closed(code: 1006, reason: "")))
        before.forgetCalls()
        try await reconnect(&before)
        #expect(before.keys[name(operation)].map { Set($0) } == keys.map { Set($0) })
        var client = try await before.restarted()
        try await reconnect(&client)
        #expect(client.keys[name(operation)] == keys)
        try await client.answerDone(name(operation))
        try await expectDone(client)
    }

    @Test(
        "SB-37 SB-59 SB-60 R24 a refusal of a change removes its overlay, and leaves it in the outbox until it is given up",
        arguments: operations)
    func refused(operation: OutboxOperation) async throws {
        var client = try await client(for: operation)
        let known = try await client.view()
        try await client.enqueue(operation)
        try await expectShown(operation, by: client)
        try await client.refuse(name(operation), with: RoostError(.notPermitted, "No."))
        #expect(try await client.view() == known)
        let item = try #require(try await client.outbox.items().first)
        #expect(item.operation == operation && item.failure?.code == .notPermitted)
        try await client.feed(.discard(.operation(item.id, of: Self.channel)))
        try await expectDone(client)
    }

    @Test(
        "SB-37 SB-59 SB-60 R24 a change requested twice offline is sent once; those of lists of texts are each sent",
        arguments: operations)
    func twice(operation: OutboxOperation) async throws {
        var client = try await offline(for: operation)
        for _ in 0..<2 { try await client.enqueue(operation) }
        let isOfLists = if case .metaArrays = operation { true } else { false }
        #expect(try await client.outbox.count() == (isOfLists ? 2 : 1))
        try await expectShown(operation, by: client)
    }

    // MARK: Restored before the deletion is sent

    private func deletion(_ messages: Int64...) -> OutboxOperation {
        .deleteMany(DeleteMessages(channel: Self.channel, messages: messages.map { MessageID(rawValue: $0) }))
    }

    @Test("SB-59 restoring a message offline cancels all of its unsent deletions, and no other message's")
    func cancelledDeletions() async throws {
        let message = Self.first
        let delete = OutboxOperation.delete(DeleteMessage(channel: Self.channel, message: message))
        let purge = OutboxOperation.purge(PurgeMessage(channel: Self.channel, message: message))
        let undelete = OutboxOperation.undelete(UndeleteMessage(channel: Self.channel, message: message))
        let edit = OutboxOperation.edit(EditMessage(channel: Self.channel, message: message, text: "uno"))
        let cases: [([OutboxOperation], [OutboxOperation])] = [
            ([deletion(2, 3), undelete], [deletion(3)]),
            ([deletion(2), undelete], []),
            ([purge, undelete], []),
            ([edit, purge, undelete], [edit]),
            ([purge, edit, undelete], [edit]),
            ([delete, purge, undelete], []),
            ([deletion(2, 3), purge, undelete], [deletion(3)]),
            ([delete, deletion(2, 3), deletion(2, 4), deletion(2), undelete], [deletion(3), deletion(4)]),
            // It is deleted on the server.
            ([undelete, purge, undelete], [undelete]),
            ([undelete, delete, purge, undelete], [undelete]),
            ([undelete, deletion(2, 3), undelete], [undelete, deletion(3)]),
        ]
        for (requested, rest) in cases {
            var client = try await offline(for: purge)
            for operation in requested { try await client.enqueue(operation) }
            #expect(try await client.outbox.items().map(\.operation) == rest)
            let failures = client.take().filter { if case .reply(_, .failure) = $0 { true } else { false } }
            #expect(failures.isEmpty)
            let isLastDeleted = try await client.view()?.lastMessage?.deletedAt != nil
            let expectsDeletion = rest.contains { $0.changed.contains(.stored(Self.last)) }
            #expect(isLastDeleted == expectsDeletion)
        }
    }

    /// The server's event of the first message's deletion.
    private static var deletionOfFirst: Event {
        var gone = message(2, "", changedAt: 4)
        gone.deletedAt = Timestamp(milliseconds: 4)
        return edited(gone, messages: 2)
    }

    @Test("SB-59 restoring a message that may be deleted on the server is requested, though its unsent deletions are cancelled")
    func deletedOnServer() async throws {
        func purge(_ id: Int64) -> OutboxOperation {
            .purge(PurgeMessage(channel: Self.channel, message: MessageID(rawValue: id)))
        }
        func undelete(_ id: Int64) -> OutboxOperation {
            .undelete(UndeleteMessage(channel: Self.channel, message: MessageID(rawValue: id)))
        }
        let delete = OutboxOperation.delete(DeleteMessage(channel: Self.channel, message: Self.first))
        let cases: [([OutboxOperation], [OutboxOperation])] = [
            ([purge(2), undelete(2)], [undelete(2)]),
            ([delete, undelete(2)], [undelete(2)]),
            ([deletion(2, 3), undelete(2)], [deletion(3), undelete(2)]),
            ([deletion(2, 3), purge(2), undelete(2)], [deletion(3), undelete(2)]),
            // The first undeletion is enough.
            ([undelete(2), purge(2), undelete(2)], [undelete(2)]),
            // This device doesn't have it.
            ([purge(9), undelete(9)], [undelete(9)]),
            // It isn't deleted.
            ([purge(3), undelete(3)], []),
        ]
        for (requested, rest) in cases {
            var client = try await Harness()
            try await client.connectWithChannel()
            try await client.receive(Self.deletionOfFirst)
            try await client.feed(.stop)
            for operation in requested { try await client.enqueue(operation) }
            #expect(try await client.outbox.items().map(\.operation) == rest)
        }
    }

    @Test("SB-59 a message that the user has deleted for themselves isn't restored for everyone if its deletion is cancelled")
    func deletedForOneself() async throws {
        var deletion = Event(kind: .messageDeletedForMe, stream: .user(Harness.user), seq: 2, actor: Harness.user, rows: Rows())
        deletion.rows.ownDeletions = [
            OwnDeletion(channelId: Self.channel, seq: 2, deletedAt: Timestamp(milliseconds: 9), userSeq: 2)
        ]
        let delete = OutboxOperation.delete(DeleteMessage(channel: Self.channel, message: Self.first))
        let undelete = OutboxOperation.undelete(UndeleteMessage(channel: Self.channel, message: Self.first))
        for isDeleted in [false, true] {
            var client = try await Harness()
            try await client.connectWithChannel()
            if isDeleted { try await client.receive(Self.deletionOfFirst) }
            try await client.receive(deletion)
            #expect(try await client.store.read { try $0.message(Self.first, in: Self.channel)?.isDeletedForMe } == true)
            try await client.feed(.stop)
            for operation in [delete, undelete] { try await client.enqueue(operation) }
            #expect(try await client.outbox.items().map(\.operation) == (isDeleted ? [undelete] : []))
        }
    }

    @Test("SB-59 restoring a message that the server has deleted isn't requested if the message is deleted again before that")
    func restorationTakenBack() async throws {
        let message = Self.first
        let undelete = OutboxOperation.undelete(UndeleteMessage(channel: Self.channel, message: message))
        let edit = OutboxOperation.edit(EditMessage(channel: Self.channel, message: message, text: "uno"))
        let deletions: [OutboxOperation] = [
            .delete(DeleteMessage(channel: Self.channel, message: message)),
            .purge(PurgeMessage(channel: Self.channel, message: message)),
        ]
        for deletion in deletions {
            for isDeleted in [true, false] {
                var client = try await Harness()
                try await client.connectWithChannel()
                if isDeleted { try await client.receive(Self.deletionOfFirst) }
                try await client.feed(.stop)
                for operation in [undelete, deletion] { try await client.enqueue(operation) }
                #expect(try await client.outbox.items().map(\.operation) == (isDeleted ? [deletion] : [undelete, deletion]))
                try await client.enqueue(undelete)
                #expect(try await client.outbox.items().map(\.operation) == [undelete])
                // Without the undeletion the edit would be refused.
                for operation in [edit, deletion] { try await client.enqueue(operation) }
                #expect(try await client.outbox.items().map(\.operation) == [undelete, edit, deletion])
            }
        }
    }

    @Test("SB-59 a deletion that may have been sent is followed by the undeletion; the unsent ones after it are cancelled")
    func followedDeletion() async throws {
        let message = Self.first
        let purge = OutboxOperation.purge(PurgeMessage(channel: Self.channel, message: message))
        let undelete = OutboxOperation.undelete(UndeleteMessage(channel: Self.channel, message: message))
        let cases: [([OutboxOperation], [OutboxOperation])] = [
            ([deletion(2, 3), undelete], [deletion(2, 3), undelete]),
            ([deletion(2, 3), purge, undelete], [deletion(2, 3), undelete]),
            ([deletion(2, 3), deletion(2, 4), undelete], [deletion(2, 3), deletion(4), undelete]),
        ]
        for (requested, rest) in cases {
            var client = try await Harness()
            try await client.connectWithChannel()
            for operation in requested { try await client.enqueue(operation) }
            #expect(client.calls.values.sorted() == ["message.deleteMany"])
            #expect(try await client.outbox.items().map(\.operation) == rest)
        }
    }

    // MARK: Changes of another device since

    /// An operation about the user alone, and the user's rows after another device has reversed it.
    struct TakenBack: Sendable, CustomTestStringConvertible {
        let operation: OutboxOperation
        let rows: Rows
        var testDescription: String { type(of: operation.operation).name }
    }

    private static func unmuted() -> Membership { membership(readSeq: 1, readCount: 0, channelSeq: 3, userSeq: 6) }

    static let takenBack: [TakenBack] = [
        // They have joined again.
        TakenBack(
            operation: .leave(LeaveChannel(channel: channel)),
            rows: Rows([membership(readSeq: 1, readCount: 0, role: .operator, channelSeq: 3, userSeq: 6)])),
        TakenBack(operation: .mute(MuteNotifications(channel: channel)), rows: Rows([unmuted()])),
        TakenBack(
            operation: .preferences(UpdatePreferences(sharesTyping: false)),
            rows: Rows([Preferences(sharesTyping: true)])),
    ]

    @Test(
        "SB-20 D-29 R24 I4 leaving, muting and preferences whose reply was lost don't undo later changes of another device",
        arguments: takenBack)
    func otherDevice(act: TakenBack) async throws {
        let name = name(act.operation)
        var client = try await client(for: act.operation)
        try await client.enqueue(act.operation)
        let keys = try #require(client.keys[name])
        #expect(keys.map { $0?.count } == [36])
        try await client.feed(.transport(client.sync.connection, .closed(code: 1006, reason: "")))
        client.forgetCalls()
        client = try await client.restarted()
        try await client.connect()
        let own = Changes(stream: .user(Harness.user), rows: act.rows, seq: 6, hasMore: false)
        try await client.answer("stream.resume", with: Resumption(user: own, channels: [], hasMore: false))
        #expect(client.keys[name] == keys)
        try await client.answerDone(name)
        try await expectDone(client)
        let shown = try await client.view()?.membership
        switch act.operation {
        case .leave: #expect(shown?.state == .member && shown?.role == .operator)
        case .mute: #expect(shown?.state == .member && shown?.notificationsMutedUntil == nil)
        default: #expect(try await client.store.read { try $0.preferences() }.sharesTyping == true)
        }
        #expect(client.calls.isEmpty && client.keys[name] == keys)
    }
}
