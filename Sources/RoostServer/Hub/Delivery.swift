import RoostAPI
import RoostCore

/// Brings what was committed to the sockets that it concerns.
protocol Delivery: Sendable {
    /// Who is connected and who watches, for the rules.
    var presence: any Presence & Sendable { get }

    /// Delivers what one batch made: each operation's events, then its answer. Called once for each batch of a lane, in the order of the commits.
    ///
    /// A socket sees a stream in the order of its seq, and an answer after the events of its operation.
    func deliver(_ committed: [Committed])

    /// Brings together who is present in a channel, over all nodes, before a rule asks for it. What can't be learnt in time is left out.
    func preparePresence(of channel: ChannelID, then run: @escaping @Sendable () -> Void)
}

/// What an operation left behind: what it told, and its answer.
struct Committed: Sendable {
    let notices: [Notice]
    let answer: Answer
    /// Who called, and in which channel: what the answer's place among others depends on where several nodes write. The channel is
    /// `Scope.orderingChannel`.
    var user: UserID?
    var channel: ChannelID?
    /// `Context.callerSeq`
    var callerSeq: Seq = 0

    enum Answer: Sendable {
        /// The reply to a call of a socket.
        case socket(SocketID, [UInt8])
        /// Somebody waits, and is told by this call.
        case waiting(@Sendable () -> Void)
    }
}
