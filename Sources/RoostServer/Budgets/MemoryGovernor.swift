/// How much may be held for clients, so that the whole process stays below a limit.
///
/// A state machine without I/O. What is held for clients is counted exactly, but not what it costs: buffers of connections, what the allocator
/// keeps, caches. So the process is looked at, and from what is left of its limit follows by how much more may be held.
struct MemoryGovernor {
    struct Decision: Equatable {
        /// What may be held for all clients together.
        var heldBytesMax: Int
        /// Whether new connections are served.
        var takesConnections: Bool
        /// Whether the allocator should give back what it has no use for.
        var shouldTrim: Bool
    }

    /// What the process may take, in bytes of memory that is resident.
    let limitBytes: Int
    /// What may be held for clients where memory is plenty.
    let budgetBytes: Int

    /// The least limit: a server at rest takes about half of it.
    static let limitBytesMin = 128 << 20
    /// So much is held even at the limit, or nobody would be answered any more.
    static let heldBytesMin = 2 << 20

    /// - Parameters:
    ///   - residentBytes: what the process takes now.
    ///   - heldBytes: what is held for clients now.
    func decide(residentBytes: Int, heldBytes: Int) -> Decision {
        // What is left of the limit is for what comes between two looks, and isn't counted.
        let roomBytes = limitBytes - limitBytes / 8 - residentBytes
        // A byte that is held costs up to two.
        let held = max(0, heldBytes) + roomBytes / 2
        return Decision(
            heldBytesMax: min(max(held, Self.heldBytesMin), budgetBytes), takesConnections: roomBytes > 0,
            shouldTrim: roomBytes < limitBytes / 4)
    }
}
