import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Members")
struct MemberTests {
    @Test("AM-26 a new member has the ordinary role, and nothing unread")
    func joins() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try world.user("bob")
        let message = try world.send("before", to: "general", as: "ann")
        world.advance(milliseconds: 5)
        let view = try world.perform(JoinChannel(channel: "general"), as: "bob")
        let membership = Membership(
            channelId: "general", role: .member, state: .member, joinedAt: world.now, joinedSeq: 3, readSeq: 3, readCount: 1,
            channelSeq: 3, userSeq: 2)
        #expect(view.membership == membership)
        #expect(view.lastMessage == message)
        let counters = ChannelCounters(
            seq: 3, memberCount: 2, messageCount: 1, lastActivity: world.now, lastMessageAt: message.createdAt)
        #expect(view.channel.counters == counters)
        #expect(view.unreadCount == 0)
    }

    @Test("SB-20 an owner may leave, and rejoins as an ordinary member")
    func ownerLeaves() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.perform(LeaveChannel(channel: "general"), as: "ann")
        #expect(try world.code(UpdateChannel(channel: "general", displayName: "x"), as: "ann") == .notMember)
        let view = try world.perform(JoinChannel(channel: "general"), as: "ann")
        #expect(view.membership?.role == .member)
        #expect(try world.code(DeleteChannel(channel: "general"), as: "ann") == .notPermitted)
    }

    @Test("AM-26 a member who rejoins has nothing unread, whatever was left unread and was sent meanwhile")
    func comesBack() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.send("unread", to: "general", as: "ann")
        try world.perform(LeaveChannel(channel: "general"), as: "bob")
        try world.send("missed", to: "general", as: "ann")
        let view = try world.perform(JoinChannel(channel: "general"), as: "bob")
        let place = [view.membership?.readSeq, view.membership.map { Seq($0.readCount) }, Seq(view.unreadCount)]
        #expect(place == [5, 2, 0])
    }

    @Test("I9 a former member reads, writes and marks nothing more")
    func leaves() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let message = try world.send("mine", to: "general", as: "bob").messageId
        try world.perform(LeaveChannel(channel: "general"), as: "bob")
        let operations: [any Handled] = [
            ListMessages(channel: "general"), GetChannelChanges(channel: "general", after: 0), MarkRead(channel: "general"),
            GetUnread(channel: "general"), SendMessage(channel: "general", clientId: "new", text: "x"),
            EditMessage(channel: "general", message: message, text: "x"), DeleteMessage(channel: "general", message: message),
            WatchChannel(channel: "general"),
        ]
        let codes = try operations.map { try world.code($0, as: "bob", connection: 1) }
        #expect(codes == Array(repeating: .notMember, count: operations.count))
    }

    @Test("AM-42 members are listed in pages in the order of their ids, without those who left", arguments: [1, 2, 4, 5, 100])
    func pages(limit: Int) throws {
        let world = try CoreWorld()
        let users = ["ann", "Bob", "bob", "cid", "dan"] as [UserID]
        try world.channel("general", owner: "ann", members: Array(users.dropFirst()) + ["eve"])
        try world.perform(LeaveChannel(channel: "general"), as: "eve")
        var found: [UserID] = []
        var cursor: String?
        repeat {
            let page = try world.perform(
                ListMembers(channel: "general", sort: .userId, limit: limit, cursor: cursor), as: "ann")
            found += page.items.map(\.member.userId)
            cursor = page.nextCursor
        } while cursor != nil && found.count < 100
        #expect(found == ["Bob", "ann", "bob", "cid", "dan"])
    }

    @Test("MN-16 SB-57 a member who rejoins is mentioned only by visible messages, none that is deleted or hidden")
    func mentionsOfComingBack() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben"])
        func mention(_ id: ClientID) throws -> MessageID {
            let send = SendMessage(channel: "general", clientId: id, text: "@ben", mentionees: [.users(["ben"])])
            return try world.perform(send, as: "ann").messageId
        }
        func leave() throws { try world.perform(LeaveChannel(channel: "general"), as: "ben") }
        func joins() throws -> MessageID? {
            let membership = try world.perform(JoinChannel(channel: "general"), as: "ben").membership
            let stored = try world.perform(GetChannel(channel: "general"), as: "ben").membership
            #expect(membership?.mentionMessage == stored?.mentionMessage && membership?.mentionSeq == stored?.mentionSeq)
            #expect((stored?.mentionMessage == nil) == (stored?.mentionSeq == 0))
            return stored?.mentionMessage
        }
        let (first, second) = (try mention("1"), try mention("2"))
        try leave()
        #expect(try joins() == second)
        try leave()
        try world.perform(PurgeMessage(channel: "general", message: second), as: "ann")
        #expect(try joins() == first)
        try leave()
        try world.perform(DeleteMessage(channel: "general", message: first), as: "ann")
        #expect(try joins() == nil)
        _ = try mention("3")
        try leave()
        try world.perform(AddMembers(channel: "general", users: ["ben"], hideHistory: true), as: "ann")
        let hidden = try world.perform(GetChannel(channel: "general"), as: "ben").membership
        #expect(hidden?.mentionSeq == 0 && hidden?.mentionMessage == nil)
    }
}
