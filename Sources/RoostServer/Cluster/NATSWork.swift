#if Cluster
import RoostDatabase
import Synchronization

/// Work that callers queued for a ``NATSBus``'s thread. Protected by the lock of the bus that holds it.
///
/// Topics are kept as wanted states, not as a list of commands: subscribing and unsubscribing while NATS doesn't answer makes nothing grow.
/// Messages are bounded; settlements are bounded by the number of waiting callers.
struct NATSWork {
    static let messageCountMax = 65_536
    static let messageBytesMax = 16 * 1_024 * 1_024

    /// The work that the thread takes in one go. Subscriptions come first, since a settlement covers those before it.
    struct Batch {
        var changes: [BusTopic: NATSSubscription?] = [:]
        var messages: [(topic: BusTopic, payload: [UInt8])] = []
        var settlements: [Outcome] = []

        /// Empties the batch, and keeps its capacity.
        mutating func clear() {
            changes.removeAll(keepingCapacity: changes.count < 1_024)
            messages.removeAll(keepingCapacity: messages.count < 1_024)
            settlements.removeAll()
        }
    }

    private(set) var wanted: [BusTopic: NATSSubscription] = [:]
    private var batch = Batch()
    private var messageBytes = 0
    /// The library has lost, made or given up its connection: the thread has to check it.
    var hasChanged = false
    var isStarted = false
    var isStopping = false
    var isThreadWaiting = false

    var isEmpty: Bool { batch.changes.isEmpty && batch.messages.isEmpty && batch.settlements.isEmpty && !hasChanged }

    /// Returns whether the thread sleeps and has to be woken; true once for each sleep.
    mutating func wakes() -> Bool {
        defer { isThreadWaiting = false }
        return isThreadWaiting
    }

    mutating func subscribe(_ topic: BusTopic) {
        guard wanted[topic] == nil else { return }
        let subscription = NATSSubscription(topic)
        wanted[topic] = subscription
        batch.changes[topic] = .some(subscription)
    }

    mutating func unsubscribe(_ topic: BusTopic) {
        guard let subscription = wanted.removeValue(forKey: topic) else { return }
        subscription.isWanted.store(false, ordering: .releasing)
        batch.changes[topic] = .some(nil)
    }

    /// Queues a message. Returns false if too many are already queued.
    mutating func publish(_ payload: [UInt8], to topic: BusTopic) -> Bool {
        guard batch.messages.count < Self.messageCountMax, messageBytes + payload.count <= Self.messageBytesMax else {
            return false
        }
        batch.messages.append((topic, payload))
        messageBytes += payload.count
        return true
    }

    mutating func settle(_ settlement: Outcome) { batch.settlements.append(settlement) }

    /// Exchanges the queued work for an empty batch.
    mutating func take(_ other: inout Batch) {
        other.clear()
        swap(&batch, &other)
        messageBytes = 0
        hasChanged = false
    }
}

/// The outcome of something that the bus's thread did, for the waiting caller.
final class Outcome: Sendable {
    private let done = MonotonicSemaphore()
    private let failure = Mutex<BusFailure?>(nil)

    func end(_ failure: BusFailure? = nil) {
        self.failure.withLock { $0 = failure }
        done.signal()
    }

    func wait(milliseconds: Int64? = nil) throws(BusFailure) {
        if let milliseconds {
            guard done.wait(atMost: .milliseconds(milliseconds)) else { throw BusFailure(message: "NATS doesn't answer in time") }
        } else {
            done.wait()
        }
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}
#endif
