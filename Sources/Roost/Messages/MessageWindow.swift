import Foundation
import GRDB
import RoostAPI

/// A message of the cache.
struct CachedMessage: Sendable {
    let seq: Seq
    let changeSeq: Seq
    let item: MessageItem
}

/// The part of a channel's cached messages that a list holds: without a hole, and never more than a number of them.
///
/// It is a value that reads on: given the state before, it reads the rows that changed since, by their stamps, and those that the app asks
/// for. Only after the channel began afresh, or if very much changed, it reads all of its rows.
struct MessageWindow: Sendable {
    /// What the app asks for.
    enum Move: Sendable {
        case stay
        /// A page of older messages. From then on the oldest ones stay if there are too many.
        case older
        /// A page of newer messages. From then on the newest ones stay.
        case newer
        /// The newest page.
        case newest
    }

    /// The state of the cache to which the rows belong.
    private struct Origin: Hashable {
        /// Another one after the channel began afresh.
        var generation: Int64
        /// All changes up to here are in the rows.
        var cursor: Seq
    }

    let pageSize: Int
    let rowsMax: Int

    /// In the order of their seq.
    private(set) var rows: [CachedMessage] = []
    /// Whether there are older ones, in the cache or on the server.
    private(set) var hasOlder = false
    /// Whether older ones are cached.
    private(set) var hasOlderCached = false
    /// Whether there are newer ones. All of them are cached.
    private(set) var hasNewer = false

    private var origin: Origin?
    private var keepsOldest = false

    init(pageSize: Int, rowsMax: Int = MessageList.rowsMax) {
        self.pageSize = pageSize
        self.rowsMax = max(rowsMax, pageSize)
    }

    /// Reads on. All of it belongs to one state of the cache.
    mutating func read(_ move: Move, of channel: ChannelID, in database: Database) throws {
        let state = try database.messageState(of: channel)
        switch move {
        case .stay: break
        case .older: keepsOldest = true
        case .newer, .newest: keepsOldest = false
        }
        let floor = state?.floor ?? 0
        if try state.map({ try takeChanges($0, of: channel, in: database) }) != true {
            if origin?.generation != state?.generation || origin == nil { startOver() }
            try readAll(of: channel, in: database)
        }
        origin = state.map { Origin(generation: $0.generation, cursor: $0.cursor) }
        try make(move, in: channel, database)
        // A list that lost its rows goes on at the newest ones, and one that lost many at those that follow.
        if rows.isEmpty { hasNewer = false }
        if hasNewer, rows.count < pageSize { try appendNewer(pageSize - rows.count, in: channel, database) }
        if !hasNewer, rows.count < pageSize { try extend(by: pageSize - rows.count, in: channel, database) }
        hasOlderCached = try database.hasMessage(of: channel, before: rows.first?.seq ?? .max)
        // Concealed messages can't be requested.
        hasOlder = hasOlderCached || (state?.windowStart ?? 0) > floor + 1
    }

    /// Another history, or another beginning: nothing of the rows can be kept.
    private mutating func startOver() {
        rows = []
        keepsOldest = false
        hasNewer = false
    }

    // MARK: What changed

    /// Takes in what changed since the rows were read. Returns false if they must all be read again.
    private mutating func takeChanges(_ state: MessageState, of channel: ChannelID, in database: Database) throws -> Bool {
        guard let origin, origin.generation == state.generation, !rows.isEmpty else { return false }
        let changed = try database.messages(of: channel, changedAfter: origin.cursor, limit: rowsMax + 1)
        let purged = Set(try database.purgedMessages(of: channel, changedAfter: origin.cursor, limit: rowsMax + 1))
        guard changed.count <= rowsMax, purged.count <= rowsMax else { return false }
        let lowest = max(state.floor + 1, state.windowStart)
        if let first = rows.first, first.seq < lowest || !purged.isEmpty {
            rows.removeAll { $0.seq < lowest || purged.contains($0.seq) }
            guard !rows.isEmpty else { return false }
        }
        for message in changed.sorted(by: { $0.seq < $1.seq }) { take(message) }
        if rows.count > rowsMax {
            if keepsOldest {
                rows.removeLast(rows.count - rowsMax)
                hasNewer = true
            } else {
                rows.removeFirst(rows.count - rowsMax)
            }
        }
        return true
    }

    private mutating func take(_ message: CachedMessage) {
        var (low, high) = (0, rows.count)
        while low < high {
            let middle = (low + high) / 2
            if rows[middle].seq < message.seq { low = middle + 1 } else { high = middle }
        }
        if low < rows.count, rows[low].seq == message.seq {
            rows[low] = message
        } else if low == rows.count {
            if !hasNewer { rows.append(message) }
        } else if low > 0 {
            rows.insert(message, at: low)
        }
    }

    /// Reads the rows from where they begin, or as many of the newest ones. Those with an equal stamp aren't decoded again.
    private mutating func readAll(of channel: ChannelID, in database: Database) throws {
        let known = rows
        if keepsOldest || hasNewer, let first = known.first {
            rows = try database.messages(of: channel, from: first.seq, limit: rowsMax, known: known)
            hasNewer = true
        } else {
            let count = origin == nil || known.isEmpty ? pageSize : rowsMax
            rows = try database.messages(of: channel, before: .max, limit: count, known: known)
            hasNewer = false
        }
    }

    // MARK: What the app asks for

