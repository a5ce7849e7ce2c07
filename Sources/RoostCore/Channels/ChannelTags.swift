import RoostAPI

extension Transaction {
    /// Indexes a channel by its tags, in place of its former ones.
    func indexTags(of channel: ChannelID, before: [String], after: [String]) throws {
        // Compared as the table compares them: to Swift, a tag that is written in another form of Unicode is the same one.
        let (old, new) = (Set(before.map(SortKey.text)), Set(after.map(SortKey.text)))
        for tag in old.subtracting(new).sorted() {
            try perform("DELETE FROM channel_tags WHERE tag = \(tag.sql) AND channel_id = \(channel)")
        }
        for tag in new.subtracting(old).sorted() {
            try perform(
                "INSERT INTO channel_tags (tag, channel_id) VALUES (\(tag.sql), \(channel)) ON CONFLICT (tag, channel_id) DO NOTHING"
            )
        }
    }
}
