import RoostAPI
import RoostCore

/// One event of one stream on its way to the sockets of a node, with its changes of audiences.
struct StreamItem: Hashable, Sendable {
    let stream: StreamID
    /// The position that it follows, and the one that it brings the stream to.
    let after: Seq
    let seq: Seq
    /// Channels whose events the user gets from now on, each after a seq. Only in a user's stream.
    var joined: [Place] = []
    /// Channels whose messages up to a seq are hidden from the user. Only in a user's stream, and above 0.
    var floors: [Place] = []
    /// Whether others see from now on that the user is online; nil if unchanged. Only in a user's stream.
    var sharesPresence: Bool?
    /// Members whose role changes or begins with this event. Only in a channel's stream.
    var roles: [RoleChange] = []
    /// The users who get the event with its messages. Only in a channel's stream.
    var readers = Readers()
    /// Users who no longer get the channel's events, including this one. Only in a channel's stream.
    var left: [Leaving] = []
    /// Whether this is the channel's last event.
    var isDeletion = false
    /// The smallest seq of the event's messages, if they may be hidden from some receivers. Only in a channel's stream.
    var oldestMessage: Seq?
    /// Whether messages from before its seq may be in a later item: it was read from the database in place of missed events, or arrived between
    /// two such reads, and more of them follow. Not in a packet.
    var isPartial = false
    /// The members of the event in JSON, without the braces.
    let json: [UInt8]

    /// A position in a channel's stream.
    struct Place: Hashable, Sendable {
        let channel: ChannelID
        let seq: Seq
        /// The role of a user who joined there.
        var role = ChannelRole.member
    }

    /// A user's leaving, at or before a seq of the channel: the seq of its own event, or of one among several that an item stands for. A seq ahead of
    /// the item, which was read in place of missed events, is where the user's newest membership begins.
    struct Leaving: Hashable, Sendable {
        let user: UserID
        let seq: Seq
        /// Whether the user is a member from there on, and may not have been one before. Only in an item that was read in place of missed events.
        var isBack = false
    }

    /// A member's role from a seq of the channel on.
    struct RoleChange: Hashable, Sendable {
        let user: UserID
        let role: ChannelRole
        let seq: Seq
    }
}

extension StreamItem {
    /// Its approximate size in memory.
    var sizeBytes: Int { 300 + json.count }

    /// Returns whether a watch that a user began as a non-member continues, since the item reports that they are a member from then on.
    func keepsWatch(of user: UserID) -> Bool { !isDeletion && left.contains { $0.user == user && $0.isBack } }

    /// Splits an operation's notices by stream: events with their changes of audiences, and connections' requests.
    static func items(of notices: [Notice]) -> (items: [StreamItem], attachments: [Notice]) {
        var items: [StreamItem] = []
        var attachments: [Notice] = []
        var joined: [UserID: [Place]] = [:]
        var floors: [UserID: [Place]] = [:]
        var sharesPresence: [UserID: Bool] = [:]
        var left: [ChannelID: [Leaving]] = [:]
        var roles: [ChannelID: [RoleChange]] = [:]
        for notice in notices {
            switch notice {
            case .joined(let user, let channel, let seq, let role):
                joined[user, default: []].append(Place(channel: channel, seq: seq, role: role))
            case .role(let user, let channel, let role, let seq):
                roles[channel, default: []].append(RoleChange(user: user, role: role, seq: seq))
            case .floor(let user, let channel, let seq):
                floors[user, default: []].append(Place(channel: channel, seq: seq))
            case .presenceShared(let user, let isShared): sharesPresence[user] = isShared
            case .left(let user, let channel, let seq, let isBack):
                left[channel, default: []].append(Leaving(user: user, seq: seq, isBack: isBack))
            case .channelDeleted(let channel):
                if let index = items.lastIndex(where: { $0.stream == .channel(channel) }) { items[index].isDeletion = true }
            case .connected, .watching, .stoppedWatching: attachments.append(notice)
            // These go to the hub directly, bypassing the relay: they concern sockets, whatever their streams.
            case .accessChanged, .signal, .typing, .stoppedTyping, .read, .mayRead, .reading, .stoppedReading, .markedUnread,
                .profileChanged, .profileShown, .rulesChanged, .readers:
                break
            case .event(let event, let audience):
                let oldestMessage = event.oldestMessage(to: audience.readers)
                var item = StreamItem(
                    stream: event.stream, after: event.after ?? event.seq - 1, seq: event.seq,
                    json: event.members(isConcealable: oldestMessage != nil))
                switch event.stream {
                case .channel(let channel):
                    item.left = left.removeValue(forKey: channel) ?? []
                    item.roles = roles.removeValue(forKey: channel) ?? []
                    item.readers = audience.readers
                    item.oldestMessage = oldestMessage
                case .user(let user):
                    item.joined = joined.removeValue(forKey: user) ?? []
                    item.floors = floors.removeValue(forKey: user) ?? []
                    item.sharesPresence = sharesPresence.removeValue(forKey: user)
                }
                items.append(item)
            }
        }
        return (items, attachments)
    }
}
