import Synchronization

/// Items from elsewhere, in order, to be awaited with a deadline: the tests' only way to wait.
public final class Mailbox<Item: Sendable>: Sendable {
    private struct State {
        var items: [Item] = []
        var isClosed = false
        var waiter: (number: Int, continuation: CheckedContinuation<Item?, Never>)?
        var waitCount = 0
        /// The last wait that timed out. On a busy machine that can be before it has started to wait.
        var lastOver = 0
    }
    private let state = Mutex(State())

    public init() {}

    public func put(_ item: Item) {
        let waiter = state.withLock { state -> CheckedContinuation<Item?, Never>? in
            guard let waiter = state.waiter else {
                state.items.append(item)
                return nil
            }
            state.waiter = nil
            return waiter.continuation
        }
        waiter?.resume(returning: item)
    }

    /// Ends the arrivals.
    public func close() {
        let waiter = state.withLock { state in
            state.isClosed = true
            defer { state.waiter = nil }
            return state.waiter?.continuation
        }
        waiter?.resume(returning: nil)
    }

    /// The next item; nil if none arrives in time or none will. One task waits at a time.
    public func next(within deadline: Duration = .seconds(20)) async -> Item? {
        let number = state.withLock { state in
            state.waitCount += 1
            return state.waitCount
        }
        let timeout = Task {
            try await Task.sleep(for: deadline)
            giveUp(number)
        }
        defer { timeout.cancel() }
        return await withCheckedContinuation { continuation in
            let item = state.withLock { state -> Item?? in
                if !state.items.isEmpty { return .some(state.items.removeFirst()) }
                if state.isClosed || state.lastOver == number { return .some(nil) }
                state.waiter = (number, continuation)
                return nil
            }
            if let item { continuation.resume(returning: item) }
        }
    }

    private func giveUp(_ number: Int) {
        let waiter = state.withLock { state -> CheckedContinuation<Item?, Never>? in
            state.lastOver = number
            guard let waiter = state.waiter, waiter.number == number else { return nil }
            state.waiter = nil
            return waiter.continuation
        }
        waiter?.resume(returning: nil)
    }
}

/// A wait that ended without its result.
public struct Missed: Error, CustomStringConvertible {
    public let description: String
    public init(_ what: String) { description = "Missed: \(what)" }
}

/// Waits for a condition without notifications; checks it every few milliseconds.
///
/// It waits longer than a call of the SDK's may take, so the call's refusal is seen first.
public func eventually(
    _ what: String, within deadline: Duration = .seconds(45), isolation: isolated (any Actor)? = #isolation,
    _ isSo: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + deadline
    while try await !isSo() {
        guard ContinuousClock.now < end else { throw Missed(what) }
        try await Task.sleep(for: .milliseconds(5))
    }
}
