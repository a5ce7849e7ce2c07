import RoostAPI
import RoostCore

/// The pending signals: who is typing, whose watching has changed, and when the next signal is due. A value without a clock and without I/O; times
/// are milliseconds.
///
/// However many people type, a channel's clients get at most one typing signal per ``Settings/pauseMilliseconds``: each lists everyone typing now, so an
/// earlier one may be lost. In channels with many watchers, changes of watchers are sent even less often (Stream's rule for more than 100).
struct SignalBoard {
    struct Settings: Hashable, Sendable {
        /// The minimum time between two signals of one kind for one channel.
        var pauseMilliseconds: Int64 = 500
        /// The same for watchers of channels with more than ``manyWatchers``.
        var longPauseMilliseconds: Int64 = 5000
        var manyWatchers = Limits.manyWatchers
        /// After this time users who are still typing are sent again: otherwise clients assume that typing has ended.
        var repetitionMilliseconds: Int64 = 5000
        /// How long a user counts as typing without a further call.
        var typingMilliseconds: Int64 = Int64(Limits.typingSeconds) * 1000
        /// The minimum time between two searches for the audience of one user's name or picture.
        var profilePauseMilliseconds: Int64 = 2000
        /// The most users whose audience is searched for at once, and the most queued for it. Changes of further users arrive with the next page
        /// that names them.
        var profilesAtOnce = 20
        var profilesMax = 10_000
        /// The most users of one channel whose changes are queued. Beyond that, clients are asked to re-fetch.
        var profilesPerChannel = 1000
        /// The most channels that get changes of names at once: finding out who is present takes a look-up per signal.
        var profileChannelsAtOnce = 100
        /// The most of an app's own signals that are sent to one channel at once if it has many watchers, and the most queued for it.
        var customAtOnce = 10
        var customMax = 20
        /// The most members of one channel whose read positions are queued. Beyond that, clients are asked to re-fetch.
        var readersMax = Limits.largeChannelMembers
        /// The most typing users that are remembered per channel. Further ones change nothing that is shown.
        var typingMax = 1000
    }

    private struct Typing {
        /// Until when each user types, in the order in which they began.
        var users = ArrivalOrder<UserID, Int64>()
        /// The state last sent to clients; nil if they may assume something else by now.
        var lastSent: TypingUsers? = TypingUsers(users: [], hasMore: false)
        var lastSentAt: Int64 = .min / 2

        /// Whether clients assume that nobody is typing.
        var showsNobodyTyping: Bool { lastSent?.users.isEmpty == true }

        /// One more than the number of names a client shows: a client that is listed itself shows the others.
        var now: TypingUsers {
            let count = Limits.typingUsers + 1
            return TypingUsers(users: users.elements(limit: count), hasMore: users.count > count)
        }
    }

    /// Users who came or went: watchers, or members online.
    private struct WatcherMovements {
        /// The users who came or went since the last signal.
        var touched: Set<UserID> = []
        /// Whether there are others whose names aren't known.
        var hasUnnamed = false
        var lastSentAt: Int64 = .min / 2
        var pause: Int64 = 0

        mutating func touch(_ user: UserID?) { if let user { touched.insert(user) } else { hasUnnamed = true } }
    }

    private struct Reading {
        /// The positions not sent yet, in the order in which the users read first.
        var positions = ArrivalOrder<UserID, ReadPosition>()
        /// Whether there were others whose positions aren't stored.
        var hasUnnamed = false
        var lastSentAt: Int64 = .min / 2
    }

    private struct CustomSignals {
        struct Key: Hashable {
            let sender: UserID
            let type: String
        }

        /// The newest signal of each sender and type, ordered by the first one.
        var signals = ArrivalOrder<Key, Signal>()
        var lastSentAt: Int64 = .min / 2
    }

    private struct Profiles {
        /// The names and pictures of users not sent yet, ordered by the first change.
        var users = ArrivalOrder<UserID, UserSummary>()
        /// Whether there were more than are stored.
        var hasUnnamed = false
        var lastSentAt: Int64 = .min / 2
    }

