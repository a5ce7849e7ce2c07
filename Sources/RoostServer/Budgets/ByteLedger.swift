import Synchronization

/// How many bytes are held for clients, as one sum that threads share: of one user, or of the whole server.
///
/// It counts and decides nothing. Holders of bytes add and subtract them, and check the limit before adding more.
final class ByteLedger: Sendable {
    private let sizeBytesLimit: Atomic<Int>
    private let sizeBytes = Atomic<Int>(0)

    init(sizeBytesMax: Int) { sizeBytesLimit = Atomic(sizeBytesMax) }

    /// The limit above which more is refused.
    var sizeBytesMax: Int { sizeBytesLimit.load(ordering: .relaxed) }

    /// Sets the limit. Bytes already held stay.
    func setMax(_ sizeBytes: Int) { sizeBytesLimit.store(sizeBytes, ordering: .relaxed) }

    var heldBytes: Int { sizeBytes.load(ordering: .relaxed) }

    /// Whether the limit is reached, so that nothing large is begun for anybody.
    var isFull: Bool { heldBytes >= sizeBytesMax }

    /// Whether half the limit is reached, so that clients that don't read aren't waited for.
    var isHalfFull: Bool { heldBytes >= sizeBytesMax / 2 }

    /// Returns whether a small write may still run: for a while after reads are refused.
    func hasRoom(forWriteAfter pendingBytes: Int) -> Bool { heldBytes + pendingBytes < sizeBytesMax + sizeBytesMax / 4 }

    /// - Parameter sizeBytes: Negative for released bytes.
    func add(_ sizeBytes: Int) {
        if sizeBytes != 0 { self.sizeBytes.wrappingAdd(sizeBytes, ordering: .relaxed) }
    }
}

/// Bytes that are held for as long as this object lives: an answer until it is written, a body until it is read.
final class HeldBytes: Sendable {
    private let ledgers: [ByteLedger]
    private let sizeBytes: Int

    init(_ sizeBytes: Int, in ledgers: [ByteLedger]) {
        self.ledgers = ledgers
        self.sizeBytes = sizeBytes
        for ledger in ledgers { ledger.add(sizeBytes) }
    }

    deinit { for ledger in ledgers { ledger.add(-sizeBytes) } }
}
