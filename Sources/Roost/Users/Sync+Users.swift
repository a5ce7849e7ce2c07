import Logging
import RoostAPI

/// The summaries of users that are shown. Rows and events name users by their ids, and live objects report whom they show.
///
/// On each connection the server is asked once for each user whose name and picture it hasn't sent by itself: they may have changed meanwhile, or
/// only the id is known. All users shown within a moment are combined into one request. Later changes are reported by signals: to all members of
/// small channels, and to the watchers of others. So when a watch of such a channel begins, all shown users are requested again. Users that no live
/// object shows aren't requested. A user whom the server didn't know is requested again when a row shows that they exist. A request that couldn't be
/// made, because there is no connection or the server is busy, is made later.
extension Sync {
    struct UserRequests: Hashable, Sendable {
        /// The newest known version of users who are or recently were shown; 0 if only the id is known.
        private var versions: [UserID: Int64] = [:]
        /// The same users, the most recently shown last.
        private var shown: [UserID] = []
        /// The users to request, the earliest shown first.
        private(set) var waiting: [UserID] = []
        /// The users in the current request.
        private(set) var asked: Set<UserID> = []
        /// Users whose summaries this connection has delivered.
        private var current: Set<UserID> = []
        /// Users whom the server didn't know when this connection asked for them.
        private var absent: Set<UserID> = []
        /// The ones among them that turned out to exist since, and are requested again.
        private var met: Set<UserID> = []
        /// The ones among these that turned out to exist while they were being requested: the answer may be older.
        private var metMeanwhile: Set<UserID> = []
        /// Whether something has changed since the current request was sent, which its answer may not include.
        private var isOutdated = false
        var isAskingSoon = false
        /// Whether all users were requested recently because a watch began, and whether another watch has begun since.
        private var (isPausing, isDue) = (false, false)
        /// The number of unanswered requests in a row.
        private(set) var failures = 0

        /// Above this number, the users shown earliest are dropped: they have scrolled away.
        static let shownMax = 1000
        static let rememberedMax = 10_000
        /// With long ids a request for all of them would exceed the server's maximum size.
        static let requestBytesMax = Limits.messageSizeBytes / 2

        mutating func show(_ users: [UserID: Int64]) {
            // Messages may mention any text as a user. A single id that isn't valid for a user makes the server refuse the whole request.
            let users = users.filter { (try? $0.key.validate(field: "users")) != nil }
            // A user who is shown again counts as the most recently shown.
            if users.keys.contains(where: { versions[$0] != nil }) { shown.removeAll { users[$0] != nil } }
            for (user, version) in users.sorted(by: { $0.key < $1.key }) {
                versions[user] = max(versions[user] ?? 0, version)
                shown.append(user)
            }
            if shown.count > Self.shownMax * 2 {
                let past = shown.count - Self.shownMax
                for user in shown.prefix(past) { versions[user] = nil }
                shown.removeFirst(past)
            }
            wait(for: users.keys.sorted())
        }

        /// Queues those of the given users that have to be requested.
        private mutating func wait(for users: [UserID]) {
            let known = Set(waiting)
            waiting += users.filter { !current.contains($0) && !absent.contains($0) && !asked.contains($0) && !known.contains($0) }
            if waiting.count > Self.shownMax * 2 { waiting.removeFirst(waiting.count - Self.shownMax) }
        }

        /// Returns the users to request, each with the known version.
        mutating func ask() -> [String: Int64] {
            // Users that have been delivered meanwhile or have scrolled away aren't requested.
            let open = waiting.filter { !current.contains($0) && versions[$0] != nil }
            var sizeBytes = 0
            var named: [String: UserID] = [:]
            let part = open.prefix(Limits.changedUsersPerCall).prefix { user in
                // Two ids that are equal as strings can't be keys of one request: the second waits for the next.
                if let other = named.updateValue(user, forKey: user.rawValue), other != user { return false }
                // Includes the quotes, the version and JSON's escapes.
                sizeBytes += user.rawValue.utf8.count * 2 + 24
                return sizeBytes <= Self.requestBytesMax
            }
            asked = Set(part)
            waiting = Array(open.dropFirst(part.count))
            return Dictionary(uniqueKeysWithValues: asked.map { ($0.rawValue, versions[$0] ?? 0) })
        }

