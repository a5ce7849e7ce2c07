import RoostAPI
import RoostCore
import Synchronization

/// One operation on its way through the engine.
struct Job: Sendable {
    /// The name that it is counted by.
    var operation = OperationName.none
    /// When it was put into its queue, on a monotonic clock.
    var queuedAt: UInt64 = 0
    let caller: Caller
    /// The streams that it may move.
    var scope = Scope()
    /// Whether it runs in one order with others that tell what happens now.
    var isTold = false
    /// Whether its caller may do it only so often.
    var isLimitedByUser = false
    /// What its answer says of who is connected and watches, and what the other nodes have said to it.
    var presenceQuestion = PresenceQuestion.none
    var connectedElsewhere: Set<UserID> = []
    var watchersElsewhere: [ChannelID: [UserID]] = [:]
    /// The query that finds the channels that it is about, and what that has found, which is counted until the job is done.
    var channelQuestion: QueryChannels?
    var foundChannels: FoundChannels?
    var heldBytes: HeldBytes?
    /// The rule. It returns the payload to answer with, encoded: for a socket the whole reply, for HTTP the body.
    let run: @Sendable (inout Context) throws -> [UInt8]
    let destination: Destination
    /// Whether it came over a socket of this node.
    var isOfSocket: Bool { if case .socket = destination { true } else { false } }
    /// Whether the other nodes hear of what it tells. Of the server's own jobs each node has its own, for its own sockets.
    var isForAllNodes = false
    /// The bytes held for the caller: while they are too many, reads are refused. Nil if they aren't limited.
    var callerMemory: ByteLedger?

    /// The channel whose presence its answer contains.
    var presenceChannel: ChannelID? {
        switch presenceQuestion {
        case .channel(let channel), .watchers(let channel, _): channel
        case .none, .users: nil
        }
    }

    /// Returns the lane that runs it: the same for all operations of a channel, whichever of its names they use, or else of the same first
    /// user.
    func lane(of count: Int) -> Int {
        guard count > 1 else { return 0 }
        var hasher = Hasher()
        hasher.combine(order)
        return Int(UInt(bitPattern: hasher.finalize()) % UInt(count))
    }

    /// What it is ordered by: its channel, or else its first user.
    var order: Order {
        if let channel = scope.orderingChannel { .channel(channel) } else { .user(scope.users.min()) }
    }

    enum Order: Hashable {
        case channel(ChannelID)
        case user(UserID?)
    }

    /// A connection's operations in one channel, which run in the order of arrival. Nil for operations over HTTP, which a client orders
    /// itself.
    struct Turn: Hashable, Sendable {
        let connection: ConnectionID
        let channel: ChannelID
    }

    var turn: Turn? {
        guard case .socket(let socket, _) = destination, let channel = scope.orderingChannel else { return nil }
        return Turn(connection: socket.connection, channel: channel)
    }

    /// A read that finds the channels that the job is about, with the same rights.
    ///
    /// - Parameters:
    ///   - memory: Where what is found is counted, besides with the caller's own.
    ///   - proceed: Takes the job with its channels, or the refusal of the query.
    func finding(
        _ query: QueryChannels, countedIn memory: ByteLedger?, then proceed: @escaping @Sendable (Result<Job, RoostError>) -> Void
    ) -> Job {
        let found = Mutex<FoundChannels?>(nil)
        var finding = Job(
            caller: caller,
            run: { context in
                let channels = try FoundChannels(query, in: &context)
                found.withLock { $0 = channels }
                return []
            },
            destination: .waiting { result in
                proceed(
                    result.map { _ in
                        var job = self
                        (job.channelQuestion, job.foundChannels) = (nil, found.withLock { $0 })
                        job.heldBytes = HeldBytes(
                            job.foundChannels?.sizeBytes ?? 0, in: [memory, callerMemory].compactMap(\.self))
                        return job
                    })
            })
        finding.callerMemory = callerMemory
        return finding
    }

    /// Where the answer goes.
    enum Destination: Sendable {
        /// To a socket, after the events that the operation made.
        case socket(SocketID, call: Int64)
        /// To a connecting socket: the welcome, before every event that follows in the order of commits.
        case welcome(SocketID, refused: @Sendable (RoostError) -> Void)
        /// To a waiting caller.
        case waiting(@Sendable (Result<[UInt8], RoostError>) -> Void)
    }
}