    private mutating func make(_ move: Move, in channel: ChannelID, _ database: Database) throws {
        switch move {
        case .stay: break
        case .older: try extend(by: pageSize, in: channel, database)
        case .newer:
            if hasNewer { try appendNewer(pageSize, in: channel, database) }
        case .newest:
            guard hasNewer else { break }
            rows = try database.messages(of: channel, before: .max, limit: pageSize, known: rows)
        }
        if hasNewer { hasNewer = try database.hasMessage(of: channel, after: rows.last?.seq ?? 0) }
    }

    private mutating func appendNewer(_ count: Int, in channel: ChannelID, _ database: Database) throws {
        rows += try database.messages(of: channel, from: (rows.last?.seq ?? 0) + 1, limit: count)
        if rows.count > rowsMax { rows.removeFirst(rows.count - rowsMax) }
        hasNewer = try database.hasMessage(of: channel, after: rows.last?.seq ?? 0)
    }

    /// Adds older messages.
    private mutating func extend(by count: Int, in channel: ChannelID, _ database: Database) throws {
        rows = try database.messages(of: channel, before: rows.first?.seq ?? .max, limit: count) + rows
        guard rows.count > rowsMax else { return }
        rows.removeLast(rows.count - rowsMax)
        hasNewer = true
    }
}

/// The state of a followed channel's cached messages.
private struct MessageState {
    var generation: Int64
    var cursor: Seq
    var windowStart: Seq
    /// Messages up to here are concealed from the user.
    var floor: Seq
}

extension Database {
    /// Nil for a channel that isn't followed.
    fileprivate func messageState(of channel: ChannelID) throws -> MessageState? {
        let statement = try cachedStatement(
            sql: """
                SELECT generation, cursor, window_start, COALESCE((SELECT history_floor FROM memberships WHERE channel_id = ?1), 0)
                FROM positions WHERE channel_id = ?1
                """)
        return try Row.fetchOne(statement, arguments: [channel.rawValue]).map {
            MessageState(generation: $0[0], cursor: $0[1], windowStart: $0[2], floor: $0[3])
        }
    }

    /// Messages that changed after a seq, in the order of their changes.
    fileprivate func messages(of channel: ChannelID, changedAfter seq: Seq, limit: Int) throws -> [CachedMessage] {
        let sql = """
            SELECT seq, change_seq, json FROM messages WHERE channel_id = ? AND change_seq > ? ORDER BY change_seq, seq LIMIT ?
            """
        return try messages(sql, [channel.rawValue, seq, limit])
    }

    /// The newest messages before a seq, oldest first.
    fileprivate func messages(
        of channel: ChannelID, before seq: Seq, limit: Int, known: [CachedMessage] = []
    ) throws -> [CachedMessage] {
        let sql = "SELECT seq, change_seq, json FROM messages WHERE channel_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
        return try messages(sql, [channel.rawValue, seq, limit], known).reversed()
    }

    /// The oldest messages from a seq on.
    fileprivate func messages(
        of channel: ChannelID, from seq: Seq, limit: Int, known: [CachedMessage] = []
    ) throws -> [CachedMessage] {
        let sql = "SELECT seq, change_seq, json FROM messages WHERE channel_id = ? AND seq >= ? ORDER BY seq LIMIT ?"
        return try messages(sql, [channel.rawValue, seq, limit], known)
    }

    private func messages(
        _ sql: String, _ arguments: StatementArguments, _ known: [CachedMessage] = []
    ) throws -> [CachedMessage] {
        let known = Dictionary(known.map { ($0.seq, $0) }, uniquingKeysWith: { first, _ in first })
        var messages: [CachedMessage] = []
        let rows = try Row.fetchCursor(try cachedStatement(sql: sql), arguments: arguments)
        while let row = try rows.next() {
            let (seq, changeSeq): (Seq, Seq) = (row[0], row[1])
            if let same = known[seq], same.changeSeq == changeSeq {
                messages.append(same)
            } else {
                let message = try StoredJSON.decode(Message.self, from: row[2])
                messages.append(CachedMessage(seq: seq, changeSeq: changeSeq, item: MessageItem(message)))
            }
        }
        return messages
    }

    fileprivate func hasMessage(of channel: ChannelID, before seq: Seq) throws -> Bool {
        let statement = try cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM messages WHERE channel_id = ? AND seq < ?)")
        return try Bool.fetchOne(statement, arguments: [channel.rawValue, seq]) ?? false
    }

    fileprivate func hasMessage(of channel: ChannelID, after seq: Seq) throws -> Bool {
        let statement = try cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM messages WHERE channel_id = ? AND seq > ?)")
        return try Bool.fetchOne(statement, arguments: [channel.rawValue, seq]) ?? false
    }

    /// The messages deleted for good by changes after a seq.
    fileprivate func purgedMessages(of channel: ChannelID, changedAfter seq: Seq, limit: Int) throws -> [Seq] {
        let statement = try cachedStatement(sql: "SELECT seq FROM purged WHERE channel_id = ? AND change_seq > ? LIMIT ?")
        return try Seq.fetchAll(statement, arguments: [channel.rawValue, seq, limit])
    }

    /// Whether a message that the user sent is cached.
    func holdsOwnMessage(_ clientId: ClientID, in channel: ChannelID) throws -> Bool {
        let statement = try cachedStatement(
            sql: "SELECT EXISTS (SELECT 1 FROM messages WHERE channel_id = ? AND own_client_id = ?)")
        return try Bool.fetchOne(statement, arguments: [channel.rawValue, clientId.rawValue]) ?? false
    }
}
