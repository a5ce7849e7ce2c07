import RoostAPI

extension Transaction {
    /// Indexes a channel by its tags, in place of its former ones.
    func indexTags(of channel: ChannelID, before: [String], after: [String]) throws {
        for tag in Set(before).subtracting(after).sorted() {
            try perform("DELETE FROM channel_tags WHERE tag = \(tag) AND channel_id = \(channel)")
        }
        for tag in Set(after).subtracting(before).sorted() {
            try perform(
                "INSERT INTO channel_tags (tag, channel_id) VALUES (\(tag), \(channel)) ON CONFLICT (tag, channel_id) DO NOTHING")
        }
    }
}
