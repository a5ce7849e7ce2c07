import Foundation
import GRDB
import RoostAPI

extension Database {
    /// Returns the saved state. The positions are those in the user's own channels.
    func savedState() throws -> SavedState {
        var saved = SavedState()
        try each("SELECT epoch, role, user_cursor FROM state") { row in
            (saved.epoch, saved.role, saved.userCursor) = (try row.value(), try row.value(), try row.value())
        }
        try each("SELECT channel_id, \(Position.columns) FROM positions WHERE visitor IS NULL") { row in
            let channel: ChannelID = try row.value()
            saved.channels[channel] = try Position(reading: &row)
        }
        return saved
    }

    /// Nil for a channel that isn't followed.
    func position(of channel: ChannelID) throws -> Position? {
        try first("SELECT \(Position.columns) FROM positions WHERE channel_id = ?", [channel]) { try Position(reading: &$0) }
    }

    /// The seq up to which a channel's stream is applied; nil for a channel that isn't followed.
    func cursor(of channel: ChannelID) throws -> Seq? {
        try value("SELECT cursor FROM positions WHERE channel_id = ?", [channel])
    }

    /// Whether a channel is one of the user's own and is followed.
    func isOwnChannelFollowed(_ channel: ChannelID) throws -> Bool {
        try value("SELECT EXISTS (SELECT 1 FROM positions WHERE channel_id = ? AND visitor IS NULL)", [channel]) ?? false
    }

    /// Changes each time the channel starts over; nil for a channel that isn't followed.
    func generation(of channel: ChannelID) throws -> Int64? {
        try value("SELECT generation FROM positions WHERE channel_id = ?", [channel])
    }
}

extension Position {
    fileprivate static let columns = "cursor, window_start, message_count, has_hole, has_ended, stretches"

    fileprivate init(reading row: inout CacheReader) throws {
        self.init(
            cursor: try row.value(), windowStart: try row.value(), messageCount: try row.value(), hasHole: try row.value(),
            hasEnded: try row.value(), stretches: try Position.stretches(row.value()))
    }
}
