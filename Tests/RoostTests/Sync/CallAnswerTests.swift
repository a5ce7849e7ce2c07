import RoostAPI
import Testing

@testable import Roost

@Suite("Sync: answers to the app's calls")
struct CallAnswerTests {
    @Test("What the cache had to read of an answer, its caller needn't read again")
    func readOnce() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 0), channels: [], hasMore: false))
        let whole = channel(counters(3, messages: 2))
        let view = ChannelView(channel: whole, membership: membership(readSeq: 3, readCount: 2, userSeq: 1))
        try await client.feed(.call(1, JoinChannel(channel: Harness.channel)))
        try await client.answer("member.join", with: view)
        #expect(client.sync.readAnswers[1] as? ChannelView == view)
        try await client.feed(.call(2, QueryAndWatchChannels(query: QueryChannels())))
        try await client.answer("channel.queryAndWatch", with: Page(items: [view]))
        #expect((client.sync.readAnswers[2] as? Page<ChannelView>)?.items == [view])
        // A refusal has nothing to read, and another call's answer is for its caller alone.
        try await client.feed(.call(3, GetUnread(channel: Harness.channel)))
        try await client.answer("reading.unread", with: UnreadCount(channelId: Harness.channel, unreadCount: 0, readSeq: 3))
        #expect(client.sync.readAnswers[3] == nil)
    }

    @Test("A value that was read is taken as it is; one that wasn't, or is of another type, is read of the frame")
    func value() throws {
        let count = UnreadCount(channelId: "general", unreadCount: 2, readSeq: 3)
        let frame = Array(#"{"reply":1,"result":{"channelId":"general","unreadCount":2,"readSeq":3,"hasMention":false}}"#.utf8)
        #expect(try CallAnswer(bytes: [], value: count).decoded() == count)
        #expect(try CallAnswer(bytes: frame).decoded() == count)
        #expect(try CallAnswer(bytes: frame, value: "other").decoded() == count)
        #expect(throws: DecodingError.self) { try CallAnswer(bytes: Array("{}".utf8)).decoded(as: UnreadCount.self) }
    }
}
