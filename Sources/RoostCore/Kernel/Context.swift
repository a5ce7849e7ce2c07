public import RoostAPI

/// The token's user, and the connection the call arrived on.
public struct Caller: Hashable, Sendable {
    public var user: UserID
    public var role: AppRole = .user
    /// Nil for HTTP.
    public var connection: ConnectionID?
    /// The token that the call was made with; nil for the server's own operations.
    public var token: TokenIdentity?
    /// The device that the connection belongs to, if it has named itself.
    public var device: DeviceIdentity?
    /// Whether this is the server itself. It is no user, and its id belongs to none.
    let isServer: Bool

    public init(
        user: UserID, role: AppRole = .user, connection: ConnectionID? = nil, token: TokenIdentity? = nil,
        device: DeviceIdentity? = nil
    ) {
        self.user = user
        self.role = role
        self.connection = connection
        self.token = token
        self.device = device
        isServer = false
    }

    private init(serverWithID user: UserID) {
        self.user = user
        role = .service
        isServer = true
    }

    /// The server itself, for work that no client requested.
    public static let server = Caller(serverWithID: "")

    /// The actor of the change's events; nil for the server.
    var actor: UserID? { isServer ? nil : user }

    /// Whether the caller may do everything that the channel type doesn't forbid to all: the console, and the app's own backend.
    public var isAdmin: Bool { role.isAdmin }
}

/// The facts that revocations refer to: the token's user, when it was issued, and its name.
public struct TokenIdentity: Hashable, Sendable {
    /// The token's user; not the caller if a backend acts for a user.
    public var user: UserID
    /// The claim `iat`.
    public var issuedAt: Timestamp?
    /// The claim `jti`.
    public var id: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(user: UserID, issuedAt: Timestamp? = nil, id: String? = nil) {
        self.user = user
        self.issuedAt = issuedAt
        self.id = id
    }
}

/// A signed-in device of a user.
public struct DeviceIdentity: Hashable, Sendable {
    public var id: DeviceID
    /// The number of the sign-in. It rises when the device signs in again after a sign-out.
    public var signIn: Int64

    // derived: init
    /// Creates a value with these fields.
    public init(id: DeviceID, signIn: Int64) {
        self.id = id
        self.signIn = signIn
    }
}

/// The number of a connection, unique in the process that holds it.
public struct ConnectionID: Hashable, Sendable {
    public let rawValue: Int64
    // derived: init
    /// Creates a value with these fields.
    public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// The users connected and watching at this moment. Neither durable nor ordered: an input to a rule, like the clock.
public protocol Presence {
    /// The number of a channel's members with at least one connection.
    func onlineMemberCount(of channel: ChannelID) -> Int
    /// Whether a member of a channel has at least one connection. In a very large channel this isn't known of every member.
    func isOnline(_ user: UserID, _ channel: ChannelID) -> Bool
    /// The number of users who watch a channel.
    func watcherCount(of channel: ChannelID) -> Int
    /// Whether more than a number of users watch a channel, including those here who don't share that.
    func isCrowded(_ channel: ChannelID, above count: Int) -> Bool
    /// Some of a channel's watchers, in the order in which they started.
    ///
    /// - Parameters:
    ///   - offset: How many to skip.
    ///   - elsewhere: The watchers on other nodes, if those were asked; nil to use the ones already known.
    func watchers(of channel: ChannelID, offset: Int, limit: Int, elsewhere: [UserID]?) -> [UserID]
    func isWatching(_ user: UserID, _ channel: ChannelID) -> Bool
    /// Whether a user has a connection to this node, even a hidden one. For other nodes, see ``Context``.
    func isConnected(_ user: UserID) -> Bool
}

extension Presence {
    public func isCrowded(_ channel: ChannelID, above count: Int) -> Bool { watcherCount(of: channel) > count }
}

/// No connections: for rules that run without a server.
public struct EmptyPresence: Presence {
    // derived: init
    /// Creates a value, which has no fields.
    public init() {}
    public func onlineMemberCount(of channel: ChannelID) -> Int { 0 }
    public func isOnline(_ user: UserID, _ channel: ChannelID) -> Bool { false }
    public func watcherCount(of channel: ChannelID) -> Int { 0 }
    public func watchers(of channel: ChannelID, offset: Int, limit: Int, elsewhere: [UserID]?) -> [UserID] { [] }
    public func isWatching(_ user: UserID, _ channel: ChannelID) -> Bool { false }
    public func isConnected(_ user: UserID) -> Bool { false }
}

/// A rule's inputs and outputs: the transaction, the caller, the time and ids; and the events and effects that it collects.
///
/// There are no others, so the same inputs give the same outputs.
public struct Context {
    public let transaction: any Transaction
    public let caller: Caller
    public let now: Timestamp
    /// The clock of the machine, by which tokens are accepted, if ``now`` is the clock of another one; otherwise nil.
    public var machineNow: Timestamp?
    public let presence: any Presence
    /// The users of a ``PresenceRequirement`` who have a connection to another node.
    public var connectedElsewhere: Set<UserID> = []
    /// The other nodes' watchers of a ``PresenceRequirement``'s channel, node by node, under each name that the channel may have.
    /// None under a name if every node has already named all of its watchers.
    public var watchersElsewhere: [ChannelID: [UserID]] = [:]
    /// The result of the operation's ``Handled/channelQuery``.
    public var foundChannels: FoundChannels?
    /// Whether there is a receiver for pushes. If not, rules request none.
    public var handsOffPushes = false
    /// The operator's options for the whole app.
    public let options: AppOptions
    /// The kinds of rows that streams carry.
    let rowKinds: StoredRowKinds
    /// The streams that the rule may move.
    let scope: Scope
    public var ids: IDGenerator
    /// The notices to deliver after the commit, in this order.
    public private(set) var notices: [Notice] = []
    /// The newest seq of the caller's own stream among the memberships that the rule relied on; 0 for none. If several nodes
    /// write, the answering node may not have sent them to the caller yet.
    public private(set) var callerSeq: Seq = 0
    /// When the first of the rule's effects is due; nil for none.
    public private(set) var effectDueAt: Timestamp?
    /// The channels that the rule has created. No other transaction can move their streams yet.
    private(set) var madeChannels: Set<ChannelID> = []

