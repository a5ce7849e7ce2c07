public import RoostAPI

/// The database as the rules see it: one transaction, in which statements run one after another.
///
/// `RoostDatabase` provides one per engine. A transaction is used by one thread at a time, and is only valid inside the call
/// that passed it. It neither commits nor rolls back itself; its opener does.
public protocol Transaction: AnyObject {
    /// The engine's differences from the shared dialect.
    var dialect: Dialect { get }

    /// Runs a statement and hands each row to the body, in the order of the result.
    func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws

    /// Runs several statements that only read, and hands each row to the body with its statement's index. A networked engine sends them all at once.
    func each(_ statements: [SQL], _ body: (Int, inout RowReader) throws -> Void) throws

    /// Runs a statement that returns no rows, and returns how many rows it changed.
    @discardableResult
    func execute(_ sql: SQL) throws -> Int

    /// Runs a statement whose number of changed rows doesn't matter.
    ///
    /// A networked engine sends it along with the next statement, and saves a round trip. A failure is thrown by the end of the
    /// operation at the latest.
    func perform(_ sql: SQL) throws

    /// Runs a statement without waiting for its rows: the body gets each one by the time a later statement is answered.
    func perform(_ sql: SQL, _ body: @escaping (inout RowReader) -> Void) throws

    /// Inserts a row of a kind that is skipped if its key is taken.
    ///
    /// A networked engine may assume that the key is free, and run the transaction again if it was wrong.
    ///
    /// - Returns: Whether the row was inserted.
    func insert(_ row: NewRow) throws -> Bool

    /// Inserts a row without waiting for the outcome.
    ///
    /// - Parameter name: The row's key as one text, unique within the table.
    func insert(_ row: NewRow, named name: String) throws

    /// The transaction's knowledge of channels, and its pending writes to them; nil for one that only reads.
    var batchMemory: BatchMemory? { get }

    /// The values that the engine keeps between reads; nil for an engine, or a transaction, that keeps none.
    var readCache: (any ReadCache)? { get }

    /// The streams that no other writer can move before this transaction ends; nil if there is only one writer.
    var heldStreams: HeldStreams? { get }

    /// Records that this transaction changes the head of a channel.
    func noteChange(of channel: ChannelID)
}

extension Transaction {
    public func insert(_ row: NewRow) throws -> Bool { try execute(row.inserting) == 1 }
    public func insert(_ row: NewRow, named name: String) throws { try perform(row.inserting) }
    public func each(_ statements: [SQL], _ body: (Int, inout RowReader) throws -> Void) throws {
        for (index, sql) in statements.enumerated() { try each(sql) { try body(index, &$0) } }
    }
    public func perform(_ sql: SQL, _ body: @escaping (inout RowReader) -> Void) throws { try each(sql, body) }
    public var batchMemory: BatchMemory? { nil }
    public var heldStreams: HeldStreams? { nil }
    public var readCache: (any ReadCache)? { nil }
    public func noteChange(of channel: ChannelID) {}

    /// Returns all rows of a result.
    public func rows<T>(_ sql: SQL, _ read: (inout RowReader) throws -> T) throws -> [T] {
        var result: [T] = []
        try each(sql) { row in result.append(try read(&row)) }
        return result
    }

    /// Returns the first row of a result; nil if there is none.
    public func first<T>(_ sql: SQL, _ read: (inout RowReader) throws -> T) throws -> T? {
        var result: T?
        try each(sql) { row in if result == nil { result = try read(&row) } }
        return result
    }
}

/// The differences between the engines in statements that both need: SQL text, never values, and how results arrive.
public struct Dialect: Sendable {
    /// The type of a text column that is compared and ordered by its bytes.
    public var text: SQL
    /// The end of the definition of a table whose rows are best stored in primary key order.
    public var clusteredTable: SQL
    /// The end of a `SELECT` whose rows stay locked until the transaction ends; nil if there is only one writer.
    public var rowLock: SQL?
    /// The start of a writing transaction: a change of access waits for transactions in progress, and later ones wait for it;
    /// nil if there is only one writer.
    public var accessLock: AccessLock?
    /// The table option that leaves room in pages for changing rows; nil if rows are changed in place.
    public var roomForChanges: SQL?
    /// Whether all rows of a result arrive before the first is read.
    public var fetchesWholeResults: Bool = false

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        text: SQL, clusteredTable: SQL, rowLock: SQL? = nil, accessLock: AccessLock? = nil, roomForChanges: SQL? = nil,
        fetchesWholeResults: Bool = false
    ) {
        self.text = text
        self.clusteredTable = clusteredTable
        self.rowLock = rowLock
        self.accessLock = accessLock
        self.roomForChanges = roomForChanges
        self.fetchesWholeResults = fetchesWholeResults
    }

    /// The statements that take a lock until the transaction ends.
    public struct AccessLock: Sendable {
        /// For all writers: any number at the same time.
        public var shared: [SQL]
        /// For a change of access: exclusively.
        public var exclusive: [SQL]

        // derived: init
        /// Creates a value with these fields.
        public init(shared: [SQL], exclusive: [SQL]) {
            self.shared = shared
            self.exclusive = exclusive
        }
    }
}

