public import Observation
public import RoostAPI

/// The user's drafts in all channels as a live collection, the most recent first. It works offline, and is the same on all of the user's devices.
@MainActor @Observable
public final class DraftList {
    /// The drafts, the most recently changed first, without those of deleted channels.
    public private(set) var items: [ChannelDraft] = []
    /// The phase of the list: before it is loaded, an empty list means nothing.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's store has answered.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = ListObservers<ChannelDraft>()
    @ObservationIgnored private var drafts: [ChannelID: ChannelDraft] = [:]

    init(of chat: Chat) {
        self.chat = chat
        follower = Follower(chat.driver)
        follower.follow(.channels, reload: { [weak self] in try await self?.reload($0) })
    }

    /// The list after each change, with the difference from the one before; the first update inserts everything (AM-30).
    public var updates: ListUpdates<ChannelDraft> { observers.updates(of: self, startingWith: follower.hasAnswer ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (ListUpdate<ChannelDraft>) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? items : nil, callback)
    }

    /// Reads the drafts of the channels that have changed.
    private func reload(_ change: StoreChange) async throws {
        let known = drafts
        let read = try await chat.driver.files().store.read { database in
            guard !change.isEverything else { return try database.drafts() }
            var drafts = known
            for channel in change.channels { drafts[channel] = try database.draft(of: channel) }
            return drafts
        }
        drafts = read
        let sorted = read.values.sorted { ($0.updatedAt, $1.channelId) > ($1.updatedAt, $0.channelId) }
        guard !follower.hasAnswer || sorted != items else { return follower.answered() }
        let before = items
        items = sorted
        follower.answered()
        observers.notify(sorted, after: before)
    }
}

extension Chat {
    /// The user's drafts in all channels as a live collection. Each call makes a new list; keep it while it is shown.
    @MainActor public func drafts() -> DraftList { DraftList(of: self) }
}
