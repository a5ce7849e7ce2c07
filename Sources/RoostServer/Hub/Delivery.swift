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

    /// Waits while event loops have very much left to deliver: whoever is answered past them, over HTTP or by another loop, would send on meanwhile, and what is
    /// handed to a loop that lags would grow without a bound. Blocks, and is never called on a loop.
    ///
    /// - Returns: Whether they have caught up.
    @discardableResult
    func waitForLoops(atMost time: Duration) -> Bool

    /// Tells what an operation has told that stores nothing: signals.
    func tell(_ notices: [Notice])

    /// Tells the other nodes alone.
    func publish(_ notices: [Notice])

    /// Has told what operations of other nodes have told. Set once, before the first socket.
    func onTold(_ take: @escaping @Sendable ([Notice]) -> Void)

    /// Has told whose watching of a channel has begun or ended, on any connection and any node; nil for some who aren't known by name. Set once, before the
    /// first socket.
    func onWatching(_ tell: @escaping @Sendable (UserID?, ChannelID) -> Void)

    /// Has told who came online or went offline of the members of a channel that is watched here; nil for some who aren't known by name. Set once,
    /// before the first socket.
    func onOnline(_ tell: @escaping @Sendable (UserID?, ChannelID) -> Void)

    /// Collects a channel's presence over all nodes and event loops before a rule asks for it: a caller who knows of a change from a reply
    /// or an event finds it counted. Nodes that don't answer in time are left out.
    func preparePresence(of channel: ChannelID, then run: @escaping @Sendable () -> Void)

    /// Finds those of some users who have a connection to another node.
    ///
    /// - Returns: False, without calling back, while too many such questions wait.
    func prepareConnected(_ users: [UserID], then run: @escaping @Sendable (_ elsewhere: Set<UserID>) -> Void) -> Bool

    /// Finds the other nodes' watchers of a channel, node by node, once its presence is collected.
    ///
    /// - Parameters:
    ///   - count: The most names of each node.
    ///   - run: Called with nil where every node has named all of its own already.
    /// - Returns: False, without calling back, while too many such questions wait.
    func prepareWatchers(
        of channel: ChannelID, upTo count: Int, then run: @escaping @Sendable (_ elsewhere: [UserID]?) -> Void
    ) -> Bool

    /// Has told that the first connection to this node of a user who shares it has begun, or the last has ended. Set once, before the first
    /// socket.
    func onConnection(_ tell: @escaping @Sendable (_ user: UserID, _ isConnected: Bool) -> Void)
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