    private let settings: Settings
    private var typing: [ChannelID: Typing] = [:]
    private var watching: [ChannelID: WatcherMovements] = [:]
    private var online: [ChannelID: WatcherMovements] = [:]
    private var reading: [ChannelID: Reading] = [:]
    private var customSignals: [ChannelID: CustomSignals] = [:]
    /// The channels ordered by their first change.
    private var profiles = ArrivalOrder<ChannelID, Profiles>()
    /// Users whose name or picture has changed, each with the earliest time to search for their audience.
    private var changedProfiles = ArrivalOrder<UserID, Int64>()
    /// Users whose audience was searched for recently, and until when it isn't searched for again.
    private var profileCooldowns: [UserID: Int64] = [:]

    init(_ settings: Settings = Settings()) { self.settings = settings }

    /// Whether no signal is pending.
    var isEmpty: Bool {
        typing.isEmpty && watching.isEmpty && online.isEmpty && reading.isEmpty && customSignals.isEmpty && profiles.isEmpty
            && changedProfiles.isEmpty && profileCooldowns.isEmpty
    }

    mutating func types(_ user: UserID, in channel: ChannelID, at now: Int64) {
        if let users = typing[channel]?.users, users[user] == nil, users.count >= settings.typingMax { return }
        typing[channel, default: Typing()].users[user] = now + settings.typingMilliseconds
    }

    mutating func stopsTyping(_ user: UserID, in channel: ChannelID) { typing[channel]?.users[user] = nil }

    /// A user who sends a message has stopped typing. The message shows that to clients, so no signal is sent, unless the message may have
    /// overtaken one.
    mutating func hasSent(_ user: UserID, in channel: ChannelID, at now: Int64) {
        guard isTyping(user, in: channel) else { return }
        typing[channel]?.users[user] = nil
        guard let lastSent = typing[channel]?.lastSent, lastSent.users.contains(user) else { return }
        // A signal's audience is looked up before it is sent: it may arrive after the message, and name its sender again. One taken a pause ago has
        // been sent, unless the server is so busy that the look-up takes longer; then clients assume after 10 seconds that typing has ended.
        if now - (typing[channel]?.lastSentAt ?? now) < settings.pauseMilliseconds {
            typing[channel]?.lastSent = nil
        } else {
            typing[channel]?.lastSent?.users.removeAll { $0 == user }
        }
    }

    func isTyping(_ user: UserID, in channel: ChannelID) -> Bool { typing[channel]?.users[user] != nil }

    /// Records users who began and ended too: a page of watchers that was read in between contains them.
    ///
    /// - Parameter user: Nil for users whose names aren't known.
    mutating func watchingChanged(of user: UserID?, in channel: ChannelID) {
        watching[channel, default: WatcherMovements()].touch(user)
    }

    /// - Parameter user: Nil for users whose names aren't known.
    mutating func onlineChanged(of user: UserID?, in channel: ChannelID) {
        online[channel, default: WatcherMovements()].touch(user)
    }

    mutating func reads(_ position: ReadPosition, in channel: ChannelID) {
        // Several lanes and nodes report positions to a board, in no particular order.
        let known = reading[channel]?.positions[position.userId]
        let merged = known?.merged(with: position) ?? position
        guard merged != known else { return }
        if known == nil, reading[channel]?.positions.count ?? 0 >= settings.readersMax {
            reading[channel]?.hasUnnamed = true
        } else {
            reading[channel, default: Reading()].positions[position.userId] = merged
        }
    }

    /// An app's own signal in a channel with many watchers. It is dropped if the channel's queue is full.
    mutating func sends(_ signal: Signal) {
        guard let sender = signal.sender, let custom = signal.custom else { return }
        let key = CustomSignals.Key(sender: sender, type: custom.type)
        if let waiting = customSignals[signal.channel]?.signals, waiting[key] == nil, waiting.count >= settings.customMax { return }
        customSignals[signal.channel, default: CustomSignals()].signals[key] = signal
    }

    /// Whether earlier custom signals of the same sender in the same channel are queued.
    func isBehindOthers(_ signal: Signal) -> Bool {
        guard let waiting = customSignals[signal.channel]?.signals else { return false }
        return waiting.elements().contains { $0.sender == signal.sender }
    }

