import Logging
import NIOCore
import RoostAPI
import Synchronization

/// All connections of the server: their counts by user and address, the open channels, and whether the server is shutting down.
final class Connections: Sendable {
    private struct State {
        var counts: ConnectionCounts
        var open: [Int: any NIOCore.Channel] = [:]
        /// The reserve, the oldest first.
        var reserve: [Int] = []
        /// The bytes held for connected users.
        var ledgers: [UserID: (ledger: ByteLedger, useCount: Int)] = [:]
        /// HTTP requests under way.
        var requests: [UserID: Int] = [:]
        var lastNumber = 0
    }

    let memory: ByteLedger
    let proxies: TrustedProxies
    private let reserveMax: Int
    private let userBytesMax: Int
    private let requestsPerUserMax: Int
    private let state: Mutex<State>
    private let draining = Atomic<Bool>(false)
    private let isOutOfMemory = Atomic<Bool>(false)
    /// Tasks that answer HTTP. Each holds the server's parts while it runs.
    private let handlers = Atomic<Int>(0)
    fileprivate let security: SecurityLog
    fileprivate let metrics: ServerMetrics

    /// - Parameter memoryBytesMax: The limit for all clients together.
    init(
        limits: ConnectionCounts.Configuration, memoryBytesMax: Int, requestsPerUserMax: Int = 64, proxies: TrustedProxies = .none,
        metrics: ServerMetrics = .init(), logger: Logger
    ) {
        memory = ByteLedger(sizeBytesMax: memoryBytesMax)
        // One user can't use up the others' share.
        userBytesMax = memoryBytesMax / 4
        self.metrics = metrics
        self.requestsPerUserMax = requestsPerUserMax
        reserveMax = limits.reserveMax
        self.proxies = proxies
        security = SecurityLog(logger: logger)
        state = Mutex(State(counts: ConnectionCounts(limits: limits)))
    }

    var isDraining: Bool { draining.load(ordering: .acquiring) }
    var openCount: Int { state.withLock { $0.open.count } }

    /// Takes an accepted connection. None is turned away: above a limit, only health checks are answered on it, and it is closed to make room for
    /// the next one when needed.
    func accept(_ channel: any NIOCore.Channel) -> ConnectionTicket {
        let isProxy = proxies.holds(channel.remoteAddress)
        let address = isProxy ? nil : ClientAddress(channel.remoteAddress)
        let (number, verdict, evicted) = state.withLock { state in
            state.lastNumber += 1
            let number = state.lastNumber
            let verdict =
                isOutOfMemory.load(ordering: .relaxed) ? .reserve(.memory) : state.counts.accept(from: address)
            state.open[number] = channel
            var evicted: (any NIOCore.Channel)?
            if verdict != .accepted {
                state.reserve.append(number)
                if state.reserve.count > reserveMax { evicted = state.open[state.reserve.removeFirst()] }
            }
            return (number, verdict, evicted)
        }
        evicted?.close(promise: nil)
        var isReserve = false
        if case .reserve(let refusal) = verdict {
            isReserve = true
            note(refusal, address: address)
        }
        return ConnectionTicket(number: number, connections: self, address: address, isProxy: isProxy, isReserve: isReserve)
    }

    /// Sets whether the process has memory for new connections. Open ones stay.
    func setTakesMore(_ takesMore: Bool) { isOutOfMemory.store(!takesMore, ordering: .relaxed) }

    fileprivate func end(_ number: Int, isReserve: Bool, address: ClientAddress?, user: UserID?) {
        state.withLock { state in
            state.open[number] = nil
            if isReserve { state.reserve.removeAll { $0 == number } } else { state.counts.end(from: address, user: user) }
        }
    }

    fileprivate func attribute(to address: ClientAddress) -> Bool {
        let isTaken = state.withLock { $0.counts.attribute(to: address) }
        if !isTaken { note(.address, address: address) }
        return isTaken
    }

