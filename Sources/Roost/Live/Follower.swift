import RoostAPI

/// Keeps a live object up to date: it has the object's work done when something changes, one piece after another, as long as the object
/// exists.
///
/// Work that begins later sees a later state, and its result is shown later. An object that can't read the store goes on showing what it
/// has, and the log says why.
@MainActor
final class Follower {
    /// How a piece of work ended.
    enum Outcome {
        case done
        /// The server, or a limit, refuses for good: the app has to know.
        case refused(RoostError)
        /// There will be another occasion: a connection, or a change.
        case failed
    }

    private let driver: SyncDriver
    private var following: ObservationToken?
    private var delayed: Task<Void, Never>?
    private let turns = Turns()

    init(_ driver: SyncDriver) { self.driver = driver }

    /// Follows a topic until this object is released.
    ///
    /// - Parameters:
    ///   - connected: Called when there is a connection, and everything that was missed is stored. It gets no turn: it may ask the server.
    ///   - changed: Called with everything at once, then with each change.
    func follow(
        _ topic: ChangeSignals.Topic, connected: (@MainActor () async -> Void)? = nil,
        changed: @escaping @MainActor (StoreChange) async -> Void
    ) {
        following = driver.follow(topic, connected: connected, changed: changed)
    }

    /// Follows a topic, and has a step take its turn for everything at once and then for each change.
    func follow(
        _ topic: ChangeSignals.Topic, connected: (@MainActor () async -> Void)? = nil,
        reload: @escaping @MainActor (StoreChange) async throws -> Void
    ) {
        follow(topic, connected: connected, changed: { [weak self] change in await self?.work { try await reload(change) } })
    }

    /// Has a step take its turn.
    @discardableResult
    func work(_ step: @escaping @MainActor () async throws -> Void) async -> Outcome {
        do {
            try await turns.take(step)
            return .done
        } catch let error as RoostError {
            return error.isRetryable ? .failed : .refused(error)
        } catch {
            driver.logReadFailure(error)
            return .failed
        }
    }

    /// Has a step of the app's take its turn, and throws what it throws.
    func take(_ step: @escaping @MainActor () async throws -> Void) async throws { try await turns.take(step) }

    /// Calls back in a moment, once for all that ask until then: several events cost one question to the server.
    func soon(_ work: @escaping @MainActor () async -> Void) {
        guard delayed == nil else { return }
        let clock = driver.environment.clock
        delayed = Task { [weak self] in
            try? await clock.sleep(for: .milliseconds(250))
            self?.delayed = nil
            await work()
        }
    }
}
