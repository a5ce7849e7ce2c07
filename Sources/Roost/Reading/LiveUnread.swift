import NIOConcurrencyHelpers
public import Observation
public import RoostAPI

/// The unread messages in all channels that the user is a member of, as a live object: for the badge of an app (AM-44).
///
/// It is read from this device's store, and is also right offline, as of the last connection. Hidden channels count, and channels that the user has
/// muted don't, as in the server's answer to `reading.total`.
@MainActor @Observable
public final class LiveUnread {
    /// The number of unread messages in all channels, and the number of channels with unread messages. 0 until it is loaded.
    public private(set) var total = TotalUnread(unreadCount: 0, unreadChannelCount: 0)
    /// The phase of the live object.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's store has answered.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let driver: SyncDriver
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = Observers<TotalUnread>()
    // Changed where the store is read, one change after another.
    @ObservationIgnored private nonisolated let totals = NIOLockedValueBox(UnreadTotals())

    init(_ driver: SyncDriver) {
        self.driver = driver
        follower = Follower(driver)
        follower.follow(.channels, reload: { [weak self] change in try await self?.follow(change) })
    }

    /// The total from now on, starting with the current one. A slow reader gets the newest total, not every one in between.
    public var updates: AsyncStream<TotalUnread> { observers.values(of: self, startingWith: follower.hasAnswer ? total : nil) }

    /// Calls back with the total, and again on every change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (TotalUnread) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? total : nil, callback)
    }

    private func follow(_ change: StoreChange) async throws {
        let total = try await driver.files().store.read { database in
            try self.totals.withLockedValue { totals in
                try totals.apply(change, in: database)
                return totals.total
            }
        }
        guard !follower.hasAnswer || total != self.total else { return follower.answered() }
        self.total = total
        follower.answered()
        observers.notify(total)
    }
}
