import Logging
public import Observation
public import RoostAPI

/// The messages of a channel as a live collection, oldest first, followed by the user's own messages on their way (AM-30).
///
/// It shows a part of the channel's messages without gaps: at first a page at its anchor. It grows with arriving messages, ``loadOlder()`` and
/// ``loadNewer()``, and holds at most ``rowsMax`` messages, however far the user scrolls: beyond that it drops messages at the end farther from the
/// last call. While ``hasNewer`` is true, arriving messages don't move it, and neither they nor messages on their way are shown: ``newerCount``
/// reports them, and ``loadNewer()`` and ``showNewest()`` lead to them. Of the user's messages and changes on their way in the channel, the newest
/// 300 are shown; ``Chat/outbox`` has all of them.
///
/// If the messages at the anchor aren't on this device, they are fetched, and ``phase`` is `loading` until they arrive. Without a connection, the
/// list meanwhile shows the newest messages that this device has. If the user may not see the anchor's message, if it was permanently deleted, or if
/// this version can't read it, the phase is `refused` with `not_found`; ``showNewest()`` continues from there.
///
/// This device has the messages of channels that the user is a member of, and of channels that they may read and watch, as long as they watch them
/// (``LiveChannel/watch(limit:watchersLimit:)``, ``LiveChannel/presence()``). After a reconnect, the list of a watched channel starts over at the
/// newest messages if anything was missed, unless the channel is ephemeral; without a connection it stays as it was until the app is restarted. For
/// any other channel, the list shows only the user's own messages on their way: the phase is `unavailable` until there is a connection, and then
/// `refused` with `not_member` until the user joins or watches the channel.
@MainActor @Observable
public final class MessageList {
    /// The maximum number of messages in a list, besides those on their way.
    public nonisolated static let rowsMax = 300
    /// The highest number that ``newerCount`` reports.
    public nonisolated static let newerCountMax = 999

    /// The messages, oldest first.
    public private(set) var items: [MessageItem] = []
    /// Whether ``loadOlder()`` would add messages.
    public private(set) var hasOlder = false
    /// Whether ``loadNewer()`` would add messages: the list ends before the channel's newest message.
    public private(set) var hasNewer = false
    /// The number of messages after the last one shown. Nil if there are more than ``newerCountMax``, or if not all of them are on this device.
    public private(set) var newerCount: Int? = 0
    /// The first message that the user hadn't read when the list was made, whether it is shown or not. Reading further doesn't move it.
    ///
    /// Nil if nothing was unread, and while this device doesn't have the messages from there on.
    public private(set) var firstUnread: MessageItem.ID?
    /// The row at the list's anchor, if that is a message or a time: to scroll to it and to highlight it, whether it is shown at the moment or not.
    ///
    /// Nil for other anchors, while this device doesn't have the message, if none was sent at or after the time, and if the list was moved before it
    /// got there.
    public private(set) var anchorItem: MessageItem.ID?
    /// The phase of the list: before it is loaded, an empty list means nothing.
    public var phase: LivePhase { follower.phase }

    /// Returns once the list shows the requested messages. If they aren't on this device, this waits for a connection.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    /// The channel whose messages these are.
    @ObservationIgnored public nonisolated let channelId: ChannelID
    @ObservationIgnored private let user: UserID
    /// Keeps the chat alive, which disconnects when it is released.
    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let driver: SyncDriver
    @ObservationIgnored private let pageSize: Int
    @ObservationIgnored private var window: MessageWindow
    @ObservationIgnored private var mark = UnreadMark()
    /// The place that the list hasn't reached yet.
    @ObservationIgnored private var opening: MessageOpening?
    /// Whether the list is still where it started, and moves to the first unread message if one turns up.
    @ObservationIgnored private var awaitsUnread: Bool
    /// The number of the app's moves whose reads haven't begun.
    @ObservationIgnored private var queuedMoves = 0
    /// The place of the first read among the app's calls: marking the channel as read, for example, follows it if it was called later.
    @ObservationIgnored private var turn: CallOrder.Turn?
    /// The messages to fetch in order to get there.
    @ObservationIgnored private var missing: MessageLoad?
    /// Whether nothing is known of the channel until there is a connection.
    @ObservationIgnored private var awaitsConnection = false
    @ObservationIgnored private var failures = 0
    /// The messages in the outbox, and whether it has changed since they were read.
    @ObservationIgnored private var pending: [MessageItem] = []
    @ObservationIgnored private var changes: [ChangedMessage?: [OutboxItem]] = [:]
    /// The server that the outbox is sent to.
    @ObservationIgnored private var server: String?
    @ObservationIgnored private var isOutboxChanged = true
    /// Users who have changed since the window was read.
    @ObservationIgnored private var renamed: Set<UserID> = []
    @ObservationIgnored private var isFetching = false
    /// Whether something may be missing since the current fetch began, for instance because a channel was left meanwhile.
    @ObservationIgnored private var mustFetchAgain = false
    /// Makes callers of a fetch wait for the current one.
    @ObservationIgnored private let fetches = CallOrder()
    @ObservationIgnored private var isOpened = false
    @ObservationIgnored private var isShown = false
    @ObservationIgnored private let shown: ShownMessages.List
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = ListObservers<MessageItem>()

