import RoostAPI

/// Carries bytes between the nodes of a cluster.
///
/// It promises little: it may lose, repeat and reorder. Whoever receives knows from the seq of an event what is missing, and gets it from the
/// database. So nothing waits for the bus, and nothing that it loses is lost.
protocol Bus: Sendable {
    /// Begins to receive. The handler is called on one thread, and must not block.
    func start(_ handler: @escaping @Sendable (BusEvent) -> Void) throws

    /// Gives bytes to all other nodes that are subscribed to the topic; never back to this one. Doesn't wait; what can't go out is lost.
    func publish(_ payload: [UInt8], to topic: BusTopic)

    /// Subscribes to a topic; doing so twice is doing so once. Holds through the bus's own outages.
    func subscribe(to topic: BusTopic)
    func unsubscribe(from topic: BusTopic)

    /// Waits until the bus has taken notice of every subscription so far: what is published from then on arrives here, if it arrives.
    ///
    /// - Throws: ``BusFailure`` when the bus is gone.
    func settle() throws

    /// Whether the bus can be reached at the moment.
    var isConnected: Bool { get }

    /// Ends the connection. Nothing is received after it returns.
    func stop()
}

/// What a node hears from the bus.
enum BusEvent: Sendable {
    case received(BusTopic, [UInt8])
    /// The bus is gone. The connection is made again without anybody's doing.
    case disconnected
    /// It is there again: what was published meanwhile was lost.
    case reconnected
}

/// What is published to, and subscribed.
enum BusTopic: Hashable, Sendable {
    /// The events of one channel or one user.
    case stream(StreamID)
    /// What all nodes hear.
    case nodes
    /// What one node hears.
    case node(NodeID)
}

/// The name of one run of a node: another one after each start.
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

/// The bus can't be reached, or refused. The message holds no secret.
struct BusFailure: Error, CustomStringConvertible {
    let message: String
    var description: String { message }
}

/// The bus of a node that is alone: there is nobody to tell.
struct NoBus: Bus {
    func start(_ handler: @escaping @Sendable (BusEvent) -> Void) {}
    func publish(_ payload: [UInt8], to topic: BusTopic) {}
    func subscribe(to topic: BusTopic) {}
    func unsubscribe(from topic: BusTopic) {}
    func settle() {}
    var isConnected: Bool { true }
    func stop() {}
}
