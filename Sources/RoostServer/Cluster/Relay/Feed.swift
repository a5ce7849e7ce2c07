import RoostAPI
import RoostCore

/// What a node knows of one stream that it follows for its sockets.
struct Feed {
    /// Whether the subscription holds and the position is known. Before that, items wait.
    var isLive = false
    /// Delivered up to here.
    var position: Seq = 0
    /// Where it began: of what was before, nothing is known.
    var knownSince: Seq = 0
    /// The highest seq that the stream is known to have.
    var head: Seq = 0
    /// What came ahead of its turn.
    var waiting: [Seq: StreamItem] = [:]
    /// Since when something is missing, and whether it is being fetched.
    var gapSince: Relay.Time?
    var isFetching = false
    /// How often in a row nothing was found.
    var emptyFetches = 0

    /// Who wants to be attached where the position isn't yet.
    var parked: [Attachment] = []
    /// Connections that wait for the user's stream to come to a position.
    var parkedConnects: [Relay.ConnectToken] = []
    /// Who gets events of the past at the moment.
    var catchUps: [Relay.CatchUpToken: CatchUp] = [:]
    /// Users of whom one attachment is parked or catches up, and the others, which follow it one after another: what brings one connection
    /// up would otherwise tell another of the same user's, or the same one, things twice.
    var attaching: Set<UserID> = []
    var behind: [UserID: [Attachment]] = [:]
    /// Who left, between which positions and when: an attachment that was decided before must not be made after.
    var departed: [UserID: (after: Seq, seq: Seq, time: Relay.Time)] = [:]

    /// The position at which a member last got another role: what was read of roles before it is out of date.
    var lastRoleChange: Seq = 0

    var touchedAt: Relay.Time

    init(at now: Relay.Time) { touchedAt = now }

    /// Whether nobody waits for anything here.
    var isIdle: Bool { isLive && parked.isEmpty && parkedConnects.isEmpty && catchUps.isEmpty && waiting.isEmpty }

    /// Whether a connection of a user is yet to get an event that the feed has delivered. Without a connection, any of the user's that come
    /// by being a member.
    func isBringingUp(_ user: UserID, _ connection: ConnectionID?, from seq: Seq) -> Bool {
        catchUps.values.contains { $0.attachment.receiver.isMeant(user, connection) && $0.position < seq }
            || parked.contains { $0.receiver.isMeant(user, connection) && $0.seq < seq }
            || behind[user]?.contains { $0.receiver.isMeant(user, connection) && $0.seq < seq } == true
    }
}

/// A wish to get a channel's events after a position.
struct Attachment {
    enum Receiver {
        /// All connections of a member.
        case member(UserID)
        /// One connection of a member, which has just come.
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
    /// What a member who joins is in the channel at that position.
    var role = ChannelRole.member
    /// Whether the receiver catches up by itself, as a client does that has just connected.
    var catchesUpAlone = false
    /// The connection that waits until this is done.
    var connect: Relay.ConnectToken?

    /// What the hub is told.
    var step: Relay.Step {
        switch receiver {
        case .member(let user): .change(.joined(user, channel, at: seq, as: role))
        case .connection(let connection, _): .attach(connection, channel)
        case .watcher(let connection, let user): .change(.watching(connection, user, channel, at: seq))
        }
    }
}

/// A receiver who is behind the feed: what lies between is read from the database, and what is delivered meanwhile is recorded.
struct CatchUp {
    var attachment: Attachment
    /// Given up to here.
    var position: Seq
    var recorded: [StreamItem] = []
}
