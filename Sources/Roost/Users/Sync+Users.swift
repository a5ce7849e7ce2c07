import Logging
import RoostAPI

/// What is shown of users. Rows and events name them by their ids, and live objects say whom they show.
///
/// With each connection the server is asked once for each of them whose name and picture it hasn't brought on its own since: they may have changed
/// meanwhile, or only the id is known. All that are shown within a moment are one question, and what changes from then on is told by signals: to all members of
/// small channels, and in others to those who watch. So when a watch of such a channel begins, all who are shown are asked for once more. Users that no live
/// object shows aren't requested. Somebody whom the server didn't know is asked about once more when a row shows that they exist. A
/// question that couldn't be asked, because there is no connection or the server is busy, is asked later.
extension Sync {
    struct UserQuestions: Hashable, Sendable {
        /// The newest version that is known of users who are shown, or were lately; 0 for one of whom only the id is known.
        private var versions: [UserID: Int64] = [:]
        /// The same users, those last who were shown last.
        private var shown: [UserID] = []
        /// The users to ask for, those first who were shown first.
        private(set) var waiting: [UserID] = []
        /// The users that are asked for.
        private(set) var asked: Set<UserID> = []
        /// Users of whom this connection has brought what is shown of them.
        private var current: Set<UserID> = []
        /// Users whom the server didn't know when this connection asked for them.
        private var absent: Set<UserID> = []
        /// Those of them who have turned out to exist since, and are asked for once more.
        private var met: Set<UserID> = []
        /// Of these, those who turned out to while they were asked for: the answer may be older.
        private var metMeanwhile: Set<UserID> = []
        /// Whether something changed since the question under way was asked, of which its answer may not know.
        private var isOutdated = false
        var isAskingSoon = false
        /// Whether all were asked for lately because a watch began, and whether another one has begun since.
        private var (isPausing, isDue) = (false, false)
        /// Questions in a row that weren't answered.
        private(set) var failures = 0

        /// Beyond so many, those shown first make room: they have scrolled away.
        static let shownMax = 1000
        static let rememberedMax = 10_000
        /// With long ids a question for all of them would be longer than the server takes.
        static let questionBytesMax = Limits.messageSizeBytes / 2

