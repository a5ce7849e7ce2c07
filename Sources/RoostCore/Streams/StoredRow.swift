package import RoostAPI

/// A kind of row in the database, which finds its rows that changed after a position of a stream.
///
/// A kind's conformance is in its feature's folder. Changes, resuming and a node's replacement of missed events query every
/// kind, each with its own index: a channel without rows of a kind costs one empty look-up, or none if the kind has a bit in
/// the channel's head.
package protocol StoredRow: StreamRow {
    /// The permission that callers need to get rows of this kind with a channel's changes. By default none beyond that for the changes.
    static var permission: Permission? { get }

    /// The kind's bit in `row_kinds` of a channel's head, which ``Context/noteRows(of:in:)`` sets with the channel's first row
    /// of the kind: a channel without it isn't searched for rows. Nil, the default, for a kind that nearly every channel has,
    /// or that only users' streams carry.
    ///
    /// Bits are stored: a kind keeps its own permanently, and it is never reused.
    static var headBit: Int64? { get }

    /// Returns the rows of a channel's stream that changed after a position. Empty by default.
    static func changed(for request: ChannelChangesRequest) throws -> ChangedRows<Self>

    /// Returns the rows of a user's own stream that changed after a position. Empty by default.
    static func changed(for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction) throws -> ChangedRows<Self>

    /// Returns the rows for a new follower of a channel, in addition to those of the preceding kinds. Empty by default.
    ///
    /// - Parameters:
    ///   - user: The follower.
    ///   - messages: The maximum number of messages that the follower gets.
    ///   - rows: The rows of the preceding kinds; their oldest message is the oldest that the follower gets.
    static func fresh(
        in channel: ChannelID, for user: UserID, above floor: Seq, messages: Int, beside rows: Rows, in transaction: any Transaction
    ) throws -> [Self]

    /// Adds the rows that must accompany those of this kind when a node replaces missed events.
    ///
    /// - Parameter seq: The position after which the rows changed.
    /// - Returns: The rows' changes of a channel's audience, to be delivered before them. None by default.
    static func accompany(_ rows: inout Rows, of stream: StreamID, after seq: Seq, in context: Context) throws -> [Notice]

    /// Deletes the rows about a message that is deleted for good. There is no default: every kind must say how, or that it has
    /// none, or a forgetful kind would keep its rows.
    static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws
}

extension StoredRow {
    package static var permission: Permission? { nil }
    package static var headBit: Int64? { nil }
    package static func changed(for request: ChannelChangesRequest) throws -> ChangedRows<Self> { ChangedRows() }
    package static func changed(
        for user: UserID, after seq: Seq, limit: Int, in transaction: any Transaction
    ) throws -> ChangedRows<Self> { ChangedRows() }
    package static func fresh(
        in channel: ChannelID, for user: UserID, above floor: Seq, messages: Int, beside rows: Rows, in transaction: any Transaction
    ) throws -> [Self] { [] }
    package static func accompany(
        _ rows: inout Rows, of stream: StreamID, after seq: Seq, in context: Context
    ) throws -> [Notice] { [] }
}

/// The requested part of a channel's stream.
package struct ChannelChangesRequest {
    package let transaction: any Transaction
    package let channel: ChannelID
    /// The position after which rows changed.
    package let after: Seq
    /// The stream's newest position.
    package let head: Seq
    /// The seq up to which rows about messages are left out.
    package let floor: Seq
    /// The maximum number of rows of a kind, plus further ones with the stamp of the last.
    package let limit: Int
    /// The maximum bytes of content of a kind.
    package let sizeBytesMax: Int
    /// Whether messages of the channel were deleted for good.
    package let hasPurges: Bool
    /// The kinds of rows in the channel.
    let kinds: ChannelRowKinds
}

/// The kinds of rows that a channel has or has had, by their bits (``StoredRow/headBit``).
struct ChannelRowKinds {
    let bits: Int64

    /// Returns whether the channel can have rows of a kind: kinds without a bit always may.
    func mayContain(_ kind: any StoredRow.Type) -> Bool { kind.headBit.map { bits & $0 != 0 } ?? true }
}

