import RoostAPI
import Testing

@testable import Roost

@Suite("Sync: answers to the app's calls")
struct CallAnswerTests {
    @Test("an answer that the cache had to read needn't be read again by its caller")
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

    @Test("the answer to an operation that names users is read once, for its caller and for the users", arguments: NamingCall.all)
    func readOnceWithUsers(call: NamingCall) async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 0), channels: [], hasMore: false))
        try await client.feed(.call(1, call.operation))
        try await client.answer(call.name, with: call.answer)
        let isRead = client.sync.readAnswers[1].map(call.isAnswer)
        #expect(isRead == true)
        #expect(try await client.store.read { try $0.summary(of: "bob") } == NamingCall.bob.summary)
    }

    @Test("every operation that names users is among these; an unreadable answer names none, and still reaches its caller")
    func naming() async throws {
        let naming = Operations.all.filter { $0 is any UserNaming.Type }.map { $0.name }
        #expect(Set(NamingCall.all.map(\.name)) == Set(naming))
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 0), channels: [], hasMore: false))
        try await client.feed(.call(1, GetUser(user: "bob")))
        try await client.answer("user.get", with: NamingCall.bob.summary)
        #expect(client.sync.readAnswers[1] == nil)
        #expect(try await client.store.read { try $0.summary(of: "bob") } == UserSummary(userId: "bob"))
        let isAnswered = client.outputs.contains { if case .reply(1, .success) = $0 { true } else { false } }
        #expect(isAnswered)
    }

    @Test("I21 a permission that this version doesn't know is left out of an answer, which its caller gets and the cache keeps")
    func newerPermission() async throws {
        var client = try await Harness()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 0), channels: [], hasMore: false))
        let view = ChannelView(
            channel: channel(counters(3, messages: 2)), membership: membership(readSeq: 3, readCount: 2, userSeq: 1),
            ownCapabilities: [.channelRead, .messageSend])
        let known = String(decoding: try JSONWriter.bytes(of: view), as: UTF8.self)
        let newer = known.replacing(#""message.send""#, with: #""message.sing","message.send""#)
        try #require(newer != known)
        try await client.feed(.call(1, JoinChannel(channel: Harness.channel)))
        let number = try #require(client.calls.first { $0.value == "member.join" }?.key)
        try await client.receive(text: #"{"reply":\#(number),"result":\#(newer)}"#)
        #expect(client.sync.readAnswers[1] as? ChannelView == view)
        #expect(try await client.listed() == [Harness.channel])
        #expect(try CallAnswer(bytes: Array(#"{"reply":1,"result":\#(newer)}"#.utf8)).decoded() == view)
    }

    @Test("a value that was read is used as it is; one that wasn't, or of another type, is read from the frame")
    func value() throws {
        let count = UnreadCount(channelId: "general", unreadCount: 2, readSeq: 3)
        let frame = Array(#"{"reply":1,"result":{"channelId":"general","unreadCount":2,"readSeq":3,"hasMention":false}}"#.utf8)
        #expect(try CallAnswer(bytes: [], value: count).decoded() == count)
        #expect(try CallAnswer(bytes: frame).decoded() == count)
        #expect(try CallAnswer(bytes: frame, value: "other").decoded() == count)
        #expect(throws: DecodingError.self) { try CallAnswer(bytes: Array("{}".utf8)).decoded(as: UnreadCount.self) }
    }
}

/// A call whose answer names bob.
struct NamingCall: Sendable {
    let name: String
    let operation: any RoostAPI.Operation
    let answer: any Encodable & Sendable
    /// Whether a value is the answer.
    let isAnswer: @Sendable (any Sendable) -> Bool

    init<Call: RoostAPI.Operation>(_ operation: Call, _ answer: Call.Response) {
        name = Call.name
        self.operation = operation
        self.answer = answer
        isAnswer = { $0 as? Call.Response == answer }
    }

    static let bob = User(userId: "bob", displayName: "Bob", createdAt: time, updatedAt: time, version: 2)
    private static let time = Timestamp(milliseconds: 1)
    private static let entry = MemberEntry(
        member: Member(userId: "bob", role: .member, state: .member, joinedAt: time, joinedSeq: 1, changeSeq: 1), user: bob,
        isOnline: true)

    static let all: [NamingCall] = {
        let (general, users) = (Harness.channel, [bob.summary])
        let view = ChannelView(channel: channel(counters(3, messages: 2)))
        let messages = MessagePage(messages: [message(2, "one")], hasOlder: false, hasNewer: false, seq: 3, users: users)
        return [
            NamingCall(QueryChannels(), Page(items: [view], users: users)),
            NamingCall(ListMembers(channel: general), Page(items: [entry])),
            NamingCall(SearchMembers(channel: general, text: "b"), Page(items: [entry])),
            NamingCall(GetMember(channel: general, user: "bob"), entry),
            NamingCall(ListReaders(channel: general), Page(items: [ReadPosition(userId: "bob", readSeq: 3)], users: users)),
            NamingCall(ListMessages(channel: general), messages),
            NamingCall(ListMentions(), Page(items: [message(2, "one")], users: users)),
            NamingCall(ListInvitations(channel: general), Page(items: [invitation()], users: users)),
            NamingCall(GetUsers(users: ["bob"]), [bob]), NamingCall(GetUser(user: "bob"), bob),
        ]
    }()
}
