import Foundation
import GRDB
import RoostAPI

extension Database {
    func savedState() throws -> SavedState {
        var saved = SavedState()
        try each("SELECT epoch, user_cursor FROM state") { row in
            (saved.epoch, saved.userCursor) = (try row.value(), try row.value())
        }
        try each("SELECT channel_id, cursor, window_start, message_count, has_hole, stretches FROM positions") { row in
            let channel: ChannelID = try row.value()
            saved.channels[channel] = Position(
                cursor: try row.value(), windowStart: try row.value(), messageCount: try row.value(), hasHole: try row.value(),
                stretches: try Position.stretches(row.value()))
        }
        return saved
    }

    /// The seq up to which a channel's stream is applied; nil for a channel that isn't followed.
    func cursor(of channel: ChannelID) throws -> Seq? {
        try value("SELECT cursor FROM positions WHERE channel_id = ?", [channel])
    }
}
