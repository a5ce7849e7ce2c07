/// Durations in nanoseconds, counted in buckets of 3 % each: recording costs one increment, however many there are.
struct Histogram {
    private var counts = [UInt32](repeating: 0, count: 64 * 32)
    private(set) var count = 0

    mutating func record(_ nanoseconds: UInt64) {
        counts[Self.bucket(of: nanoseconds)] += 1
        count += 1
    }

    mutating func add(_ other: Histogram) {
        for (bucket, inBucket) in other.counts.enumerated() { counts[bucket] += inBucket }
        count += other.count
    }

    /// The duration in microseconds that this share of all durations doesn't exceed: 0.5 for the median.
    func microseconds(_ share: Double) -> Double {
        let rank = Int((Double(count) * share).rounded(.up))
        var seen = 0
        for (bucket, inBucket) in counts.enumerated() where inBucket > 0 {
            seen += Int(inBucket)
            if seen >= rank { return Self.middle(of: bucket) / 1000 }
        }
        return 0
    }

    var median: Double { microseconds(0.5) }
    var p99: Double { microseconds(0.99) }

    /// Values below 64 have a bucket each; above, every power of two is divided into 32.
    private static func bucket(of value: UInt64) -> Int {
        guard value >= 64 else { return Int(value) }
        let shift = 58 - value.leadingZeroBitCount
        return shift * 32 + Int(value >> UInt64(shift))
    }

    private static func middle(of bucket: Int) -> Double {
        guard bucket >= 64 else { return Double(bucket) }
        let shift = bucket / 32 - 1
        let low = UInt64(bucket - shift * 32) << UInt64(shift)
        return Double(low) + Double(UInt64(1) << UInt64(shift)) / 2
    }
}
