import NIOConcurrencyHelpers
import RoostAPI

/// Refuses writes to this device's files while the app is in the background and has released them. The system terminates an app in the background that
/// holds a lock on files that it shares.
///
/// GRDB can suspend databases too, but by notifications that reach every database of the process: the app's own would be suspended with ours.
final class WriteGate: Sendable {
    private struct State {
        var isClosed = false
        /// Why what writes need couldn't be taken back since the gate was closed; nil if it wasn't tried.
        var failure: (any Error)?
        /// The number of writes in progress.
        var inFlightCount = 0
        /// Callers of ``close(_:)`` that wait for these to end.
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = NIOLockedValueBox(State())

    /// Whether writes are refused.
    var isClosed: Bool { state.withLockedValue { $0.isClosed } }

    /// Runs a write if the gate is open. Closing the gate meanwhile doesn't stop it: ``close(_:)`` waits for its end.
    ///
    /// - Throws: `RoostError` with `storage_in_use` if the gate is closed, or the error with which ``open(after:)`` has failed since; the errors of
    ///   `write`.
    func pass<Value: Sendable>(_ write: () async throws -> Value) async throws -> Value {
        try state.withLockedValue { state in
            guard !state.isClosed else {
                throw state.failure
                    ?? RoostError(
                        .storageInUse, "The app is in the background and has released its shared files. They can't be written.")
            }
            state.inFlightCount += 1
        }
        defer { end() }
        return try await write()
    }

    private func end() {
        let waiting = state.withLockedValue { state -> [CheckedContinuation<Void, Never>] in
            state.inFlightCount -= 1
            guard state.inFlightCount == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Refuses new writes from now on, waits until those in progress have ended, and then releases what they need. If the gate is open again by then,
    /// nothing is released.
    ///
    /// It is closed before the caller is suspended for the first time, so nothing that the caller's actor keeps out can open it in between. The
    /// gate's lock is held during the release: the gate can't be opened, and no write can begin, between the check and the release.
    ///
    /// - Parameter release: Called once or not at all. It mustn't use the gate.
    func close(_ release: () -> Void = {}, isolation: isolated (any Actor)? = #isolation) async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLockedValue { state in
                state.isClosed = true
                if state.inFlightCount > 0 { state.waiting.append(continuation) }
                return state.inFlightCount == 0
            }
            if isIdle { continuation.resume() }
        }
        state.withLockedValue { state in
            // The gate may have been opened and closed again since. The last caller that closed it waits for a write that began in between.
            if state.isClosed, state.inFlightCount == 0 { release() }
        }
    }

    /// Allows new writes again.
    func open() { state.withLockedValue { ($0.isClosed, $0.failure) = (false, nil) } }

    /// Takes back what writes need, and then allows new writes again. The gate's lock is held meanwhile, so it can't be closed in between.
    ///
    /// - Parameter takeBack: It mustn't use the gate.
    /// - Throws: The errors of `takeBack`. The gate then stays closed, and refuses writes with that error.
    func open(after takeBack: () throws -> Void) throws {
        try state.withLockedValue { state in
            do {
                try takeBack()
            } catch {
                if state.isClosed { state.failure = error }
                throw error
            }
            (state.isClosed, state.failure) = (false, nil)
        }
    }
}
