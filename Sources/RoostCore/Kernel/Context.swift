public import RoostAPI

/// The user that the token names, and the connection that the call came over.
public struct Caller: Hashable, Sendable {
    public var user: UserID
    public var role: AppRole = .user
    /// Nil for HTTP, which has none.
    public var connection: ConnectionID?
    /// The token that the call was made with; nil for the server's own operations.
    public var token: TokenIdentity?
    /// The device that the connection belongs to, if it has named itself.
    public var device: DeviceIdentity?
    /// Whether it is the server itself, which is no user: its id is nobody's.
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

    /// Whether the caller may do what no channel type forbids to all: the console, and the app's own backend.
    public var isAdmin: Bool { role.isAdmin }
}

/// The facts that revocations refer to: the token's user, when it was issued, and its name.
public struct TokenIdentity: Hashable, Sendable {
    /// The user that the token names; not the caller if a backend acts for a user.
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

/// A device of a user that has signed in.
public struct DeviceIdentity: Hashable, Sendable {
    public var id: DeviceID
    /// The number of the sign-in. After the device was signed out, it gets a higher one.
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

/// Connected users and watchers at this moment. Neither durable nor ordered: an input to a rule, like the clock.
public protocol Presence {
    /// Members of a channel that have at least one connection.
    func onlineMemberCount(of channel: ChannelID) -> Int
    /// Whether a member of a channel has at least one connection; of a very large one it isn't known of all of them.
    func isOnline(_ user: UserID, _ channel: ChannelID) -> Bool
    /// How many users watch a channel.
    func watcherCount(of channel: ChannelID) -> Int
    /// Some of the users who watch a channel, those first who began first.
    ///
    /// - Parameters:
    ///   - offset: How many of them are passed by.
    ///   - elsewhere: Those of other nodes, where they were asked for; nil for those that are known.
    func watchers(of channel: ChannelID, offset: Int, limit: Int, elsewhere: [UserID]?) -> [UserID]
    func isWatching(_ user: UserID, _ channel: ChannelID) -> Bool
    /// Whether a user has a connection to this server, also one who hides it from others; of other nodes, the ``Context`` knows.
    func isConnected(_ user: UserID) -> Bool
}

/// Nobody is connected: for rules that run without a server.
public struct NobodyPresent: Presence {
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
/// There are no others, so that the same inputs give the same outputs.
public struct Context {
    public let transaction: any Transaction
    public let caller: Caller
    public let now: Timestamp
    public let presence: any Presence
    /// Of the users of a ``PresenceQuestion``, those who have a connection to another node.
    public var connectedElsewhere: Set<UserID> = []
    /// The other nodes' watchers of the channel of a ``PresenceQuestion``, node by node, by the channel's names. Nil where every node has named all.
    public var watchersElsewhere: [ChannelID: [UserID]] = [:]
    /// What the operation's ``Handled/channelQuestion`` has found.
    public var foundChannels: FoundChannels?
    /// Whether there is somebody to hand pushes to. If not, nobody asks for them.
    public var handsOffPushes = false
    /// The operator's options for the whole app.
    public let options: AppOptions
    /// The kinds of rows that streams carry.
    let rowKinds: StoredRowKinds
    /// The streams that the rule may move.
    let scope: Scope
    public var ids: IDGenerator
    /// The notices to deliver once the transaction is committed, in this order.
    public private(set) var notices: [Notice] = []
    /// The newest seq of the caller's own stream among the memberships that the rule relied on; 0 for none. If several nodes write, the
    /// answering one may not have sent them to the caller yet.
    public private(set) var callerSeq: Seq = 0
    /// When the first of the rule's effects is due; nil for none.
    public private(set) var effectDueAt: Timestamp?
    /// The channels that the rule has created, whose streams nobody else can move yet.
    private(set) var madeChannels: Set<ChannelID> = []

    /// - Parameter scope: The streams that may be moved; none by default, as for reads.
    public init(
        transaction: any Transaction, caller: Caller, now: Timestamp, ids: IDGenerator, presence: any Presence = NobodyPresent(),
        options: AppOptions = AppOptions(), scope: Scope = Scope()
    ) {
        self.init(
            transaction: transaction, caller: caller, now: now, ids: ids, presence: presence, options: options, rowKinds: .standard,
            scope: scope)
    }

