import RoostAPI

/// Random numbers that a seed repeats (SplitMix64). Seeds and steps use different constants; otherwise one seed would begin where another
/// soon arrives.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed &* 0xD1B5_4A32_D192_ED03 &+ 0x1234_5678 }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }
    mutating func pick<T>(_ values: [T]) -> T { values[number(0...values.count - 1)] }
}

/// Random JSON, with everything that is awkward to write.
struct RandomJSON {
    var random: SeededGenerator
    /// How many keys a map of a schema has.
    var keysOfMaps = 0...3

    private static let pieces: [String] = [
        "", "a", "\"", "\\", "/", "\n", "\r", "\t", "\u{0}", "\u{1}", "\u{8}", "\u{c}", "\u{1f}", "\u{7f}", "\u{80}", "é",
        "e\u{301}", "ß", "語",
        "👩‍👩‍👧‍👦", "🇩🇪", "\u{2028}", "\u{2029}", "\u{ffff}", "\u{10ffff}", "</script>", "{}", "[]", "null", "\\u0000",
        "\u{200f}",
    ]

    mutating func text() -> String {
        (0..<random.number(0...6)).map { _ in random.pick(Self.pieces) }.joined()
    }

    mutating func double() -> Double {
        let special: [Double] = [
            0.1, -0.1, 1e-7, Double.leastNonzeroMagnitude, 1.7976931348623157e308, -2.2250738585072014e-308, 1e21, 1.5e22,
            123456.789, 0.30000000000000004,
        ]
        return random.pick(special + [Double.random(in: -1e6...1e6, using: &random) + 0.123])
    }

    mutating func value(depth: Int) -> JSONValue {
        switch random.number(0...(depth > 0 ? 8 : 5)) {
        case 0: return .null
        case 1: return .boolean(random.number(0...1) == 1)
        case 2: return .integer(random.pick([0, 1, 9, 10, -1, -9, -10, 42, .max, .min, 1 << 53, (1 << 53) + 1]))
        case 3: return .number(double())
        case 4, 5: return .string(text())
        case 6: return .array((0..<random.number(0...4)).map { _ in value(depth: depth - 1) })
        default: return object(depth: depth)
        }
    }

    /// Keys differ by more than how a character is composed: Swift considers such keys equal.
    mutating func object(depth: Int) -> JSONValue {
        var members: [String: JSONValue] = [:]
        for number in 0..<random.number(0...4) { members["\(number)" + text()] = value(depth: depth - 1) }
        return .object(members)
    }

    /// A value of the shape that a schema describes. `name` is the name of the field it is for.
    mutating func value(of schema: Schema, name: String = "") -> JSONValue {
        switch schema {
        case .string(format: "date-time", _, _):
            return .string(Timestamp(milliseconds: Int64(random.number(-1_000_000_000_000...4_000_000_000_000))).description)
        case .string(format: "int64", _, _): return .string(String(Int64.random(in: 0 ... .max, using: &random)))
        case .string: return .string(name == "stream" ? random.pick(["channel:general", "user:ann:b"]) : text())
        case .integer: return .integer(Int64(random.number(-5...1_000_000_000)))
        case .number: return .number(double())
        case .boolean: return .boolean(random.number(0...1) == 1)
        case .enumeration(let values): return .string(random.pick(values))
        case .array(let element): return .array((0..<random.number(0...3)).map { _ in value(of: element) })
        case .map(let element):
            return .object(
                Dictionary(uniqueKeysWithValues: (0..<random.number(keysOfMaps)).map { ("\($0)" + text(), value(of: element)) }))
        case .object(_, let fields):
            var members: [String: JSONValue] = [:]
            for field in fields {
                if !field.isRequired, random.number(0...2) == 0 {
                    if random.number(0...1) == 0 { members[field.name] = .null }
                } else {
                    members[field.name] = value(of: field.schema, name: field.name)
                }
            }
            return .object(members)
        case .any: return object(depth: 3)
        }
    }
}
