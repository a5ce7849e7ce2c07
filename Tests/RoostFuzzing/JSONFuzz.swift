import RoostAPI
import RoostServer

/// JSON by the grammar, slightly mutated; and its required properties.
enum JSONFuzz {
    static let words = [
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "\\udc00", "\\u0000", "null", "true", "false", "0", "-",
        "1e999", "1E+9", ".5",
        "9223372036854775808", "-9223372036854775808", "18446744073709551616", "\u{feff}", "\u{e9}", "e\u{301}", "\u{0}",
        "[[[[[[[[", "{\"a\":",
        " ", "\n", "0.1", "1.0", "NaN",
    ]

    static func value(_ random: inout FuzzRandom, depth: Int = 0) -> String {
        switch random.below(depth > 5 ? 6 : 9) {
        case 0: return "null"
        case 1: return random.chance(2) ? "true" : "false"
        case 2: return "\(Int64(truncatingIfNeeded: random.next()) >> Int64(random.below(64)))"
        case 3: return "\(Double(bitPattern: random.next()))"
        case 4, 5: return string(&random)
        case 6: return "[" + (0..<random.below(5)).map { _ in value(&random, depth: depth + 1) }.joined(separator: ",") + "]"
        default:
            let members = (0..<random.below(5)).map { _ in string(&random) + ":" + value(&random, depth: depth + 1) }
            return "{" + members.joined(separator: ",") + "}"
        }
    }

    /// This many marks in a row that twice as many are too many.
    private static let marks = String(repeating: "\u{301}", count: 70) + String(repeating: "\u{316}", count: 50)

    static func string(_ random: inout FuzzRandom) -> String {
        let pieces = [
            "a", "b", "k", "", " ", "\\n", "\\\"", "\\\\", "\\u00e9", "é", "e\u{301}", "👩‍👩‍👧", "\\ud83d\\ude00", "\\/", "\\u0000",
            "x\u{200d}", marks,
        ]
        return "\"" + (0..<random.below(4)).map { _ in random.pick(pieces) }.joined() + "\""
    }

    static func input(_ random: inout FuzzRandom) -> [UInt8] {
        let text = Array(value(&random).utf8)
        return random.chance(4) ? text : Mutation.of(text, words: words, &random)
    }

    /// Accepted JSON is also read by Foundation, is written as it was read, and is accepted again.
    static func check(_ bytes: [UInt8]) throws {
        guard let value = UntrustedBytes.json(bytes) else { return }
        guard let written = try? JSONWriter.bytes(of: value) else {
            throw FuzzFinding("JSON that was read can't be written", bytes)
        }
        guard let again = UntrustedBytes.json(written) else { throw FuzzFinding("JSON that was written is refused", bytes) }
        guard again == value else { throw FuzzFinding("JSON changed when it was written", bytes) }
    }
}
