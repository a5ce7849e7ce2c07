import NIOCore
import RoostAPI
import RoostCore

/// What every socket's welcome says about the server.
struct Greeting: Sendable {
    /// The name of the data, which is kept when a backup is restored.
    let server: String
    let epoch: String
    let version: String
    let pingInterval: TimeAmount
    /// The window over which sockets are closed during shutdown.
    let drainWindow: TimeAmount

    func welcome(_ caller: Caller, _ connection: ConnectionID, expiresAt: Timestamp, now: Timestamp) -> WelcomeFrame {
        WelcomeFrame(
            welcome: .init(
                user: caller.user, role: caller.role, connection: connection.rawValue, server: server, epoch: epoch,
                version: version, now: now,
                tokenExpiresAt: expiresAt, pingIntervalSeconds: Int(pingInterval.nanoseconds / 1_000_000_000)))
    }

    /// Spreads connections evenly over the window, by their number.
    func drainDelay(of connection: ConnectionID) -> TimeAmount {
        let steps: Int64 = 64
        return .nanoseconds(drainWindow.nanoseconds / steps * (connection.rawValue % steps))
    }
}
