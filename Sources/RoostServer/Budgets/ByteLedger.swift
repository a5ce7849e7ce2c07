import Synchronization

/// How many bytes are held for clients, as one sum that threads share: for one user, or for the whole server.
///
/// It only counts. Holders of bytes add and subtract them, and check the limit before they add more.
final class ByteLedger: Sendable {
    private let sizeBytesLimit: Atomic<Int>
    private let sizeBytes = Atomic<Int>(0)

    init(sizeBytesMax: Int) { sizeBytesLimit = Atomic(sizeBytesMax) }

    /// The limit above which more is refused.
    var sizeBytesMax: Int { sizeBytesLimit.load(ordering: .relaxed) }

    /// Sets the limit. Bytes already held stay.
    func setMax(_ sizeBytes: Int) { sizeBytesLimit.store(sizeBytes, ordering: .relaxed) }

    var heldBytes: Int { sizeBytes.load(ordering: .relaxed) }

    /// Whether the limit is reached, at which nothing large is begun for anyone.
    var isFull: Bool { heldBytes >= sizeBytesMax }

    /// Whether half the limit is reached, at which the server no longer waits for clients that don't read.
    var isHalfFull: Bool { heldBytes >= sizeBytesMax / 2 }

    /// Returns whether a small write may still run: writes have some room beyond the limit at which reads are refused.
    ///
    /// - Parameter pendingBytes: Bytes that aren't counted yet, without the counted ones that the write's own request holds.
    func hasRoom(forWriteAfter pendingBytes: Int) -> Bool { heldBytes + pendingBytes < sizeBytesMax + sizeBytesMax / 4 }

    /// - Parameter sizeBytes: Negative for released bytes.
    func add(_ sizeBytes: Int) {
        if sizeBytes != 0 { self.sizeBytes.wrappingAdd(sizeBytes, ordering: .relaxed) }
    }
}

/// Bytes held during the lifetime of this object: an answer until it is written, a body until it is read.
final class HeldBytes: Sendable {
    private let ledgers: [ByteLedger]
    private let sizeBytes: Atomic<Int>

    init(_ sizeBytes: Int, in ledgers: [ByteLedger]) {
        self.ledgers = ledgers
        self.sizeBytes = Atomic(sizeBytes)
        for ledger in ledgers { ledger.add(sizeBytes) }
    }

    deinit { change(to: 0) }

    /// Counts another number of bytes from now on.
    func change(to newSizeBytes: Int) {
        let change = newSizeBytes - sizeBytes.exchange(newSizeBytes, ordering: .relaxed)
        for ledger in ledgers { ledger.add(change) }
    }
}

/// The count of an answer on its way to a request, which takes it over. Lists that the answer was part of, such as a batch's outcomes, can stay longer.
final class AnswerCount: Sendable {
    private let held: Mutex<HeldBytes?>

    init(_ held: HeldBytes) { self.held = Mutex(held) }

    /// Hands the count over. Nil if it has been handed over before.
    func take() -> HeldBytes? {
        held.withLock { held in
            defer { held = nil }
            return held
        }
    }
}

/// An answer for a waiting request. It counts from when it is made until the request lets go of ``held``, whatever becomes of the request.
struct HeldAnswer: Sendable {
    let bytes: [UInt8]
    /// Nil for an empty answer.
    let held: HeldBytes?
}
