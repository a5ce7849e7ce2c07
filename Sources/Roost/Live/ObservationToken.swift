import Synchronization

/// Keeps an observation alive: it ends when the token is invalidated or released (AM-29).
public final class ObservationToken: Sendable {
    private let cancel: Mutex<(@Sendable () -> Void)?>

    init(cancel: @escaping @Sendable () -> Void) { self.cancel = Mutex(cancel) }

    convenience init(task: Task<Void, Never>) { self.init { task.cancel() } }

    deinit { invalidate() }

    /// Ends the observation at once: from the main actor, no callback comes after this returns. Doing it again changes nothing.
    public func invalidate() {
        let cancel = cancel.withLock { cancel in
            defer { cancel = nil }
            return cancel
        }
        cancel?()
    }

    /// Whether ``invalidate()`` was called.
    public var isInvalidated: Bool { cancel.withLock { $0 == nil } }
}
