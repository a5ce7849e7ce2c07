import RoostAPI

/// A value in one column of a table.
protocol ColumnValue {
    /// The value of the next column.
    init(reading row: inout RowReader) throws
    /// Returns the value for the column.
    func column() throws -> SQLValue
}

/// A value stored in several columns of a row: its `boundColumns`, or its `columns` if it is read by the same names.
protocol BoundRow {
    /// The values, in the order of these columns.
    func bind(to values: inout RowValues) throws
}

/// The values of a row's columns, collected in order.
struct RowValues {
    private(set) var values: [SQLValue] = []

    init(capacity: Int = 24) { values.reserveCapacity(capacity) }

    mutating func bind(_ value: some ColumnValue) throws { values.append(try value.column()) }
    mutating func bind(_ row: some BoundRow) throws { try row.bind(to: &self) }
}

extension RowReader {
    /// The next column, or the next several.
    mutating func value<Value: ColumnValue>() throws -> Value { try Value(reading: &self) }
}

// MARK: Numbers and texts

extension Int: ColumnValue {
    init(reading row: inout RowReader) { self = row.int() }
    func column() -> SQLValue { .integer(Int64(self)) }
}

extension Int64: ColumnValue {
    init(reading row: inout RowReader) { self = row.int64() }
    func column() -> SQLValue { .integer(self) }
}

extension Bool: ColumnValue {
    init(reading row: inout RowReader) { self = row.bool() }
    func column() -> SQLValue { .integer(self ? 1 : 0) }
}

extension String: ColumnValue {
    init(reading row: inout RowReader) { self = row.string() }
    func column() -> SQLValue { .text(self) }
}

extension Timestamp: ColumnValue {
    init(reading row: inout RowReader) { self = row.timestamp() }
    func column() -> SQLValue { .integer(milliseconds) }
}

extension MessageID: ColumnValue {
    init(reading row: inout RowReader) { self.init(rawValue: row.int64()) }
    func column() -> SQLValue { .integer(rawValue) }
}

// MARK: Names

extension ColumnValue where Self: WireString {
    init(reading row: inout RowReader) { self.init(rawValue: row.string()) }
    func column() -> SQLValue { .text(rawValue) }
}

extension ChannelID: ColumnValue {}
extension UserID: ColumnValue {}
extension ClientID: ColumnValue {}
extension DeviceID: ColumnValue {}
extension ChannelRole: ColumnValue {}
extension ChannelType: ColumnValue {}

extension ColumnValue where Self: WireEnumeration {
    init(reading row: inout RowReader) throws { self = try row.enumeration() }
    func column() -> SQLValue { .text(rawValue) }
}

extension ChannelPolicy.Audience: ColumnValue {}
extension MembershipState: ColumnValue {}
extension HiddenState: ColumnValue {}
extension InvitationState: ColumnValue {}
extension MessageKind: ColumnValue {}
extension PushOption: ColumnValue {}

// MARK: JSON

/// A value stored in its column as JSON that it writes and reads itself: `Codable` takes microseconds per value.
protocol JSONColumn: ColumnValue, Decodable {
    /// Reads the next value; nil if Foundation has to decode it.
    static func read(plainly json: inout PlainJSON) -> Self?
    func write(to json: inout JSONBytes)
}

extension JSONColumn {
    init(reading row: inout RowReader) throws { self = try StoredJSON.decode(row.string(), plainly: Self.read) }
    func column() throws -> SQLValue { .text(try StoredJSON.text(write)) }
}

extension JSONValue: JSONColumn {
    static func read(plainly json: inout PlainJSON) -> JSONValue? { json.value(depthMax: Limits.metadataDepth) }
}

extension PolicyChanges: JSONColumn {
    /// Left to Foundation: few channels change their type's policy.
    static func read(plainly json: inout PlainJSON) -> PolicyChanges? { nil }
}

extension [String: [String]]: ColumnValue, JSONColumn {
    static func read(plainly json: inout PlainJSON) -> [String: [String]]? { json.lists() }
    func write(to json: inout JSONBytes) { json.object(self) }
}

/// A value whose lists are stored in a column, as JSON.
protocol ListedInColumn: Decodable {
    static func readList(plainly json: inout PlainJSON) -> [Self]?
    static func write(_ list: [Self], to json: inout JSONBytes)
}

extension String: ListedInColumn {
    static func readList(plainly json: inout PlainJSON) -> [String]? { json.list { $0.string() } }
    static func write(_ list: [String], to json: inout JSONBytes) { json.array(list) }
}

extension Mentionee: ListedInColumn {
    static func readList(plainly json: inout PlainJSON) -> [Mentionee]? { json.list { Mentionee(plainly: &$0) } }
    static func write(_ list: [Mentionee], to json: inout JSONBytes) { json.array(list) }
}

/// A list. NULL is an empty one.
extension Array: ColumnValue where Element: ListedInColumn {
    init(reading row: inout RowReader) throws {
        self = try row.optionalString().map { try StoredJSON.decode($0, plainly: Element.readList) } ?? []
    }
    func column() throws -> SQLValue { .text(try StoredJSON.text { Element.write(self, to: &$0) }) }
}

// MARK: Nothing

extension Optional: ColumnValue where Wrapped: ColumnValue {
    init(reading row: inout RowReader) throws {
        if row.isNull {
            row.skip()
            self = nil
        } else {
            self = try Wrapped(reading: &row)
        }
    }
    func column() throws -> SQLValue { try self?.column() ?? .null }
}
