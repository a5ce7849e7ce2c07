public import Observation
public import RoostAPI

/// A channel as a live object: it shows what this device knows, and follows every change (AM-29).
///
/// ``channel`` is nil until this device knows the channel: because the user is, was or is invited to be a member of it, or because
/// ``Chat/getChannel(_:)`` has fetched it. It is kept up to date while the user is a member, and while a non-member who may read it watches it
/// (``watching()``): ``unreadCount`` is 0 then, and it isn't among the user's channels. After that it stays as last seen, without
/// ``lastMessage``.
@MainActor @Observable
public final class LiveChannel: Identifiable {
    /// The id by which the channel was requested.
    public nonisolated let id: ChannelID
    /// The channel with its attributes and counters; nil while it isn't known on this device.
    public private(set) var channel: Channel?
    /// The user's row in the channel; `state` is `.none` after leaving. See ``currentUserMembership``.
    public private(set) var membership: Membership?
    /// The user's pending invitation.
    public private(set) var invitation: Invitation?
    /// The user's current membership in the channel: an app leaves its screen when it becomes `banned` (AM-31).
    public private(set) var currentUserMembership = ChannelMembership.none
    /// The newest message on this device.
    public private(set) var lastMessage: Message?
    /// The sender of ``lastMessage``, as this device knows them: only the id until their name arrives.
    public private(set) var lastSender: UserSummary?
    /// The sender of ``invitation``, likewise.
    public private(set) var inviter: UserSummary?
    /// The number of messages that the user hasn't read (AM-43), always exact.
    public private(set) var unreadCount = 0
    /// Whether an unread message mentions the user, by name or with the whole channel (MN-16). Reading clears it.
    public private(set) var hasMention = false
    /// Whether the user hid the channel; a new message brings back a channel hidden until the next message (SB-29).
    public private(set) var hiddenState = HiddenState.unhidden
    /// The user's permissions in the channel, as last received from the server (AM-48).
    public private(set) var ownCapabilities: [Permission] = []
    /// The phase of the channel: before it is loaded, nil means nothing.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's store has answered. ``channel`` is then nil if this device doesn't know the channel.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored let chat: Chat
    /// The typing state last sent to other users.
    @ObservationIgnored let typingReporter = TypingReporter()
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private var row: ChannelRow?
    @ObservationIgnored private var expiry: ObservationToken?
    @ObservationIgnored private var returning = PermissionRecheck()
    @ObservationIgnored private var isRecheckingPermissions = false
    /// The pause before the server is asked again.
    @ObservationIgnored private var askingAgain: ObservationToken?
    @ObservationIgnored private let observers = Observers<ChannelView?>()

    init(_ id: ChannelID, of chat: Chat) {
        self.id = id
        self.chat = chat
        follower = Follower(chat.driver)
        follower.follow(
            .channel(id), connected: { [weak self] in self?.connected() },
            reload: { [weak self] change in
                // Another history has other rows with the same stamps.
                if change.isEverything { self?.row = nil }
                // A change of users in other channels matters only if this channel shows them.
                if !change.isEverything, !change.channels.contains(id), self?.row?.shows(change.users) != true { return }
                try await self?.reload()
            })
    }

    /// The channel with the membership and the newest message; nil until the channel is known on this device.
    public var view: ChannelView? {
        channel.map {
            ChannelView(
                channel: $0, membership: membership, invitation: invitation, lastMessage: lastMessage,
                ownCapabilities: ownCapabilities, hasMention: hasMention)
        }
    }

    /// Whether the user has marked messages as unread on this device, and the server isn't known to have received it.
    var isMarkedUnread: Bool { row?.isMarkedUnread ?? false }

    /// The user's role in the channel; nil for non-members (SB-22).
    public var myRole: ChannelRole? { currentUserMembership == .member ? membership?.role : nil }

    /// Whether the user may do something here, without asking the server (AM-48).
    ///
    /// The server sends the permissions after every change, with one exception: a permission lost to a silence or a mute returns by the clock, a
    /// moment after its end. ``explain(_:)`` asks the server, and gives the reason.
    public func hasPermission(_ permission: Permission) -> Bool { ownCapabilities.contains(permission) }

    /// The state of the channel from now on, starting with the current one. A slow reader gets the newest state, not every one in between.
    public var updates: AsyncStream<ChannelView?> {
        observers.values(of: self, startingWith: follower.hasAnswer ? .some(view) : nil)
    }

