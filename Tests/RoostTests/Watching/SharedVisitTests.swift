import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// What the cache has of channels of others that the user watches, after a membership and beside other chats.
@Suite("Watching: channels of others in the cache", .timeLimit(.minutes(5)))
struct SharedVisitTests {
    private static let general = Harness.channel
    private static let nothing = Resumption(user: changes(user: 1), channels: [], hasMore: false)

    /// The answer to a watch by somebody who isn't a member.
    private static func state(_ seq: Seq, _ messages: [Message], count: Int) -> WatchedChannel {
        WatchedChannel(
            config: ChannelPolicy.presets[0], channel: channel(counters(seq, messages: count)), online: 1, watcherCount: 1,
            watchers: [:], members: [:], read: [:],
            messages: MessagePage(messages: messages, hasOlder: true, hasNewer: false, seq: seq),
            ownCapabilities: [.channelRead, .historyRead, .channelWatch])
    }

    private static func messages(_ seqs: ClosedRange<Seq>) -> [Message] { seqs.map { message($0, "m\($0)") } }
    private static func texts(_ seqs: ClosedRange<Seq>) -> [String] { seqs.map { "m\($0)" } }

    @Test("ST-01 SB-26 what was concealed from a member is shown to whoever has left and watches, until they are a member again")
    func formerMember() async throws {
        var client = try await Harness()
        try await client.connect()
        let joined = fresh(
            messages: Self.messages(44...45), counters: counters(45, messages: 44),
            membership: membership(readSeq: 45, readCount: 0, floor: 40))
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [joined], hasMore: false))
        let left = membership(readSeq: 45, readCount: 0, state: .none, floor: 40, channelSeq: 46, userSeq: 2)
        try await client.receive(mine(2, .memberLeft, left))
        #expect(try await client.texts() == [])

        try await client.feed(.call(1, WatchChannel(channel: Self.general)))
        try await client.answer("channel.watch", with: Self.state(50, Self.messages(31...50), count: 48))
        #expect(try await client.texts() == Self.texts(31...50))
        try await client.feed(.loadMessages(9, Self.general, .older(than: .max), limit: 10))
        let page = MessagePage(messages: Self.messages(21...30), hasOlder: true, hasNewer: true, seq: 50)
        try await client.answer("message.list", with: page)
        #expect(try await client.texts() == Self.texts(21...50))
        #expect(try await client.store.read { try $0.maySee(messageAt: 21, in: Self.general) })

        try await client.receive(
            Event(
                kind: .memberJoined, stream: .channel(Self.general), seq: 51, actor: Harness.user,
                rows: Rows(counters: counters(51, messages: 48))))
        let again = membership(readSeq: 51, readCount: 0, floor: 40, channelSeq: 51, userSeq: 3)
        try await client.receive(mine(3, .memberJoined, again, channel: channel(counters(51, messages: 48))))
        #expect(try await client.texts() == Self.texts(41...50))
        #expect(try await !client.store.read { try $0.maySee(messageAt: 40, in: Self.general) })
    }
}
