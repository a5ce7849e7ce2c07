package import RoostAPI

/// A kind of row as the database knows it: what of it changed after a position of a stream.
///
/// A kind's conformance stands in the folder of its feature. Changes, resuming and what a node tells in the place of missed events ask every
/// kind, each with an index of its own: a channel that has no row of a kind costs one look into it that finds nothing.
package protocol StoredRow: StreamRow {
    /// The rows of a channel's stream that changed after a position. None unless a kind says otherwise.
    static func changed(in stretch: ChannelStretch) throws -> ChangedRows<Self>

    /// The rows of a user's own stream that changed after a position. None unless a kind says otherwise.
    static func changed(for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction) throws -> ChangedRows<Self>

    /// What somebody gets who begins to follow a channel, beside the rows of the kinds before this one. None unless a kind says otherwise.
    ///
    /// - Parameter rows: those of the kinds before this one; its oldest message is the oldest that they get.
    static func fresh(in channel: ChannelID, above floor: Seq, beside rows: Rows, in transaction: any Transaction) throws -> [Self]

    /// Adds to rows that a node tells in the place of missed events what must be told with those of this kind.
    ///
    /// - Parameter seq: the position after which the rows changed.
    /// - Returns: what the rows mean for who gets a channel's events, to be told before them. None unless a kind says otherwise.
    static func accompany(_ rows: inout Rows, of stream: StreamID, after seq: Seq, in context: Context) throws -> [Notice]

    /// Takes away the rows about a message that is deleted for good. A kind that has such rows must say how.
    static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws

    /// About how many bytes the row takes as it is written: pages are bounded by it. 200 unless a kind says otherwise.
    var contentSizeBytes: Int { get }
}

extension StoredRow {
    package static func changed(in stretch: ChannelStretch) throws -> ChangedRows<Self> { ChangedRows() }
    package static func changed(
        for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction
    ) throws -> ChangedRows<Self> { ChangedRows() }
    package static func fresh(
        in channel: ChannelID, above floor: Seq, beside rows: Rows, in transaction: any Transaction
    ) throws -> [Self] { [] }
    package static func accompany(
        _ rows: inout Rows, of stream: StreamID, after seq: Seq, in context: Context
    ) throws -> [Notice] { [] }
    package static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {}
    package var contentSizeBytes: Int { 200 }
}

/// The part of a channel's stream that is asked for.
package struct ChannelStretch {
    package let transaction: any Transaction
    package let channel: ChannelID
    /// The position after which rows changed.
    package let after: Seq
    /// Rows about messages up to it are left out.
    package let floor: Seq
    /// At most so many rows of a kind, and those that have the stamp of the last of them.
    package let limit: Int
    /// At most so many bytes of content of a kind.
    package let sizeBytesMax: Int
    /// Whether messages of the channel were deleted for good.
    package let hasPurges: Bool
}

/// Rows of one kind, each with the position of the stream at which it changed, in the order of those.
package struct ChangedRows<Row: StoredRow> {
    package var stamped: [(stamp: Seq, row: Row)]
    /// Where the list was cut: all up to here are in it. Nil for a whole one.
    package var upTo: Seq?

    package init(_ stamped: [(stamp: Seq, row: Row)] = [], upTo: Seq? = nil) {
        self.stamped = stamped
        self.upTo = upTo
    }

    func rows(upTo seq: Seq) -> [Row] { stamped.lazy.filter { $0.stamp <= seq }.map(\.row) }
}

/// The kinds of rows as the database knows them, in the order of ``RowKinds``.
package struct StoredRowKinds: Sendable {
    let all: [any StoredRow.Type]

    /// A kind without a conformance is left out; a test sees that none is.
    package init(_ kinds: RowKinds) { all = kinds.all.compactMap { $0 as? any StoredRow.Type } }

    package static let standard = StoredRowKinds(.standard)
}

/// The changed rows of all kinds, of which a page takes those up to a common position.
struct ChangedRowsByKind {
    private var kinds: [any ChangedRowsOfKind] = []

    /// Up to here all kinds are complete; nil where each of them is.
    private(set) var upTo: Seq?

    mutating func add<Row: StoredRow>(_ changed: ChangedRows<Row>) {
        if let cut = changed.upTo { upTo = min(upTo ?? cut, cut) }
        if !changed.stamped.isEmpty { kinds.append(changed) }
    }

    func rows(upTo seq: Seq) -> Rows {
        var rows = Rows()
        for changed in kinds { changed.add(upTo: seq, to: &rows) }
        return rows
    }

    /// The rows by their stamps, in order. Rows of one change have one stamp, and come together.
    func byStamp() -> [(stamp: Seq, rows: Rows)] {
        var rows: [Seq: Rows] = [:]
        for changed in kinds { changed.add(to: &rows) }
        return rows.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}

private protocol ChangedRowsOfKind {
    func add(upTo seq: Seq, to rows: inout Rows)
    func add(to rows: inout [Seq: Rows])
}

extension ChangedRows: ChangedRowsOfKind {
    fileprivate func add(upTo seq: Seq, to rows: inout Rows) { rows[Row.self] = self.rows(upTo: seq) }

    fileprivate func add(to rows: inout [Seq: Rows]) {
        for (stamp, row) in stamped { rows[stamp, default: Rows()][Row.self, default: []].append(row) }
    }
}

extension Context {
    /// The rows of all kinds that changed in a part of a channel's stream.
    func changedRows(in stretch: ChannelStretch) throws -> ChangedRowsByKind {
        var changed = ChangedRowsByKind()
        func add<Row: StoredRow>(_ kind: Row.Type) throws { changed.add(try kind.changed(in: stretch)) }
        for kind in rowKinds.all { try add(kind) }
        return changed
    }

    /// The rows of all kinds that changed after a position of a user's own stream.
    func changedRows(for user: UserID, after seq: Seq, limit: Int) throws -> ChangedRowsByKind {
        var changed = ChangedRowsByKind()
        func add<Row: StoredRow>(_ kind: Row.Type) throws {
            changed.add(try kind.changed(for: user, after: seq, limit: limit, in: transaction))
        }
        for kind in rowKinds.all { try add(kind) }
        return changed
    }

    /// The rows of all kinds that somebody gets who begins to follow a channel.
    func freshRows(in channel: ChannelID, above floor: Seq) throws -> Rows {
        var rows = Rows()
        func add<Row: StoredRow>(_ kind: Row.Type) throws {
            rows[kind] = try kind.fresh(in: channel, above: floor, beside: rows, in: transaction)
        }
        for kind in rowKinds.all { try add(kind) }
        return rows
    }

    /// Adds to rows what must be told with them, whatever their kinds (``StoredRow/accompany(_:of:after:in:)``).
    func accompany(_ rows: inout Rows, of stream: StreamID, after seq: Seq) throws -> [Notice] {
        var notices: [Notice] = []
        for kind in rowKinds.all { notices += try kind.accompany(&rows, of: stream, after: seq, in: self) }
        return notices
    }

    /// How many bytes rows take as they are written.
    func contentSizeBytes(of rows: Rows) -> Int {
        func size<Row: StoredRow>(of kind: Row.Type) -> Int { rows[kind]?.reduce(0) { $0 + $1.contentSizeBytes } ?? 0 }
        return rowKinds.all.reduce(rows.channel?.contentSizeBytes ?? 0) { $0 + size(of: $1) }
    }
}