        /// - Parameter isWhole: Whether users missing from the answer are unchanged or unknown.
        mutating func answered(with users: [UserSummary], isWhole: Bool = true) {
            if absent.count >= Self.rememberedMax { absent = [] }
            learn(users)
            let before = asked
            let late = metMeanwhile
            (asked, metMeanwhile, failures) = ([], [], 0)
            if isOutdated {
                // The changes missed meanwhile may be newer than the answer.
                (isOutdated, current) = (false, [])
                return wait(for: shown)
            }
            guard isWhole else { return wait(for: before.sorted()) }
            let missing = before.filter { versions[$0] == 0 }
            let existing = missing.intersection(late)
            absent.formUnion(missing.subtracting(existing))
            remember(before.subtracting(existing))
            wait(for: existing.sorted())
        }

        /// The server refuses to answer for the requested users.
        mutating func refused() {
            remember(asked)
            (asked, metMeanwhile, failures, isOutdated) = ([], [], 0, false)
        }

        /// Whether learning that a user exists would change nothing.
        var expectsNobody: Bool { absent.isEmpty && asked.isEmpty }

        /// Records users who exist, whatever the server's earlier answer about them.
        mutating func meet(_ users: some Sequence<UserID>) {
            if met.count >= Self.rememberedMax { met = [] }
            for user in users where !met.contains(user) {
                if absent.remove(user) != nil {
                    met.insert(user)
                    current.remove(user)
                    if versions[user] != nil { wait(for: [user]) }
                } else if asked.contains(user), versions[user] == 0 {
                    met.insert(user)
                    metMeanwhile.insert(user)
                }
            }
        }

        /// Records the summaries that this connection has delivered.
        mutating func learn(_ users: [UserSummary]) {
            for user in users {
                if let known = versions[user.userId] { versions[user.userId] = max(known, user.version) }
                absent.remove(user.userId)
            }
            remember(users.map(\.userId))
        }

        private mutating func remember(_ users: some Sequence<UserID>) {
            if current.count >= Self.rememberedMax { current = [] }
            current.formUnion(users)
        }

        /// Queues the users of a failed request again.
        mutating func failed() {
            waiting = asked.sorted() + waiting
            (asked, metMeanwhile) = ([], [])
            failures += 1
        }

        /// There is another history: what was known of the former one no longer holds.
        mutating func forget() {
            (absent, met, metMeanwhile, current, isOutdated) = ([], [], [], [], !asked.isEmpty)
            versions = versions.mapValues { _ in 0 }
            wait(for: shown)
        }

        /// Some of this connection's changes were missed.
        mutating func recheck() {
            (current, isOutdated) = ([], !asked.isEmpty)
            wait(for: shown)
        }

        /// A watch has begun, and earlier changes weren't reported.
        ///
        /// - Returns: Whether all shown users are requested now, so later watches have to wait. Otherwise they are requested after the pause, or no
        ///   user is shown.
        mutating func recheckSinceWatching() -> Bool {
            guard !isPausing else {
                isDue = true
                return false
            }
            guard !versions.isEmpty else { return false }
            recheck()
            isPausing = true
            return true
        }

        /// - Returns: Whether a watch began during the pause.
        mutating func pauseEnded() -> Bool {
            defer { (isPausing, isDue) = (false, false) }
            return isDue
        }

        /// There is another connection: its server may be less busy, names may have changed, and users may exist by now.
        mutating func disconnected() {
            (asked, waiting, current, isOutdated) = ([], [], [], false)
            (absent, met, metMeanwhile) = ([], [], [])
            wait(for: shown)
            (failures, isAskingSoon, isPausing, isDue) = (0, false, false, false)
        }
    }

    /// The pause between two requests for all shown users: the user may open one channel after another.
    private static let recheckPause = Duration.seconds(10)
    /// How long further users are collected before a request.
    private static let gathering = Duration.milliseconds(20)

    mutating func show(_ users: [UserID: Int64]) {
        userRequests.show(users)
        askForUsersSoon()
    }

