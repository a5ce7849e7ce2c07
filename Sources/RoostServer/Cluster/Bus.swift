import RoostAPI

/// Carries bytes between the nodes of a cluster.
///
/// It promises little: it may lose, repeat and reorder messages. A receiver sees from an event's seq what is missing, and reads it from the
/// database. So nothing waits for the bus, and events that it drops aren't lost.
protocol Bus: Sendable {
    /// Starts receiving. The handler is called by one thread at a time, and must not block.
    func start(_ handler: @escaping @Sendable (BusEvent) -> Void) throws

    /// Sends bytes to all other nodes subscribed to the topic, never to this one. Doesn't wait; bytes that can't be sent are lost.
    func publish(_ payload: [UInt8], to topic: BusTopic)

    /// Subscribes to a topic. Subscribing twice has no further effect. A subscription survives outages of the bus.
    func subscribe(to topic: BusTopic)
    func unsubscribe(from topic: BusTopic)

    /// Waits until the bus knows every subscription made so far: messages published from then on arrive here, unless the bus loses them.
    ///
    /// - Throws: ``BusFailure`` when the bus is gone.
    func settle() throws

    /// Whether the bus can be reached at the moment.
    var isConnected: Bool { get }

    /// Ends the connection. Nothing is received after it returns.
    func stop()
}

/// An event from the bus.
enum BusEvent: Sendable {
    case received(BusTopic, [UInt8])
    /// The bus is gone. Reconnecting is automatic.
    case disconnected
    /// Reconnected, with all subscriptions in place. Messages published in the meantime are lost.
    case reconnected
}

/// The topics that nodes publish and subscribe to.
enum BusTopic: Hashable, Sendable {
    /// The events of one channel or one user.
    case stream(StreamID)
    /// Messages to all nodes.
    case nodes
    /// Messages to one node.
    case node(NodeID)
}

/// The name of one run of a node. It changes with each start.
struct NodeID: Hashable, Sendable, Codable, CustomStringConvertible {
    let rawValue: String
    init(_ rawValue: String) { self.rawValue = rawValue }
    var description: String { rawValue }

    init(from decoder: any Decoder) throws { rawValue = try decoder.singleValueContainer().decode(String.self) }
    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

/// The bus can't be reached, or refused. The message contains no secret.
struct BusFailure: Error, CustomStringConvertible {
    let message: String
    var description: String { message }
}

/// The bus of a single node, with no other nodes to reach.
struct NoBus: Bus {
    func start(_ handler: @escaping @Sendable (BusEvent) -> Void) {}
    func publish(_ payload: [UInt8], to topic: BusTopic) {}
    func subscribe(to topic: BusTopic) {}
    func unsubscribe(from topic: BusTopic) {}
    func settle() {}
    var isConnected: Bool { true }
    func stop() {}
}
