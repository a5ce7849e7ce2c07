import RoostAPI

/// Rows of which those that can't be read are left out and described.
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

    /// Reads the rows of an answer that has them among its own members. What has the name of one of these isn't a row, whatever else rows are
    /// called.
    init<Key: CodingKey & CaseIterable>(from decoder: any Decoder, beside keys: Key.Type) throws {
        let container = try decoder.container(keyedBy: RowKey.self)
        let names = Set(keys.allCases.map(\.stringValue))
        for kind in RowKinds.known(to: decoder).all where !names.contains(kind.kind) { read(kind, in: container) }
    }

    private mutating func read<Row: StreamRow>(_ kind: Row.Type, in container: KeyedDecodingContainer<RowKey>) {
        let key = RowKey(Row.kind)
        rows[kind] = Row.isSingle ? one(kind, key, in: container).map { [$0] } : many(kind, key, in: container)
    }

    /// Lists of permissions, without those that this version doesn't know.
    private mutating func permissions(
        _ key: RowKey, in container: KeyedDecodingContainer<RowKey>
    ) -> [String: [Permission]]? {
        one([String: [String]].self, key, in: container)?.mapValues { $0.compactMap(Permission.init(rawValue:)) }
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
        problems += attempts.compactMap(\.problem).map { "\(key.stringValue): \($0)" }
        return attempts.compactMap(\.row)
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