        mutating func show(_ users: [UserID: Int64]) {
            // Messages may mention anything as a user. With one id that can't be a user's, the server refuses the whole question.
            let users = users.filter { (try? $0.key.validate(field: "users")) != nil }
            // Who is shown again was shown last.
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

        /// Waits for those of some users about whom there is something to ask.
        private mutating func wait(for users: [UserID]) {
            let known = Set(waiting)
            waiting += users.filter { !current.contains($0) && !absent.contains($0) && !asked.contains($0) && !known.contains($0) }
            if waiting.count > Self.shownMax * 2 { waiting.removeFirst(waiting.count - Self.shownMax) }
        }

        /// Returns the users to ask for, each with the version that is known.
        mutating func ask() -> [String: Int64] {
            // What has come meanwhile needs no question, and who has scrolled away none either.
            let open = waiting.filter { !current.contains($0) && versions[$0] != nil }
            var sizeBytes = 0
            let part = open.prefix(Limits.changedUsersPerCall).prefix { user in
                // With the quotes, its version and what JSON escapes.
                sizeBytes += user.rawValue.utf8.count * 2 + 24
                return sizeBytes <= Self.questionBytesMax
            }
            asked = Set(part)
            waiting = Array(open.dropFirst(part.count))
            return Dictionary(uniqueKeysWithValues: asked.map { ($0.rawValue, versions[$0] ?? 0) })
        }

        /// - Parameter isWhole: Whether those who aren't in the answer haven't changed, or aren't known.
        mutating func answered(with users: [UserSummary], isWhole: Bool = true) {
            if absent.count >= Self.rememberedMax { absent = [] }
            learn(users)
            let before = asked
            let late = metMeanwhile
            (asked, metMeanwhile, failures) = ([], [], 0)
            if isOutdated {
                // What was missed meanwhile may be newer than the answer.
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

        /// The server won't say anything of those who were asked for.
        mutating func refused() {
            remember(asked)
            (asked, metMeanwhile, failures, isOutdated) = ([], [], 0, false)
        }

        /// Whether it would be news of anybody that they exist.
        var expectsNobody: Bool { absent.isEmpty && asked.isEmpty }

        /// Takes note of users who exist, whatever the server said of them before.
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

        /// Takes what this connection has brought of users.
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

        /// Has the question asked again.
        mutating func failed() {
            waiting = asked.sorted() + waiting
            (asked, metMeanwhile) = ([], [])
            failures += 1
        }

        /// Another history: what was known of it doesn't hold.
        mutating func forget() {
            (absent, met, metMeanwhile, current, isOutdated) = ([], [], [], [], !asked.isEmpty)
            versions = versions.mapValues { _ in 0 }
            wait(for: shown)
        }

        /// Something was missed of what this connection has brought.
        mutating func recheck() {
            (current, isOutdated) = ([], !asked.isEmpty)
            wait(for: shown)
        }

        /// A watch has begun, and what has changed before it wasn't told.
        ///
        /// - Returns: Whether those who are shown are asked for now, so that the next watches have to wait. Else it is done after the pause, or nobody is shown.
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

        /// Another connection: its server may be less busy, names may have changed, and users may exist by now.
        mutating func disconnected() {
            (asked, waiting, current, isOutdated) = ([], [], [], false)
            (absent, met, metMeanwhile) = ([], [], [])
            wait(for: shown)
            (failures, isAskingSoon, isPausing, isDue) = (0, false, false, false)
        }
    }

    /// The pause between two questions about all who are shown: somebody may open one channel after another.
    private static let recheckPause = Duration.seconds(10)
    /// So long more users are waited for.
    private static let gathering = Duration.milliseconds(20)

    mutating func show(_ users: [UserID: Int64]) {
        userQuestions.show(users)
        askForUsersSoon()
    }

    /// Stores what the server has brought of users.
    mutating func take(_ users: [UserSummary]) {
        let writes = userWrites(users)
        if !writes.isEmpty { emit(.store(writes)) }
    }

    /// The write that stores what the server has brought of users; none if it has brought nothing.
    mutating func userWrites(_ users: [UserSummary]) -> [StoreWrite] {
        guard !users.isEmpty else { return [] }
        userQuestions.learn(users)
        return [.users(users)]
    }

    /// Messages have senders who exist, and so do members. Somebody may have been shown, and asked for, before they did.
    mutating func meetUsers(of rows: Rows) {
        guard !userQuestions.expectsNobody else { return }
        userQuestions.meet(rows.senders + rows.changedMembers)
        askForUsersSoon()
    }

    /// What is shown of users has changed while this client is connected.
    mutating func take(_ change: UsersChange) {
        take(change.users)
        guard !change.isWhole else { return }
        userQuestions.recheck()
        // Many clients are told that at once.
        askForUsersSoon(after: .spread(random.next()))
    }

    /// A watch of channels begins. In small channels, members are told of new names without one.
    mutating func recheckUsers(watching channels: [(channel: Channel, membership: Membership?)]) {
        let isNews = channels.contains { channel, membership in
            membership?.state != .member || channel.counters.memberCount > Limits.receiptMembers
        }
        if isNews { recheckUsers() }
    }

    mutating func recheckUsers() {
        guard userQuestions.recheckSinceWatching() else { return }
        emit(.startTimer(.userPause, Self.recheckPause))
        askForUsersSoon()
    }

    mutating func userPauseEnded() { if userQuestions.pauseEnded() { recheckUsers() } }

    /// Asks in a moment, unless it does so anyway, or there is nothing to ask.
    mutating func askForUsersSoon(after delay: Duration = Sync.gathering) {
        guard phase == .online, !userQuestions.waiting.isEmpty, userQuestions.asked.isEmpty, !userQuestions.isAskingSoon else {
            return
        }
        userQuestions.isAskingSoon = true
        emit(.startTimer(.users, delay))
    }

    mutating func askForUsers() {
        userQuestions.isAskingSoon = false
        guard phase == .online, userQuestions.asked.isEmpty else { return }
        let versions = userQuestions.ask()
        if !versions.isEmpty { send(ListChangedUsers(versions: versions), for: .users) }
    }

    mutating func usersArrived(_ result: Result<[UInt8], RoostError>) {
        do {
            let answer = try ReplyResult<ChangedNames>.decode(try result.get())
            let users = answer.users.users
            // An answer that brings none of those who were asked for, and promises more, would be asked for without an end.
            let isOfUse = users.contains { userQuestions.asked.contains($0.userId) }
            userQuestions.answered(with: users, isWhole: !answer.hasMore || !isOfUse)
            if !users.isEmpty { emit(.store([.users(users)])) }
            askForUsersSoon()
        } catch let error as RoostError where error.isRetryable {
            userQuestions.failed()
            let pause = Duration.seconds(1 << min(userQuestions.failures, 6))
            askForUsersSoon(after: max(pause, error.retryAfterMilliseconds.map(Self.wait) ?? .zero))
        } catch {
            // It would be refused again, or can't be read again. They are shown as they are known.
            log(.warning, "Users couldn't be asked for: \(error)")
            userQuestions.refused()
        }
    }
}

/// The answer to ``ListChangedUsers``, without users that can't be read.
private struct ChangedNames: Decodable {
    var users: LenientUsers
    var hasMore: Bool
}

/// A list of users, without those that can't be read.
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
