import RoostAPI
import RoostCore

/// A node's state of one stream that it follows for its sockets.
struct Feed {
    /// Whether the subscription is in place and the position is known. Before that, items wait.
    var isLive = false
    /// Delivered up to here.
    var position: Seq = 0
    /// Where the feed began: nothing is known about events before it.
    var knownSince: Seq = 0
    /// The highest seq that the stream is known to have.
    var head: Seq = 0
    /// Items that arrived ahead of their turn.
    var waiting: [Seq: StreamItem] = [:]
    /// When the gap was noticed, and whether it is being fetched.
    var gapSince: Relay.Time?
    var isFetching = false
    /// Whether some of what was read from the database is yet to be delivered. There a row has the position of its newest change: a joining
    /// that was already passed may be among the rest.
    var isPartlyRead = false
    /// How many consecutive fetches found nothing.
    var emptyFetches = 0
    /// Whether the database answers, and can't read the missing events: it may never. Answers and welcomes don't wait for them.
    var isUnreadable = false
    /// Between two pages of a gap: the joining up to which the pages so far have reported who is gone. Up to there, a
    /// row that changed later may be missing from what was delivered.
    var reportedUpTo: Seq?

    /// Attachments at a seq that the position hasn't reached yet.
    var parked: [Attachment] = []
    /// Connections that wait for the user's stream to reach a position.
    var parkedConnects: [Relay.ConnectToken] = []
    /// Receivers that are catching up.
    var catchUps: [Relay.CatchUpToken: CatchUp] = [:]
    /// Users with an attachment that is parked or catching up, and their further attachments, which follow it one by one: catching up one
    /// connection would otherwise send events twice to the user's other connections, or to the same one.
    var attaching: Set<UserID> = []
    var behind: [UserID: [Attachment]] = [:]
    /// Users who left, between which positions and when: an attachment that was decided before the leaving must not be made after it. A seq
    /// ahead of the feed is that of a joining, before which they left: no later page reports it again. `isBack` is that of the leaving with the
    /// seq.
    var departed: [UserID: (after: Seq, seq: Seq, time: Relay.Time, isBack: Bool)] = [:]
    /// How many of them were kept when they were last checked.
    var departedKept = 0

    /// The position at which a member's role last changed: roles read before it are out of date.
    var lastRoleChange: Seq = 0

    var touchedAt: Relay.Time

    init(at now: Relay.Time) { touchedAt = now }

    /// Whether nothing waits here. Items that wait for unreadable ones don't count: if the feed ends and is needed again, it begins after them.
    var isIdle: Bool {
        isLive && parked.isEmpty && parkedConnects.isEmpty && catchUps.isEmpty && (waiting.isEmpty || isUnreadable)
    }

    /// Records a delivered item for the receivers that are catching up. What they have already is changed in place: a copy of the feed would have
    /// all of it copied with every item.
    mutating func record(_ item: StreamItem, atMost countMax: Int, sizeBytesMax: Int) {
        let tokens = Array(catchUps.keys)
        for token in tokens { catchUps[token]?.record(item, atMost: countMax, sizeBytesMax: sizeBytesMax) }
    }

    /// Returns whether events can't be read that one of a user's receivers is to catch up with.
    func hasUnreadableEvents(for user: UserID) -> Bool {
        catchUps.values.contains { $0.isUnreadable && $0.attachment.receiver.user == user }
    }

    /// Returns whether a user's connection has yet to get an event that the feed has delivered. Without a connection, this is about any of
    /// the user's that are attached by membership. Events that can't be read for the user don't count.
    func isCatchingUp(_ user: UserID, _ connection: ConnectionID?, from seq: Seq) -> Bool {
        if hasUnreadableEvents(for: user) { return false }
        return catchUps.values.contains { $0.attachment.receiver.isMeant(user, connection) && $0.position < seq }
            || parked.contains { $0.receiver.isMeant(user, connection) && $0.seq < seq }
            || behind[user]?.contains { $0.receiver.isMeant(user, connection) && $0.seq < seq } == true
    }
}

/// A request for a channel's events after a position.
struct Attachment {
    enum Receiver {
        /// All connections of a member.
        case member(UserID)
        /// One connection of a member, just opened.
        case connection(ConnectionID, UserID)
        case watcher(ConnectionID, UserID)

        var user: UserID {
            switch self {
            case .member(let user), .connection(_, let user), .watcher(_, let user): user
            }
        }

        func isMeant(_ user: UserID, _ connection: ConnectionID?) -> Bool {
            switch self {
            case .member(user): true
            case .connection(let own, user), .watcher(let own, user): own == connection
            default: false
            }
        }
    }

    let receiver: Receiver
    let channel: ChannelID
    /// The receiver has everything up to here.
    var seq: Seq
    /// The role of a joining member at that position.
    var role = ChannelRole.member
    /// Whether the receiver catches up by itself, like a client that has just connected.
    var catchesUpAlone = false
    /// The connection that waits for this attachment.
    var connect: Relay.ConnectToken?

    /// Returns whether a leaving ends this attachment: it ends older watches of the same user.
    func isEnded(by leaving: StreamItem.Leaving) -> Bool {
        guard case .watcher(_, leaving.user) = receiver else { return false }
        return leaving.seq > seq
    }

    /// The step for the hub.
    var step: Relay.Step {
        switch receiver {
        case .member(let user): .change(.joined(user, channel, at: seq, as: role))
        case .connection(let connection, _): .attach(connection, channel)
        case .watcher(let connection, _): .attachWatcher(connection, channel)
        }
    }
}

/// A receiver that is behind the feed: the events in between are read from the database, and those delivered meanwhile are recorded.
struct CatchUp {
    var attachment: Attachment
    /// The receiver has events up to here.
    var position: Seq
    private(set) var recorded: [StreamItem] = []
    private var recordedSizeBytes = 0
    /// How many times in a row the database had nothing newer although the feed is ahead.
    var emptyFetches = 0
    /// Whether the database answers, and can't read the events in between.
    var isUnreadable = false

    init(attachment: Attachment, position: Seq) {
        self.attachment = attachment
        self.position = position
    }

    /// Records an item. If there are more than the limits, the earlier ones are read from the database again.
    mutating func record(_ item: StreamItem, atMost countMax: Int, sizeBytesMax: Int) {
        if recorded.count >= countMax || recordedSizeBytes + item.sizeBytes > sizeBytesMax {
            recorded.removeAll()
            recordedSizeBytes = 0
        }
        recorded.append(item)
        recordedSizeBytes += item.sizeBytes
    }
}