    init(of channel: ChannelID, around anchor: MessageAnchor, pageSize: Int, in chat: Chat) {
        channelId = channel
        user = chat.user
        (self.chat, driver) = (chat, chat.driver)
        opening = MessageOpening(anchor)
        awaitsUnread = anchor == .firstUnread
        turn = chat.driver.order.take()
        self.pageSize = min(max(pageSize, 1), Limits.historyPage.max)
        window = MessageWindow(pageSize: self.pageSize)
        shown = chat.driver.shownMessages.add(channel)
        follower = Follower(chat.driver)
        follower.follow(
            .messages(channel),
            connected: { [weak self] in await self?.connected() },
            away: { [weak self] in self?.awaitsConnection ?? false },
            changed: { [weak self] change in
                // A refusal of the anchor stays until the app asks for something else.
                await self?.follower.work(isQuery: change.isEnd) { try await self?.reload(change) }
                await self?.endRefusal()
            },
            // Other calls fail on their own, and don't wait until the files can be read.
            failed: { [weak self] in self?.turn = nil })
    }

    /// The list after each change, with the difference from the one before; the first update inserts everything.
    public var updates: ListUpdates<MessageItem> { observers.updates(of: self, startingWith: isShown ? items : nil) }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released. The difference is empty if the list
    /// becomes loaded with the rows shown so far.
    public func observe(_ callback: @escaping @MainActor (ListUpdate<MessageItem>) -> Void) -> ObservationToken {
        observers.add(startingWith: isShown ? items : nil, callback)
    }

    // MARK: Requests of the app

    /// Adds a page of older messages, from this device if they are cached, otherwise from the server. Does nothing if there are none.
    ///
    /// - Throws: If they have to come from the server: `RoostError` with `not_connected` while offline, `not_member` if the channel isn't one of the
    ///   user's, `unavailable` if no answer arrives in time or if the channel is being fetched again, or the code of the server's refusal;
    ///   `CancellationError`, for instance in a SwiftUI `task` whose row has left the screen.
    public func loadOlder() async throws {
        guard hasOlder else { return }
        shown.beginMove()
        defer { shown.endMove() }
        let (isCached, first) = (window.hasOlderCached, window.rows.first?.seq)
        if !isCached { try await driver.load(.older(than: window.place), in: channelId, limit: pageSize) }
        // If there is no page to move to, the list still goes to its anchor.
        await go(.older)
        // The cached page may have been deleted since the list was last read, because the cache was too large.
        guard isCached, opening == nil, hasOlder, !window.hasOlderCached, window.rows.first?.seq == first else { return }
        try await driver.load(.older(than: window.place), in: channelId, limit: pageSize)
        await go(.older)
    }

    /// Adds a page of newer messages, from this device if they are cached, otherwise from the server. Does nothing if there are none.
    ///
    /// An app calls it whenever the last row becomes visible: once there are no newer messages, the list follows the newest ones again. A list that
    /// shows the newest messages because it can't reach its anchor yet still goes there.
    ///
    /// - Throws: The errors of ``loadOlder()``.
    public func loadNewer() async throws {
        shown.beginMove()
        defer { shown.endMove() }
        guard hasNewer else {
            // There is nothing to move to, so the anchor isn't abandoned.
            await follower.work(isQuery: false) { try await self.read(.newer) }
            return
        }
        if !window.hasNewerCached { try await driver.load(.newer(than: window.place), in: channelId, limit: pageSize) }
        await go(.newer)
    }

    /// Shows the newest page, and follows the newest messages from then on. Does nothing else if the list has them already.
    ///
    /// Returns once the list shows them, once the server has refused them, or if it can't be asked now; ``loaded()`` waits for what hasn't arrived
    /// yet. If the task is cancelled, it doesn't wait for the server.
    public func showNewest() async {
        shown.beginMove()
        defer { shown.endMove() }
        await go(.newest)
    }

