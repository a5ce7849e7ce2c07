public import RoostAPI

/// Values that an engine keeps between reads, so a read of many rows only has to look at those that have changed.
///
/// Only an engine that knows of every change has one. Three things make it exact:
///
/// - A writing transaction records its changes (``Transaction/noteChange(of:)``), and the record exists before its commit becomes visible.
/// - ``commit`` is taken before the snapshot begins. So the snapshot contains that commit and all earlier ones.
/// - A value kept with the ``commit`` of the snapshot it was read from holds in another snapshot if nothing it was read from
///   has changed after the lower one of the two. Whatever may have changed is read from the snapshot itself.
///
/// It is only asked for changes once the transaction has read something: a snapshot begins with its first statement.
public protocol ReadCache: Sendable {
    /// The number of a commit that the snapshot contains, with all earlier ones.
    var commit: Int64 { get }

    /// Whether everything is kept from the first read on, however little it saves, and compared with what statements read. For tests.
    var isChecked: Bool { get }

    /// Returns the value kept for a user; nil if there is none, or none any longer.
    func value(for user: UserID) -> (any CachedValue)?

    /// Keeps a value, replacing the former one.
    ///
    /// - Returns: False if it is too large to be kept.
    @discardableResult
    func keep(_ value: any CachedValue, for user: UserID) -> Bool

    /// Returns the indices in a list of marks that may have changed after a commit; nil if there are more than `max`.
    func changes(among marks: [ChangeMark], after commit: Int64, atMost max: Int) -> [Int]?
}

/// A value that an engine keeps and may evict at any time.
public protocol CachedValue: Sendable {
    /// Its approximate size in memory.
    var sizeBytes: Int { get }
}

/// One of a fixed number of places in a record of changes. Channels can share one: an unchanged channel may look changed, but never the reverse.
public struct ChangeMark: Hashable, Sendable {
    /// The number of places.
    public static let count = 1 << 15

    /// Its place in the record, less than ``count``.
    public let index: UInt16

    /// The mark of a channel's head.
    public init(_ channel: ChannelID) {
        // FNV-1a; the high bits are mixed in, since the last letters hardly affect the low ones.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in channel.rawValue.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        hash ^= hash >> 32
        hash ^= hash >> 15
        index = UInt16(truncatingIfNeeded: hash & UInt64(Self.count - 1))
    }
}
