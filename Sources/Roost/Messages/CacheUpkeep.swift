import GRDB
import RoostAPI

/// Decides when an open cache is looked at, and what goes of one that has outgrown its size.
///
/// 1. It is looked at each time that a sixteenth of its size has been received: what is stored was received before.
/// 2. If it is too large, the oldest messages of channels go, of those last that a list shows, until it takes an eighth less than its size. They go some at a time, so
///    that nothing waits long for that.
/// 3. Where their gaps keep the file from having become smaller, it is packed.
///
/// It has no store: ``SyncDriver/keepCacheSmall()`` asks it, and does what it says.
struct CacheUpkeep: Sendable {
    /// Messages that go of a cache.
    struct Trimming: Sendable {
        /// The bytes that still have to go.
        var excess: Int
        /// The channels that may have messages to give up, the first one last.
        var channels: [ChannelID]
        /// Whether something has gone.
        var hasDeleted = false
    }

    /// The most messages that go at a time, and the most channels that are looked at for them.
    static let stepMax = (messages: 1000, channels: 100)
    /// The least that is received between two looks.
    private static let intervalBytesMin = 64 << 10

    let sizeBytesMax: Int
    private var bytesUntilLook: Int
    /// What goes at present; nil if nothing has to.
    var trimming: Trimming?

    init(sizeBytesMax: Int) {
        self.sizeBytesMax = sizeBytesMax
        bytesUntilLook = Self.interval(sizeBytesMax)
    }

    private static func interval(_ sizeBytesMax: Int) -> Int { max(sizeBytesMax / 16, intervalBytesMin) }

    mutating func received(_ bytes: Int) { bytesUntilLook = bytesUntilLook.subtractingWithSaturation(bytes) }

    /// Whether there is something to do.
    ///
    /// - Parameter isCalm: Whether nothing else waits. If something does, a look is put off until as much again has been received.
    func isDue(isCalm: Bool) -> Bool {
        trimming != nil || bytesUntilLook <= (isCalm ? 0 : -Self.interval(sizeBytesMax))
    }

    /// Takes in the result of a look: the bytes that are used, and the channels if these are too many, those first whose messages go first.
    mutating func looked(usedBytes: Int, _ channels: [ChannelID], shown: Set<ChannelID>) {
        bytesUntilLook = Self.interval(sizeBytesMax)
        guard usedBytes > sizeBytesMax else { return }
        let order = channels.filter { !shown.contains($0) } + channels.filter(shown.contains)
        trimming = Trimming(excess: usedBytes - sizeBytesMax / 8 * 7, channels: order.reversed())
    }

    /// The messages have gone. If the cache is still too large, nothing else may go: it is looked at less often from then on.
    mutating func ended(usedBytes: Int) {
        trimming = nil
        bytesUntilLook = Self.interval(sizeBytesMax) * (usedBytes > sizeBytesMax ? 8 : 1)
    }

    /// Whether the file of a cache from which messages have gone has to be packed.
    func mustPack(usedBytes: Int) -> Bool { trimming?.hasDeleted == true && usedBytes > sizeBytesMax / 16 * 15 }
}

extension CacheUpkeep.Trimming {
    var isDone: Bool { excess <= 0 || channels.isEmpty }

    /// Chooses the next messages that go.
    ///
    /// - Parameter shown: The first message of each channel that is shown.
    /// - Returns: The seqs from which channels keep their messages; empty if the channels that were looked at keep all.
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