    /// Abandons the list's anchor and any refusal of it. Waits like ``fetch()`` for messages that have to be fetched.
    private func go(_ move: MessageWindow.Move) async {
        (opening, awaitsUnread) = (nil, false)
        if case .refused = phase { follower.beginLoading() }
        queuedMoves += 1
        await follower.work {
            self.queuedMoves -= 1
            try await self.read(move)
        }
        // The channel may not be one of the user's.
        if opening != nil { await fetch() }
    }

    /// Retries a refused message of the user's, or its refused changes. Does nothing for other messages, or for operations meant for another server.
    public func retry(_ clientId: ClientID) async {
        for row in outboxRows(of: clientId) { await driver.request(.retry(row)) }
    }

    /// Discards one of the user's messages on its way, or its changes on their way. What the server has carried out meanwhile stays.
    public func discard(_ clientId: ClientID) async {
        for row in outboxRows(of: clientId) { await driver.request(.discard(row)) }
    }

    /// Retries a row's message if it was refused, or the user's refused changes to it, whoever sent it. Does nothing for other rows, or for
    /// operations meant for another server.
    public func retry(_ item: MessageItem) async {
        for row in outboxRows(of: item) { await driver.request(.retry(row)) }
    }

    /// Discards a row's message on its way, or the user's changes to it, whoever sent it. What the server has carried out meanwhile stays.
    public func discard(_ item: MessageItem) async {
        for row in outboxRows(of: item) { await driver.request(.discard(row)) }
    }

    private func outboxRows(of clientId: ClientID) -> [OutboxRow] {
        let item = items.last { $0.clientId == clientId && $0.id.sender == user }
        return item.map(outboxRows) ?? [.message(MessageKey(channel: channelId, clientId: clientId))]
    }

    private func outboxRows(of item: MessageItem) -> [OutboxRow] {
        guard item.message != nil else { return [.message(MessageKey(channel: channelId, clientId: item.clientId))] }
        return item.operations.map { .operation($0, of: channelId) }
    }

    // MARK: Reading

    private func connected() async {
        // Once this device has caught up, arriving messages can't be ones that were unread when the list was made.
        let mayShowUnread = follower.hasAnswer && !mark.isSet
        if opening != nil || mayShowUnread { await follower.work(isQuery: false) { try await self.read(.stay) } }
        await endRefusal()
        await fetch()
    }

    /// Ends a refusal when the list has reached its place without a request, for instance because the user is now a member of the channel.
    private func endRefusal() async {
        if opening == nil, case .refused = phase { await follower.work {} }
    }

    private func reload(_ change: StoreChange) async throws {
        // The user has logged out: the list won't reach its starting place.
        if change.isEnd { (opening, missing, awaitsConnection, mark, anchorItem) = (nil, nil, false, UnreadMark(), nil) }
        if change.isEverything || change.outbox.contains(channelId) { isOutboxChanged = true }
        renamed.formUnion(change.users)
        try await read(.stay)
        if opening != nil || window.rows.count < pageSize { Task { [weak self] in await self?.fetch() } }
    }

