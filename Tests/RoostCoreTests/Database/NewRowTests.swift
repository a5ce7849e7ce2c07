import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Inserted rows, alike on both engines: an engine's deferred inserts must not be noticeable.
@Suite("New rows")
struct NewRowTests {
    private struct Refused: Error {}
    /// One step of an operation.
    private enum Step {
        /// Inserts a row unless the name is taken.
        case insert(String, String)
        case insertOrReplace(String, String)
        case insertOrLeave(String, String)
        /// Waits until the inserts are made.
        case read
        case fail
    }

    @Test(
        "I5 I23 rows of operations that share a transaction, and can fail, are those of a dictionary",
        arguments: 0..<24 as Range<UInt64>)
    func sameAsDictionary(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let place = try TestDatabase()
        defer { withExtendedLifetime(place) {} }
        let database = try place.open()
        try database.write(lane: 0) { try $0.perform("DELETE FROM settings") }
        var model: [String: String] = [:]
        for _ in 0..<12 {
            let operations = Self.operations(&random)
            let replies = try database.write(lane: 0) { transaction in
                operations.map { steps in try? transaction.attempt { try Self.perform(steps, in: transaction) } }
            }
            #expect(replies == operations.map { Self.perform($0, on: &model) })
            let rows = try database.read(Self.rows)
            try #require(Dictionary(uniqueKeysWithValues: rows) == model)
        }
    }

    private static func operations(_ random: inout SeededGenerator) -> [[Step]] {
        // Sometimes more rows than are deferred.
        let names = random.once(in: 6) ? 400 : random.number(2...30)
        return (0..<random.number(1...(names > 30 ? 300 : 40))).map { _ in
            (0..<random.number(1...3)).map { _ in
                let name = "\(random.number(1...names))"
                let value = "\(random.number(1...1000))"
                switch random.number(1...40) {
                case 1...10: return .insertOrReplace(name, value)
                case 11...20: return .insertOrLeave(name, value)
                // Mostly a new name: a taken one makes the whole transaction run again.
                case 21...36: return .insert(random.once(in: 60) ? name : "new \(value) \(random.number(1...1_000_000))", value)
                case 37, 38: return .read
                default: return .fail
                }
            }
        }
    }

    /// Returns whether each inserted or checked row was new, and how many rows there were.
    private static func perform(_ steps: [Step], in transaction: any Transaction) throws -> [Int] {
        try steps.map { step in
            switch step {
            case .insert(let name, let value):
                return try transaction.insert(row(.new, name, value)) ? 1 : 0
            case .insertOrReplace(let name, let value):
                try transaction.insert(row(.replacing, name, value), named: name)
                return 0
            case .insertOrLeave(let name, let value):
                try transaction.insert(row(.new, name, value), named: name)
                return 0
            case .read: return try rows(in: transaction).count
            case .fail: throw Refused()
            }
        }
    }

    private static func perform(_ steps: [Step], on model: inout [String: String]) -> [Int]? {
        var after = model
        var replies: [Int] = []
        for step in steps {
            switch step {
            case .insert(let name, let value):
                replies.append(after[name] == nil ? 1 : 0)
                after[name] = after[name] ?? value
            case .insertOrReplace(let name, let value):
                replies.append(0)
                after[name] = value
            case .insertOrLeave(let name, let value):
                replies.append(0)
                after[name] = after[name] ?? value
            case .read: replies.append(after.count)
            case .fail: return nil
            }
        }
        model = after
        return replies
    }

    private static func row(_ kind: NewRow.Kind, _ name: String, _ value: String) -> NewRow {
        NewRow(kind, [.text(name), .text(value)])
    }
    private static func rows(in transaction: any Transaction) throws -> [(String, String)] {
        try transaction.rows("SELECT name, value FROM settings") { ($0.string(), $0.string()) }
    }
}

extension NewRow.Kind {
    static let new = NewRow.Kind(into: "settings (name, value)", unlessTaken: "name")
    static let replacing = NewRow.Kind(into: "settings (name, value)", "ON CONFLICT (name) DO UPDATE SET value = excluded.value")
}