    /// - Parameter scope: The streams that may be moved; none by default, as for reads.
    public init(
        transaction: any Transaction, caller: Caller, now: Timestamp, ids: IDGenerator, presence: any Presence = EmptyPresence(),
        options: AppOptions = AppOptions(), scope: Scope = Scope()
    ) {
        self.init(
            transaction: transaction, caller: caller, now: now, ids: ids, presence: presence, options: options, rowKinds: .standard,
            scope: scope)
    }

    package init(
        transaction: any Transaction, caller: Caller, now: Timestamp, ids: IDGenerator, presence: any Presence = EmptyPresence(),
        options: AppOptions = AppOptions(), rowKinds: StoredRowKinds, scope: Scope = Scope()
    ) {
        self.rowKinds = rowKinds
        self.scope = scope
        self.options = options
        self.transaction = transaction
        self.caller = caller
        self.now = now
        self.ids = ids
        self.presence = presence
    }

    /// For operations that need a connection, which HTTP calls don't have (ST-02).
    func requireConnection(_ what: String) throws -> ConnectionID {
        guard let connection = caller.connection else {
            throw RoostError(.notConnected, "\(what) needs a WebSocket: it ends with its connection.")
        }
        return connection
    }

    mutating func noteEffect(dueAt time: Timestamp) { effectDueAt = min(effectDueAt ?? time, time) }

    mutating func noteMade(_ channel: ChannelID) { madeChannels.insert(channel) }

    mutating func recordCallerSeq(of access: ChannelAccess) { recordCallerSeq(of: access.member?.row) }

    mutating func recordCallerSeq(of membership: Membership?) { callerSeq = max(callerSeq, membership?.userSeq ?? 0) }

    package mutating func notify(_ notice: Notice) { notices.append(notice) }

    /// Sends a change of a channel's stream to its members and watchers. The readers are those after the change.
    mutating func notify(_ kind: Event.Kind, in access: ChannelAccess, seq: Seq, _ rows: Rows) throws {
        let event = Event(kind: kind, stream: .channel(access.channelId), seq: seq, actor: caller.actor, rows: rows)
        notices.append(.event(event, .channel(access.channelId, try transaction.readers(of: access.policy))))
    }

    /// Sends a change of a user's own stream to all of the user's connections.
    package mutating func notify(_ kind: Event.Kind, user: UserID, seq: Seq, _ rows: Rows) {
        notify(kind, user: user, seq: seq, actor: caller.actor, rows)
    }