    fileprivate func authenticate(_ user: UserID, from address: ClientAddress?, isLimited: Bool) -> Bool {
        let isTaken = state.withLock { $0.counts.authenticate(user, from: address, isLimited: isLimited) }
        if !isTaken { note(.user, user: user, address: address) }
        return isTaken
    }

    /// Returns the ledger of the bytes held for one user, over all of the user's connections. Release it with ``release(_:)``.
    func ledger(of user: UserID) -> ByteLedger {
        state.withLock { state in
            let ledger = state.ledgers[user]?.ledger ?? ByteLedger(sizeBytesMax: userBytesMax)
            state.ledgers[user] = (ledger, (state.ledgers[user]?.useCount ?? 0) + 1)
            return ledger
        }
    }

    /// Counts bytes for a user, for the lifetime of the returned object.
    func hold(_ sizeBytes: Int, of user: UserID) -> UserBytes { UserBytes(sizeBytes, of: user, on: self) }

    func release(_ user: UserID) {
        state.withLock { state in
            guard let entry = state.ledgers[user] else { return }
            state.ledgers[user] = entry.useCount > 1 ? (entry.ledger, entry.useCount - 1) : nil
        }
    }

    /// Begins a user's HTTP request. Throws `overloaded` if the user has too many, or if the budget of the user or of all clients is used up.
    func beginRequest(of user: UserID, isLimited: Bool) throws(RoostError) -> RequestAccount {
        guard !memory.isFull else {
            metrics.overloaded(.server)
            security.reached(.memory, user: user)
            throw .overloadedMemory
        }
        let isTaken = state.withLock { state in
            let count = state.requests[user] ?? 0
            guard !isLimited || count < requestsPerUserMax else { return false }
            state.requests[user] = count + 1
            return true
        }
        guard isTaken else {
            metrics.overloaded(.user)
            security.reached(.requestsOfUser, user: user)
            throw .tooManyRequests
        }
        let account = RequestAccount(user: user, isLimited: isLimited, ledger: ledger(of: user), connections: self)
        try account.requireRoom(besides: 0)
        return account
    }

    fileprivate func endRequest(of user: UserID) {
        state.withLock { state in
            let count = (state.requests[user] ?? 1) - 1
            state.requests[user] = count > 0 ? count : nil
        }
        release(user)
    }

    // MARK: Going

    /// Notifies every connection that the server is shutting down; later connections see it in ``isDraining``.
    func drain() {
        draining.store(true, ordering: .releasing)
        for channel in state.withLock({ Array($0.open.values) }) {
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
    }

    /// Sent to a connection that is being closed. A socket writes its queued output and a close frame.
    struct Ends {}

    /// Closes every connection, whatever it is doing.
    func closeAll() {
        for channel in state.withLock({ Array($0.open.values) }) {
            channel.pipeline.fireUserInboundEventTriggered(Ends())
            channel.close(promise: nil)
        }
    }

    func handlerBegan() { handlers.wrappingAdd(1, ordering: .acquiringAndReleasing) }
    func handlerEnded() { handlers.wrappingSubtract(1, ordering: .acquiringAndReleasing) }

    /// Waits until no HTTP request is being answered, which is soon after ``closeAll()``.
    func waitForHandlers(atMost time: Duration) async {
        let deadline = ContinuousClock.now + time
        while handlers.load(ordering: .acquiring) > 0, ContinuousClock.now < deadline {
            try? await Task.sleep(for: .milliseconds(2))
        }
    }

    // MARK: Metrics and log lines

    private func note(_ refusal: ConnectionCounts.Refusal, user: UserID? = nil, address: ClientAddress? = nil) {
        metrics.connectionRefused(refusal)
        security.reached(refusal.limit, user: user, address: address)
    }

    /// Counts a request refused because of its connection, before its operation was known.
    func refusedRequest(_ refusal: RoostError) { metrics.refused(OperationName.none, refusal.code) }
}

extension ConnectionCounts.Refusal {
    fileprivate var limit: SecurityLog.Limit {
        switch self {
        case .total: .connections
        case .address: .connectionsOfAddress
        case .user: .connectionsOfUser
        case .memory: .memoryOfProcess
        }
    }
}

/// Bytes held for a user: an answer not yet read, or a call under way. The user's ledger exists at least as long, even after the user's last
/// connection or request has ended.
final class UserBytes: Sendable {
    private let held: HeldBytes
    private let user: UserID
    private let connections: Connections

