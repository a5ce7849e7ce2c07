public import Observation
public import RoostAPI

/// The user's preferences as a live object, the same on all of the user's devices.
@MainActor @Observable
public final class LivePreferences {
    /// Whether invitations make the user a member at once, without asking (SB-18). True by default.
    public private(set) var autoAcceptInvitations = true
    /// Whether other users see that the user is typing. True by default.
    public private(set) var sharesTyping = true
    /// Whether other users see how far the user has read. True by default.
    public private(set) var sharesReading = true
    /// Whether other users see that messages have reached the user's devices, in channels with that feature. True by default.
    public private(set) var sharesDelivery = true
    /// Whether other users see that the user is online and which channels they watch. True by default.
    public private(set) var sharesPresence = true
    /// The phase of the preferences.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's store has answered.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let driver: SyncDriver
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = Observers<Preferences>()

    init(_ driver: SyncDriver) {
        self.driver = driver
        follower = Follower(driver)
        follower.follow(
            .own,
            reload: { [weak self] change in
                // The topic also reports changes of users.
                guard change.isEverything || change.isOwn else { return }
                try await self?.reload()
            })
    }

    /// All preferences as one value.
    public var preferences: Preferences {
        Preferences(
            autoAcceptInvitations: autoAcceptInvitations, sharesTyping: sharesTyping, sharesReading: sharesReading,
            sharesDelivery: sharesDelivery, sharesPresence: sharesPresence)
    }

    /// The state from now on, starting with the current one. A slow reader gets the newest state, not every one in between.
    public var updates: AsyncStream<Preferences> {
        observers.values(of: self, startingWith: follower.hasAnswer ? preferences : nil)
    }

    /// Calls back with the preferences, and again on every change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (Preferences) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? preferences : nil, callback)
    }

    /// Returns once the user's stored changes are shown.
    func showNow() async { await follower.work { [weak self] in try await self?.reload() } }

    private func reload() async throws {
        let preferences = try await driver.files().store.read { try $0.preferences() }
        guard !follower.hasAnswer || preferences != self.preferences else { return follower.answered() }
        autoAcceptInvitations = preferences.autoAcceptInvitations
        sharesTyping = preferences.sharesTyping
        sharesReading = preferences.sharesReading
        sharesDelivery = preferences.sharesDelivery
        sharesPresence = preferences.sharesPresence
        follower.answered()
        observers.notify(preferences)
    }
}