    /// Calls back with the channel, and again on every change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (ChannelView?) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? .some(view) : nil, callback)
    }

    /// Calls an operation, and returns once this object shows the answer and the events before it.
    @discardableResult
    func call<Call: RoostAPI.Operation>(_ operation: Call) async throws -> Call.Response {
        let answer = try await chat.call(operation)
        await showNow()
        return answer
    }

    /// Adds an operation to the outbox, and returns once this object shows it.
    func enqueue(_ operation: OutboxOperation) async throws {
        try await chat.driver.enqueue(operation)
        await showNow()
    }

    /// The operation has succeeded, even if reading its result fails.
    private func showNow() async { await follower.work { [weak self] in try await self?.reload() } }

    private func reload() async throws {
        let (id, known, now) = (id, row, chat.driver.environment.now())
        row = try await chat.driver.files().store.read { try $0.channelRow(id, known: known, now: now) }
        let view = row?.view
        recheckPermissions(to: view, now: now)
        waitForExpiry(in: view, now: now)
        let ownMembership = ChannelMembership(view, now: now)
        let haveUsersChanged = row?.sender != lastSender || row?.inviter != inviter
        follower.shows([row?.sender, row?.inviter].compactMap { $0 })
        let isChanged = haveUsersChanged || view != self.view || ownMembership != currentUserMembership
        guard isChanged || !follower.hasAnswer else { return follower.answered() }
        channel = view?.channel
        membership = view?.membership
        invitation = view?.invitation
        currentUserMembership = ownMembership
        lastMessage = view?.lastMessage
        lastSender = row?.sender
        inviter = row?.inviter
        unreadCount = view?.unreadCount ?? 0
        hasMention = view?.hasMention ?? false
        hiddenState = view?.hiddenState ?? .unhidden
        ownCapabilities = view?.ownCapabilities ?? []
        follower.answered()
        observers.notify(view)
    }

    /// Asks for the user's permissions if the permission to send may have returned without an event, because the silence or mute that took it has
    /// ended by the clock since the server's last answer.
    private func recheckPermissions(to view: ChannelView?, now: Timestamp) {
        guard let view, view.membership?.state == .member, !view.ownCapabilities.contains(.messageSend), !isRecheckingPermissions,
            askingAgain == nil, chat.driver.statuses.current == .online,
            let end = Self.ends(in: view).filter({ $0 <= now }).max(), returning.shouldAsk(since: end)
        else { return }
        isRecheckingPermissions = true
        let (driver, id) = (chat.driver, id)
        Task { [weak self] in
            let answer = try? await driver.call(GetChannel(channel: id))
            let view = answer.flatMap { try? $0.decoded(as: ChannelView.self) }
            self?.isRecheckingPermissions = false
            // Without an answer, it is asked at the next occasion.
            if let view { self?.heard(view, since: end) }
        }
    }

    /// Handles the server's answer about the user's permissions after an end.
    private func heard(_ view: ChannelView, since end: Timestamp) {
        guard let pause = returning.pause(hasReturned: view.ownCapabilities.contains(.messageSend), since: end) else { return }
        let clock = chat.driver.environment.clock
        askingAgain = ObservationToken(
            task: Task { [weak self] in
                do { try await clock.sleep(for: pause) } catch { return }
                guard let self else { return }
                askingAgain = nil
                recheckPermissions(to: row?.view, now: chat.driver.environment.now())
            })
    }

    private func connected() { recheckPermissions(to: row?.view, now: chat.driver.environment.now()) }

    private static func ends(in view: ChannelView?) -> [Timestamp] {
        [
            view?.channel.mutedUntil, view?.channel.rateLimitedUntil, view?.membership?.mutedUntil, view?.membership?.bannedUntil,
        ].compactMap(\.self)
    }

    /// Silences, rate limits, mutes and bans end without an event. When the next of them ends, this shows the channel's new state, and asks the
    /// server for the user's permissions.
    private func waitForExpiry(in view: ChannelView?, now: Timestamp) {
        expiry = nil
        guard let next = Self.ends(in: view).filter({ $0 > now && $0 < .forever }).min() else { return }
        let (driver, id) = (chat.driver, id)
        // A little later by this device's clock, since the server's may be behind.
        let moment = Timestamp(milliseconds: next.milliseconds + 500)
        expiry = driver.environment.waiting(until: moment) { [weak self] in
            _ = try? await driver.call(GetChannel(channel: id))
            await self?.follower.work { [weak self] in try await self?.reload() }
        }
    }
}
