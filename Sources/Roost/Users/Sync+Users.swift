import Logging
import RoostAPI

/// Users of whom only the id is known. Events name users by their ids, and live objects say whom they miss.
///
/// The server is asked for what is missed within a moment in one call, and for more only when that is answered. An id that it doesn't know isn't
/// asked for again. What couldn't be asked, for want of a connection or since the server is busy, is asked later.
extension Sync {
    struct UserQuestions: Hashable, Sendable {
        /// The users to ask for, those first who were missed first.
        private(set) var waiting: [UserID] = []
        /// The users that are asked for.
        private(set) var asked: [UserID] = []
        /// Users whom the server doesn't know.
        private var absent: Set<UserID> = []
        var isAskingSoon = false
        /// Questions in a row that weren't answered.
        private(set) var failures = 0

        /// Beyond so many, those missed first make room: they have scrolled away.
        static let waitingMax = 1000
        static let absentMax = 10_000

        mutating func miss(_ users: Set<UserID>) {
            let new = users.subtracting(absent).subtracting(asked).subtracting(waiting)
            waiting += new.sorted()
            if waiting.count > Self.waitingMax { waiting.removeFirst(waiting.count - Self.waitingMax) }
        }

        mutating func ask() -> [UserID] {
            asked = Array(waiting.prefix(Limits.usersPerCall))
            waiting.removeFirst(asked.count)
            return asked
        }

        mutating func answered(with users: [UserSummary]) {
            if absent.count >= Self.absentMax { absent = [] }
            absent.formUnion(Set(asked).subtracting(users.map(\.userId)))
            (asked, failures) = ([], 0)
        }

        /// Has the question asked again.
        mutating func failed() {
            waiting = Array((asked + waiting).prefix(Self.waitingMax))
            asked = []
            failures += 1
        }

        mutating func forgetAbsent() { absent = [] }

        /// Another connection: its server may be less busy.
        mutating func disconnected() {
            failed()
            (failures, isAskingSoon) = (0, false)
        }
    }

    /// So long more missed users are waited for.
    private static let gathering = Duration.milliseconds(20)

    mutating func miss(_ users: Set<UserID>) {
        userQuestions.miss(users)
        askForUsersSoon()
    }

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
        let users = userQuestions.ask()
        if !users.isEmpty { send(GetUsers(users: users, omitMetadata: true), for: .users) }
    }

    mutating func usersArrived(_ result: Result<[UInt8], RoostError>) {
        do {
            let users = try ReplyResult<NamedUsers>.decode(try result.get()).users
            userQuestions.answered(with: users)
            if !users.isEmpty { emit(.store([.users(users)])) }
            askForUsersSoon()
        } catch let error as RoostError where error.isRetryable {
            userQuestions.failed()
            let pause = Duration.seconds(1 << min(userQuestions.failures, 6))
            askForUsersSoon(after: max(pause, error.retryAfterMilliseconds.map(Self.wait) ?? .zero))
        } catch {
            // It would be refused again, or can't be read again. They are shown by their ids.
            log(.warning, "Users couldn't be asked for: \(error)")
            userQuestions.answered(with: [])
        }
    }
}

/// A list of users, without those that can't be read.
struct LenientUsers: Decodable {
    private(set) var users: [UserSummary] = []

    init(from decoder: any Decoder) throws {
        let list = try? decoder.singleValueContainer().decode([Attempt<UserSummary>].self)
        users = (list ?? []).compactMap(\.row)
    }
}

/// The users that an answer carries, read leniently: beside its rows, in each of them, or as the answer itself.
struct NamedUsers: Decodable {
    private(set) var users: [UserSummary] = []

    private enum CodingKeys: String, CodingKey { case users, items, user, userId }

    private struct Item: Decodable {
        var user: UserSummary?
    }

    init(from decoder: any Decoder) throws {
        guard let container = try? decoder.container(keyedBy: CodingKeys.self) else {
            users = try LenientUsers(from: decoder).users
            return
        }
        if container.contains(.userId) { users.append(try UserSummary(from: decoder)) }
        if let user = try? container.decodeIfPresent(UserSummary.self, forKey: .user) { users.append(user) }
        if let list = try? container.decodeIfPresent(LenientUsers.self, forKey: .users) { users += list.users }
        if let items = try? container.decodeIfPresent([Attempt<Item>].self, forKey: .items) {
            users += items.compactMap(\.row?.user)
        }
    }
}

extension GetUsers: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .users }
}

extension GetUser: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .users }
}
