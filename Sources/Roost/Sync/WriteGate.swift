import NIOConcurrencyHelpers
import RoostAPI

/// Refuses writes to this device's files while the app is in the background and has released them. The system terminates an app in the background that
/// holds a lock on files that it shares.
///
/// GRDB can suspend databases too, but by notifications that every database of the process gets. The app's own databases would be suspended with ours.
final class WriteGate: Sendable {
    private struct State {
        var isClosed = false
        /// Writes that have begun and haven't ended.
        var countUnderWay = 0
        /// Callers of ``close(_:)`` that wait for the end of these.
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = NIOLockedValueBox(State())

    /// Whether writes are refused.
    var isClosed: Bool { state.withLockedValue { $0.isClosed } }

    /// Runs a write if the gate is open. A gate that is closed meanwhile doesn't stop it: ``close(_:)`` waits for its end.
    ///
    /// - Throws: `RoostError` with `unavailable` if the gate is closed; what `write` throws.
    func pass<Value: Sendable>(_ write: () async throws -> Value) async throws -> Value {
        try state.withLockedValue { state in
            guard !state.isClosed else {
                throw RoostError(
                    .unavailable, "The app is in the background and has released its shared files. They can't be written.")
            }
            state.countUnderWay += 1
        }
        defer { end() }
        return try await write()
    }

    private func end() {
        let waiting = state.withLockedValue { state -> [CheckedContinuation<Void, Never>] in
            state.countUnderWay -= 1
            guard state.countUnderWay == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Refuses new writes from now on, waits until all that have begun have ended, and then releases what they need. If the gate is open again by then,
    /// nothing is released.
    ///
    /// It is closed before the caller is left for the first time, so that nobody can open it in between whom the caller's actor keeps out.
    /// The gate's lock is held while it is released. So the gate can't be opened, and no write can begin, between the check and the release.
    ///
    /// - Parameter release: Called once or not at all. It mustn't use the gate.
    func close(_ release: () -> Void = {}, isolation: isolated (any Actor)? = #isolation) async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLockedValue { state in
                state.isClosed = true
                if state.countUnderWay > 0 { state.waiting.append(continuation) }
                return state.countUnderWay == 0
            }
            if isIdle { continuation.resume() }
        }
        state.withLockedValue { state in
            // The gate may have been opened and closed again since. A write that began in between is waited for by the last caller that closed it.
            if state.isClosed, state.countUnderWay == 0 { release() }
        }
    }

    /// Lets new writes begin again.
    func open() { state.withLockedValue { $0.isClosed = false } }

    /// Takes back what writes need, and then lets new writes begin again. The gate's lock is held meanwhile, so that it can't be closed in between.
    ///
    /// - Parameter takeBack: It mustn't use the gate.
    /// - Throws: What `takeBack` throws. The gate stays closed then.
    func open(after takeBack: () throws -> Void) throws {
        try state.withLockedValue { state in
            try takeBack()
            state.isClosed = false
        }
    }
}
