/// Decides how much may be held for clients to keep the whole process below a limit.
///
/// A state machine without I/O. The bytes held for clients are counted exactly, but not their overhead: connection buffers, the allocator's
/// reserves, caches. So the size of the process is measured, and what is left of its limit determines how much more may be held.
struct MemoryGovernor {
    struct Decision: Equatable {
        /// The limit for all clients together.
        var heldBytesMax: Int
        /// Whether new connections are served.
        var takesConnections: Bool
        /// Whether the allocator should return unused memory.
        var shouldTrim: Bool
    }

    /// The limit of the process, in bytes of resident memory.
    let limitBytes: Int
    /// The limit for clients while memory is plentiful.
    let budgetBytes: Int

    /// The lowest limit: an idle server takes about half of it.
    static let limitBytesMin = 128 << 20
    /// This much may be held even at the limit; otherwise no client would get an answer.
    static let heldBytesMin = 2 << 20

    /// - Parameters:
    ///   - residentBytes: The current size of the process.
    ///   - heldBytes: The bytes held for clients now.
    func decide(residentBytes: Int, heldBytes: Int) -> Decision {
        // An eighth of the limit is reserved for growth between two measurements, and isn't counted as room.
        let roomBytes = limitBytes - limitBytes / 8 - residentBytes
        // A held byte costs up to two.
        let held = max(0, heldBytes) + roomBytes / 2
        return Decision(
            heldBytesMax: min(max(held, Self.heldBytesMin), budgetBytes), takesConnections: roomBytes > 0,
            shouldTrim: roomBytes < limitBytes / 4)
    }
}
