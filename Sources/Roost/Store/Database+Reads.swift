import Foundation
import GRDB
import RoostAPI

extension Database {
    func savedState() throws -> SavedState {
        var saved = SavedState()
        if let row = try Row.fetchOne(self, sql: "SELECT epoch, user_cursor FROM state") {
            saved.epoch = row[0]
            saved.userCursor = row[1]
        }
        let positions = "SELECT channel_id, cursor, window_start, message_count, has_hole, stretches FROM positions"
        for row in try Row.fetchAll(self, sql: positions) {
            saved.channels[ChannelID(row[0] as String)] = Position(
                cursor: row[1], windowStart: row[2], messageCount: row[3], hasHole: row[4],
                stretches: try Position.stretches(row[5]))
        }
        return saved
    }

    /// The seq up to which a channel's stream is applied; nil for a channel that isn't followed.
    func cursor(of channel: ChannelID) throws -> Seq? {
        try Seq.fetchOne(
            try cachedStatement(sql: "SELECT cursor FROM positions WHERE channel_id = ?"), arguments: [channel.rawValue])
    }
}
