import Foundation
import GRDB
import RoostAPI

/// Permanently deleted messages are remembered: an older page of messages may still be on its way, or a membership that counts one as unread.
extension PurgedMessage: CachedRow {
    static let schema = """
        CREATE TABLE purged (
            channel_id TEXT NOT NULL, seq INTEGER NOT NULL, change_seq INTEGER NOT NULL, counts INTEGER NOT NULL,
            PRIMARY KEY (channel_id, seq)
        ) WITHOUT ROWID;
        CREATE INDEX purged_changed ON purged (channel_id, change_seq);
        """

    static func save(_ rows: [PurgedMessage], of stream: StreamID, as user: UserID, in database: Database) throws {
        guard case .channel(let channel) = stream else { return }
        for place in rows {
            try database.run(
                "INSERT INTO purged (channel_id, seq, change_seq, counts) VALUES (?, ?, ?, ?) ON CONFLICT (channel_id, seq) DO NOTHING",
                [channel.rawValue, place.seq, place.changeSeq, place.counts])
        }
    }

    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}
}

extension Database {
    /// Returns the messages of a channel that were permanently deleted after a seq, up to another.
    func purges(in channel: ChannelID, after seq: Seq, upTo last: Seq) throws -> [PurgedMessage] {
        let sql = "SELECT seq, change_seq, counts FROM purged WHERE channel_id = ? AND change_seq > ? AND change_seq <= ?"
        var purged: [PurgedMessage] = []
        try each(sql, [channel, seq, last]) {
            purged.append(PurgedMessage(seq: try $0.value(), changeSeq: try $0.value(), counts: try $0.value()))
        }
        return purged
    }

    /// Whether the user may see a channel's messages as far back as a seq. Floors apply to members: former members see everything that everyone may
    /// read.
    func maySee(messageAt seq: Seq, in channel: ChannelID) throws -> Bool {
        guard let membership = try self.membership(of: channel), membership.state == .member else { return true }
        return seq > membership.historyFloor
    }
}
