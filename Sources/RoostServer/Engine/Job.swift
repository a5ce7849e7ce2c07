import RoostAPI
import RoostCore
import Synchronization

/// One operation on its way through the engine.
///
/// It is passed from list to list, so it is a single reference: as a value, copying it took a tenth of a send
/// ([0090](docs/decisions/0090-a-job-is-one-reference-and-large-notices-are-boxed.md)).
final class Job: Sendable {
    /// The name under which it is counted.
    let operation: String
    let caller: Caller
    /// The streams that it may move.
    let scope: Scope
    /// Whether it runs in order with the others that send transient signals.
    let isSignal: Bool
    /// Whether it may wait for others to share its commit.
    let toleratesDelay: Bool
    /// The rate limit per caller.
    let userRate: UserRate?
    /// The client id of the message that it sends; nil if it sends none.
    let sentClientId: ClientID?
    /// The presence that its answer contains: who is connected and watching.
    let presenceQuestion: PresenceQuestion
    /// The query that finds its channels.
    let channelQuestion: QueryChannels?
    /// The bytes held for the caller: above the limit, reads are refused. Nil if they aren't limited.
    let callerMemory: ByteLedger?
    /// Whether its notices go to the other nodes. For the server's own work each node has its own jobs, for its own sockets.
    let isForAllNodes: Bool
    /// The rule. It returns the payload to answer with, encoded: for a socket the whole reply, for HTTP the body.
    let run: @Sendable (inout Context) throws -> [UInt8]
    let destination: Destination
    /// What was found out for it beforehand.
    let found: Found
    private let queued = Atomic<UInt64>(0)

    /// The information found out for a job before it runs.
    struct Found: Sendable {
        /// The other nodes' answers to its presence question.
        var connectedElsewhere: Set<UserID> = []
        var watchersElsewhere: [ChannelID: [UserID]] = [:]
        /// The channels that its query has found, which are counted until the job is done.
        var channels: FoundChannels?
        var heldBytes: HeldBytes?
        /// The bytes of a large call, counted in the same way. Nil for a small call, and for one over HTTP.
        var callBytes: UserBytes?
    }

    init(
        operation: String = OperationName.none, caller: Caller, scope: Scope = Scope(), isSignal: Bool = false,
        toleratesDelay: Bool = false, userRate: UserRate? = nil, sentClientId: ClientID? = nil,
        presenceQuestion: PresenceQuestion = .none, channelQuestion: QueryChannels? = nil, callerMemory: ByteLedger? = nil,
        isForAllNodes: Bool = false, run: @escaping @Sendable (inout Context) throws -> [UInt8], destination: Destination,
        found: Found = Found()
    ) {
        self.operation = operation
        self.caller = caller
        self.scope = scope
        self.isSignal = isSignal
        self.toleratesDelay = toleratesDelay
        self.userRate = userRate
        self.sentClientId = sentClientId
        self.presenceQuestion = presenceQuestion
        self.channelQuestion = channelQuestion
        self.callerMemory = callerMemory
        self.isForAllNodes = isForAllNodes
        self.run = run
        self.destination = destination
        self.found = found
    }

    /// Returns the job with the information found out for it.
    func knowing(_ change: (inout Found) -> Void) -> Job {
        var found = found
        change(&found)
        return Job(
            operation: operation, caller: caller, scope: scope, isSignal: isSignal, toleratesDelay: toleratesDelay,
            userRate: userRate, sentClientId: sentClientId, presenceQuestion: presenceQuestion,
            channelQuestion: channelQuestion, callerMemory: callerMemory,
            isForAllNodes: isForAllNodes, run: run, destination: destination, found: found)
    }

    /// When it was put into its queue, on a monotonic clock.
    var queuedAt: UInt64 {
        get { queued.load(ordering: .relaxed) }
        set { queued.store(newValue, ordering: .relaxed) }
    }

    /// Whether it arrived over a socket of this node.
    var isOfSocket: Bool { if case .socket = destination { true } else { false } }

    /// The channel whose presence its answer contains.
    var presenceChannel: ChannelID? {
        switch presenceQuestion {
        case .channel(let channel), .watchers(let channel, _): channel
        case .none, .users: nil
        }
    }

    /// Returns the lane that runs it: the same for all operations of a channel, whichever of its names they use, otherwise of the same first user.
    func lane(of count: Int) -> Int {
        guard count > 1 else { return 0 }
        var hasher = Hasher()
        hasher.combine(order)
        return Int(UInt(bitPattern: hasher.finalize()) % UInt(count))
    }

    /// The key that orders it: its channel, otherwise its first user.
    var order: Order {
        if let channel = scope.orderingChannel { .channel(channel) } else { .user(scope.users.min()) }
    }

    enum Order: Hashable {
        case channel(ChannelID)
        case user(UserID?)
    }

    /// A connection's operations in one channel, which run in the order of arrival. Nil for operations over HTTP, which the client orders.
    struct Turn: Hashable, Sendable {
        let connection: ConnectionID
        let channel: ChannelID
    }

    var turn: Turn? {
        guard case .socket(let socket, _) = destination, let channel = scope.orderingChannel else { return nil }
        return Turn(connection: socket.connection, channel: channel)
    }

    /// A read that finds the job's channels, with the same rights.
    ///
    /// - Parameters:
    ///   - memory: The ledger that counts the result, in addition to the caller's.
    ///   - proceed: Takes the job with its channels, or the refusal of the query.
    func finding(
        _ query: QueryChannels, countedIn memory: ByteLedger?, then proceed: @escaping @Sendable (Result<Job, RoostError>) -> Void
    ) -> Job {
        let found = Mutex<FoundChannels?>(nil)
        return Job(
            caller: caller, callerMemory: callerMemory,
            run: { context in
                let channels = try FoundChannels(query, in: &context)
                found.withLock { $0 = channels }
                return []
            },
            destination: .waiting { [self] result in
                proceed(
                    result.map { _ in
                        knowing {
                            let channels = found.withLock { $0 }
                            $0.channels = channels
                            $0.heldBytes = HeldBytes(channels?.sizeBytes ?? 0, in: [memory, callerMemory].compactMap(\.self))
                        }
                    })
            })
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
