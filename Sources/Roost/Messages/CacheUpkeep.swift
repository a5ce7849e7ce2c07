import GRDB
import RoostAPI

/// Decides when an open cache is checked, and what is deleted from one that has outgrown its size.
///
/// 1. It is checked each time a sixteenth of its size has been received: what is stored was received before.
/// 2. If it is too large, the oldest messages of channels are deleted, those of channels that a list shows last, until it takes an eighth less than
///   its size. They are deleted a limited number at a time, so nothing waits long.
/// 3. If their gaps kept the file from shrinking, it is packed.
///
/// It has no store: ``SyncDriver/keepCacheSmall()`` asks it, and carries out its decisions.
struct CacheUpkeep: Sendable {
    /// The messages to delete from a cache.
    struct Trimming: Sendable {
        /// The bytes that still have to be freed.
        var excess: Int
        /// The channels that may have messages to delete, in reverse order.
        var channels: [ChannelID]
        /// Whether any messages have been deleted.
        var hasDeleted = false
    }

    /// The maximum number of messages deleted at a time, and of channels checked for them.
    static let stepMax = (messages: 1000, channels: 100)
    /// The minimum number of bytes received between two checks.
    private static let intervalBytesMin = 64 << 10

    let sizeBytesMax: Int
    private var bytesUntilCheck: Int
    /// The deletion in progress; nil if there is none.
    var trimming: Trimming?

    init(sizeBytesMax: Int) {
        self.sizeBytesMax = sizeBytesMax
        bytesUntilCheck = Self.interval(sizeBytesMax)
    }

    private static func interval(_ sizeBytesMax: Int) -> Int { max(sizeBytesMax / 16, intervalBytesMin) }

    mutating func received(_ bytes: Int) { bytesUntilCheck = bytesUntilCheck.subtractingWithSaturation(bytes) }

    /// Whether there is something to do.
    ///
    /// - Parameter isCalm: Whether nothing else is queued. Otherwise a check is put off until as much again has been received.
    func isDue(isCalm: Bool) -> Bool {
        trimming != nil || bytesUntilCheck <= (isCalm ? 0 : -Self.interval(sizeBytesMax))
    }

    /// Records the result of a check: the bytes in use and, if these are too many, the channels in the order in which they lose messages.
    mutating func looked(usedBytes: Int, _ channels: [ChannelID], shown: Set<ChannelID>) {
        bytesUntilCheck = Self.interval(sizeBytesMax)
        guard usedBytes > sizeBytesMax else { return }
        let order = channels.filter { !shown.contains($0) } + channels.filter(shown.contains)
        trimming = Trimming(excess: usedBytes - sizeBytesMax / 8 * 7, channels: order.reversed())
    }

    /// Ends a deletion. If the cache is still too large, nothing else may be deleted: it is checked less often from then on.
    mutating func ended(usedBytes: Int) {
        trimming = nil
        bytesUntilCheck = Self.interval(sizeBytesMax) * (usedBytes > sizeBytesMax ? 8 : 1)
    }

    /// Whether a cache's file has to be packed after messages have been deleted.
    func mustPack(usedBytes: Int) -> Bool { trimming?.hasDeleted == true && usedBytes > sizeBytesMax / 16 * 15 }
}

extension CacheUpkeep.Trimming {
    var isDone: Bool { excess <= 0 || channels.isEmpty }

    /// Chooses the next messages to delete.
    ///
    /// - Parameter shown: The first message of each channel that is shown.
    /// - Returns: The seqs from which channels keep their messages; empty if the checked channels keep all.
    mutating func next(
        _ shown: [ChannelID: Seq], _ most: (messages: Int, channels: Int), in database: Database
    ) throws -> [ChannelID: Seq] {
        var starts: [ChannelID: Seq] = [:]
        var (count, looks) = (0, 0)
        while !isDone, count < most.messages, looks < most.channels, let channel = channels.last {
            looks += 1
            guard let kept = try database.firstKept(of: channel, shownFrom: shown[channel] ?? .max) else {
                channels.removeLast()
                continue
            }
            let start = try database.firstKept(of: channel, before: kept, afterDeleting: most.messages - count)
            if start == kept { channels.removeLast() }
            let deleted = try database.size(ofMessagesIn: channel, before: start)
            guard deleted.count > 0 else { continue }
            starts[channel] = start
            count += deleted.count
            excess -= deleted.bytes
        }
        if !starts.isEmpty { hasDeleted = true }
        return starts
    }
}
