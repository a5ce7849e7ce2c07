import NIOCore
import RoostAPI
import RoostCore
import Synchronization

/// Drives the ``SignalBoard``: checks it several times a second while signals are pending.
final class SignalScheduler: Sendable {
    private struct State {
        var board = SignalBoard()
        var rates = UserRates()
        var isLooking = false
        /// Whether the audience of changed profiles is being searched for: one search ends before the next begins.
        var isFindingViewers = false
    }

    private let state = Mutex(State())
    private let presence: any Presence & Sendable
    private let loop: any EventLoop
    private let send: @Sendable ([Signal], _ failed: @escaping @Sendable ([Signal]) -> Void) -> Void
    private let findViewers: @Sendable ([UserID], _ done: @escaping @Sendable (_ count: Int) -> Void) -> Void

    /// How often the board is checked: changes within one interval are sent together.
    private static let interval = TimeAmount.milliseconds(100)

    /// - Parameters:
    ///   - loop: Runs the scheduled checks.
    ///   - send: Sends signals to their audience. It calls back with those whose audience can't be found out now.
    ///   - findViewers: Finds the channels in which users with a changed name or picture are seen, and has the change sent there. It reports for
    ///     how many of the users, from the first on, that is done: as many as are not too much work, none if it can't be done now.
    init(
        presence: any Presence & Sendable, on loop: any EventLoop,
        send: @escaping @Sendable ([Signal], _ failed: @escaping @Sendable ([Signal]) -> Void) -> Void,
        findViewers: @escaping @Sendable ([UserID], _ done: @escaping @Sendable (_ count: Int) -> Void) -> Void
    ) {
        self.presence = presence
        self.loop = loop
        self.send = send
        self.findViewers = findViewers
    }

    /// Takes from the notices of rules those for signals that aren't sent at once; it ignores all others.
    ///
    /// - Parameter isElsewhere: Whether the caller may only have connections to other nodes, which know who is typing there.
    /// - Returns: What other nodes can't infer from them: who has stopped typing by sending a message.
    @discardableResult
    func take(_ notices: some Sequence<Notice>, isElsewhere: Bool = false) -> [Notice] {
        var unseen: [Notice] = []
        for notice in notices {
            switch notice {
            case .event(let event, .channel(let channel, _)) where event.kind == .messageNew:
                guard let sender = event.actor, isElsewhere || isTyping(sender, in: channel), !event.isOfServer else { break }
                state.withLock { $0.board.hasSent(sender, in: channel, at: MonotonicClock.milliseconds) }
                unseen.append(.stoppedTyping(sender, channel))
            case .typing(let user, let channel): change { $0.types(user, in: channel, at: MonotonicClock.milliseconds) }
            case .stoppedTyping(let user, let channel), .left(let user, let channel, _, _):
                change { $0.stopsTyping(user, in: channel) }
            case .read(let position, let channel): change { $0.reads(position, in: channel) }
            case .profileChanged(let user): change { $0.profileChanged(of: user, at: MonotonicClock.milliseconds) }
            case .profileShown(let user, let channel): change { $0.shows(user, in: channel) }
            default: break
            }
        }
        return unseen
    }

    private func isTyping(_ user: UserID, in channel: ChannelID) -> Bool { state.withLock { $0.board.isTyping(user, in: channel) } }

    /// Takes an app's own signals in channels with many watchers. They are batched or dropped: otherwise a thousand people would flood all
    /// watchers. If a channel has lost its many watchers, it still takes the signals of a sender with one queued, so that none overtakes it. A signal
    /// that has left the queue can be overtaken until its audience is found.
    ///
    /// - Returns: The notices to send at once, and those taken.
    func takeCrowded(_ notices: [Notice]) -> (now: [Notice], taken: [Notice]) {
        var (now, taken): ([Notice], [Notice]) = ([], [])
        for notice in notices {
            guard case .signal(let signal, _) = notice, signal.kind == .custom,
                presence.isCrowded(signal.channel, above: Limits.manyWatchers) || isBehindOthers(signal)
            else {
                now.append(notice)
                continue
            }
            change { $0.sends(signal) }
            taken.append(notice)
        }
        return (now, taken)
    }

    private func isBehindOthers(_ signal: Signal) -> Bool { state.withLock { $0.board.isBehindOthers(signal) } }

    /// - Parameter user: Nil for users whose names aren't known.
    func watchingChanged(of user: UserID?, in channel: ChannelID) { change { $0.watchingChanged(of: user, in: channel) } }

    /// - Parameter user: Nil for users whose names aren't known.
    func onlineChanged(of user: UserID?, in channel: ChannelID) { change { $0.onlineChanged(of: user, in: channel) } }

    /// Counts one more use of an operation with a rate limit per user.
    ///
    /// - Throws: `rate_limited`.
    func admit(_ user: UserID, _ operation: String, at rate: UserRate) throws(RoostError) {
        let (now, periodMilliseconds) = (MonotonicClock.milliseconds, Int64(rate.seconds) * 1000)
        guard state.withLock({ $0.rates.admit(user, operation, at: rate, now: now) }) else {
            throw RoostError(
                .rateLimited,
                "A user may do this at most \(rate.count) times \(rate.seconds == 1 ? "a second" : "in \(rate.seconds) seconds").",
                limit: Int64(rate.count), retryAfterMilliseconds: periodMilliseconds - now % periodMilliseconds)
        }
    }

    private func change(_ body: (inout SignalBoard) -> Void) {
        let begins = state.withLock { state in
            body(&state.board)
            guard !state.board.isEmpty, !state.isLooking else { return false }
            state.isLooking = true
            return true
        }
        if begins { lookLater() }
    }

    private func lookLater() { loop.scheduleTask(in: Self.interval) { [weak self] in self?.look() } }

    private func look() {
        let (due, users, continues) = state.withLock { state in
            let due = state.board.takeDue(at: MonotonicClock.milliseconds, presence: presence)
            let users = state.isFindingViewers ? [] : state.board.takeChangedProfiles(at: MonotonicClock.milliseconds)
            state.isFindingViewers = state.isFindingViewers || !users.isEmpty
            state.isLooking = !state.board.isEmpty
            return (due, users, state.isLooking)
        }
        if !due.isEmpty { send(due) { [weak self] failed in self?.change { $0.requeue(failed) } } }
        if !users.isEmpty { findViewers(users) { [weak self] in self?.foundViewers(of: users, $0) } }
        if continues { lookLater() }
    }

    private func foundViewers(of users: [UserID], _ count: Int) {
        state.withLock { $0.isFindingViewers = false }
        change { $0.lookAgain(for: users.dropFirst(count), at: MonotonicClock.milliseconds) }
    }
}
