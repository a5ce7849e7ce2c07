/// Choices that a seed repeats (SplitMix64).
public struct FuzzRandom: RandomNumberGenerator {
    private var state: UInt64

    /// The choices of one case of a run.
    public init(seed: UInt64, kind: FuzzKind, index: Int) {
        state = seed &+ UInt64(truncatingIfNeeded: index) &* 0x9E37_79B9_7F4A_7C15
        for byte in kind.rawValue.utf8 { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }
        _ = next()
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func below(_ count: Int) -> Int { count <= 1 ? 0 : Int(next() % UInt64(count)) }
    mutating func chance(_ one: Int) -> Bool { below(one) == 0 }

    mutating func pick<T>(_ values: [T]) -> T {
        precondition(!values.isEmpty, "There is nothing to choose from.")
        return values[below(values.count)]
    }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}

/// Mutates bytes slightly, so they stay mostly valid.
enum Mutation {
    /// - Parameter words: Texts to insert and to cut at, besides single bytes.
    static func of(_ bytes: [UInt8], words: [String], _ random: inout FuzzRandom) -> [UInt8] {
        var result = bytes
        for _ in 0...random.below(4) {
            let place = random.below(result.count + 1)
            switch random.below(8) {
            case 0 where place < result.count: result[place] = UInt8(truncatingIfNeeded: random.next())
            case 1 where place < result.count: result[place] ^= 1 << UInt8(random.below(8))
            case 2: result.removeSubrange(place..<min(result.count, place + random.below(8)))
            case 3: result.insert(contentsOf: Array(random.pick(words).utf8), at: place)
            case 4: result.insert(contentsOf: random.bytes(random.below(6)), at: place)
            case 5: result = Array(result.prefix(place))
            case 6:
                let end = min(result.count, place + random.below(32))
                result.insert(contentsOf: result[place..<end], at: random.below(result.count + 1))
            default:
                let word = Array(random.pick(words).utf8)
                let end = min(result.count, place + word.count)
                result.replaceSubrange(place..<end, with: word)
            }
        }
        return result
    }
}
