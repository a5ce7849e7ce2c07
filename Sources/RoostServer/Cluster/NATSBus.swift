#if Cluster
import CNATS
import Dispatch
import Foundation
import Logging
import RoostDatabase
import Synchronization

/// The bus of a cluster, on NATS.
///
/// A dedicated thread makes all library calls that may wait for a server: ``publish(_:to:)`` and ``subscribe(to:)`` only queue work for it,
/// and never wait. The library calls back on two of its own threads, one for messages and one for the connection's state. The handler is
/// called by one of the three at a time.
///
/// One limitation beyond those of ``Bus``: in a cluster of NATS servers, ``settle()`` covers only the server that this node is connected
/// to. The others learn of a subscription a moment later.
///
/// ``stop()`` must not be called by the handler: it waits until the handler has returned. A bus that was started lives until then.
final class NATSBus: Bus {
    private let address: NATSAddress
    private let subjects: NATSSubjects
    private let logger: Logger

    /// The thread's work, and the signal that there is some.
    private let work = Mutex(NATSWork())
    private let wake = MonotonicSemaphore()
    private let thread = DispatchGroup()

    /// Held while the handler is called, so nothing is called after ``stop()``.
    private let handling = Mutex(Handling())
    /// Whether the server is connected as far as the handler knows, from the start or by the last event. Changed while `handling` is held, so
    /// events are reported in this order. Read from any thread.
    private let connected = Atomic(false)

    /// A structure, since a closure stored directly in the lock would be wrapped again by each use of it, until calling it overflows the
    /// stack.
    private struct Handling {
        var handler: (@Sendable (BusEvent) -> Void)?
        /// How often the library has reported that a connection ended.
        var endCount = 0
    }

    /// Warnings that could occur for every message are logged once a second.
    private let warnings = LogThrottle()

    init(url: String, prefix: String = "roost", logger: Logger) throws {
        address = try NATSAddress(url)
        subjects = try NATSSubjects(prefix: prefix)
        self.logger = logger
    }

    var isConnected: Bool { connected.load(ordering: .acquiring) }

    /// - Throws: ``BusFailure`` if a server refuses. If none can be reached, the bus starts without a connection, and reports it once there is one.
    func start(_ handler: @escaping @Sendable (BusEvent) -> Void) throws {
        let mayStart = work.withLock { work in
            defer { work.isStarted = true }
            return !work.isStarted && !work.isStopping
        }
        guard mayStart else { throw BusFailure(message: "the bus has already been started") }
        handling.withLock { $0.handler = handler }
        let outcome = Outcome()
        thread.enter()
        let thread = Thread { [self] in
            ThreadName.set("roost-nats")
            serve(outcome)
            self.thread.leave()
        }
        thread.start()
        do {
            try outcome.wait()
        } catch {
            stop()
            throw error
        }
    }

    func publish(_ payload: [UInt8], to topic: BusTopic) {
        guard isConnected else { return }
        let (isTaken, wakes) = work.withLock { ($0.publish(payload, to: topic), $0.wakes()) }
        if wakes { wake.signal() }
        if !isTaken { warn("NATS accepts messages too slowly: some are dropped") }
    }

    func subscribe(to topic: BusTopic) { enqueue { $0.subscribe(topic) } }

    /// The handler may still be running for a message of this topic. It isn't called with another one.
    func unsubscribe(from topic: BusTopic) { enqueue { $0.unsubscribe(topic) } }

    func settle() throws {
        guard isConnected else { throw BusFailure(message: "NATS can't be reached") }
        let settlement = Outcome()
        enqueue { $0.settle(settlement) }
        try settlement.wait(milliseconds: NATSConnection.Tuning.flushMilliseconds)
    }

    func stop() {
        handling.withLock { handling in
            handling.handler = nil
            connected.store(false, ordering: .releasing)
        }
        enqueue { $0.isStopping = true }
        // For concurrent callers too: the connection is gone when this returns.
        thread.wait()
    }

    private func enqueue(_ change: (inout NATSWork) -> Void) {
        let wakes = work.withLock { work in
            change(&work)
            return work.wakes()
        }
        if wakes { wake.signal() }
    }

    private func warn(_ text: @autoclosure () -> String) {
        guard warnings.shouldLog() else { return }
        logger.warning("\(text())")
    }
}

