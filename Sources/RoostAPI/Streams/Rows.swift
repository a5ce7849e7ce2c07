/// Rows after a change, as carried by an event or a response to `changes`.
///
/// The channel's own rows and capabilities have properties. All others are stored by kind.
public struct Rows: Sendable {
    /// The whole channel, if one of its attributes changed.
    public var channel: Channel?
    /// The channel's counters, if only they changed.
    public var counters: ChannelCounters?
    /// The caller's permissions by channel id, if they may have changed.
    public var ownCapabilities: [String: [Permission]]?
    /// The members' permissions by role, if a change of the channel changed them.
    public var capabilities: [String: [Permission]]?
    /// Rows of features, each kind once and none empty, in the order of the kinds' names.
    private var lists: [any RowList] = []

    /// - Parameter rows: Lists of rows, each of another kind. An empty one is the same as none.
    package init<each Row: StreamRow>(
        channel: Channel? = nil, counters: ChannelCounters? = nil, ownCapabilities: [String: [Permission]]? = nil,
        capabilities: [String: [Permission]]? = nil, _ rows: repeat [each Row]?
    ) {
        self.channel = channel
        self.counters = counters
        self.ownCapabilities = ownCapabilities
        self.capabilities = capabilities
        repeat self[(each Row).self] = each rows
    }

    /// The rows of one kind, for appending even if there are none yet.
    package subscript<Row: StreamRow>(_ kind: Row.Type, default rows: @autoclosure () -> [Row]) -> [Row] {
        get { self[kind] ?? rows() }
        set { self[kind] = newValue }
    }

    /// The rows of one kind; nil for none.
    package subscript<Row: StreamRow>(_ kind: Row.Type) -> [Row]? {
        get {
            for list in lists where list.kind == Row.kind { return (list as? RowsOfKind<Row>)?.rows }
            return nil
        }
        set {
            let index = lists.firstIndex { $0.kind >= Row.kind } ?? lists.endIndex
            let isHeld = index < lists.endIndex && lists[index].kind == Row.kind
            guard let newValue, !newValue.isEmpty else {
                if isHeld { lists.remove(at: index) }
                return
            }
            let list = RowsOfKind(rows: newValue)
            if isHeld { lists[index] = list } else { lists.insert(list, at: index) }
        }
    }
}

// MARK: Rows of every kind

extension Rows {
    /// Whether there are no rows of features.
    package var isEmptyOfFeatures: Bool { lists.isEmpty }

    /// The number of rows of features.
    package var count: Int { lists.reduce(0) { $0 + $1.count } }

    /// The approximate encoded size of the rows of features, in bytes.
    package var contentSizeBytes: Int { lists.reduce(0) { $0 + $1.contentSizeBytes } }

    /// The smallest seq of a message that one of the rows is about.
    package var oldestMessage: Seq? { lists.lazy.compactMap { $0.oldestMessage }.min() }

    /// The smallest seq of a message with which one of the rows is concealed.
    package var oldestConcealed: Seq? { lists.lazy.compactMap { $0.oldestConcealed }.min() }

    /// The seqs of messages that the rows report as permanently deleted.
    package var purgedMessages: [Seq] { lists.flatMap { $0.purgedMessages } }

    /// The users named by the rows, possibly repeated.
    package var namedUsers: [UserID] { lists.flatMap { $0.namedUsers } }

    /// Returns the number of rows that are concealed with messages up to a seq.
    package func count(concealedUpTo seq: Seq) -> Int { lists.reduce(0) { $0 + $1.count(concealedUpTo: seq) } }

    /// Returns the rows without those that are concealed with messages before a seq.
    package func withoutRows(concealedBefore seq: Seq) -> Rows {
        var rows = self
        rows.lists = lists.compactMap { $0.withoutRows(concealedBefore: seq) }
        return rows
    }

    /// Returns the rows without those about messages that don't satisfy a condition.
    package func withoutRows(aboutMessagesExcept isKept: (Seq) -> Bool) -> Rows {
        var rows = self
        rows.lists = filteredLists { message in message.map(isKept) ?? true }
        return rows
    }

    /// Returns only the rows about messages that satisfy a condition.
    package func rows(aboutMessages isKept: (Seq) -> Bool) -> Rows {
        var rows = Rows()
        rows.lists = filteredLists { message in message.map(isKept) ?? false }
        return rows
    }

    private func filteredLists(_ isKept: (_ aboutMessage: Seq?) -> Bool) -> [any RowList] {
        lists.compactMap { $0.filtered(isKept) }
    }

    /// Only the rows of features.
    package var ofFeatures: Rows {
        var rows = Rows()
        rows.lists = lists
        return rows
    }

    /// Appends rows of features to those of the same kind.
    package mutating func append(_ others: Rows) {
        for list in others.lists { list.append(to: &self) }
    }
}

/// The rows of any one kind.
private protocol RowList: Sendable {
    var kind: String { get }
    var count: Int { get }
    var contentSizeBytes: Int { get }
    var oldestMessage: Seq? { get }
    var oldestConcealed: Seq? { get }
    var purgedMessages: [Seq] { get }
    var namedUsers: [UserID] { get }
    func count(concealedUpTo seq: Seq) -> Int
    func withoutRows(concealedBefore seq: Seq) -> (any RowList)?
    func filtered(_ isKept: (_ aboutMessage: Seq?) -> Bool) -> (any RowList)?
    func append(to rows: inout Rows)
    func isEqual(to other: any RowList) -> Bool
    func hash(into hasher: inout Hasher)
    func write(to json: inout JSONBytes)
    func encode(to container: inout KeyedEncodingContainer<RowKey>) throws
}

