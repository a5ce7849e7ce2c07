import RoostCore

/// A socket of this node: the shard of its event loop, and the number of its connection.
struct SocketID: Hashable, Sendable {
    let shard: Int
    let connection: ConnectionID
}
