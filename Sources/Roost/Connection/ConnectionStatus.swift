public import Observation
public import RoostAPI

/// The state of the client's connection to the server.
public enum ConnectionStatus: Hashable, Sendable {
    /// Not started, or disconnected by the app.
    case offline
    case connecting
    /// Connected, and everything that was missed is there.
    case online
    /// The connection was lost or couldn't be made. The next attempt begins after this time, counted from when the status was set.
    case waiting(Duration)
    /// The server refused the token. The client keeps trying with new tokens; the app has to find out why its token provider returns bad
    /// ones.
    case refused(RoostError)
}

/// The connection as a live object.
@MainActor @Observable
public final class LiveConnection {
    /// The current state of the connection to the server.
    public private(set) var status: ConnectionStatus
    @ObservationIgnored private let observers = Observers<ConnectionStatus>()
    @ObservationIgnored private var following: ObservationToken?

    init(_ statuses: Broadcast<ConnectionStatus>) {
        status = statuses.current
        let stream = statuses.values()
        following = ObservationToken(
            task: Task { [weak self] in
                for await status in stream {
                    guard let self else { return }
                    self.apply(status)
                }
            })
    }

    /// Whether the client is connected and up to date.
    public var isOnline: Bool { status == .online }

    /// Every status from now on, the current one first.
    public var updates: AsyncStream<ConnectionStatus> { observers.values(of: self, startingWith: status) }

    /// Calls back with the current status and with each one after it, until the token is invalidated or released.
    public func observe(_ callback: @escaping @MainActor (ConnectionStatus) -> Void) -> ObservationToken {
        observers.add(startingWith: status, callback)
    }

    private func apply(_ status: ConnectionStatus) {
        guard status != self.status else { return }
        self.status = status
        observers.notify(status)
    }
}
