import Foundation
import GRDB
import RoostAPI

/// The state of a followed channel's cached messages.
struct MessageState {
    var generation: Int64
    var position: Position
    /// Messages up to this seq are concealed from the user, or will be by the user's pending operations. Messages concealed from a member aren't
    /// concealed from a former member.
    var floor: Seq
    /// The seq of the user's stream at which they last deleted a message of the channel for themselves.
    var deletionSeq: Seq
}

extension ClosedRange<Seq> {
    /// Whether this part of a channel's messages ends with the newest ones.
    var isNewest: Bool { upperBound == .max }
}

/// The cached messages of a channel in a range of seqs without gaps.
struct CachedPart {
    let channel: ChannelID
    let range: ClosedRange<Seq>
    let database: Database

    /// Messages of the channel changed after a seq, in the order of the changes.
    func messages(changedAfter seq: Seq, limit: Int) throws -> [CachedMessage] {
        let sql = """
            \(CachedMessage.query)
            WHERE m.channel_id = ?1 AND +m.seq BETWEEN ?4 AND ?5
                  AND m.seq IN (SELECT seq FROM messages WHERE channel_id = ?1 AND seq > ?2
                                UNION ALL
                                SELECT seq FROM messages WHERE channel_id = ?1 AND change_seq > ?2 AND change_seq > seq)
            ORDER BY m.change_seq, m.seq LIMIT ?3
            """
        return try messages(sql, [channel, seq, limit, range.lowerBound, range.upperBound])
    }

    /// Messages of the channel that the user deleted for themselves after a seq of their own stream.
    func messages(deletedForMeAfter seq: Seq, limit: Int) throws -> [CachedMessage] {
        let sql = """
            \(CachedMessage.query) JOIN own_deletions d ON d.channel_id = m.channel_id AND d.seq = m.seq
            WHERE d.channel_id = ? AND d.user_seq > ? AND m.seq BETWEEN ? AND ? LIMIT ?
            """
        return try messages(sql, [channel.rawValue, seq, range.lowerBound, range.upperBound, limit])
    }

    /// The newest messages before a seq, oldest first.
    func messages(before seq: Seq, limit: Int, known: [CachedMessage] = []) throws -> [CachedMessage] {
        let sql = "\(CachedMessage.query) WHERE m.channel_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq DESC LIMIT ?"
        let last = min(seq.subtractingWithSaturation(1), range.upperBound)
        return try messages(sql, [channel.rawValue, range.lowerBound, last, limit], known).reversed()
    }

    /// The oldest messages from a seq on.
    func messages(from seq: Seq, limit: Int, known: [CachedMessage] = []) throws -> [CachedMessage] {
        let sql = "\(CachedMessage.query) WHERE m.channel_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq LIMIT ?"
        return try messages(sql, [channel.rawValue, max(seq, range.lowerBound), range.upperBound, limit], known)
    }

    private func messages(
        _ sql: String, _ values: [any CacheColumn], _ known: [CachedMessage] = []
    ) throws -> [CachedMessage] {
        let known = Dictionary(known.map { ($0.seq, $0) }, uniquingKeysWith: { first, _ in first })
        var messages: [CachedMessage] = []
        try database.each(sql, values) { reader in
            let (seq, changeSeq, isDeletedForMe): (Seq, Seq, Bool) = (try reader.value(), try reader.value(), try reader.value())
            if let same = known[seq], same.changeSeq == changeSeq, same.item.isDeletedForMe == isDeletedForMe {
                messages.append(same)
            } else {
                messages.append(try CachedMessage(&reader, in: database))
            }
        }
        return messages
    }

    /// The seq of the first message sent at or after a time; nil if there is none.
    ///
    /// Times never decrease within a channel, so a binary search finds it.
    func firstSeq(from time: Timestamp) throws -> Seq? {
        func message(_ order: String, from first: Seq, to last: Seq) throws -> (seq: Seq, at: Int64)? {
            let sql =
                "SELECT seq, created_at FROM messages WHERE channel_id = ? AND seq BETWEEN ? AND ? ORDER BY seq \(order) LIMIT 1"
            return try database.first(sql, [channel, first, last]) { (try $0.value(), try $0.value()) }
        }
        guard let newest = try message("DESC", from: range.lowerBound, to: range.upperBound), newest.at >= time.milliseconds else {
            return nil
        }
        // Messages before `low` were sent before the time.
        var (low, high, found) = (range.lowerBound, newest.seq, newest.seq)
        while low < high {
            // The mean, computed without a sum that could overflow.
            let middle = (low & high) + (low ^ high) >> 1
            if let next = try message("ASC", from: middle, to: high - 1) {
                if next.at < time.milliseconds {
                    low = next.seq + 1
                    continue
                }
                found = next.seq
            }
            high = middle
        }
        return found
    }

