public import Observation
public import RoostAPI

/// One row of a list of invitations.
public struct InvitationItem: Identifiable, Hashable, Sendable {
    /// An inviter has at most one invitation for a user and a channel.
    public struct ID: Hashable, Sendable {
        /// The channel of the invitation.
        public var channelId: ChannelID
        /// The inviter.
        public var inviter: UserID
    }

    /// The time and the welcome text.
    public var invitation: Invitation
    /// The inviter, as this device knows them: only the id until their name arrives.
    public var inviter: UserSummary
    /// The channel's summary; nil until it is known on this device. No event updates it while the invitation is pending: it shows the channel as of
    /// when the invitation arrived, or as of the server's last answer, which a list requests when it starts and on each connection.
    public var channel: Channel?

    // derived: init
    /// Makes a row for previews and tests of an app's views: lists make their rows themselves.
    public init(invitation: Invitation, inviter: UserSummary, channel: Channel? = nil) {
        self.invitation = invitation
        self.inviter = inviter
        self.channel = channel
    }

    /// Stays the same while the invitation is pending.
    public var id: ID { ID(channelId: invitation.channelId, inviter: invitation.inviter) }
}

/// The user's pending invitations as a live collection, the newest first (SB-15 to SB-18, EM-24 to EM-26, R14).
///
/// They are read from this device's store, and follow every event; they are also available offline.
@MainActor @Observable
public final class InvitationList {
    /// The invitations, the newest first.
    public private(set) var items: [InvitationItem] = []
    /// The phase of the list: before it is loaded, an empty list means nothing.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's store has answered.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private var isAsking = false
    /// The invitations whose channels arrived or were requested on this connection. A channel that the server doesn't return isn't requested again.
    @ObservationIgnored private var asked: Set<InvitationItem.ID> = []
    /// Whether a change couldn't be processed: only reading again finds what it was about.
    @ObservationIgnored private var hasMissedChange = false
    @ObservationIgnored private let observers = ListObservers<InvitationItem>()

    init(of chat: Chat) {
        self.chat = chat
        follower = Follower(chat.driver)
        follower.follow(
            .own,
            connected: { [weak self] in
                self?.asked = []
                await self?.fetchChannels()
            },
            changed: { [weak self] change in
                guard let self, hasMissedChange || concerns(change) else { return }
                hasMissedChange = true
                // Reading the store doesn't replace the request that is repeated after a while.
                let rows = change.channelRows
                if case .done = await follower.work(isQuery: false, { [weak self] in try await self?.reload(rows: rows) }) {
                    hasMissedChange = false
                }
            })
    }

    /// The list's topic also reports changes of users, whether they have invited this one or not.
    private func concerns(_ change: StoreChange) -> Bool {
        change.isEverything || change.isOwn || items.contains { change.users.contains($0.inviter.userId) }
    }

    /// The list after each change, with the difference from the one before; the first update inserts everything (AM-30).
    public var updates: ListUpdates<InvitationItem> { observers.updates(of: self, startingWith: follower.hasAnswer ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (ListUpdate<InvitationItem>) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? items : nil, callback)
    }

    /// Accepts an invitation, and returns its channel, of which the user is now a member (SB-15).
    ///
    /// - Throws: The errors of ``LiveChannel/acceptInvitation()``.
    @discardableResult
    public func accept(_ invitation: InvitationItem) async throws -> LiveChannel {
        let view = try await chat.call(AcceptInvitation(channel: invitation.invitation.channelId))
        await showNow()
        return await chat.loadedChannel(view.channel.channelId)
    }

    /// Declines an invitation. To join later, the user needs another one (SB-16).
    ///
    /// - Throws: The errors of ``LiveChannel/declineInvitation()``.
    public func decline(_ invitation: InvitationItem) async throws {
        _ = try await chat.call(DeclineInvitation(channel: invitation.invitation.channelId))
        await showNow()
    }

    /// Removes the answered invitation from the list.
    private func showNow() async { await follower.work(isQuery: false) { [weak self] in try await self?.reload() } }

    /// - Parameter rows: The channels whose rows arrived with the change that caused this.
    private func reload(rows: Set<ChannelID> = []) async throws {
        let items = try await chat.driver.files().store.read { database in
            try database.waitingInvitations()
        }
        let (before, isChanged) = (self.items, !follower.hasAnswer || items != self.items)
        if isChanged { self.items = items }
        asked.formUnion(items.lazy.filter { rows.contains($0.invitation.channelId) }.map(\.id))
        follower.shows(items.lazy.map(\.inviter))
        follower.answered()
        if isChanged { observers.notify(items, after: before) }
        Task { [weak self] in await self?.fetchChannels() }
    }

    /// Fetches the channels of invitations, once per connection. An invitation that arrived while this device was away came without its channel, no
    /// event tells the user about a channel's new name, and the stored row may be as old as the user's former membership. The answer is stored, and
    /// read from the store. If the server can't answer now, it is asked again a little later.
    private func fetchChannels() async {
        guard !isAsking, !follower.isAskingAgain, chat.driver.statuses.current == .online, !unasked.isEmpty else { return }
        isAsking = true
        defer { isAsking = false }
        await follower.work(asksServer: true) { [weak self] in try await self?.fetchUnaskedChannels() }
    }

    /// - Throws: A temporary refusal. The list comes from the store, and isn't refused because of its channels.
    private func fetchUnaskedChannels() async throws {
        // Others may arrive while the server is asked.
        while case let asking = unasked, !asking.isEmpty {
            var page = ListMyInvitations(limit: Limits.memberPage.max)
            for _ in 0..<PageCount.max(forRows: Limits.pendingInvitationsPerUser, of: Limits.memberPage.max) {
                do {
                    page.cursor = try await chat.call(page).nextCursor
                } catch let error as RoostError where !error.isRetryable {
                    break
                }
                if page.cursor == nil { break }
            }
            asked.formUnion(asking)
        }
    }

    private var unasked: Set<InvitationItem.ID> { Set(items.lazy.map(\.id)).subtracting(asked) }
}

extension Chat {
    /// The user's invitations as a live collection (SB-15 to SB-18). Each call makes a new one; keep it while it is shown.
    @MainActor public func invitations() -> InvitationList { InvitationList(of: self) }
}
