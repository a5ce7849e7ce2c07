#if Cluster
import CNATS
import Synchronization

/// The callbacks that the library calls on its own threads: the way from C back to a ``NATSBus``.
///
/// The library takes a pointer for each callback and hands it back with every call. It can't be known which call is the last: an ended
/// subscription or a closed connection may have one under way. So the pointer isn't an address but a number, which is looked up here and
/// never dereferenced. A call with a removed number does nothing. Nothing is freed too early, and nothing is kept after its removal.
enum NATSCallbacks {
    /// A connection, or one subscription of it.
    enum Target: Sendable {
        case connection(NATSBus)
        case subscription(NATSBus, NATSSubscription)
    }

    private struct Table {
        var targets: [UInt: Target] = [:]
        /// Numbers aren't reused, and 0 would be the null pointer.
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
        // The removed target is released after the lock.
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
        // The callback has to destroy the message, whether or not it is handled.
        defer { natsMsg_Destroy(message) }
        guard case .subscription(let bus, let subscription) = target(closure) else { return }
        let bytes = UnsafeRawBufferPointer(start: natsMsg_GetData(message), count: max(0, Int(natsMsg_GetDataLength(message))))
        bus.received([UInt8](bytes), by: subscription)
    }

    static let disconnected: natsConnectionHandler = { _, closure in bus(closure)?.connectionEnded() }
    static let reconnected: natsConnectionHandler = { _, closure in bus(closure)?.connectionMade() }
    static let closed: natsConnectionHandler = { _, closure in bus(closure)?.connectionEnded() }

    static let error: natsErrHandler = { _, _, status, closure in bus(closure)?.connectionFailed(status) }
}

/// A subscription to a topic, from one `subscribe` to the next `unsubscribe`.
final class NATSSubscription: Sendable {
    let topic: BusTopic
    /// False as soon as it is unsubscribed, though the library may still deliver messages that it had.
    let isWanted = Atomic(true)

    init(_ topic: BusTopic) { self.topic = topic }
}
#endif
