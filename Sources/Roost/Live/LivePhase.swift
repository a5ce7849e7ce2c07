public import RoostAPI

/// The phase of a live object or list. It is a single value, so its parts can't contradict each other.
public enum LivePhase: Hashable, Sendable {
    /// There is no answer yet, and the values shown mean nothing.
    case loading
    /// It shows this device's store or the server's answer, and follows every change.
    case loaded
    /// The server, or a limit, refuses it. Earlier values stay.
    case refused(RoostError)
    /// There is no answer at the moment: this device's files can't be opened (`storage_in_use` or `storage_failed`) or read (`storage_failed`), or only
    /// the server has the answer and there is no connection: `not_connected` with the reason, or the error of ``ConnectionStatus/refused(_:)`` or
    /// ``ConnectionStatus/failed(_:)``. Earlier values stay, and are brought up to date as soon as possible: files that couldn't be read are read again
    /// after a second, then at growing intervals for some minutes, and with each change. Requests to the server for which they couldn't be read are made
    /// at the same intervals, as long as the connection lasts.
    case unavailable(RoostError)

    /// Why it shows less than requested; nil while it is loading or loaded.
    public var error: RoostError? {
        switch self {
        case .loading, .loaded: nil
        case .refused(let error), .unavailable(let error): error
        }
    }
}
