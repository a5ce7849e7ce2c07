import RoostTestSupport

@testable import Roost
@testable import RoostAPI
@testable import RoostCore

/// A row that only these tests know: a sticker that a member puts on a message. This file has everything that a kind of rows needs.
struct Sticker: StreamRow {
    static let kind = "stickers"

    var channelId: ChannelID
    var message: Seq
    var userId: UserID
    var picture: String
    var changeSeq: Seq

    var key: String { "\(message)\n\(userId)" }
    var stamp: Int64 { changeSeq }
    var aboutMessage: Seq? { message }

    func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channelId", channelId)
        json.member("message", message)
        json.member("userId", userId)
        json.member("picture", picture)
        json.member("changeSeq", changeSeq)
        json.endObject()
    }
}

extension Sticker: StoredRow {
    /// The highest bit: Roost's kinds take theirs from the lowest on.
    static let headBit: Int64? = 1 << 62

    static let table: SQL = """
        CREATE TABLE stickers (
            channel_id TEXT NOT NULL, message_seq BIGINT NOT NULL, user_id TEXT NOT NULL, picture TEXT NOT NULL, change_seq BIGINT NOT NULL,
            PRIMARY KEY (channel_id, message_seq, user_id)
        )
        """

    static let columns: SQL = "channel_id, message_seq, user_id, picture, change_seq"

    init(reading row: inout RowReader) {
        self.init(
            channelId: row.identifier(), message: row.int64(), userId: row.identifier(), picture: row.string(),
            changeSeq: row.int64())
    }

    static func changed(for request: ChannelChangesRequest) throws -> ChangedRows<Sticker> {
        let sql: SQL = """
            SELECT \(columns) FROM stickers
            WHERE channel_id = \(request.channel) AND change_seq > \(request.after) AND message_seq > \(request.floor)
            ORDER BY change_seq LIMIT \(request.limit + 1)
            """
        let found = try request.transaction.rows(sql) { Sticker(reading: &$0) }.map { (stamp: $0.changeSeq, row: $0) }
        return ChangedRows(found, upTo: found.count > request.limit ? found[request.limit - 1].stamp : nil)
    }

    static func fresh(
        in channel: ChannelID, for user: UserID, above floor: Seq, messages: Int, beside rows: Rows, in transaction: any Transaction
    ) throws -> [Sticker] {
        guard let oldest = rows.oldestMessage else { return [] }
        let sql: SQL = "SELECT \(columns) FROM stickers WHERE channel_id = \(channel) AND message_seq >= \(max(oldest, floor + 1))"
        return try transaction.rows(sql) { Sticker(reading: &$0) }
    }

    static func purge(about message: Seq, in channel: ChannelID, _ transaction: any Transaction) throws {
        try transaction.perform("DELETE FROM stickers WHERE channel_id = \(channel) AND message_seq = \(message)")
    }
}

extension Sticker: CachedRow {}

/// Puts a sticker on a message, replacing the caller's former one.
struct PutSticker: Handled {
    typealias Response = Sticker
    static let name = "stickers.put"
    static let method = HTTPMethod.put
    static let path = "/v1/channels/{channel}/stickers"
    static let permission = Permission.messageSend
    static let summary = "Puts a sticker on a message."

    var channel: ChannelID
    var message: Seq
    var picture: String

    func validate() throws(RoostError) {}
    func scope(for caller: Caller) -> Scope { .channel(channel) }

    func handle(in context: inout Context) throws -> Sticker {
        var access = try context.require(.messageSend, in: channel)
        let seq = access.counters.advance(at: context.now)
        let sticker = Sticker(
            channelId: channel, message: message, userId: context.caller.user, picture: picture, changeSeq: seq)
        try context.transaction.perform(
            """
            INSERT INTO stickers (channel_id, message_seq, user_id, picture, change_seq)
            VALUES (\(channel), \(message), \(sticker.userId), \(picture), \(seq))
            ON CONFLICT (channel_id, message_seq, user_id) DO UPDATE SET picture = excluded.picture, change_seq = excluded.change_seq
            """)
        try context.noteRows(of: Sticker.self, in: channel)
        try context.moveStream(of: channel, to: access.counters)
        try context.notify(.messageUpdated, in: access, seq: seq, Rows(counters: access.counters, [sticker]))
        return sticker
    }
}
