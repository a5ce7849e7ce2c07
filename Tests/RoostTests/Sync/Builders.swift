import RoostAPI

@testable import Roost

// Rows and events that read like sentences. All of them are about one channel, `general`, and one user, `ann`.

func message(
    _ seq: Seq, _ text: String, by sender: UserID = "bob", clientId: ClientID? = nil, changedAt changeSeq: Seq? = nil
) -> Message {
    Message(
        messageId: MessageID(rawValue: seq), channelId: Harness.channel, seq: seq, changeSeq: changeSeq ?? seq, sender: sender,
        clientId: clientId ?? ClientID("\(sender)-\(seq)"), text: text, createdAt: Timestamp(milliseconds: seq))
}

func counters(_ seq: Seq, messages: Int) -> ChannelCounters {
    ChannelCounters(seq: seq, memberCount: 2, messageCount: messages, lastActivity: Timestamp(milliseconds: seq))
}

func channel(_ counters: ChannelCounters, deletedAt: Timestamp? = nil) -> Channel {
    var channel = Channel(
        channelId: Harness.channel, type: .community, counters: counters, createdBy: "bob", createdAt: Timestamp(milliseconds: 0),
        updatedAt: Timestamp(milliseconds: 0))
    channel.deletedAt = deletedAt
    return channel
}

/// Returns a membership at a seq of the user's stream.
func membership(
    readSeq: Seq, readCount: Int, state: MembershipState = .member, role: ChannelRole = .member, floor: Seq = 0,
    hidden: HiddenState = .unhidden, channelSeq: Seq? = nil, userSeq: Seq = 0
) -> Membership {
    Membership(
        channelId: Harness.channel, role: role, state: state, joinedAt: Timestamp(milliseconds: 1), joinedSeq: 1,
        readSeq: readSeq, readCount: readCount, historyFloor: floor, hiddenState: hidden, channelSeq: channelSeq ?? readSeq,
        userSeq: userSeq)
}

func invitation(
    of user: UserID = Harness.user, by inviter: UserID = "bob", to channel: ChannelID = "private",
    _ state: InvitationState = .pending,
    revision: Int = 1
) -> Invitation {
    Invitation(
        channelId: channel, userId: user, inviter: inviter, welcome: "come in", state: state,
        invitedAt: Timestamp(milliseconds: Int64(revision)), revision: revision)
}

/// The channel as a fresh client gets it.
func fresh(
    messages: [Message] = [message(2, "one"), message(3, "two")], counters: ChannelCounters = counters(3, messages: 2),
    membership: Membership = membership(readSeq: 1, readCount: 0)
) -> Changes {
    Changes(
        stream: .channel(Harness.channel), rows: Rows(channel: channel(counters), messages, [membership]),
        seq: counters.seq, hasMore: false, isFresh: true)
}

func changes(channel seq: Seq, _ rows: Rows, hasMore: Bool = false) -> Changes {
    Changes(stream: .channel(Harness.channel), rows: rows, seq: seq, hasMore: hasMore)
}

func changes(user seq: Seq, _ memberships: [Membership] = []) -> Changes {
    Changes(stream: .user(Harness.user), rows: Rows(memberships), seq: seq, hasMore: false)
}

func sent(_ message: Message, messages count: Int) -> Event {
    Event(
        kind: .messageNew, stream: .channel(Harness.channel), seq: message.seq, actor: message.sender,
        rows: Rows(counters: counters(message.seq, messages: count), [message]))
}

/// The event of a new message as sent to members who may read.
func alone(_ message: Message) -> EventFrame { EventFrame(watching: false, event: Event(of: message)) }

func edited(_ message: Message, messages count: Int) -> Event {
    Event(
        kind: .messageUpdated, stream: .channel(Harness.channel), seq: message.changeSeq, actor: message.sender,
        rows: Rows(counters: counters(message.changeSeq, messages: count), [message]))
}

func mine(_ seq: Seq, _ kind: Event.Kind, _ membership: Membership, channel: Channel? = nil) -> Event {
    Event(
        kind: kind, stream: .user(Harness.user), seq: seq, actor: Harness.user,
        rows: Rows(channel: channel, [membership]))
}

extension StoreWrite {
    /// Replaces messages of a channel with newer ones.
    static func messages(_ messages: [Message], of channel: ChannelID) -> StoreWrite {
        .rows(Rows(messages), of: .channel(channel))
    }
}