    fileprivate init(_ sizeBytes: Int, of user: UserID, on connections: Connections) {
        self.user = user
        self.connections = connections
        held = HeldBytes(sizeBytes, in: [connections.memory, connections.ledger(of: user)])
    }

    deinit { connections.release(user) }
}

/// A user's HTTP request while it is under way: until its answer is handed to the connection.
final class RequestAccount: Sendable {
    let ledger: ByteLedger
    private let user: UserID
    private let isLimited: Bool
    private let connections: Connections

    fileprivate init(user: UserID, isLimited: Bool, ledger: ByteLedger, connections: Connections) {
        self.user = user
        self.isLimited = isLimited
        self.ledger = ledger
        self.connections = connections
    }

    deinit { connections.endRequest(of: user) }

    /// The ledger by which the engine refuses what the user has no room for; nil for an admin or a service.
    var limitingLedger: ByteLedger? { isLimited ? ledger : nil }

    /// Throws `overloaded` if the budget of the user or of all clients is used up.
    ///
    /// - Parameter ownBytes: The bytes that this request itself holds, which don't count against it.
    func requireRoom(besides ownBytes: Int) throws(RoostError) {
        guard connections.memory.heldBytes - ownBytes < connections.memory.sizeBytesMax else {
            connections.metrics.overloaded(.server)
            connections.security.reached(.memory, user: user)
            throw .overloadedMemory
        }
        guard !isLimited || ledger.heldBytes - ownBytes < ledger.sizeBytesMax else {
            connections.metrics.overloaded(.user)
            connections.security.reached(.memoryOfUser, user: user)
            throw .overloadedMemoryOfUser
        }
    }

    /// Counts bytes for the lifetime of the returned object.
    func hold(_ sizeBytes: Int) -> HeldBytes { HeldBytes(sizeBytes, in: [connections.memory, ledger]) }
}

/// One connection as limits count it, from accept to close.
final class ConnectionTicket: Sendable {
    private struct State {
        var address: ClientAddress?
        var user: UserID?
        /// Whom the answer to the request being handled counts for.
        var requester: Account?
        /// The same for answers on their way to the event loop, in order. Nil for an answer that is the same for everyone.
        var nextReaders: [Account?] = []
        /// The same for the answer being written there.
        var reader: Account?
        var isEnded = false
    }

    /// What the bytes of an answer count for until its client has read them.
    private enum Account {
        case user(UserID)
        /// A page of the metrics, of which there are only a few.
        case page(UnreadPages.Page)
    }

    /// Bytes of an answer, held until its client has read them.
    enum Unread {
        case answer(UserBytes)
        case page(UnreadPages.Page)
    }

    /// The ticket of the connection whose request this task answers.
    @TaskLocal static var current: ConnectionTicket?

    /// Whether only health checks are answered on it.
    let isReserve: Bool
    let connections: Connections
    private let number: Int
    private let isProxy: Bool
    private let state: Mutex<State>

    fileprivate init(number: Int, connections: Connections, address: ClientAddress?, isProxy: Bool, isReserve: Bool) {
        self.number = number
        self.connections = connections
        self.isProxy = isProxy
        self.isReserve = isReserve
        state = Mutex(State(address: address))
    }

    /// The client's address, if it is known.
    var address: ClientAddress? { state.withLock { $0.address } }