// The thread's loop: it connects, does the queued work, and connects again when the library has given up.
extension NATSBus {
    private func serve(_ start: Outcome) {
        var connection: NATSConnection?
        do throws(BusFailure) {
            connection = try NATSConnection(address, for: self)
        } catch {
            return start.end(error)
        }
        // Connected from the start, so no event is due. The library reports later changes.
        if connection?.isConnected == true {
            handling.withLock { if $0.endCount == 0 { connected.store(true, ordering: .releasing) } }
        }
        if !isConnected { logger.warning("NATS can't be reached yet", metadata: ["servers": "\(address.servers)"]) }
        start.end()

        var batch = NATSWork.Batch()
        let complaints = LogThrottle(interval: .seconds(10))
        let refusals = LogThrottle(interval: .seconds(10))
        while next(&batch) {
            if connection?.isClosed ?? true {
                connection = nil
                connection = openConnection(refusals)
                batch.changes = work.withLock { $0.wanted.mapValues { .some($0) } }
            }
            let isWaiting = !isConnected && connection?.isConnected == false
            if isWaiting, let reason = connection?.lastError, !reason.isEmpty, complaints.shouldLog() {
                logger.warning("NATS can't be reached", metadata: ["reason": "\(reason)"])
            }
            do throws(BusFailure) {
                try carry(batch, over: &connection)
                for settlement in batch.settlements { settlement.end() }
            } catch {
                for settlement in batch.settlements { settlement.end(error) }
            }
            if !isConnected, connection?.isConnected == true {
                // Reported once the server has all subscriptions: the node then reads what it missed, and receives what is published from here on.
                let endCount = handling.withLock { $0.endCount }
                if connection?.flush() == NATS_OK { reportReconnected(afterEnds: endCount) }
            }
        }
        // What was published before the end still goes out: the last commits, and this node's goodbye.
        if connection?.isConnected == true {
            try? carry(batch, over: &connection)
            _ = connection?.flush()
        }
        for settlement in batch.settlements { settlement.end(BusFailure(message: "the bus has stopped")) }
    }

    /// Waits for work; false if the bus is to stop. Without a connection it checks every second.
    private func next(_ batch: inout NATSWork.Batch) -> Bool {
        while true {
            let (isStopping, isEmpty) = work.withLock { work in
                let isEmpty = work.isEmpty
                work.isThreadWaiting = isEmpty && !work.isStopping
                work.take(&batch)
                return (work.isStopping, isEmpty)
            }
            if isStopping { return false }
            if !isEmpty { return true }
            if isConnected {
                wake.wait()
            } else if !wake.wait(atMost: .seconds(1)) {
                return true
            }
        }
    }

    private func carry(_ batch: NATSWork.Batch, over connection: inout NATSConnection?) throws(BusFailure) {
        guard connection != nil else { throw BusFailure(message: "NATS can't be reached") }
        var failure: natsStatus = NATS_OK
        for (topic, wanted) in batch.changes {
            let status = connection?.set(topic, to: wanted, subject: subjects.subject(of: topic)) ?? NATS_OK
            if status != NATS_OK { failure = status }
        }
        if failure != NATS_OK { warn("NATS: a subscription failed: \(failure.text)") }
        for message in batch.messages {
            switch connection?.publish(message.payload, to: subjects.subject(of: message.topic)) {
            case NATS_OK?, nil:
                break
            case NATS_MAX_PAYLOAD?:
                let limit = connection?.payloadBytesMax ?? 0
                warn("NATS: a message of \(message.payload.count) bytes is dropped: the server accepts at most \(limit)")
            case let status?:
                warn("NATS: a message is dropped: \(status.text)")
            }
        }
        guard !batch.settlements.isEmpty else { return }
        let status = connection?.flush() ?? NATS_CONNECTION_CLOSED
        if failure == NATS_OK { failure = status }
        if failure != NATS_OK { throw BusFailure(message: "NATS: \(failure.text)") }
    }

    private func openConnection(_ refusals: LogThrottle) -> NATSConnection? {
        do throws(BusFailure) {
            return try NATSConnection(address, for: self)
        } catch {
            if refusals.shouldLog() { logger.warning("\(error.message)") }
            return nil
        }
    }
}

// The library's callbacks, on its own threads.
extension NATSBus {
    func received(_ payload: [UInt8], by subscription: NATSSubscription) {
        handling.withLock { handling in
            guard let handler = handling.handler, subscription.isWanted.load(ordering: .acquiring) else { return }
            handler(.received(subscription.topic, payload))
        }
    }

    /// The library has a connection again. The server may not have read the subscriptions yet, so the thread reports it to the handler once it has.
    func connectionMade() { enqueue { $0.hasChanged = true } }

    /// The library has lost its connection, or given up.
    func connectionEnded() {
        handling.withLock { handling in
            handling.endCount += 1
            // Reported once, however many attempts to reconnect fail.
            guard let handler = handling.handler, connected.exchange(false, ordering: .acquiringAndReleasing) else { return }
            logger.warning("Lost the connection to NATS")
            handler(.disconnected)
        }
        // Wakes the thread, which waits without a timeout only while it is connected.
        enqueue { $0.hasChanged = true }
    }

    /// Called by the thread.
    ///
    /// - Parameter endCount: How many connections had ended before the server was asked: if another has ended since, its answer is ignored.
    private func reportReconnected(afterEnds endCount: Int) {
        handling.withLock { handling in
            guard let handler = handling.handler, handling.endCount == endCount,
                !connected.exchange(true, ordering: .acquiringAndReleasing)
            else { return }
            logger.notice("Reconnected to NATS")
            handler(.reconnected)
        }
    }

    func connectionFailed(_ status: natsStatus) { warn("NATS: \(status.text)") }
}
#endif
