public import Observation
public import RoostAPI

/// One row of a list of invitations.
public struct InvitationItem: Identifiable, Hashable, Sendable {
    /// An inviter has at most one invitation for a user and a channel.
    public struct ID: Hashable, Sendable {
        /// The channel of the invitation.
        public var channelId: ChannelID
        /// The user who invited.
        public var inviter: UserID
    }

    /// The time and the welcome text.
    public var invitation: Invitation
    /// Who invited, as this device knows them: only by id until their name arrives.
    public var inviter: UserSummary
    /// The channel's summary; nil until it is known on this device. No event follows it while the invitation waits: it is as the channel was when the
    /// invitation came, or as the server told it since, which a list asks for when it begins and with each connection.
    public var channel: Channel?

    /// Stays the same while the invitation waits.
    public var id: ID { ID(channelId: invitation.channelId, inviter: invitation.inviter) }
}

/// The user's invitations that wait for an answer as a live collection, the newest first (SB-15 to SB-18, EM-24 to EM-26, R14).
///
/// They come from this device's store, and follow every event; they are there offline too.
@MainActor @Observable
public final class InvitationList {
    /// The invitations, the newest first.
    public private(set) var items: [InvitationItem] = []
    /// How far the list has come: before it is loaded, empty means nothing.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's store has answered.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private var isAsking = false
    /// The invitations whose channels came in this connection, or were asked for. One that the server doesn't give it isn't asked for again.
    @ObservationIgnored private var asked: Set<InvitationItem.ID> = []
    /// Whether a change couldn't be looked at: what came with it is only found by reading again.
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
                // Reading the store doesn't answer what the server is asked once more in a while.
                let told = change.channelRows
                if case .done = await follower.work(isQuestion: false, { [weak self] in try await self?.reload(told: told) }) {
                    hasMissedChange = false
                }
            })
    }

    /// The list's topic tells of users too, whether they have invited this one or not.
    private func concerns(_ change: StoreChange) -> Bool {
        change.isEverything || change.isOwn || items.contains { change.users.contains($0.inviter.userId) }
    }

    /// The list after each change, with the difference from the one before; the first update inserts everything (AM-30).
    public var updates: ListUpdates<InvitationItem> { observers.updates(of: self, startingWith: follower.hasAnswer ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (ListUpdate<InvitationItem>) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? items : nil, callback)
    }

    /// Accepts an invitation, and returns its channel, which the user is a member of now (SB-15).
    ///
    /// - Throws: As ``LiveChannel/acceptInvitation()``.
    @discardableResult
    public func accept(_ invitation: InvitationItem) async throws -> LiveChannel {
        let view = try await chat.call(AcceptInvitation(channel: invitation.invitation.channelId))
        await showNow()
        return await chat.loadedChannel(view.channel.channelId)
    }

    /// Declines an invitation. To join after all, the user needs another one (SB-16).
    ///
    /// - Throws: As ``LiveChannel/declineInvitation()``.
    public func decline(_ invitation: InvitationItem) async throws {
        _ = try await chat.call(DeclineInvitation(channel: invitation.invitation.channelId))
        await showNow()
    }

    /// The answered invitation isn't one of the list's any more.
    private func showNow() async { await follower.work(isQuestion: false) { [weak self] in try await self?.reload() } }

    /// - Parameter told: The channels whose rows came with the change that is the reason.
    private func reload(told: Set<ChannelID> = []) async throws {
        let items = try await chat.driver.files().store.read { database in
            try database.waitingInvitations()
        }
        let (before, isChanged) = (self.items, !follower.hasAnswer || items != self.items)
        if isChanged { self.items = items }
        asked.formUnion(items.lazy.filter { told.contains($0.invitation.channelId) }.map(\.id))
        follower.shows(items.lazy.map(\.inviter))
        follower.answered()
        if isChanged { observers.notify(items, after: before) }
        Task { [weak self] in await self?.fetchChannels() }
    }

    /// An invitation that came while this device was away came without its channel, and no event tells the user of a channel's new name. What is stored of it
    /// may be as old as the user's former membership. So it is fetched, once in a connection. The answer is stored, and read from there. What the server
    /// can't answer now, it is asked again a little later.
    private func fetchChannels() async {
        guard !isAsking, !follower.isAskingAgain, chat.driver.statuses.current == .online, !unasked.isEmpty else { return }
        isAsking = true
        defer { isAsking = false }
        await follower.work(asksServer: true) { [weak self] in try await self?.fetchUnaskedChannels() }
    }

    /// - Throws: A refusal that passes. The list comes from the store, and isn't refused with its channels.
    private func fetchUnaskedChannels() async throws {
        // Others may come while it is asked.
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