    package init(
        transaction: any Transaction, caller: Caller, now: Timestamp, ids: IDGenerator, presence: any Presence = NobodyPresent(),
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

    /// What only a connection does, over HTTP nobody can (ST-02).
    func requireConnection(_ what: String) throws -> ConnectionID {
        guard let connection = caller.connection else {
            throw RoostError(.notConnected, "\(what) needs a WebSocket: over HTTP there is no connection that it could end with.")
        }
        return connection
    }

    mutating func noteEffect(dueAt time: Timestamp) { effectDueAt = min(effectDueAt ?? time, time) }

    mutating func noteMade(_ channel: ChannelID) { madeChannels.insert(channel) }

    mutating func recordCallerSeq(of access: ChannelAccess) { callerSeq = max(callerSeq, access.own?.row.userSeq ?? 0) }

    package mutating func tell(_ notice: Notice) { notices.append(notice) }

    /// Sends a change of a channel's stream to its members and watchers. The readers are those after the change.
    mutating func tell(_ kind: Event.Kind, in access: ChannelAccess, seq: Seq, _ rows: Rows) throws {
        let event = Event(kind: kind, stream: .channel(access.channelId), seq: seq, actor: caller.actor, rows: rows)
        notices.append(.event(event, .channel(access.channelId, try transaction.readers(of: access.policy))))
    }

    /// Sends a change of a user's own stream to all of the user's connections.
    package mutating func tell(_ kind: Event.Kind, user: UserID, seq: Seq, _ rows: Rows) {
        tell(kind, user: user, seq: seq, actor: caller.actor, rows)
    }

    /// Sends the same, and says of somebody that it was their doing; nil where the user isn't to know.
    mutating func tell(_ kind: Event.Kind, user: UserID, seq: Seq, actor: UserID?, _ rows: Rows) {
        notices.append(.event(Event(kind: kind, stream: .user(user), seq: seq, actor: actor, rows: rows), .user(user)))
    }
}

/// A message for delivery after the commit. The order of notices is the order of delivery.
public enum Notice: Hashable, Sendable {
    /// An event, to the connections of its audience. It is large, and passed on often.
    indirect case event(Event, Audience)
    /// A signal, to the open connections of its audience.
    indirect case signal(Signal, Audience)
    /// A user types in a channel, for a while. Others are told who does, often enough and not more often.
    case typing(UserID, ChannelID)
    /// They don't any more.
    case stoppedTyping(UserID, ChannelID)
    /// A member has read further in a channel, and shares that.
    case read(ReadPosition, ChannelID)
    /// The user's connections get the channel's events after this seq, as of a member with a role.
    case joined(UserID, ChannelID, at: Seq, as: ChannelRole = .member)
    /// The role that a member has from a seq of the channel on.
    case role(UserID, ChannelID, ChannelRole, at: Seq)
    /// Messages of the channel up to this seq are hidden from the user: later events come without them.
    case floor(UserID, ChannelID, Seq)
    /// From here on they don't: they left at or before this seq of the channel. A user who has come back since did so at this seq or later. In place
    /// of missed events it can be ahead of these: then it is where the user's newest membership begins.
    case left(UserID, ChannelID, at: Seq)
    /// From here on nobody does.
    case destroyed(ChannelID)
    /// A connection is authenticated: it gets the events of these streams of its user, of each after its seq.
    case connected(ConnectionID, UserID, UserStreams)
    /// A connection watches a channel, after this seq. It was told how many members were online, if it asked.
    case watching(ConnectionID, UserID, ChannelID, at: Seq, online: Int? = nil)
    case stoppedWatching(ConnectionID, UserID, ChannelID)
    /// The user of a connection, a member who begins to watch a channel, may read it, whatever its last event says.
    case mayRead(ConnectionID, ChannelID)
    /// The user of a connection reads a channel, as the member that they have been since a seq of it: what the connection receives of it counts as read
    /// (AM-45). They began when their membership had changed last at a seq of their own stream.
    case reading(ConnectionID, ChannelID, since: Seq, at: Seq)
    case stoppedReading(ConnectionID, ChannelID)
    /// A user has marked messages of a channel as unread: no connection of theirs goes on reading it that didn't begin later. Their membership had changed
    /// last at this seq of their own stream.
    case markedUnread(UserID, ChannelID, at: Seq)
    /// The definition of a type or of a role has changed, and with it who reads its channels. Every node looks at those that somebody watches or reads there.
    case rulesChanged
    /// Who reads a channel by now, where no event says so.
    case readers(ChannelID, Readers)
    /// Whether others see from the next event of the user's own stream on that they are online.
    case presenceShared(UserID, Bool)
    /// What lists show of a user has changed. Those who see the user somewhere are told, often enough and not more often.
    case profileChanged(UserID)
    /// The same in one channel, with what is shown by now.
    case profileShown(UserSummary, ChannelID)
    /// Connections that these changes shut out get nothing more, and end.
    case accessChanged([AccessChange])
}

/// The receivers of an event or a signal. A value: rules don't know how it is delivered.
///
/// An event is sent to all followers of its stream, or some of them would find a hole: a channel's to the channel, a user's to the user. A
/// durable change for a part of a channel is sent on those users' streams. The narrower audiences are for signals.
public enum Audience: Hashable, Sendable {
    /// The connections of the channel's members, and those that watch it. Members who aren't readers get the event without messages, and
    /// others who aren't stop watching before it, as do members who may not watch.
    case channel(ChannelID, Readers = Readers())
    /// The connections of one user.
    case user(UserID)
    /// The connections that watch the channel, members or not. Where they may not read it, they get what tells nothing of messages.
    case watchers(ChannelID, Readers = Readers())
    /// The connections of members with one of these roles, watching or not (ledger §4, `mods`).
    case moderators(ChannelID, roles: [ChannelRole] = [.owner, .operator])
}
