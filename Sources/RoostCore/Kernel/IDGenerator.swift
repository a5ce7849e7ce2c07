public import RoostAPI

/// Makes message ids, and channel ids for callers who name none: 63 bits that grow with time.
///
/// 41 bits of milliseconds since 2024, 10 bits of node, 12 bits of counter. It never goes back: while the clock stands still or steps
/// backwards, and when more than 4096 ids are made in one millisecond, it counts on from the last id.
public struct IDGenerator: Sendable {
    private static let epochMilliseconds: Int64 = 1_704_067_200_000
    private let node: Int64
    /// Milliseconds and counter of the last id, without the node.
    private var last: Int64

    /// - Parameters:
    ///   - node: 0 to 1023, different for each node of a cluster.
    ///   - last: the time of the newest activity in the database, so that a clock set back between two runs makes no id twice.
    public init(node: Int64 = 0, after last: Timestamp? = nil) {
        self.node = node & 1023
        // Ids run ahead of the clock while it stands behind them: a second's worth, four million, is more than any run gets ahead.
        self.last = last.map { (Self.ticks($0) + 1000) << 12 } ?? 0
    }

    public mutating func next(at now: Timestamp) -> MessageID {
        last = max(last + 1, Self.ticks(now) << 12)
        return MessageID(rawValue: (last >> 12) << 22 | node << 12 | (last & 4095))
    }

    /// Milliseconds since the generator's own epoch, in 41 bits.
    private static func ticks(_ time: Timestamp) -> Int64 {
        min(max(0, time.milliseconds - epochMilliseconds), (1 << 41) - 2)
    }

    /// A channel id that no other call has ever given.
    public mutating func nextChannelID(at now: Timestamp) -> ChannelID {
        let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz")
        var number = next(at: now).rawValue
        var characters: [Character] = []
        while number > 0 {
            characters.append(alphabet[Int(number & 31)])
            number >>= 5
        }
        return ChannelID(String(characters.reversed()))
    }
}