    /// Sends the same with an explicit actor; nil if the user isn't to know who it was.
    mutating func notify(_ kind: Event.Kind, user: UserID, seq: Seq, actor: UserID?, _ rows: Rows) {
        notices.append(.event(Event(kind: kind, stream: .user(user), seq: seq, actor: actor, rows: rows), .user(user)))
    }
}

/// A message to deliver after the commit, in the order of the notices.
public enum Notice: Hashable, Sendable {
    /// An event, to the connections of its audience. Indirect: it is large and passed on often.
    indirect case event(Event, Audience)
    /// A signal, to the open connections of its audience.
    indirect case signal(Signal, Audience)
    /// A user types in a channel, for a while. Others are notified at a limited rate.
    case typing(UserID, ChannelID)
    /// The user has stopped typing.
    case stoppedTyping(UserID, ChannelID)
    /// A member who shares their read position has read further in a channel.
    case read(ReadPosition, ChannelID)
    /// The user's connections receive the channel's events after this seq, as a member with this role.
    case joined(UserID, ChannelID, at: Seq, as: ChannelRole = .member)
    /// A member's role from this seq of the channel on.
    case role(UserID, ChannelID, ChannelRole, at: Seq)
    /// Messages of the channel up to this seq are hidden from the user: later events are sent without them.
    case floor(UserID, ChannelID, Seq)
    /// The user's connections no longer receive the channel's events: the user left at or before this seq of the channel. A
    /// user who has rejoined since did so at this seq or later. In place of missed events it can be ahead of them: then it is
    /// where the user's newest membership begins. `isBack`: in place of missed events, the user is a member from this seq on,
    /// and may not have been one before.
    case left(UserID, ChannelID, at: Seq, isBack: Bool = false)
    /// Nobody receives the channel's events from here on.
    case channelDeleted(ChannelID)
    /// A connection is authenticated: it receives the events of these streams of its user, each after its seq.
    case connected(ConnectionID, UserID, UserStreams)
    /// A connection watches a channel, after this seq. `online` is the number of online members it was sent, if it asked.
    case watching(ConnectionID, UserID, ChannelID, at: Seq, online: Int? = nil)
    case stoppedWatching(ConnectionID, UserID, ChannelID)
    /// A connection's user, a member starting to watch a channel, may read it, whatever the channel's last event says.
    case mayRead(ConnectionID, ChannelID)
    /// A connection's user starts to read a channel: what the connection receives of it counts as read (AM-45). `since` is the
    /// channel's seq at which their membership began, `at` the seq of their own stream at which it had last changed when they
    /// started, and `channelSeq` the channel's seq then.
    case reading(ConnectionID, ChannelID, since: Seq, at: Seq, channelSeq: Seq = 0)
    case stoppedReading(ConnectionID, ChannelID)
    /// A user has marked messages of a channel as unread. This ends reading on all their connections, except where it started
    /// later: `at` is the seq of their own stream at which their membership had last changed.
    case markedUnread(UserID, ChannelID, at: Seq)
    /// The definition of a type or role has changed, and with it the readers of its channels. Every node re-checks the channels
    /// watched or read there.
    case rulesChanged
    /// A channel's current readers, when no event carries them.
    case readers(ChannelID, Readers)
    /// Whether others see that the user is online, from the next event of the user's own stream on.
    case presenceShared(UserID, Bool)
    /// A user's profile, as lists show it, has changed. The users who see it somewhere are notified at a limited rate.
    case profileChanged(UserID)
    /// The same in one channel, with the current profile.
    case profileShown(UserSummary, ChannelID)
    /// Connections that these changes shut out receive nothing more and are closed.
    case accessChanged([AccessChange])
}

/// The receivers of an event or a signal. A value: rules don't know how it is delivered.
///
/// An event is sent to all followers of its stream, a channel's to the channel and a user's to the user; otherwise some would
/// find a gap. A durable change for a part of a channel is sent on those users' streams. The narrower audience is for
/// signals.
public enum Audience: Hashable, Sendable {
    /// The connections of the channel's members and watchers. Members who aren't readers get the event without messages.
    /// Non-members who aren't readers, and members who may not watch, stop watching before it.
    case channel(ChannelID, Readers = Readers())
    /// The connections of one user.
    case user(UserID)
    /// The connections that watch the channel, members or not. Those that may not read it receive only what reveals nothing about messages.
    case watchers(ChannelID, Readers = Readers())
}
