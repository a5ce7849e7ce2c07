import RoostAPI
import RoostCore

/// Shuts out callers who may not stay, or for whom there is no room.
extension SocketSession {
    /// Stops all events if one of the changes shuts the caller out. Returns whether one does; if so, ``closeEnded()`` follows.
    mutating func endIfRefused(by changes: [AccessSubject: AccessChange]) -> Bool {
        guard let caller, accessRefusal == nil else { return false }
        if caller.device == nil { device?.note(changes, of: caller.user) }
        for subject in caller.accessSubjects {
            guard let refusal = changes[subject]?.refusal(of: caller) else { continue }
            accessRefusal = refusal
            return true
        }
        return false
    }

    /// Stops all events because there is no room for what the connection would receive; ``closeEnded()`` follows.
    ///
    /// - Returns: False if the socket is already ending.
    mutating func endForLimit(_ error: RoostError) -> Bool {
        guard accessRefusal == nil, !isClosing else { return false }
        accessRefusal = error
        return true
    }

    /// Closes the socket of a caller who is shut out.
    mutating func closeEnded() -> [Action] {
        guard let error = accessRefusal, !isClosing else { return [] }
        refuse(
            error, closing: CloseCode(refusing: error) ?? (error.isRetryable ? .tryAgainLater : .unauthenticated),
            error.code.rawValue)
        return takeActions()
    }
}
