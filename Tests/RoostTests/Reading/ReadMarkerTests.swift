import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// What ends marking a channel as read while it is shown, and what doesn't.
@MainActor @Suite("Reading: marking what is shown", .timeLimit(.minutes(5)))
struct ReadMarkerTests {
    private static func offlineChat() -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    @Test("AM-45 a concealment that is given up isn't taken for a mark as unread: later messages are marked on the screen")
    func concealmentGivenUp() async throws {
        let chat = Self.offlineChat()
        let (store, outbox) = (try await chat.driver.prepare().store, try await chat.driver.files().outbox)
        // The newest change is no message, so concealing moves the position though nothing is unread.
        try await store.write([
            .erase(epoch: "first"), .messages([message(2, "one"), message(3, "two")], of: Harness.channel),
            .channel(channel(counters(4, messages: 2))),
            .membership(membership(readSeq: 3, readCount: 2, channelSeq: 4, userSeq: 1)),
            .position(Harness.channel, Position(cursor: 4, windowStart: 0, messageCount: 2)),
        ])
        let (saved, kept) = (try await store.savedState(), try await outbox.saved())
        await chat.driver.request(.reopened(saved, kept))
        let shown = chat.channel(Harness.channel)
        try await shown.loaded()
        let token = shown.markReadWhileVisible()
        try await shown.resetHistory()
        try await until { shown.membership?.readSeq == 4 }
        for item in try await outbox.items() { await chat.driver.request(.discard(.operation(item.id, of: item.channel))) }
        try await until { shown.membership?.readSeq == 3 }

        try await store.write([
            .messages([message(5, "three")], of: Harness.channel), .counters(Harness.channel, counters(5, messages: 3)),
            .position(Harness.channel, Position(cursor: 5, windowStart: 0, messageCount: 3)),
        ])
        let mark = OutboxOperation.read(MarkRead(channel: Harness.channel, seq: 5))
        try await until { try await outbox.items().map(\.operation) == [mark] }
        token.invalidate()
    }

    @Test("AM-45 the newest message that the list holds is marked, whatever part of the list is visible")
    func wholeList() async throws {
        let chat = Self.offlineChat()
        let (store, outbox) = (try await chat.driver.prepare().store, try await chat.driver.files().outbox)
        let seqs: ClosedRange<Seq> = 1...40
        try await store.write([
            .erase(epoch: "first"), .messages(seqs.map { message($0, "\($0)") }, of: Harness.channel),
            .position(Harness.channel, Position(cursor: 40, windowStart: 0, messageCount: nil)),
            .channel(channel(counters(40, messages: 40))),
            .membership(membership(readSeq: 0, readCount: 0, channelSeq: 40, userSeq: 1)),
        ])
        let shown = chat.channel(Harness.channel)
        try await shown.loaded()
        let list = shown.messages(around: .message(MessageID(rawValue: 10)), pageSize: 10)
        try await list.loaded()
        let last = try #require(list.items.last?.message?.seq)
        try #require(last < 40)
        let token = shown.markReadWhileVisible(list)
        let mark = OutboxOperation.read(MarkRead(channel: Harness.channel, seq: last))
        try await until { try await outbox.items().map(\.operation) == [mark] }
        token.invalidate()
    }
}