/// Rows of one kind, each with the position of the stream at which it changed.
///
/// Rows and positions are in separate lists: most changes are one page, whose rows are passed on as they are, without code that
/// has to handle rows of any kind one by one.
package struct ChangedRows<Row: StoredRow> {
    fileprivate let rows: [Row]
    fileprivate let stamps: [Seq]
    /// The position at which the list was cut: it has all rows up to there. Nil for a complete one.
    package let upTo: Seq?
    /// Whether nothing else changed in the requested part: each of its positions belongs to one of these rows, and to no row of another kind.
    let isEverything: Bool

    package init(_ stamped: [(stamp: Seq, row: Row)] = [], upTo: Seq? = nil) {
        self.init(rows: stamped.map { $0.row }, stamps: stamped.map { $0.stamp }, upTo: upTo)
    }

    init(rows: [Row], stamps: [Seq], upTo: Seq? = nil, isEverything: Bool = false) {
        self.rows = rows
        self.stamps = stamps
        self.upTo = upTo
        self.isEverything = isEverything
    }

    fileprivate func rows(upTo seq: Seq) -> [Row] {
        if stamps.allSatisfy({ $0 <= seq }) { return rows }
        return zip(stamps, rows).compactMap { $0 <= seq ? $1 : nil }
    }
}

/// The kinds of rows in the database, in the order of ``RowKinds``.
package struct StoredRowKinds: Sendable {
    let all: [any StoredRow.Type]

    /// A kind without a conformance is left out; a test checks that none is.
    package init(_ kinds: RowKinds) { all = kinds.all.compactMap { $0 as? any StoredRow.Type } }

    package static let standard = StoredRowKinds(.standard)
}

/// The changed rows of all kinds. A page has those up to a common position.
struct ChangedRowsByKind {
    private var kinds: [any ChangedRowsOfKind] = []

    /// The position up to which all kinds are complete; nil if there is no limit.
    private(set) var upTo: Seq?

    mutating func add<Row: StoredRow>(_ changed: ChangedRows<Row>) {
        if let cut = changed.upTo { upTo = min(upTo ?? cut, cut) }
        if !changed.rows.isEmpty { kinds.append(changed) }
    }

    func rows(upTo seq: Seq) -> Rows {
        var rows = Rows()
        for changed in kinds { changed.add(upTo: seq, to: &rows) }
        return rows
    }

    /// Returns the rows by their stamps, in order. Rows of one change share a stamp, and stay together.
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
        for (stamp, row) in zip(stamps, self.rows) { rows[stamp, default: Rows()][Row.self, default: []].append(row) }
    }
}

extension Context {
    /// Returns the rows of all kinds that changed in a part of a channel's stream.
    ///
    /// - Parameter access: The caller's, to select the kinds that the caller may see; nil for all kinds.
    func changedRows(for request: ChannelChangesRequest, visibleTo access: ChannelAccess? = nil) throws -> ChangedRowsByKind {
        var changed = ChangedRowsByKind()
        func add<Row: StoredRow>(_ kind: Row.Type) throws -> Bool {
            if let access, let permission = kind.permission, refusal(of: permission, in: access) != nil { return false }
            let found = try kind.changed(for: request)
            changed.add(found)
            return found.isEverything
        }
        for kind in rowKinds.all where request.kinds.mayContain(kind) {
            if try add(kind) { break }
        }
        return changed
    }

    /// Returns the rows of all kinds that changed after a position of a user's own stream.
    func changedRows(for user: UserID, after seq: Seq, limit: Int) throws -> ChangedRowsByKind {
        var changed = ChangedRowsByKind()
        func add<Row: StoredRow>(_ kind: Row.Type) throws {
            changed.add(try kind.changed(for: user, after: seq, limit: limit, in: transaction))
        }
        for kind in rowKinds.all { try add(kind) }
        return changed
    }

    /// Returns the rows of all kinds for a new follower of a channel, as that user sees them.
    func freshRows(in access: ChannelAccess, for user: UserID, above floor: Seq, messages: Int) throws -> Rows {
        var rows = Rows()
        func add<Row: StoredRow>(_ kind: Row.Type) throws {
            rows[kind] = try kind.fresh(
                in: access.channelId, for: user, above: floor, messages: messages, beside: rows, in: transaction)
        }
        for kind in rowKinds.all where access.rowKinds.mayContain(kind) { try add(kind) }
        return try shown(rows, in: access, to: user)
    }

    /// Adds the rows that must accompany those of any kind (``StoredRow/accompany(_:of:after:in:)``).
    func accompany(_ rows: inout Rows, of stream: StreamID, after seq: Seq) throws -> [Notice] {
        var notices: [Notice] = []
        for kind in rowKinds.all { notices += try kind.accompany(&rows, of: stream, after: seq, in: self) }
        return notices
    }
}