    /// The client's address for the log. A proxy's connection carries requests of many clients, so each request has its own.
    func address(forwardedFor values: [String]) -> ClientAddress? {
        address ?? (isProxy ? connections.proxies.client(forwardedFor: values) : nil)
    }

    /// Counts a trusted proxy's connection for the client it names. Throws `overloaded` if that address is at its limit.
    func forwarded(for values: [String]) throws(RoostError) {
        guard isProxy, let address = connections.proxies.client(forwardedFor: values) else { return }
        guard state.withLock({ $0.address == nil && $0.user == nil }) else { return }
        guard connections.attribute(to: address) else { throw .tooManyConnections }
        state.withLock { $0.address = address }
    }

    /// Counts the connection for the user of an accepted token. Throws `overloaded` if the user is at the limit.
    ///
    /// A connection counts for its first user. One that a proxy keeps open for requests of many users counts for none of them.
    func authenticated(_ user: UserID, role: AppRole, isSocket: Bool) throws(RoostError) {
        guard !isReserve, isSocket || !isProxy else { return }
        let isLimited = role != .admin && role != .service
        let isTaken = state.withLock { state in
            guard state.user == nil, !state.isEnded else { return true }
            guard connections.authenticate(user, from: state.address, isLimited: isLimited) else { return false }
            state.user = user
            return true
        }
        if !isTaken { throw .tooManyConnections }
    }

    // An answer is made by a task and written later on the event loop, when the next one may already be in progress.

    /// A request is being handled.
    func requestBegan() { state.withLock { $0.requester = nil } }
    /// The request is this user's.
    func requestBelongs(to user: UserID) { state.withLock { $0.requester = .user(user) } }
    /// It is answered with a page of the metrics.
    func answers(with page: UnreadPages.Page) { state.withLock { $0.requester = .page(page) } }
    /// Its answer is sent next.
    func answerFollows() {
        state.withLock { state in
            state.nextReaders.append(state.requester)
            state.requester = nil
        }
    }
    /// On the event loop: it is written from now on.
    func answerBegan() { state.withLock { $0.reader = $0.nextReaders.isEmpty ? nil : $0.nextReaders.removeFirst() } }
    /// On the event loop: it is written completely.
    func answerEnded() { state.withLock { $0.reader = nil } }

    /// A page of the metrics that the connection has and that isn't written completely: it may wait because the client leaves earlier answers unread.
    var waitingPage: UnreadPages.Page? {
        state.withLock { state in
            for case .page(let page)? in [state.reader] + state.nextReaders + [state.requester] { return page }
            return nil
        }
    }

    /// Counts bytes of the answer being written, for the lifetime of the returned value. Nil for a shared answer, which takes no extra memory.
    func hold(_ sizeBytes: Int) -> Unread? {
        switch state.withLock({ $0.reader }) {
        case .user(let user): .answer(UserBytes(sizeBytes, of: user, on: connections))
        case .page(let page): .page(page)
        case nil: nil
        }
    }

    func ended() {
        let (address, user, isFirst) = state.withLock { state in
            defer { state.isEnded = true }
            return (state.address, state.user, !state.isEnded)
        }
        if isFirst { connections.end(number, isReserve: isReserve, address: address, user: user) }
    }
}

extension RoostError {
    static let tooManyConnections = RoostError(
        .overloaded, "This address or user has too many connections.", retryAfterMilliseconds: 2000)
    static let tooManyChannels = RoostError(
        .overloaded, "This user's connections would receive too many channels in total.", retryAfterMilliseconds: 2000)
    static let tooManyRequests = RoostError(
        .overloaded, "The user has too many requests in progress.", retryAfterMilliseconds: 1000)
    static let overloadedMemory = RoostError(
        .overloaded, "The server's memory budget for clients is used up.", retryAfterMilliseconds: 1000)
    static let overloadedMemoryOfUser = RoostError(
        .overloaded, "The user's share of the server's memory for clients is used up: read the answers first.",
        retryAfterMilliseconds: 1000)
}
