import Synchronization

/// Whether the server should be sent new clients: from the end of its start until it is told to shut down, and while its database answers.
final class Readiness: Sendable {
    private let serving = Atomic<Bool>(false)
    private let database = Atomic<Bool>(true)

    /// Why it isn't ready; nil when it is.
    var reason: String? {
        if !serving.load(ordering: .acquiring) { return "The server is starting or shutting down." }
        return database.load(ordering: .acquiring) ? nil : "The database can't be reached."
    }

    func setServing(_ isServing: Bool) { serving.store(isServing, ordering: .releasing) }

    /// - Returns: Whether the state changed.
    @discardableResult
    func setDatabase(isReachable: Bool) -> Bool { database.exchange(isReachable, ordering: .acquiringAndReleasing) != isReachable }
}