/// The current row of a result, with its columns by index. An object, so reading through it copies nothing.
public protocol Row: AnyObject {
    func isNull(_ column: Int32) -> Bool
    func integer(_ column: Int32) -> Int64
    func text(_ column: Int32) -> String
}

/// Reads the columns of one row from left to right, in the order of the statement.
public struct RowReader {
    private let row: any Row
    private var column: Int32 = 0

    public init(_ row: any Row) { self.row = row }

    /// Goes back to the first column, for the next row.
    public mutating func rewind() { column = 0 }

    private mutating func next() -> Int32 {
        defer { column += 1 }
        return column
    }

    /// Whether the next column is NULL.
    var isNull: Bool { row.isNull(column) }

    /// Skips a column.
    mutating func skip() { column += 1 }

    public mutating func int64() -> Int64 { row.integer(next()) }
    public mutating func int() -> Int { Int(truncatingIfNeeded: row.integer(next())) }
    public mutating func bool() -> Bool { row.integer(next()) != 0 }
    public mutating func string() -> String { row.text(next()) }
    public mutating func optionalInt64() -> Int64? {
        let column = next()
        return row.isNull(column) ? nil : row.integer(column)
    }
    public mutating func optionalString() -> String? {
        let column = next()
        return row.isNull(column) ? nil : row.text(column)
    }
    public mutating func identifier<ID: Identifier>(_ type: ID.Type = ID.self) -> ID { ID(rawValue: string()) }
    public mutating func timestamp() -> Timestamp { Timestamp(milliseconds: int64()) }
    public mutating func optionalTimestamp() -> Timestamp? { optionalInt64().map(Timestamp.init(milliseconds:)) }

    /// One of an enumeration's raw values. The database holds only what the rules wrote; anything else means that it is damaged.
    public mutating func enumeration<E: WireEnumeration>(_ type: E.Type = E.self) throws -> E {
        let text = string()
        guard let value = E.known(text) else { throw DamagedDatabase(what: "\(E.self) \(text)") }
        return value
    }

    /// JSON that the rules wrote.
    public mutating func optionalJSON<T: Decodable>(_ type: T.Type = T.self) throws -> T? {
        try optionalString().map { try StoredJSON.decode(type, from: $0) }
    }
}

/// The database holds a value that the rules never write.
public struct DamagedDatabase: Error, CustomStringConvertible {
    public let what: String
    // derived: init
    /// Creates a value with these fields.
    public init(what: String) { self.what = what }
    public var description: String { "The database holds a value that Roost never writes: \(what)." }
}

extension SQL {
    /// Selects the epoch, alongside other values.
    static let epochSelection: SQL = "SELECT value FROM settings WHERE name = 'epoch'"
}

extension Transaction {
    /// Returns the name of this state of the database. It changes when a backup is restored, so clients don't continue from
    /// positions that no longer exist.
    public func epoch(orNew new: String) throws -> String {
        try setting("epoch", orNew: new)
    }

    /// Changes the name of this state of the database, if it has one: clients ahead of it resync.
    ///
    /// - Returns: How many names were changed: 0 or 1.
    @discardableResult
    public func renewEpoch(to new: String) throws -> Int {
        try execute("UPDATE settings SET value = \(new) WHERE name = 'epoch'")
    }

    /// Deletes a setting, so the next reader sets its value.
    public func forget(_ name: String) throws { try execute("DELETE FROM settings WHERE name = \(name)") }

    /// Returns a setting shared by all nodes.
    public func setting(_ name: String) throws -> String? {
        try first("SELECT value FROM settings WHERE name = \(name)") { $0.string() }
    }

    /// Returns a setting, or writes it once: if several nodes start at the same time, one of them sets the value.
    public func setting(_ name: String, orNew new: String) throws -> String {
        try execute("INSERT INTO settings (name, value) VALUES (\(name), \(new)) ON CONFLICT (name) DO NOTHING")
        return try setting(name) ?? new
    }

    /// Replaces a setting, and returns its former value.
    public func replaceSetting(_ name: String, with new: String) throws -> String? {
        let before = try setting(name)
        guard before != new else { return before }
        try perform(
            """
            INSERT INTO settings (name, value) VALUES (\(name), \(new))
            ON CONFLICT (name) DO UPDATE SET value = excluded.value
            """)
        return before
    }
}
