public import Observation
public import RoostAPI

/// A user's summary as a live object: for a mention, the header of a profile, or any other user that an app knows by id.
///
/// It shows this device's data, offline too, and asks the server for a user who isn't known yet.
@MainActor @Observable
public final class LiveUser: Identifiable {
    /// The user's id.
    public nonisolated let id: UserID
    /// The name and the picture; only the id until they arrive.
    public private(set) var user: UserSummary
    /// The phase of the live object.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's store has answered.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = Observers<UserSummary>()

    init(_ id: UserID, in chat: Chat) {
        self.id = id
        self.chat = chat
        user = UserSummary(userId: id)
        follower = Follower(chat.driver)
        follower.follow(
            .own,
            reload: { [weak self] change in
                if change.isEverything || change.users.contains(id) { try await self?.reload() }
            })
    }

    /// The state from now on, starting with the current one. A slow reader gets the newest state, not every one in between.
    public var updates: AsyncStream<UserSummary> {
        observers.values(of: self, startingWith: follower.hasAnswer ? user : nil)
    }

    /// Calls back with the user, and again on every change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (UserSummary) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? user : nil, callback)
    }

    private func reload() async throws {
        let id = id
        let stored = try await chat.driver.files().store.read { try $0.summary(of: id) }
        follower.shows([stored])
        guard !follower.hasAnswer || stored != user else { return follower.answered() }
        user = stored
        follower.answered()
        observers.notify(stored)
    }
}

extension Chat {
    /// A user's summary as a live object. Each call makes a new one; keep it while it is shown.
    @MainActor public func user(_ id: UserID) -> LiveUser { LiveUser(id, in: self) }
}