    /// A user's name or picture has changed: the audience has to be found.
    mutating func profileChanged(of user: UserID, at now: Int64) {
        guard changedProfiles[user] == nil, changedProfiles.count < settings.profilesMax else { return }
        changedProfiles[user] = profileCooldowns[user] ?? now
    }

    /// Takes the users whose audience is to be found now.
    mutating func takeChangedProfiles(at now: Int64) -> [UserID] {
        profileCooldowns = profileCooldowns.filter { $0.value > now }
        let due = changedProfiles.elements().lazy.filter { [changedProfiles] in changedProfiles[$0] ?? 0 <= now }
        let users = Array(due.prefix(settings.profilesAtOnce))
        for user in users {
            changedProfiles[user] = nil
            profileCooldowns[user] = now + settings.profilePauseMilliseconds
        }
        return users
    }

    /// A user's name and picture, as shown in a channel.
    mutating func shows(_ user: UserSummary, in channel: ChannelID) {
        var state = profiles[channel] ?? Profiles()
        if let known = state.users[user.userId] {
            guard known.version < user.version else { return }
        } else if state.users.count >= settings.profilesPerChannel {
            state.hasUnnamed = true
            return profiles[channel] = state
        }
        state.users[user.userId] = user
        profiles[channel] = state
    }

    /// Searches for the audience of users again, because the search before failed.
    mutating func lookAgain(for users: some Sequence<UserID>, at now: Int64) {
        for user in users {
            profileCooldowns[user] = nil
            profileChanged(of: user, at: now)
        }
    }

    /// Queues changes again whose signals weren't sent. Typing is repeated anyway, and an app's own signals are dropped.
    mutating func requeue(_ signals: [Signal]) {
        for signal in signals {
            let channel = signal.channel
            if let change = signal.watching {
                for user in change.started + change.stopped { watchingChanged(of: user, in: channel) }
                if !change.isWhole { watchingChanged(of: nil, in: channel) }
            }
            if let change = signal.presence {
                for user in change.online + change.offline { onlineChanged(of: user, in: channel) }
                if !change.isWhole { onlineChanged(of: nil, in: channel) }
            }
            if let update = signal.read {
                for position in update.readers { reads(position, in: channel) }
                if !update.isWhole { reading[channel, default: Reading()].hasUnnamed = true }
            }
            if let change = signal.users {
                for user in change.users { shows(user, in: channel) }
                if !change.isWhole {
                    var state = profiles[channel] ?? Profiles()
                    state.hasUnnamed = true
                    profiles[channel] = state
                }
            }
        }
    }

    /// Takes the signals due now.
    mutating func takeDue(at now: Int64, presence: some Presence) -> [Signal] {
        var signals: [Signal] = []
        for channel in Array(typing.keys) { takeTyping(in: channel, at: now, &signals) }
        for channel in Array(reading.keys) { takeReading(in: channel, at: now, &signals) }
        for channel in Array(customSignals.keys) { takeCustomSignals(in: channel, at: now, &signals) }
        takeProfiles(at: now, &signals)
        for channel in Array(watching.keys) {
            watching[channel] = takeMovements(watching[channel], in: channel, at: now, presence, presence.isWatching) {
                came, left, isWhole in
                let change = WatcherChange(
                    watcherCount: presence.watcherCount(of: channel), started: came, stopped: left, isWhole: isWhole)
                signals.append(Signal(kind: .watchingChanged, channel: channel, watching: change))
            }
        }
        for channel in Array(online.keys) {
            online[channel] = takeMovements(online[channel], in: channel, at: now, presence, presence.isOnline) {
                came, left, isWhole in
                let change = PresenceChange(
                    onlineCount: presence.onlineMemberCount(of: channel), online: came, offline: left, isWhole: isWhole)
                signals.append(Signal(kind: .presenceChanged, channel: channel, presence: change))
            }
        }
        return signals
    }