    func hasMessage(before seq: Seq) throws -> Bool {
        guard seq > range.lowerBound else { return false }
        return try hasMessage(in: range.lowerBound, min(seq.subtractingWithSaturation(1), range.upperBound))
    }

    func hasMessage(after seq: Seq) throws -> Bool {
        guard seq < range.upperBound else { return false }
        return try hasMessage(in: max(seq.addingWithSaturation(1), range.lowerBound), range.upperBound)
    }

    private func hasMessage(in first: Seq, _ last: Seq) throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM messages WHERE channel_id = ? AND seq BETWEEN ? AND ?)"
        return try database.value(sql, [channel, first, last]) ?? false
    }

    /// The number of messages after a seq; nil if there are more than ``MessageList/newerCountMax``.
    func count(after seq: Seq) throws -> Int? {
        guard seq < range.upperBound else { return 0 }
        let first = max(seq.addingWithSaturation(1), range.lowerBound)
        let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM messages WHERE channel_id = ? AND seq BETWEEN ? AND ? LIMIT ?)"
        let count: Int? = try database.value(sql, [channel, first, range.upperBound, MessageList.newerCountMax + 1])
        return count.flatMap { $0 > MessageList.newerCountMax ? nil : $0 }
    }

    /// The messages of the channel permanently deleted by changes after a seq.
    func purgedMessages(changedAfter seq: Seq, limit: Int) throws -> [Seq] {
        try database.values("SELECT seq FROM purged WHERE channel_id = ? AND change_seq > ? LIMIT ?", [channel, seq, limit])
    }
}

extension Database {
    /// Nil for a channel that isn't followed.
    ///
    /// - Parameter start: The seq from which the channel keeps its messages, while the earlier ones are being deleted.
    func messageState(of channel: ChannelID, trimmedTo start: Seq? = nil) throws -> MessageState? {
        let sql = """
            SELECT generation, cursor, window_start, stretches,
                   MAX(COALESCE((SELECT history_floor FROM memberships WHERE channel_id = ?1 AND is_member = 1), 0),
                       COALESCE((SELECT concealed_seq FROM overlays WHERE channel_id = ?1), 0)),
                   COALESCE((SELECT MAX(user_seq) FROM own_deletions WHERE channel_id = ?1), 0)
            FROM positions WHERE channel_id = ?1
            """
        return try first(sql, [channel]) { row in
            let generation: Int64 = try row.value()
            var position = Position(
                cursor: try row.value(), windowStart: try row.value(), messageCount: nil,
                stretches: try Position.stretches(row.value()))
            if let start { position.trim(to: start) }
            return MessageState(generation: generation, position: position, floor: try row.value(), deletionSeq: try row.value())
        }
    }

    /// Those of the given client ids whose messages the user sent and are cached.
    func ownMessages(among clientIds: [ClientID], in channel: ChannelID) throws -> Set<ClientID> {
        guard !clientIds.isEmpty else { return [] }
        let names = String(decoding: try StoredJSON.encode(clientIds.map(\.rawValue)), as: UTF8.self)
        let sql = """
            SELECT client_id FROM messages
            WHERE channel_id = ? AND is_own = 1 AND client_id IN (SELECT value FROM json_each(?))
            """
        return Set(try values(sql, [channel, names]))
    }

    /// A message that the user sent; nil if it isn't cached.
    func ownMessage(_ clientId: ClientID, in channel: ChannelID) throws -> Message? {
        let sql = "SELECT \(Message.cacheColumns) FROM messages WHERE channel_id = ? AND client_id = ? AND is_own = 1"
        return try model(sql, [channel.rawValue, clientId.rawValue])
    }

    /// A cached message by its id.
    func message(_ id: MessageID, in channel: ChannelID) throws -> Message? {
        let sql = "SELECT \(Message.cacheColumns) FROM messages WHERE message_id = ? AND channel_id = ?"
        return try model(sql, [id.rawValue, channel.rawValue])
    }

    /// A cached message as lists show it, by its id. Nil if it is concealed from the user, or will be by the user's pending operations.
    func listedMessage(_ id: MessageID, in channel: ChannelID) throws -> MessageItem? {
        guard let message = try self.message(id, in: channel), let state = try messageState(of: channel), message.seq > state.floor
        else {
            return nil
        }
        return try MessageItem(message, sender: UserSummary(userId: message.sender)).withCurrentUsers(in: self)
    }
}
