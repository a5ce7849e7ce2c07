import Foundation

/// Random numbers that a seed repeats (SplitMix64). Seeds and steps use different constants; otherwise one seed would begin where another
/// soon arrives.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed &* 0xD1B5_4A32_D192_ED03 &+ 0x1234_5678 }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    public mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }

    /// True once in the given number of calls, on average.
    public mutating func once(in times: Int) -> Bool { number(1...times) == 1 }

    public mutating func pick<T>(_ values: [T]) -> T { values[number(0...values.count - 1)] }
}

/// The seeds of a random test. A failure names its seed, and `ROOST_TEST_SEED` repeats it alone.
public enum Seeds {
    public static func first(_ count: UInt64) -> [UInt64] {
        if let given = ProcessInfo.processInfo.environment["ROOST_TEST_SEED"].flatMap(UInt64.init) { return [given] }
        return Array(1...count)
    }
}
