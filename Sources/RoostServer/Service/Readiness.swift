import Synchronization

/// Whether the server should be sent new clients: after it has started, and until it is told to stop.
final class Readiness: Sendable {
    private let ready = Atomic<Bool>(false)
    var isReady: Bool { ready.load(ordering: .acquiring) }
    func set(_ isReady: Bool) { ready.store(isReady, ordering: .releasing) }
}
