import Synchronization

/// How many bytes are held for clients, as one sum that threads share: of one user, or of the whole server.
///
/// It counts and decides nothing. Who holds bytes adds them and takes them away again; who is about to hold more asks first.
final class ByteLedger: Sendable {
    private let sizeBytesLimit: Atomic<Int>
    private let sizeBytes = Atomic<Int>(0)

    init(sizeBytesMax: Int) { sizeBytesLimit = Atomic(sizeBytesMax) }

    /// What may be held before more is refused.
    var sizeBytesMax: Int { sizeBytesLimit.load(ordering: .relaxed) }

    /// From now on so much may be held. What is held already stays.
    func setMax(_ sizeBytes: Int) { sizeBytesLimit.store(sizeBytes, ordering: .relaxed) }

    var heldBytes: Int { sizeBytes.load(ordering: .relaxed) }

    /// Nothing more that is large is begun for anybody.
    var isFull: Bool { heldBytes >= sizeBytesMax }

    /// Whoever doesn't read is no longer waited for.
    var isHalfFull: Bool { heldBytes >= sizeBytesMax / 2 }

    /// Small writes go on for some time after reads were refused.
    func hasRoom(forWriteAfter pendingBytes: Int) -> Bool { heldBytes + pendingBytes < sizeBytesMax + sizeBytesMax / 4 }

    /// - Parameter sizeBytes: less than 0 for what is let go.
    func add(_ sizeBytes: Int) {
        if sizeBytes != 0 { self.sizeBytes.wrappingAdd(sizeBytes, ordering: .relaxed) }
    }
}

/// Bytes that are held for as long as this object is: an answer until it is written, a body until it is read.
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
