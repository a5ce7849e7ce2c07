import RoostAPI
import RoostCore
import RoostServer

/// Frames of the operations that read their own fields, mostly valid, with everything that JSON can write in several ways.
enum PlainFuzz {
    private static let texts = [
        "a", "general", "é", "e\u{301}", "🐦", "\u{7f}", "\u{2028}", "\\n", "\\r", "\\t", "\\b", "\\f", "\\/", "\\\\", "\\\"",
        "\\u0041",
        "\\u00e9", "\\u0000", "\\ud83d\\udc26", "{", "}", "[", "]", ",", ":", " ", "@", "null", "\u{feff}", "\u{200d}", "\u{fffd}",
    ]
    private static let numbers = [
        "0", "1", "2", "7", "100", "101", "9007199254740991", "9007199254740992", "99999999999999999", "999999999999999999",
        "1000000000000000000", "9223372036854775807", "9223372036854775808", "18446744073709551616", "-0", "-1", "00", "01", "1.0",
        "1.5", "1e2", "1E0", "0.0", "-9223372036854775808",
    ]
    private static let messageIDs = [
        "1", "7", "9223372036854775807", "9223372036854775808", "0", "01", "+1", "-1", "", " 1", "1.0", "1e2", "٣", "\\u0031",
    ]
    private static let times = [
        "2026-03-01T12:30:05.250Z", "2026-03-01T12:30:05Z", "2026-03-01T12:30:05.2Z", "0001-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59.999Z", "2026-02-30T00:00:00.000Z", "2026-03-01T12:30:60.000Z", "2026-03-01T12:30:05+01:00",
        "2026-03-01t12:30:05.250z", "1969-12-31T23:59:59.999Z", "2026-03-01",
    ]

    static func input(_ random: inout FuzzRandom) -> [UInt8] {
        let text = Array(frame(&random).utf8)
        return random.chance(3) ? Mutation.of(text, words: JSONFuzz.words, &random) : text
    }

    private static func frame(_ random: inout FuzzRandom) -> String {
        let type = random.pick(UntrustedBytes.plainOperations)
        let schema = OperationTable.named(type.name)?.schema ?? .any
        var members = [
            ("call", random.chance(8) ? random.pick(numbers) : "1"), ("operation", "\"\(type.name)\""),
            ("with", value(of: schema, &random)),
        ]
        if random.chance(8) {
            members.append(("key", "\"\(IdempotencyKey(madeAt: Timestamp(milliseconds: 1 << 40), random: 7).rawValue)\""))
        }
        if random.chance(4) { members.shuffle(using: &random) }
        return object(members, &random)
    }

    // MARK: Values

    /// A value of a field's shape. One in sixty has another.
    private static func value(of schema: Schema, _ random: inout FuzzRandom) -> String {
        if random.chance(60) { return random.pick(["null", "true", "{}", "[]", "\"\"", "7"]) }
        switch schema {
        case .string("date-time", _, _): return "\"\(random.chance(3) ? random.pick(times) : times[0])\""
        case .string("int64", _, _): return "\"\(random.chance(4) ? random.pick(messageIDs) : "\(random.below(1000) + 1)")\""
        case .string: return text(&random)
        case .integer, .number: return random.chance(5) ? random.pick(numbers) : "\(random.below(100) + 1)"
        case .boolean: return random.chance(2) ? "true" : "false"
        case .enumeration(let cases): return "\"\(random.pick(cases + ["x"]))\""
        case .array(let element): return array((0..<random.below(4)).map { _ in value(of: element, &random) }, &random)
        case .map(let element):
            return object((0..<random.below(4)).map { ("k\($0)", value(of: element, &random)) }, &random)
        case .object(_, let fields):
            // All of them only rarely: most of a page's exclude each other.
            let (optional, hasAll) = (1 + random.below(6), random.chance(8))
            let given = fields.filter { $0.isRequired ? !random.chance(80) : hasAll || random.chance(optional) }
            return object(given.shuffled(using: &random).map { ($0.name, value(of: $0.schema, &random)) }, &random)
        case .any: return free(depth: random.chance(6) ? 9 : 3, isObject: !random.chance(8), &random)
        }
    }

    /// Free JSON, such as metadata.
    private static func free(depth: Int, isObject: Bool, _ random: inout FuzzRandom) -> String {
        if isObject {
            let members = (0..<random.below(4)).map { index in
                ("k\(index)", free(depth: depth - 1, isObject: depth > 4, &random))
            }
            return object(members, &random)
        }
        switch random.below(depth > 0 ? 7 : 5) {
        case 0: return random.pick(["null", "true", "false"])
        case 1: return "\(random.below(1000))"
        case 2: return random.pick(numbers)
        case 3, 4: return text(&random)
        case 5: return array((0..<random.below(4)).map { _ in free(depth: depth - 1, isObject: false, &random) }, &random)
        default: return free(depth: depth - 1, isObject: true, &random)
        }
    }

    private static func text(_ random: inout FuzzRandom) -> String {
        if random.chance(2) { return "\"\(random.pick(["a", "general", "ann", "x1"]))\"" }
        return "\"" + (0..<random.below(5)).map { _ in random.pick(texts) }.joined() + "\""
    }

    // MARK: Text

    /// Sometimes a member is duplicated, unknown, or has an escape in its name.
    private static func object(_ members: [(String, String)], _ random: inout FuzzRandom) -> String {
        var members = members
        if random.chance(40), let member = members.first { members.append(member) }
        if random.chance(60) { members.append((random.pick(["x", "clientid", "Channel", "", "k\u{301}"]), "1")) }
        let written = members.map { name, value in
            var name = name
            if random.chance(80), let first = name.utf8.first, first < 0x80 {
                name = "\\u00\(String(first, radix: 16))" + name.dropFirst()
            }
            return "\"\(name)\"" + space(&random) + ":" + space(&random) + value
        }
        return list(written, "{", "}", &random)
    }

    private static func array(_ values: [String], _ random: inout FuzzRandom) -> String { list(values, "[", "]", &random) }

    private static func list(_ parts: [String], _ open: String, _ close: String, _ random: inout FuzzRandom) -> String {
        let inner = parts.map { space(&random) + $0 + space(&random) }.joined(separator: ",")
        return open + (parts.isEmpty ? space(&random) : inner) + close
    }

    private static func space(_ random: inout FuzzRandom) -> String {
        random.chance(12) ? random.pick([" ", "\n", "\t", "\r\n", "  \t"]) : ""
    }
}
