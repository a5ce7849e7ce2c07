import NIOCore
import RoostAPI
import RoostCore
import Synchronization

/// Drives the ``ActivityBoard``: schedules the records of when this node's users were online.
final class ActivityScheduler: Sendable {
    private struct State {
        var board = ActivityBoard()
        /// The scheduled scan, and its time.
        var planned: Scheduled<Void>?
        var plannedAt: Int64 = .max
        var hasEnded = false
    }

    private let state = Mutex(State())
    private let loop: any EventLoop
    private let store: Store

    /// Stores when users were online, by ``MonotonicClock``. Each node has its own clock for the time of day, which may be wrong: a record therefore
    /// stores how long ago the user was online, relative to the time that all nodes share. The second argument is called if the record should be
    /// retried later.
    typealias Store = @Sendable (_ activity: [UserID: Int64], _ failed: @escaping @Sendable () -> Void) -> Void

    /// - Parameters:
    ///   - loop: Runs the scheduled scans.
    ///   - store: Stores when users were online.
    init(on loop: any EventLoop, store: @escaping Store) {
        self.loop = loop
        self.store = store
    }

    /// A user's first connection has begun, or the last has ended.
    func connectionsChanged(of user: UserID, isConnected: Bool) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            if isConnected {
                state.board.came(user, at: MonotonicClock.milliseconds)
            } else {
                state.board.went(user, at: MonotonicClock.milliseconds)
            }
            plan(&state)
        }
    }

    /// Stores everything: the server is shutting down.
    func end() {
        let all = state.withLock { state in
            state.hasEnded = true
            state.planned?.cancel()
            return state.board.takeAll(at: MonotonicClock.milliseconds)
        }
        if !all.isEmpty { store(all) {} }
    }

    private func look() {
        let due = state.withLock { state in
            (state.planned, state.plannedAt) = (nil, .max)
            let due = state.board.takeDue(at: MonotonicClock.milliseconds)
            if !state.hasEnded { plan(&state) }
            return due
        }
        if !due.isEmpty { store(due) { [weak self] in self?.takeBack(due) } }
    }

    private func takeBack(_ users: [UserID: Int64]) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.board.takeBack(users, at: MonotonicClock.milliseconds)
            plan(&state)
        }
    }

    /// Schedules the next scan, unless an earlier one is scheduled.
    private func plan(_ state: inout State) {
        guard let rest = state.board.rest(at: MonotonicClock.milliseconds), MonotonicClock.milliseconds + rest < state.plannedAt
        else { return }
        state.planned?.cancel()
        state.plannedAt = MonotonicClock.milliseconds + rest
        state.planned = loop.scheduleTask(in: .milliseconds(rest)) { [weak self] in self?.look() }
    }
}
