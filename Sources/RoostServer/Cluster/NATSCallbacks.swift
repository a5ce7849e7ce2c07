#if Cluster
import CNATS
import Synchronization

/// What the library calls, on threads of its own: the way from C back to a ``NATSBus``.
///
/// The library takes a pointer for each callback and hands it back with every call. When it makes the last call isn't certain: a
/// subscription that has ended, and a connection that was closed, may have a call under way. So the pointer is none: it is a number,
/// which is looked up here and never followed. What was forgotten here isn't found, and the call does nothing. Nothing is freed too
/// early, and nothing is kept after it was forgotten.
enum NATSCallbacks {
    /// A connection, or one subscription of it.
    enum Target: Sendable {
        case connection(NATSBus)
        case subscription(NATSBus, NATSSubscription)
    }

    private struct Table {
        var targets: [UInt: Target] = [:]
        /// Numbers aren't given twice, and 0 would be the null pointer.
        var lastNumber: UInt = 0
    }
    private static let table = Mutex(Table())

    static func remember(_ target: Target) -> UInt {
        table.withLock { table in
            table.lastNumber += 1
            table.targets[table.lastNumber] = target
            return table.lastNumber
        }
    }

    static func forget(_ number: UInt) {
        // What was there ends after the lock is free.
        _ = table.withLock { $0.targets.removeValue(forKey: number) }
    }

    static func pointer(_ number: UInt) -> UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: number) }

    private static func target(_ pointer: UnsafeMutableRawPointer?) -> Target? {
        let number = UInt(bitPattern: pointer)
        return table.withLock { $0.targets[number] }
    }

    private static func bus(_ pointer: UnsafeMutableRawPointer?) -> NATSBus? {
        if case .connection(let bus) = target(pointer) { return bus }
        return nil
    }

    static let message: natsMsgHandler = { _, _, message, closure in
        // The message is ours to end, whoever takes it.
        defer { natsMsg_Destroy(message) }
        guard case .subscription(let bus, let subscription) = target(closure) else { return }
        let bytes = UnsafeRawBufferPointer(start: natsMsg_GetData(message), count: max(0, Int(natsMsg_GetDataLength(message))))
        bus.received([UInt8](bytes), by: subscription)
    }

    static let disconnected: natsConnectionHandler = { _, closure in bus(closure)?.connectionChanged(isConnected: false) }
    static let reconnected: natsConnectionHandler = { _, closure in bus(closure)?.connectionChanged(isConnected: true) }
    static let closed: natsConnectionHandler = { _, closure in bus(closure)?.connectionClosed() }

    static let error: natsErrHandler = { _, _, status, closure in bus(closure)?.connectionFailed(status) }
}

/// That a topic is subscribed: from one `subscribe` to the next `unsubscribe`.
final class NATSSubscription: Sendable {
    let topic: BusTopic
    /// False at once when it is unsubscribed, though the library may still hand over what it had.
    let isWanted = Atomic(true)

    init(_ topic: BusTopic) { self.topic = topic }
}
#endif
