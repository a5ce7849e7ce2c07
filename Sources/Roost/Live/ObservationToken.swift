import NIOConcurrencyHelpers

/// Keeps an observation alive: it ends when the token is invalidated or released (AM-29).
public final class ObservationToken: Sendable {
    private let cancel: NIOLockedValueBox<(@Sendable () -> Void)?>

    init(cancel: @escaping @Sendable () -> Void) { self.cancel = NIOLockedValueBox(cancel) }

    convenience init(task: Task<Void, Never>) { self.init { task.cancel() } }

    deinit { invalidate() }

    /// Ends the observation at once. If called on the main actor, no callback runs after it returns. Calling it again does nothing.
    public func invalidate() {
        let cancel = cancel.withLockedValue { cancel in
            defer { cancel = nil }
            return cancel
        }
        cancel?()
    }

    /// Whether ``invalidate()`` was called.
    public var isInvalidated: Bool { cancel.withLockedValue { $0 == nil } }
}
