import Foundation
import RoostAPI

/// Rows, without those that can't be read, which are described.
struct LenientRows: Decodable {
    var rows = Rows()
    /// The problem of each row that was left out.
    var problems: [String] = []

    init(rows: Rows = Rows(), problems: [String] = []) {
        self.rows = rows
        self.problems = problems
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: RowKey.self)
        rows.channel = one(Channel.self, .channel, in: container)
        rows.counters = one(ChannelCounters.self, .counters, in: container)
        for kind in RowKinds.known(to: decoder).all { read(kind, in: container) }
        rows.ownCapabilities = permissions(.ownCapabilities, in: container)
        rows.capabilities = permissions(.capabilities, in: container)
    }

    /// Reads the rows of an answer that has them among its own members. A member named by one of these keys isn't a row, whatever rows are called.
    init<Key: CodingKey & CaseIterable>(from decoder: any Decoder, beside keys: Key.Type) throws {
        let container = try decoder.container(keyedBy: RowKey.self)
        let names = Set(keys.allCases.map(\.stringValue))
        for kind in RowKinds.known(to: decoder).all where !names.contains(kind.kind) { read(kind, in: container) }
    }

    /// Reads plain JSON rows directly, and others with Foundation. Returns nil if one can't be read or the object around them isn't plain:
    /// Foundation then reads the frame and reports what is wrong.
    init?(plainly json: inout PlainJSON, _ kinds: RowKinds) {
        let isPlain = json.members { key, json in
            switch key {
            case "channel": return Self.read(&json, into: &rows.channel) { Channel(plainly: &$0) }
            case "counters": return Self.read(&json, into: &rows.counters) { ChannelCounters(plainly: &$0) }
            case "ownCapabilities": return Self.read(&json, into: &rows.ownCapabilities) { $0.lists().map(Self.known) }
            case "capabilities": return Self.read(&json, into: &rows.capabilities) { $0.lists().map(Self.known) }
            default:
                guard let kind = kinds.all.first(where: { $0.kind == key }) else { return json.pass() != nil }
                return read(kind, &json)
            }
        }
        guard isPlain else { return nil }
    }

    private mutating func read<Row: StreamRow>(_ kind: Row.Type, _ json: inout PlainJSON) -> Bool {
        guard rows[kind] == nil else { return false }
        var read: [Row] = []
        let isRead: Bool
        if Row.isSingle {
            var row: Row?
            isRead = Self.read(&json, into: &row) { Row(plainly: &$0) }
            read = row.map { [$0] } ?? []
        } else {
            isRead =
                json.takeNull()
                || json.elements { json in
                    var row: Row?
                    guard Self.read(&json, into: &row, plainly: { Row(plainly: &$0) }), let row else { return false }
                    read.append(row)
                    return true
                }
        }
        if !read.isEmpty { rows[kind] = read }
        return isRead
    }

    /// Reads one value, or skips `null`. Returns whether it could; false if the key is repeated.
    private static func read<Value: Decodable>(
        _ json: inout PlainJSON, into place: inout Value?, plainly: (inout PlainJSON) -> Value?
    ) -> Bool {
        guard place == nil else { return false }
        if json.takeNull() { return true }
        place = json.attempt(plainly)
        if place == nil, let range = json.pass() {
            place = try? JSONDecoder.forAnswers.decode(Value.self, from: Data(json.bytes[range]))
        }
        return place != nil
    }

    private mutating func read<Row: StreamRow>(_ kind: Row.Type, in container: KeyedDecodingContainer<RowKey>) {
        let key = RowKey(Row.kind)
        rows[kind] = Row.isSingle ? one(kind, key, in: container).map { [$0] } : many(kind, key, in: container)
    }

    /// Lists of permissions, without those that this version doesn't know.
    private mutating func permissions(
        _ key: RowKey, in container: KeyedDecodingContainer<RowKey>
    ) -> [String: [Permission]]? {
        one([String: [String]].self, key, in: container).map(Self.known)
    }

    private static func known(_ lists: [String: [String]]) -> [String: [Permission]] {
        lists.mapValues { $0.compactMap(Permission.init(rawValue:)) }
    }

    private mutating func one<Row: Decodable>(
        _ type: Row.Type, _ key: RowKey, in container: KeyedDecodingContainer<RowKey>
    ) -> Row? {
        do {
            return try container.decodeIfPresent(type, forKey: key)
        } catch {
            problems.append("\(key.stringValue): \(error)")
            return nil
        }
    }

    private mutating func many<Row: Decodable>(
        _ type: Row.Type, _ key: RowKey, in container: KeyedDecodingContainer<RowKey>
    ) -> [Row]? {
        guard let attempts = one([Attempt<Row>].self, key, in: container) else { return nil }
        // A key path of a generic type is created again each time it is used.
        for attempt in attempts { if let problem = attempt.problem { problems.append("\(key.stringValue): \(problem)") } }
        return attempts.compactMap { $0.row }
    }
}

/// One element of a list, read or not.
struct Attempt<Row: Decodable>: Decodable {
    var row: Row?
    var problem: String?

    init(from decoder: any Decoder) throws {
        do {
            row = try Row(from: decoder)
        } catch {
            problem = "\(error)"
        }
    }
}