    private mutating func takeTyping(in channel: ChannelID, at now: Int64, _ signals: inout [Signal]) {
        guard var state = typing[channel] else { return }
        state.users.removeAll { $0 <= now }
        let users = state.now
        let pause = users == state.lastSent ? settings.repetitionMilliseconds : settings.pauseMilliseconds
        if now - state.lastSentAt >= pause, !(users.users.isEmpty && state.showsNobodyTyping) {
            signals.append(Signal(kind: .typingChanged, channel: channel, typing: users))
            (state.lastSent, state.lastSentAt) = (users, now)
        }
        let isOver = state.users.isEmpty && state.showsNobodyTyping && now - state.lastSentAt >= settings.pauseMilliseconds
        typing[channel] = isOver ? nil : state
    }

    private mutating func takeReading(in channel: ChannelID, at now: Int64, _ signals: inout [Signal]) {
        guard var state = reading[channel], now - state.lastSentAt >= settings.pauseMilliseconds else { return }
        guard !state.positions.isEmpty || state.hasUnnamed else { return reading[channel] = nil }
        let readers = state.positions.elements(limit: Limits.readersPerSignal).compactMap { state.positions[$0] }
        signals.append(
            Signal(kind: .readUpdated, channel: channel, read: ReadUpdate(readers: readers, isWhole: !state.hasUnnamed)))
        // The others are sent next: if clients were asked to re-fetch instead, all of them would at one moment.
        for reader in readers { state.positions[reader.userId] = nil }
        (state.hasUnnamed, state.lastSentAt) = (false, now)
        reading[channel] = state
    }

    private mutating func takeCustomSignals(in channel: ChannelID, at now: Int64, _ signals: inout [Signal]) {
        guard var state = customSignals[channel], now - state.lastSentAt >= settings.pauseMilliseconds else { return }
        guard !state.signals.isEmpty else { return customSignals[channel] = nil }
        for key in state.signals.elements(limit: settings.customAtOnce) {
            if let signal = state.signals[key] { signals.append(signal) }
            state.signals[key] = nil
        }
        state.lastSentAt = now
        customSignals[channel] = state
    }

    private mutating func takeProfiles(at now: Int64, _ signals: inout [Signal]) {
        var takenCount = 0
        for channel in profiles.elements() where takenCount < settings.profileChannelsAtOnce {
            guard var state = profiles[channel], now - state.lastSentAt >= settings.pauseMilliseconds else { continue }
            guard !state.users.isEmpty || state.hasUnnamed else {
                profiles[channel] = nil
                continue
            }
            let users = state.users.elements(limit: Limits.usersPerSignal).compactMap { state.users[$0] }
            let change = UsersChange(users: users, isWhole: !state.hasUnnamed)
            signals.append(Signal(kind: .usersChanged, channel: channel, users: change))
            // The others are sent next.
            for user in users { state.users[user.userId] = nil }
            (state.hasUnnamed, state.lastSentAt) = (false, now)
            profiles[channel] = state
            takenCount += 1
        }
    }

    /// Sends who came and went, if it is time.
    ///
    /// - Returns: The state of what to send next; nil for nothing.
    private func takeMovements(
        _ state: WatcherMovements?, in channel: ChannelID, at now: Int64, _ presence: some Presence,
        _ isThere: (UserID, ChannelID) -> Bool, _ send: (_ came: [UserID], _ left: [UserID], _ isWhole: Bool) -> Void
    ) -> WatcherMovements? {
        guard let state, now - state.lastSentAt >= state.pause else { return state }
        guard !state.touched.isEmpty || state.hasUnnamed else { return nil }
        let came = state.touched.filter { isThere($0, channel) }.sorted()
        let left = state.touched.subtracting(came).sorted()
        let names = Limits.watcherNames
        let isWhole = !state.hasUnnamed && came.count <= names && left.count <= names
        send(Array(came.prefix(names)), Array(left.prefix(names)), isWhole)
        let isLarge = presence.isCrowded(channel, above: settings.manyWatchers)
        return WatcherMovements(lastSentAt: now, pause: isLarge ? settings.longPauseMilliseconds : settings.pauseMilliseconds)
    }
}