    private func read(_ move: MessageWindow.Move) async throws {
        try await turn?.comes()
        defer { turn = nil }
        let files = try await driver.files()
        // The outbox first: a message leaves it after it is in the cache, so none is missed in this order.
        if isOutboxChanged {
            let outbox = try await files.outbox.saved(of: channelId)
            // A new server that couldn't be written to the outbox is known only to the driver.
            take(outbox.items, await driver.knownServer() ?? outbox.server)
            isOutboxChanged = false
        }
        let (channel, user, pending, asked, status) = (channelId, user, pending, opening, driver.statuses.current)
        let (known, knownMark, renamed, awaitsUnread, hasEnded) = (window, mark, renamed, awaitsUnread, follower.hasEnded)
        let (knownItem, moment) = (anchorItem, shown.now)
        let start = moment.start
        let read = try await files.store.read { database in
            var (window, mark, anchorItem) = (known, knownMark, knownItem)
            try window.refreshUsers(renamed, in: database)
            try mark.read(in: channel, isOnline: status == .online, database)
            let isUnreadFound = awaitsUnread && knownMark.readSeq == nil && mark.readSeq != nil
            let asked = asked ?? (isUnreadFound ? .firstUnread : nil)
            var opening: MessageOpening?
            func nextStep(to place: MessageOpening) throws -> MessageOpening.Step {
                try place.step(in: channel, mark, isOnline: status == .online, trimmedTo: start, database)
            }
            var step = try asked.map(nextStep) ?? .read(move)
            if case .read(let move) = step {
                anchorItem = try asked?.item(in: channel, database) ?? anchorItem
                try window.read(move, of: channel, trimmedTo: start, in: database)
                if window.isLost {
                    let place = MessageOpening.seq(window.place)
                    (opening, step) = (place, try nextStep(to: place))
                } else if !window.isRead, !hasEnded, try database.cursor(of: channel) == nil {
                    // The user is no longer a member, or the former data belongs to another history.
                    let place = MessageOpening.newest
                    (opening, step) = (place, try nextStep(to: place))
                }
            } else {
                opening = asked
                // The messages shown instead of the anchor stay.
                let shownMove: MessageWindow.Move = window.isRead ? .stay : .newest
                if window.isRead || status.isAway { try window.read(shownMove, of: channel, trimmedTo: start, in: database) }
            }
            // A message that is in both is shown as the channel's: its outbox row is about to be removed.
            let arrived = try database.ownMessages(among: pending.map(\.clientId), in: channel)
            let unsent = pending.filter { !arrived.contains($0.clientId) }
            return Reading(
                window: window, mark: mark, anchorItem: anchorItem, opening: opening,
                hasFoundPlace: isUnreadFound || opening != nil, missing: step.load, awaitsConnection: step == .wait,
                pending: try unsent.withCurrentUsers(from: user, in: database))
        }
        guard show(read, after: asked, at: moment) else { return try await self.read(move) }
        if awaitsConnection { await follower.lookForConnection() }
        guard !isOpened else { return }
        isOpened = true
        do {
            try await files.store.noteOpening(of: channelId)
        } catch {
            // It only decides which messages are deleted first when the cache is too large.
            driver.environment.logger.error("The opening of a channel couldn't be recorded.", metadata: ["error": "\(error)"])
        }
    }

    /// Takes the channel's operations from the outbox: messages with later changes to them, and changes of other messages.
    private func take(_ operations: [OutboxItem], _ server: String?) {
        changes = [:]
        self.server = server
        for item in operations {
            for message in item.operation.changed { changes[message, default: []].append(item) }
        }
        let sender = UserSummary(userId: user)
        pending = operations.compactMap { item in
            MessageItem(item, sender: sender, server: server).map {
                $0.changed(by: changes[.sent($0.clientId)] ?? [], server: server)
            }
        }
    }

    /// The result of reading one state of the cache.
    private struct Reading: Sendable {
        var window: MessageWindow
        var mark: UnreadMark
        var anchorItem: MessageItem.ID?
        var opening: MessageOpening?
        /// Whether the list goes somewhere without having been asked to: to its first unread message, or back to a place that was lost.
        var hasFoundPlace: Bool
        var missing: MessageLoad?
        var awaitsConnection: Bool
        var pending: [MessageItem]
    }

    /// Returns false if it shows nothing, because messages that were read are about to be deleted.
    private func show(_ read: Reading, after asked: MessageOpening?, at moment: ShownMessages.List.Moment) -> Bool {
        // The app may have asked for something else meanwhile, which is read next.
        guard opening == asked, queuedMoves == 0 || !read.hasFoundPlace else { return true }
        // The messages for a place arrive page by page.
        let first = read.window.rows.first?.seq
        guard shown.shows(from: read.opening == nil ? first ?? .max : 0, at: first, readAt: moment) else { return false }
        (window, mark, opening, missing) = (read.window, read.mark, read.opening, read.missing)
        awaitsConnection = read.awaitsConnection
        renamed = []
        if hasOlder != window.hasOlder { hasOlder = window.hasOlder }
        if hasNewer != window.hasNewer { hasNewer = window.hasNewer }
        if newerCount != window.newerCount { newerCount = window.newerCount }
        if firstUnread != mark.first { firstUnread = mark.first }
        if anchorItem != read.anchorItem { anchorItem = read.anchorItem }
        let dropped = driver.droppedMentions.all
        let stored = window.shownRows.map { row in
            withChanges(row.item.dropping(row.item.message.map { dropped[$0] } ?? []))
        }
        show(stored + (window.hasNewer ? [] : read.pending))
        return true
    }

