import RoostAPI
import RoostCore
import Synchronization

/// One operation on its way through the engine.
///
/// It is passed from list to list, so it is a single reference: as a value, copying it took a tenth of a send
/// ([0090](docs/decisions/0090-a-job-is-one-reference-and-large-notices-are-boxed.md)).
final class Job: Sendable {
    let traits: Traits
    let caller: Caller
    /// The bytes held for the caller: above the limit, reads and requests over HTTP are refused. Nil if they aren't limited.
    let callerMemory: ByteLedger?
    /// Whether its notices go to the other nodes. For the server's own work each node has its own jobs, for its own sockets.
    let isForAllNodes: Bool
    /// The rule. It returns the payload to answer with, encoded: for a socket the whole reply, for HTTP the body.
    let run: @Sendable (inout Context) throws -> [UInt8]
    let destination: Destination
    /// What was found out for it beforehand.
    let found: Found
    private let queued = Atomic<UInt64>(0)

    /// How the engine treats an operation, whoever waits for its answer. The defaults are those of the server's own work.
    struct Traits: Sendable {
        /// The name under which it is counted.
        var operation = OperationName.none
        /// The streams that it may move.
        var scope = Scope()
        /// Whether it only reads.
        var isReadOnly = false
        /// Whether it runs in order with the others that send transient signals.
        var isSignal = false
        /// Whether it may wait for others to share its commit.
        var toleratesDelay = false
        /// The rate limit per caller.
        var userRate: UserRate?
        /// The client id of the message that it sends; nil if it sends none.
        var sentClientId: ClientID?
        /// The presence that its answer contains: who is connected and watching.
        var requiredPresence = PresenceRequirement.none
        /// The query that finds its channels.
        var channelQuery: QueryChannels?
    }

    /// The information found out for a job before it runs.
    struct Found: Sendable {
        /// The other nodes' answers about the presence that it requires.
        var connectedElsewhere: Set<UserID> = []
        var watchersElsewhere: [ChannelID: [UserID]] = [:]
        /// The channels that its query has found, which are counted until the job is done.
        var channels: FoundChannels?
        var heldBytes: HeldBytes?
        /// The bytes of a large call, counted in the same way. Nil for a small call, and for one over HTTP.
        var callBytes: UserBytes?
        /// How many bytes its request over HTTP holds itself, of the budgets of the caller and of the server. They don't count against it.
        var requestSizeBytes = 0
    }

    init(
        _ traits: Traits = Traits(), caller: Caller, callerMemory: ByteLedger? = nil, isForAllNodes: Bool = false,
        found: Found = Found(), run: @escaping @Sendable (inout Context) throws -> [UInt8], destination: Destination
    ) {
        self.traits = traits
        self.caller = caller
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
            traits, caller: caller, callerMemory: callerMemory, isForAllNodes: isForAllNodes, found: found, run: run,
            destination: destination)
    }

    /// The name under which it is counted.
    var operation: String { traits.operation }

    /// The streams that it may move.
    var scope: Scope { traits.scope }

    /// When it was put into its queue, on a monotonic clock.
    var queuedAt: UInt64 {
        get { queued.load(ordering: .relaxed) }
        set { queued.store(newValue, ordering: .relaxed) }
    }

    /// Whether it arrived over a socket of this node.
    var isOfSocket: Bool { if case .socket = destination { true } else { false } }

    /// Whether a request over HTTP waits for its answer.
    var isOfRequest: Bool { if case .request = destination { true } else { false } }

    /// The channel whose presence its answer contains.
    var presenceChannel: ChannelID? {
        switch traits.requiredPresence {
        case .channel(let channel), .watchers(let channel, _): channel
        case .none, .users: nil
        }
    }

    /// Returns the lane that runs it: the same for all operations of the same ``order``.
    func lane(of count: Int) -> Int {
        guard count > 1 else { return 0 }
        var hasher = Hasher()
        hasher.combine(order)
        return Int(UInt(bitPattern: hasher.finalize()) % UInt(count))
    }

    /// Whether the bytes held for the caller, without those of this request, reach the caller's limit.
    ///
    /// - Parameter pendingBytes: Bytes of the caller that aren't counted yet.
    func isCallersMemoryFull(with pendingBytes: Int = 0) -> Bool {
        guard let callerMemory else { return false }
        return callerMemory.heldBytes - found.requestSizeBytes + pendingBytes >= callerMemory.sizeBytesMax
    }

    /// Whether the bytes held for all clients, without those of this request, reach the server's limit.
    ///
    /// - Parameter memory: The ledger of all clients; nil if nothing is counted.
    func isServersMemoryFull(_ memory: ByteLedger?) -> Bool {
        guard let memory else { return false }
        return memory.heldBytes - found.requestSizeBytes >= memory.sizeBytesMax
    }

    /// Counts the answer to a waiting request, for the lifetime of the returned object. Nil for an empty answer, and for other destinations.
    ///
    /// - Parameter memory: The ledger that counts it, in addition to the caller's.
    func hold(_ sizeBytes: Int, in memory: ByteLedger?) -> HeldBytes? {
        guard isOfRequest, sizeBytes > 0 else { return nil }
        return HeldBytes(sizeBytes, in: [memory, callerMemory].compactMap(\.self))
    }

    /// The key that orders it: its channel, whichever of its names it uses, otherwise its first user. One that moves no stream has its caller's.
    var order: Order {
        if let channel = scope.orderingChannel { return .channel(channel) }
        if let user = scope.users.min() { return .user(user) }
        return scope.isExclusive ? .exclusive : .caller(caller.user)
    }

    enum Order: Hashable {
        case channel(ChannelID)
        case user(UserID)
        /// Changes of access and of rules. They wait for the same lock, which no other operation waits for.
        case exclusive
        /// The operations of a caller that move no stream, such as a query that watches what it finds.
        case caller(UserID)
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
            Traits(isReadOnly: true), caller: caller, callerMemory: callerMemory,
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
        /// To a waiting request, counted for the server and in the caller's ledger since it was made.
        case request(@Sendable (Result<HeldAnswer, RoostError>) -> Void)
    }
}

extension Job.Traits {
    /// The traits of a caller's operation.
    init(_ operation: some Handled, for caller: Caller) {
        self.init(
            operation: type(of: operation).name, scope: operation.scope(for: caller), isReadOnly: type(of: operation).isReadOnly,
            isSignal: type(of: operation).isSignal, toleratesDelay: type(of: operation).toleratesDelay, userRate: operation.rate,
            sentClientId: operation.sentClientId, requiredPresence: operation.requiredPresence,
            channelQuery: operation.channelQuery)
    }
}
