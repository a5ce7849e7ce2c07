import Dispatch
import NIOCore
import RoostAPI
import RoostCore
import Synchronization

/// Drives the ``ActivityBoard``: has stored when the users of this node were online.
final class ActivityDesk: Sendable {
    private struct State {
        var board = ActivityBoard()
        /// The look that is planned, and when it is.
        var planned: Scheduled<Void>?
        var plannedAt: Int64 = .max
        var hasEnded = false
    }

    private let state = Mutex(State())
    private let loop: any EventLoop
    private let store: Store

    /// Stores when users were online, by ``now``. What it is given second is called if that may be stored later.
    typealias Store = @Sendable (_ activity: [UserID: Int64], _ failed: @escaping @Sendable () -> Void) -> Void

    /// - Parameters:
    ///   - loop: What waits for the time.
    ///   - store: Stores when users were online.
    init(on loop: any EventLoop, store: @escaping Store) {
        self.loop = loop
        self.store = store
    }

    /// The first connection of a user has begun, or the last has ended.
    func connectionsChanged(of user: UserID, isConnected: Bool) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            if isConnected { state.board.came(user, at: Self.now) } else { state.board.went(user, at: Self.now) }
            plan(&state)
        }
    }

    /// Stores all that is known: the server ends.
    func end() {
        let all = state.withLock { state in
            state.hasEnded = true
            state.planned?.cancel()
            return state.board.takeAll(at: Self.now)
        }
        if !all.isEmpty { store(all) {} }
    }

    private func look() {
        let due = state.withLock { state in
            (state.planned, state.plannedAt) = (nil, .max)
            let due = state.board.takeDue(at: Self.now)
            if !state.hasEnded { plan(&state) }
            return due
        }
        if !due.isEmpty { store(due) { [weak self] in self?.takeBack(due) } }
    }

    private func takeBack(_ users: [UserID: Int64]) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.board.takeBack(users, at: Self.now)
            plan(&state)
        }
    }

    /// Plans the next look, unless one is planned that comes before it.
    private func plan(_ state: inout State) {
        guard let rest = state.board.rest(at: Self.now), Self.now + rest < state.plannedAt else { return }
        state.planned?.cancel()
        state.plannedAt = Self.now + rest
        state.planned = loop.scheduleTask(in: .milliseconds(rest)) { [weak self] in self?.look() }
    }

    /// Milliseconds of a monotonic clock. Nodes have their own clocks for the time of day, and these may be wrong: what is stored is how long ago
    /// something was, before the time that all nodes share.
    static var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }
}
