import RoostCore

/// Where a socket lives: the shard of its event loop, and its number there.
struct SocketID: Hashable, Sendable {
    let shard: Int
    let connection: ConnectionID
}
