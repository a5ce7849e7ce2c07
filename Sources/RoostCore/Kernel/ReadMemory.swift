public import RoostAPI

/// Values that an engine keeps between reads, so that a read of many rows only has to look at those that have changed.
///
/// Only an engine that knows of every change has one. Three things make it exact:
///
/// - A transaction that writes notes what it changes (``Transaction/noteChange(of:)``), and that is on record before its commit can be seen.
/// - ``commit`` is taken before the snapshot begins. So the snapshot contains that commit and all before it.
/// - A value that is kept with the ``commit`` of the snapshot it was read from holds in another snapshot, if nothing it was read from has changed
///   after the lower one of the two. Whatever may have changed is read from the snapshot itself.
///
/// It is only asked for changes once the transaction has read something: a snapshot begins with its first statement.
public protocol ReadMemory: Sendable {
    /// The number of a commit that the snapshot contains, with all before it.
    var commit: Int64 { get }

    /// Whether everything is kept from the first read on, however little it saves, and compared with what statements read. For tests.
    var isChecked: Bool { get }

    /// Returns what is kept for a user; nil if nothing is, or no longer.
    func value(for user: UserID) -> (any KeptValue)?

    /// Keeps a value in the place of the former one.
    ///
    /// - Returns: False if it is too large to be kept.
    @discardableResult
    func keep(_ value: any KeptValue, for user: UserID) -> Bool

    /// Returns the places in a list of marks that may have changed after a commit; nil if there are more than a number of them.
    func changes(among marks: [ChangeMark], after commit: Int64, atMost max: Int) -> [Int]?
}

/// A value that an engine keeps. It may forget it at any time.
public protocol KeptValue: Sendable {
    /// About what it takes in memory.
    var sizeBytes: Int { get }
}

/// One of a fixed number of places in a record of changes. Channels can share one: what hasn't changed may look as if it had, never the other
/// way round.
public struct ChangeMark: Hashable, Sendable {
    /// How many there are.
    public static let count = 1 << 15

    /// Its place in the record, less than ``count``.
    public let index: UInt16

    /// The mark of a channel's head.
    public init(_ channel: ChannelID) {
        // FNV-1a; the high bits are mixed in, since those of the last letters hardly reach the low ones.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in channel.rawValue.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        hash ^= hash >> 32
        hash ^= hash >> 15
        index = UInt16(truncatingIfNeeded: hash & UInt64(Self.count - 1))
    }
}
