import RoostAPI

extension Transaction {
    /// Indexes a channel by its tags, replacing the former ones.
    func indexTags(of channel: ChannelID, before: [String], after: [String]) throws {
        // Compared as the table compares them: in Swift, tags in different Unicode normal forms are equal.
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
