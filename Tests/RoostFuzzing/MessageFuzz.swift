import RoostAPI
import RoostCore
import RoostServer
import RoostTestSupport

/// Frames of every operation, with valid, nearly valid and invalid fields.
enum MessageFuzz {
    static let ids = [
        "ann", "bob", "cem", "general", "private", "group:private", "messaging:general", "x", "", "a/b", "..", "é", "e\u{301}",
        "a\u{202e}b", "👩‍👩‍👧", "\u{0}", "@self",
    ]
    static let numbers: [Int64] = [
        0, 1, -1, 2, 3, 7, 50, 100, 101, 1000, 1 << 31, 1 << 32, 1 << 53, (1 << 53) - 1, .max, .min, .max - 1, .max / 1000,
        .max / 1000 + 1,
    ]

    /// The text of a call.
    static func call(_ random: inout FuzzRandom) -> String {
        let entry = random.pick(OperationTable.handled)
        let schema = OperationTable.named(entry.name)?.schema ?? .any
        let with = random.chance(40) ? JSONFuzz.value(&random) : json(of: schema, name: "", &random)
        let key = random.chance(3) ? ",\"key\":\(key(&random))" : ""
        return "{\"call\":\(random.chance(20) ? random.pick(numbers) : 1),\"operation\":\"\(entry.name)\"\(key),\"with\":\(with)}"
    }

    /// The key of a call, as JSON: one of few, so keys recur, with any of these times.
    private static func key(_ random: inout FuzzRandom) -> String {
        if random.chance(12) { return JSONFuzz.value(&random) }
        let time = random.chance(2) ? random.pick(numbers) : CoreWorld.start.milliseconds
        let text = IdempotencyKey(madeAt: Timestamp(milliseconds: time), random: UInt64(random.below(3))).rawValue
        return "\"\(random.chance(8) ? text.uppercased() : text)\""
    }

    static func input(_ random: inout FuzzRandom) -> [UInt8] {
        let text = Array(call(&random).utf8)
        return random.chance(2) ? text : Mutation.of(text, words: JSONFuzz.words, &random)
    }

    /// A message is never answered with `internal_error`, and means the same as to Foundation, whichever reader reads it.
    ///
    /// - Returns: The operation, if it read its own fields.
    @discardableResult
    static func check(_ bytes: [UInt8]) throws -> String? {
        if case .refused(let error) = UntrustedBytes.message(bytes), error.code == .internalError {
            throw FuzzFinding("a message is answered with internal_error", bytes)
        }
        switch try UntrustedBytes.comparison(bytes) {
        case .none, .same: return nil
        case .sameFieldByField(let operation): return operation
        case .different(let difference): throw FuzzFinding("a message means \(difference)", bytes)
        }
    }

    /// A value that mostly fits a field's shape.
    private static func json(of schema: Schema, name: String, _ random: inout FuzzRandom) -> String {
        if !name.isEmpty, random.chance(30) { return JSONFuzz.value(&random) }
        switch schema {
        case .string(let format, _, _):
            switch format {
            case "date-time":
                return random.pick([
                    "\"2026-03-01T12:30:05.250Z\"", "\"0001-01-01T00:00:00.000Z\"", "\"9999-12-31T23:59:59.999Z\"", "\"x\"",
                ])
            case "int64": return "\"\(random.pick(numbers))\""
            default:
                return random.chance(12) ? JSONFuzz.string(&random) : "\"\(random.pick(ids).replacing("\u{0}", with: "\\u0000"))\""
            }
        case .integer: return "\(random.pick(numbers))"
        case .number: return random.pick(["0", "1.5", "-0.0", "1e300", "5e-324"])
        case .boolean: return random.chance(2) ? "true" : "false"
        case .enumeration(let cases): return "\"\(random.pick(cases + ["x"]))\""
        case .array(let element):
            return "[" + (0..<random.below(4)).map { _ in json(of: element, name: name, &random) }.joined(separator: ",") + "]"
        case .map(let value):
            let members = (0..<random.below(4)).map { _ in "\(JSONFuzz.string(&random)):\(json(of: value, name: name, &random))" }
            return "{" + members.joined(separator: ",") + "}"
        case .object(_, let fields):
            let given = fields.filter { $0.isRequired ? !random.chance(40) : random.chance(3) }
            return "{" + given.map { "\"\($0.name)\":\(json(of: $0.schema, name: $0.name, &random))" }.joined(separator: ",") + "}"
        case .any: return JSONFuzz.value(&random)
        }
    }
}
