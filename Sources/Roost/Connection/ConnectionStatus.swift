public import Observation
public import RoostAPI

/// The state of the client's connection to the server.
public enum ConnectionStatus: Hashable, Sendable {
    /// Not started, disconnected by the app, or the app is in the background (``Chat/Configuration/followsSystem``).
    case offline
    /// A token is being fetched, or a connection made.
    case connecting
    /// Connected and up to date: everything that was missed is on this device.
    case online
    /// The connection was lost or couldn't be made. The next attempt starts at this time, by the device's clock.
    case waiting(until: Timestamp, because: WaitingReason)
    /// The server refuses this client for a reason that waiting alone doesn't resolve. Usually that is its token: with `unauthenticated`,
    /// `token_expired` and `token_revoked` the app has to find out why its token provider returns bad tokens, or strings that aren't tokens. The
    /// client keeps trying, each time with a new token, also after other errors. After `user_deactivated` nothing is tried until the app connects
    /// again. A token that was good until it expired or was revoked is replaced without this status.
    case refused(RoostError)
    /// The client can't start connecting, and the error says why: with `invalid_argument` the URL isn't a server address, with `storage_in_use`
    /// another process has this device's files, with `storage_failed` they can't be opened or read, with `storage_gone` they were deleted, so that only
    /// a new chat can connect, and with `unauthenticated` the token provider has thrown this very error, or the user has logged out
    /// (``Chat/logOut(discardingUnsent:signingOutDevice:)``). Nothing is tried until the app calls ``Chat/connect(timeout:)`` or ``Chat/start()`` again.
    case failed(RoostError)

    /// Whether the client is connected or trying to connect.
    var isActive: Bool {
        switch self {
        case .offline, .failed: false
        case .connecting, .online, .waiting, .refused: true
        }
    }

    /// Why the server can't be asked now; nil if it can, or soon can.
    var absence: RoostError? {
        switch self {
        case .online, .connecting: nil
        case .offline: RoostError(.notConnected, "The client isn't connected.")
        case .waiting(_, let reason): RoostError(.notConnected, "There is no connection to the server: \(reason)")
        case .refused(let error), .failed(let error): error
        }
    }
}

/// Why the client waits before it reconnects.
public struct WaitingReason: Hashable, Sendable, CustomStringConvertible {
    /// The kind of problem, which tells where to look.
    public enum Cause: Hashable, Sendable {
        /// The app's token provider threw, or gave no answer in time. The message describes its error.
        case tokenProvider
        /// The server can't be reached: there is no network, the host is unknown, nothing listens there, or the connection went dead.
        case network
        /// The server's certificate isn't accepted, or the server doesn't speak TLS.
        case certificate
        /// Something other than a server's socket answered: a proxy's page, another program, a wrong path.
        case upgrade
        /// The server ended the connection, or doesn't accept any at the moment: it is shutting down or overloaded, for example.
        case server
        /// This device's store couldn't be written, or was damaged.
        case storage
    }

    /// Where to look.
    public let cause: Cause
    /// A sentence for logs and developers. It may change.
    public let message: String

    // derived: init (_ cause, _ message)
    /// Creates a value with these fields.
    public init(_ cause: Cause, _ message: String) {
        self.cause = cause
        self.message = message
    }

    public var description: String { message }
}

/// The connection as a live object.
@MainActor @Observable
public final class LiveConnection {
    /// The current state of the connection to the server.
    public private(set) var status: ConnectionStatus
    @ObservationIgnored private let statuses: Broadcast<ConnectionStatus>
    @ObservationIgnored private let observers = Observers<ConnectionStatus>()
    @ObservationIgnored private var following: ObservationToken?
    /// The number of statuses up to the one shown.
    @ObservationIgnored private var count: Int

    init(_ statuses: Broadcast<ConnectionStatus>) {
        self.statuses = statuses
        let known = statuses.changes(since: 0)
        (status, count) = (known.values.last ?? .offline, known.count)
        let stream = statuses.values()
        following = ObservationToken(
            task: Task { [weak self] in
                for await _ in stream {
                    guard let self else { return }
                    self.catchUp()
                }
            })
    }

    /// Whether the client is connected and up to date.
    public var isOnline: Bool { status == .online }

    /// Each status from now on, starting with the current one, including those of a reconnect within a moment. A reader that falls far behind misses
    /// the oldest ones.
    public var updates: AsyncStream<ConnectionStatus> {
        observers.values(of: self, startingWith: status, keeping: Broadcast<ConnectionStatus>.rememberedMax)
    }

    /// Calls back with the current status and with each later one, until the token is invalidated or released. After a reconnect, however quick, it
    /// gets a status other than `online` and then `online`. If the main actor is busy for very long, the oldest are dropped.
    public func observe(_ callback: @escaping @MainActor (ConnectionStatus) -> Void) -> ObservationToken {
        observers.add(startingWith: status, callback)
    }

    /// Shows the statuses since the current one, one after another.
    func catchUp() {
        let changes = statuses.changes(since: count)
        count = changes.count
        for value in changes.values where value != status {
            status = value
            observers.notify(value)
        }
    }
}
