import RoostAPI
import RoostCore

/// Delivers commits to the sockets that they concern.
protocol Delivery: Sendable {
    /// Connected users and watchers, for the rules.
    var presence: any Presence & Sendable { get }

    /// Delivers the outcome of one batch: each operation's events, then its answer. Called once for each batch of a lane, in the order of
    /// the commits.
    ///
    /// A socket sees a stream in the order of its seq, and an answer after the events of its operation.
    func deliver(_ committed: [Committed])

    /// Waits while event loops have a large backlog: callers that are answered over HTTP or by another loop would keep sending meanwhile, and
    /// the backlog of a slow loop would grow without bound. Blocks, and is never called on a loop.
    ///
    /// - Returns: Whether they have caught up.
    @discardableResult
    func waitForLoops(atMost time: Duration) -> Bool

    /// Delivers the notices of an operation that stores nothing: signals.
    func send(_ notices: [Notice])

    /// Sends notices to the other nodes only.
    func publish(_ notices: [Notice])

    /// Sets the handler for notices of other nodes' operations. Set once, before the first socket.
    func onRemoteNotices(_ take: @escaping @Sendable ([Notice]) -> Void)

    /// Sets the handler called when a user has begun or stopped watching a channel, over all connections and nodes; nil stands for users not
    /// known by name. Set once, before the first socket.
    func onWatching(_ report: @escaping @Sendable (UserID?, ChannelID) -> Void)

    /// Sets the handler called when a member of a channel watched here has come online or gone offline; nil stands for members not known by
    /// name. Set once, before the first socket.
    func onOnline(_ report: @escaping @Sendable (UserID?, ChannelID) -> Void)

    /// Collects a channel's presence over all nodes and event loops before a rule asks for it, so a caller who knows of a change from a reply
    /// or an event finds it counted. Nodes that don't answer in time are left out.
    func preparePresence(of channel: ChannelID, then run: @escaping @Sendable () -> Void)

    /// Finds which of some users are connected to another node.
    ///
    /// - Returns: False, without calling back, while too many such queries wait.
    func prepareConnected(_ users: [UserID], then run: @escaping @Sendable (_ elsewhere: Set<UserID>) -> Void) -> Bool

    /// Finds the other nodes' watchers of a channel, node by node, once its presence is collected.
    ///
    /// - Parameters:
    ///   - count: The most names from each node.
    ///   - run: Called with nil if every node has already named all of its watchers.
    /// - Returns: False, without calling back, while too many such queries wait.
    func prepareWatchers(
        of channel: ChannelID, upTo count: Int, then run: @escaping @Sendable (_ elsewhere: [UserID]?) -> Void
    ) -> Bool

    /// Sets the handler called when the first connection to this node of a user who shares their presence has begun, or the last has ended.
    /// Set once, before the first socket.
    func onConnection(_ report: @escaping @Sendable (_ user: UserID, _ isConnected: Bool) -> Void)
}

/// The outcome of an operation: its notices, and its answer.
struct Committed: Sendable {
    let notices: [Notice]
    let answer: Answer
    /// The caller, and the channel called in: with several writing nodes these determine the answer's place among others. The channel is
    /// `Scope.orderingChannel`.
    var user: UserID?
    var channel: ChannelID?
    /// `Context.callerSeq`
    var callerSeq: Seq = 0

    enum Answer: Sendable {
        /// The reply to a call of a socket.
        case socket(SocketID, [UInt8])
        /// Calls back a waiting caller.
        case waiting(@Sendable () -> Void)
    }
}