    /// A message with the user's changes that the server doesn't know yet.
    private func withChanges(_ item: MessageItem) -> MessageItem {
        guard !changes.isEmpty, let message = item.message else { return item }
        let own = item.id.sender == user ? changes[.sent(item.clientId)] ?? [] : []
        return item.changed(by: own + (changes[.stored(message.messageId)] ?? []), server: server)
    }

    private func show(_ items: [MessageItem]) {
        follower.shows(items.lazy.map(\.sender))
        follower.shows(items.lazy.filter { $0.mentionees != nil }.flatMap(\.mentionedUsers))
        let (before, phaseBefore) = (self.items, phase)
        // Before there is an answer, an empty list means nothing.
        let isChanged = isShown ? items != before : opening == nil || !items.isEmpty
        if isChanged { (isShown, self.items) = (true, items) }
        if opening == nil {
            follower.answered()
        } else if follower.hasAnswer {
            if case .refused = phase {} else { follower.beginLoading() }
        }
        // The messages at its place may be those shown meanwhile: observers are notified that it is loaded then too.
        guard isChanged || phase == .loaded && phase != phaseBefore else { return }
        observers.notify(items, after: before)
    }

    // MARK: Fetching

    /// Fetches the messages missing at the list's place, or a first page.
    ///
    /// If a fetch is running, another one follows it. Returns once that one has its answer or can't have one now, or the task is cancelled.
    private func fetch() async {
        mustFetchAgain = true
        if !isFetching { beginFetching() }
        let end = fetches.take()
        defer { end.pass() }
        try? await end.comes()
    }

    /// Fetches until nothing has asked for it meanwhile: in a separate task, since other callers wait for it when the first caller's task is
    /// cancelled.
    private func beginFetching() {
        isFetching = true
        let turn = fetches.take()
        Task {
            while mustFetchAgain {
                mustFetchAgain = false
                await fetchOnce()
            }
            isFetching = false
            turn.pass()
        }
    }

    private func fetchOnce() async {
        guard driver.statuses.current == .online else { return }
        if let missing, let opening {
            // A channel can be asked again once the user has joined it.
            if case .refused(let error) = phase, error.code != .notMember { return }
            await fetch(missing, for: opening)
        } else if opening == nil, follower.hasAnswer, hasOlder, window.rows.count < pageSize, !window.hasOlderCached {
            do {
                try await driver.load(.older(than: window.place), in: channelId, limit: pageSize)
                failures = 0
            } catch let error as RoostError where error.isRetryable {
                // Without a connection it is retried on the next one; with a connection it wouldn't be.
                if driver.statuses.current == .online { tryAgain(after: error) }
            } catch {
                // A refusal is final: the list keeps its rows, and an app that asks for an older page itself gets the error.
            }
        }
    }

    private func fetch(_ load: MessageLoad, for place: MessageOpening) async {
        do {
            // If the channel starts over after the page arrives, the page is lost: then it is requested once more.
            for _ in 0..<2 {
                // Half of the page is on each side.
                try await driver.load(load, in: channelId, limit: max(pageSize, 2))
                failures = 0
                guard case .done = await follower.work({ try await self.read(.stay) }) else { return }
                guard load != .newest, opening == place, missing == load else { return }
            }
            await goOn(without: place)
        } catch let error as RoostError where !error.isRetryable {
            if opening == place { follower.refused(error) }
        } catch {
            tryAgain(after: error)
        }
    }

    /// Handles a page that has arrived but whose message at the list's place this version can't read.
    private func goOn(without place: MessageOpening) async {
        let channel = channelId
        await follower.work {
            let (move, item) = try await self.driver.files().store.read { database in
                (try place.moveWithoutPage(in: channel, database), try place.item(in: channel, database))
            }
            guard self.opening == place else { return }
            guard let move else { throw RoostError(.notFound, "This version can't read the message.", field: "message") }
            (self.opening, self.awaitsUnread, self.anchorItem) = (nil, false, item)
            try await self.read(move)
        }
    }

    private func tryAgain(after error: any Error) {
        let delay = Duration.pause(after: error, failures: failures, first: 250)
        failures += 1
        let clock = driver.environment.clock
        Task { [weak self] in
            try? await clock.sleep(for: delay)
            await self?.fetch()
        }
    }
}

extension MessageOpening.Step {
    fileprivate var load: MessageLoad? { if case .fetch(let load) = self { load } else { nil } }
}

extension ConnectionStatus {
    /// Whether no answer can be expected from the server for now.
    fileprivate var isAway: Bool {
        switch self {
        case .online, .connecting: false
        case .offline, .waiting, .refused, .failed: true
        }
    }
}
