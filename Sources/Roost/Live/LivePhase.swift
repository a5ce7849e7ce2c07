public import RoostAPI

/// How far a live object or list has come. It is one value, so that no two can disagree.
public enum LivePhase: Hashable, Sendable {
    /// Nothing has answered yet, and what is shown means nothing.
    case loading
    /// It shows what this device's store has, or what the server answered, and follows every change.
    case loaded
    /// The server, or a limit, refuses it. What was shown before stays.
    case refused(RoostError)
    /// There is no answer at the moment: this device's files can't be opened or read (`unavailable`), or only the server has the answer and there is
    /// no connection (`not_connected` with the reason, or the server's refusal, such as `unauthenticated`). What was shown before stays, and is
    /// brought up to date as soon as possible: files that couldn't be read are read again after a second and then ever later, for some minutes, and with
    /// each change.
    case unavailable(RoostError)

    /// Why it shows less than it was asked for; nil while it is loading or loaded.
    public var error: RoostError? {
        switch self {
        case .loading, .loaded: nil
        case .refused(let error), .unavailable(let error): error
        }
    }
}
