import Foundation
import RoostAPI
import Testing

@testable import Roost

extension VisitTests {
    // MARK: Starting over

    /// The answer to a watch of an ephemeral channel.
    private static func ephemeral(_ seq: Seq) -> WatchedChannel {
        var state = Self.state(seq, [], count: 0)
        state.channel.isEphemeral = true
        return state
    }

    @Test("ST-01 R39 I3 a watched ephemeral channel of a non-member stays as shown, after a reconnect and if events are missing")
    func ephemeral() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Self.nothing)
        try await client.feed(.call(1, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: Self.ephemeral(3))
        try await client.receive(alone(message(4, "new")))
        #expect(try await client.texts() == ["new"])

        try await reconnect(&client)
        try await client.answer("stream.resume", with: Self.nothing)
        _ = client.take()
        try await client.answer("channel.watch", with: Self.ephemeral(7))
        #expect(reported(by: &client) == [.missed(after: [Self.general: 4])])
        #expect(try await client.texts() == ["new"])
        try await client.receive(alone(message(8, "later")))

        try await client.receive(alone(message(10, "lost")))
        _ = client.take()
        try await client.answer("channel.watch", with: Self.ephemeral(10))
        #expect(reported(by: &client) == [.missed(after: [Self.general: 8])])
        try await client.receive(alone(message(11, "last")))
        #expect(try await client.texts() == ["new", "later", "last"])
    }

    /// How a visit that the app still wants is dropped.
    enum Forgetting: CaseIterable, Sendable { case reopened, failed, otherHistory, unreadable }

    @Test(
        "ST-01 R39 a dropped visit that is still wanted starts with the newest messages, and events meanwhile are reported as missed",
        arguments: Forgetting.allCases)
    func forgotten(way: Forgetting) async throws {
        var client = try await visiting()
        switch way {
        case .reopened:
            try await client.feed(.stop)
            try await client.feed(.reopened(try await client.store.savedState(), try await client.outbox.saved()))
        case .failed: try await client.feed(.storeFailed(try await client.store.savedState(), nil, "It is full."))
        case .otherHistory: try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        case .unreadable:
            try await client.receive(sent(message(6, "six"), messages: 4))
            try await client.answer("channel.watch", with: Done())
            // The unreadable rows may be messages.
            #expect(askedForMessages(by: &client) == [nil, 0])
        }
        if way != .unreadable {
            client.forgetCalls()
            try await client.connect(epoch: way == .otherHistory ? "second" : "first")
            _ = client.take()
            try await client.answer("stream.resume", with: Self.nothing)
            #expect(askedForMessages(by: &client) == [nil])
        }
        _ = client.take()
        try await client.answer("channel.watch", with: Self.state(7, [message(6, "six"), message(7, "seven")], count: 5))
        #expect(reported(by: &client) == [.missed(after: [Self.general: way == .otherHistory ? 0 : 3])])
        #expect(try await client.texts() == ["six", "seven"])
        #expect(try await client.view()?.lastMessage?.text == "seven")
        #expect(client.sync.watches.forgottenVisits == [:] && client.calls.isEmpty)
    }

    @Test("ST-01 ST-10 for a dropped visit nothing is reported as missed once the app has ended the watch")
    func forgottenAndUnwatched() async throws {
        var client = try await visiting()
        try await client.feed(.stop)
        client.forgetCalls()
        try await client.feed(.reopened(try await client.store.savedState(), try await client.outbox.saved()))
        try await client.feed(.call(2, UnwatchChannel(channel: Self.general)))
        try await client.connect()
        try await client.answer("stream.resume", with: Self.nothing)
        try await client.feed(.call(3, WatchChannel(channel: Self.general)))
        _ = client.take()
        try await client.answer("channel.watch", with: Self.state(7, [message(7, "seven")], count: 5))
        #expect(reported(by: &client) == [])
        #expect(try await client.texts() == ["seven"])
    }

    @Test(
        "ST-10 SB-63 a channel that a live object of a non-member watches has its newest message, and the messages of a later watch"
    )
    func heldAndWatched() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Self.nothing)
        _ = client.take()
        try await client.feed(.hold(1, Self.general, by: 5))
        #expect(askedForMessages(by: &client) == [1])
        // It may have had none to show.
        try await client.answer("channel.watch", with: Self.state(3, []))
        try await client.feed(.call(2, WatchChannel(channel: Self.general)))
        // A message by which the answer is ahead arrives with its event.
        let newest = [message(2, "one"), message(3, "two"), message(4, "new")]
        try await client.answer("channel.watch", with: Self.state(4, newest, count: 3))
        #expect(try await client.texts() == ["one", "two"])
        #expect(try await client.view()?.lastMessage?.text == "two")
        try await client.receive(alone(message(4, "new")))
        #expect(try await client.texts() == ["one", "two", "new"])
    }

    @Test(
        "ST-10 I6 a visit whose end couldn't be written ends when the files are taken back, or with the next connection after a failure",
        arguments: [true, false])
    func unwrittenEnd(isReopened: Bool) async throws {
        var client = try await visiting()
        // The machine's requests of the store aren't performed.
        _ = client.sync.handle(.call(2, UnwatchChannel(channel: Self.general)))
        if isReopened {
            _ = client.sync.handle(.stop)
            #expect(try await client.store.read { try $0.cursor(of: Self.general) } == 3)
            try await client.feed(.reopened(try await client.store.savedState(), try await client.outbox.saved()))
        } else {
            try await client.feed(.storeFailed(try await client.store.savedState(), nil, "It is full."))
            #expect(try await client.store.read { try $0.cursor(of: Self.general) } == 3)
            client.forgetCalls()
            try await client.connect()
        }
        #expect(try await client.store.read { try $0.cursor(of: Self.general) } == nil)
        #expect(try await client.texts() == [])
    }

    private struct SentWatch: Decodable {
        struct Fields: Decodable { let limit: Int? }
        let operation: String
        let with: Fields
    }

    /// The limit of each watch that was requested.
    private func askedForMessages(by client: inout Harness) -> [Int?] {
        client.take().compactMap { output in
            guard case .send(let bytes) = output, let call = try? JSONDecoder().decode(SentWatch.self, from: Data(bytes)),
                call.operation == WatchChannel.name
            else {
                return nil
            }
            return .some(call.with.limit)
        }
    }
}
