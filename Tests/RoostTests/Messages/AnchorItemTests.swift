import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// The row to which a list that was opened at a message or a time leads.
@MainActor @Suite("Messages: the row at a list's anchor", .timeLimit(.minutes(5)))
struct AnchorItemTests {
    /// A channel of a client that was never started: 100 messages of 1 to 100 ms, all of them cached.
    private func general() async throws -> LiveChannel {
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: TinyServer())
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let store = try await chat.driver.prepare().store
        let seqs: ClosedRange<Seq> = 1...100
        try await store.write([
            .forget(Harness.channel), .messages(seqs.map { message($0, "\($0)") }, of: Harness.channel),
            .position(Harness.channel, Position(cursor: 100, windowStart: 0, messageCount: nil)),
        ])
        return chat.channel(Harness.channel)
    }

    @Test(
        "SB-55 SB-56 a list opened at a message or at a time has that row's id, and at other places none",
        arguments: [
            (.message(MessageID(rawValue: 40)), "bob-40"), (.time(Timestamp(milliseconds: 70)), "bob-70"),
            (.time(Timestamp(milliseconds: 0)), "bob-1"), (.time(Timestamp(milliseconds: 101)), nil), (.newest, nil),
            (.firstUnread, nil),
        ] as [(MessageAnchor, ClientID?)])
    func row(anchor: MessageAnchor, expected: ClientID?) async throws {
        let list = try await general().messages(around: anchor, pageSize: 10)
        try await list.loaded()
        #expect(list.anchorItem?.clientId == expected)
        #expect(expected == nil || list.items.contains { $0.id == list.anchorItem })
    }

    @Test("SB-56 the row stays the same wherever the list moves, and there is none if the list was moved before it got there")
    func stays() async throws {
        let general = try await general()
        let list = general.messages(around: .message(MessageID(rawValue: 40)), pageSize: 10)
        try await list.loaded()
        let row = try #require(list.anchorItem)
        try await list.loadOlder()
        await list.showNewest()
        #expect(list.anchorItem == row && !list.items.contains { $0.id == row })

        // Message 200 isn't on this device, and there is no connection.
        let moved = general.messages(around: .message(MessageID(rawValue: 200)), pageSize: 10)
        await moved.showNewest()
        try await moved.loaded()
        #expect(moved.items.last?.text == "100" && moved.anchorItem == nil)
    }
}