    /// Stores summaries received from the server.
    mutating func take(_ users: [UserSummary]) {
        let writes = userWrites(users)
        if !writes.isEmpty { emit(.store(writes)) }
    }

    /// The write that stores summaries received from the server; none if there are none.
    mutating func userWrites(_ users: [UserSummary]) -> [StoreWrite] {
        guard !users.isEmpty else { return [] }
        userRequests.learn(users)
        return [.users(users)]
    }

    /// Senders of messages and members exist. They may have been shown and requested before they did.
    mutating func meetUsers(of rows: Rows) {
        guard !userRequests.expectsNobody else { return }
        userRequests.meet(rows.senders + rows.changedMembers)
        askForUsersSoon()
    }

    /// Handles changes of users' summaries while this client is connected.
    mutating func take(_ change: UsersChange) {
        take(change.users)
        guard !change.isWhole else { return }
        userRequests.recheck()
        // Many clients receive that signal at once.
        askForUsersSoon(after: .spread(random.next()))
    }

    /// Handles the start of watching channels. In small channels, members receive new names without a watch.
    mutating func recheckUsers(watching channels: [(channel: Channel, membership: Membership?)]) {
        let isNews = channels.contains { channel, membership in
            membership?.state != .member || channel.counters.memberCount > Limits.receiptMembers
        }
        if isNews { recheckUsers() }
    }

    mutating func recheckUsers() {
        guard userRequests.recheckSinceWatching() else { return }
        emit(.startTimer(.userPause, Self.recheckPause))
        askForUsersSoon()
    }

    mutating func userPauseEnded() { if userRequests.pauseEnded() { recheckUsers() } }

    /// Sends a request in a moment, unless one is scheduled anyway or there is nothing to request.
    mutating func askForUsersSoon(after delay: Duration = Sync.gathering) {
        guard phase == .online, !userRequests.waiting.isEmpty, userRequests.asked.isEmpty, !userRequests.isAskingSoon else {
            return
        }
        userRequests.isAskingSoon = true
        emit(.startTimer(.users, delay))
    }

    mutating func askForUsers() {
        userRequests.isAskingSoon = false
        guard phase == .online, userRequests.asked.isEmpty else { return }
        let versions = userRequests.ask()
        if !versions.isEmpty { send(ListChangedUsers(versions: versions), for: .users) }
    }

    mutating func usersArrived(_ result: Result<[UInt8], RoostError>) {
        do {
            let answer = try ReplyResult<ChangedNames>.decode(try result.get())
            let users = answer.users.users
            // An answer that has none of the requested users and promises more would lead to endless requests.
            let isOfUse = users.contains { userRequests.asked.contains($0.userId) }
            userRequests.answered(with: users, isWhole: !answer.hasMore || !isOfUse)
            if !users.isEmpty { emit(.store([.users(users)])) }
            askForUsersSoon()
        } catch let error as RoostError where error.isRetryable {
            userRequests.failed()
            let pause = Duration.seconds(1 << min(userRequests.failures, 6))
            askForUsersSoon(after: max(pause, error.retryAfterMilliseconds.map(Self.pause) ?? .zero))
        } catch {
            // It would be refused or unreadable again. The users are shown as known.
            log(.warning, "Users couldn't be fetched: \(error)")
            userRequests.refused()
        }
    }
}

/// The answer to ``ListChangedUsers``, without unreadable users.
private struct ChangedNames: Decodable {
    var users: LenientUsers
    var hasMore: Bool
}

/// A list of users, without unreadable ones.
struct LenientUsers: Decodable {
    private(set) var users: [UserSummary] = []

    init(from decoder: any Decoder) throws {
        let list = try? decoder.singleValueContainer().decode([Attempt<UserSummary>].self)
        users = (list ?? []).compactMap(\.row)
    }

    init?(plainly json: inout PlainJSON) {
        guard let users = json.list({ UserSummary(plainly: &$0) }) else { return nil }
        self.users = users
    }
}

extension GetUsers: UserNaming {
    static func users(in users: [User]) -> [UserSummary] { users.map(\.summary) }
}

extension GetUser: UserNaming {
    static func users(in user: User) -> [UserSummary] { [user.summary] }
}