/// Closures instead of key paths: a key path of a generic type is created again on every use.
private struct RowsOfKind<Row: StreamRow>: RowList, Hashable {
    var rows: [Row]

    var kind: String { Row.kind }
    var count: Int { rows.count }
    var contentSizeBytes: Int { rows.reduce(0) { $0 + $1.contentSizeBytes } }
    var oldestMessage: Seq? { rows.count == 1 ? rows[0].aboutMessage : rows.lazy.compactMap { $0.aboutMessage }.min() }

    var oldestConcealed: Seq? { rows.count == 1 ? rows[0].concealedWith : rows.lazy.compactMap { $0.concealedWith }.min() }

    var purgedMessages: [Seq] { rows.compactMap { $0.purgedMessage } }

    var namedUsers: [UserID] { rows.flatMap { $0.namedUsers } }

    func count(concealedUpTo seq: Seq) -> Int { rows.count { $0.concealedWith.map { $0 <= seq } ?? false } }

    func withoutRows(concealedBefore seq: Seq) -> (any RowList)? {
        let kept = rows.filter { $0.concealedWith.map { $0 >= seq } ?? true }
        return kept.isEmpty ? nil : RowsOfKind(rows: kept)
    }

    func filtered(_ isKept: (_ aboutMessage: Seq?) -> Bool) -> (any RowList)? {
        let kept = rows.filter { isKept($0.aboutMessage) }
        return kept.isEmpty ? nil : RowsOfKind(rows: kept)
    }

    func append(to others: inout Rows) { others[Row.self, default: []] += rows }

    func isEqual(to other: any RowList) -> Bool { (other as? Self) == self }

    func write(to json: inout JSONBytes) {
        json.key(Row.kind)
        guard Row.isSingle else { return json.array(rows) }
        if let row = rows.last { row.write(to: &json) } else { json.null() }
    }

    func encode(to container: inout KeyedEncodingContainer<RowKey>) throws {
        let key = RowKey(Row.kind)
        guard Row.isSingle else { return try container.encode(rows, forKey: key) }
        try container.encodeIfPresent(rows.last, forKey: key)
    }
}

// MARK: On the wire

/// A member of ``Rows``: a named one, or a kind.
package struct RowKey: CodingKey {
    package let stringValue: String
    package var intValue: Int? { nil }

    package init(_ name: String) { stringValue = name }
    package init(stringValue: String) { self.init(stringValue) }
    package init?(intValue: Int) { nil }

    package static let channel = RowKey("channel")
    package static let counters = RowKey("counters")
    package static let ownCapabilities = RowKey("ownCapabilities")
    package static let capabilities = RowKey("capabilities")
}

extension Rows: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: RowKey.self)
        channel = try container.decodeIfPresent(Channel.self, forKey: .channel)
        counters = try container.decodeIfPresent(ChannelCounters.self, forKey: .counters)
        for kind in RowKinds.known(to: decoder).all { try decode(kind, from: container) }
        ownCapabilities = try Self.permissions(.ownCapabilities, in: container)
        capabilities = try Self.permissions(.capabilities, in: container)
    }

    private static func permissions(_ key: RowKey, in container: KeyedDecodingContainer<RowKey>) throws -> [String: [Permission]]? {
        try container.decodeIfPresent([String: KnownNames<Permission>].self, forKey: key)?.mapValues { $0.value }
    }

    private mutating func decode<Row: StreamRow>(_ kind: Row.Type, from container: KeyedDecodingContainer<RowKey>) throws {
        let key = RowKey(Row.kind)
        if Row.isSingle {
            self[kind] = try container.decodeIfPresent(Row.self, forKey: key).map { [$0] }
        } else {
            self[kind] = try container.decodeIfPresent([Row].self, forKey: key)
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: RowKey.self)
        try container.encodeIfPresent(channel, forKey: .channel)
        try container.encodeIfPresent(counters, forKey: .counters)
        for list in lists { try list.encode(to: &container) }
        try container.encodeIfPresent(ownCapabilities, forKey: .ownCapabilities)
        try container.encodeIfPresent(capabilities, forKey: .capabilities)
    }
}

extension Rows: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channel", channel)
        json.member("counters", counters)
        for list in lists { list.write(to: &json) }
        json.member("ownCapabilities", ownCapabilities)
        json.member("capabilities", capabilities)
        json.endObject()
    }
}

extension Rows: Hashable {
    public static func == (left: Rows, right: Rows) -> Bool {
        left.channel == right.channel && left.counters == right.counters && left.ownCapabilities == right.ownCapabilities
            && left.capabilities == right.capabilities && left.lists.count == right.lists.count
            && zip(left.lists, right.lists).allSatisfy { $0.isEqual(to: $1) }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(channel)
        hasher.combine(counters)
        for list in lists { list.hash(into: &hasher) }
        hasher.combine(ownCapabilities)
        hasher.combine(capabilities)
    }
}
