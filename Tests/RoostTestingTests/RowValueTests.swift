import Roost
import RoostAPI
import Testing

/// Rows that an app makes for its previews, with nothing but the public API.
@Suite("Rows without a server")
struct RowValueTests {
    private let time = Timestamp(milliseconds: 1000)
    private let bob = UserSummary(userId: "bob", displayName: "Bob")

    private func message(_ text: String, mentioning users: [UserID] = []) -> Message {
        Message(
            messageId: MessageID(rawValue: 7), channelId: "general", seq: 2, changeSeq: 2, sender: "bob", clientId: "c", text: text,
            mentionees: users.isEmpty ? nil : [.users(users)], createdAt: time)
    }

    @Test(
        "a row of a message shows what it is made from: sender, mentions, state and change; one on its way is the same with its client id"
    )
    func messages() {
        #expect(previewRows().map(\.text) == ["hello", "hi", "Anyone here?"])
        #expect(previewRows().map(\.sender.name) == ["Bob", "Ann", "Ann"])
        let refusal = RoostError(.frozen, "The channel is frozen.")
        #expect(previewRows().map(\.state) == [.sent, .pending, .failed(refusal)])

        let stored = message("hi @Cat", mentioning: ["cat", "dan"])
        let row = MessageItem(
            stored, sender: bob, mentioned: [UserSummary(userId: "cat", displayName: "Cat")], change: .failed(refusal))
        #expect(row.message == stored && row.sender == bob && row.createdAt == time && row.change == .failed(refusal))
        #expect(row.mentionedUsers.map(\.name) == ["Cat", "dan"])
        #expect(MessageItem(stored).sender == UserSummary(userId: "bob"))

        let draft = MessageDraft(content: MessageContent(text: "hi"), clientId: "d")
        let pending = MessageItem(draft, sender: bob, createdAt: time, state: .sent)
        #expect(pending == MessageItem(draft, sender: bob, createdAt: time) && pending.state == .pending && pending.message == nil)
        #expect(MessageItem("hi", sender: bob, createdAt: time) != MessageItem("hi", sender: bob, createdAt: time))
    }

    @Test("rows of channels, members and invitations, entries of the outbox and events show what they are made from")
    func others() {
        let channel = Channel(
            channelId: "general", type: .community,
            counters: ChannelCounters(seq: 2, memberCount: 2, messageCount: 1, lastActivity: time),
            createdBy: "bob", createdAt: time, updatedAt: time)
        let view = ChannelView(channel: channel, lastMessage: message("hi"), ownCapabilities: [.messageSend])
        let row = ChannelItem(view, lastSender: bob, inviter: bob)
        #expect(row.channel == channel && row.lastMessage?.text == "hi" && row.ownCapabilities == [.messageSend])
        #expect(row.lastSender == bob && row.inviter == nil && ChannelItem(view).lastSender == UserSummary(userId: "bob"))

        let member = Member(userId: "bob", role: .member, state: .member, joinedAt: time, joinedSeq: 1, changeSeq: 1)
        let user = User(userId: "bob", displayName: "Bob", createdAt: time, updatedAt: time)
        let entry = MemberItem(MemberEntry(member: member, user: user, isOnline: true))
        #expect(entry.user.name == "Bob" && entry.profile == user && entry.isOnline == true && entry.member == member)

        let invitation = Invitation(
            channelId: "general", userId: "ann", inviter: "bob", state: .pending, invitedAt: time, revision: 1)
        let invited = InvitationItem(invitation: invitation, inviter: bob)
        #expect(invited.id.channelId == "general" && invited.id.inviter == "bob" && invited.channel == nil)

        let operation = LiveOutbox.Entry(id: 1, operation: "channel.hide", channel: "general", createdAt: time, state: .pending)
        #expect(operation.messages == [] && operation.content == nil && operation.state == .pending)
        let news = ChatEvent.Happening(
            kind: .messageNew, channel: "general", actor: "bob", isOwn: false, isWatched: false, message: message("hi"))
        #expect(news.message?.text == "hi" && news.channel == "general" && news.invitations == [])
    }

    @Test("updates of lists are compared by their rows and places")
    func updates() {
        let row = MessageItem(message("hi"), sender: bob)
        let inserted = ListUpdate(from: [], to: [row])
        #expect(inserted == ListUpdate(from: [], to: [row]) && inserted != ListUpdate(from: [row], to: []))
        #expect(Set([inserted, ListUpdate(from: [], to: [row])]).count == 1)
    }
}
