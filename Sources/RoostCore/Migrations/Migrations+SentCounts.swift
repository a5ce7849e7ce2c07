/// The step for counting users' own messages.
extension Migrations {
    /// `sent_counts` has how many counting messages a user has sent in a block of 1,024 seqs (`block`), with those deleted for good:
    /// only of users who have marked a place far back. There are rows up to the newest block counted, which has one in any case.
    /// It begins empty, since a mark adds what it lacks.
    @Sendable static func sentCounts(_ dialect: Dialect) -> [SQL] {
        [
            """
            CREATE TABLE sent_counts (
                channel_id \(dialect.text) NOT NULL, sender_id \(dialect.text) NOT NULL, block BIGINT NOT NULL, count BIGINT NOT NULL,
                PRIMARY KEY (channel_id, sender_id, block)
            ) \(dialect.clusteredTable)
            """
        ]
    }
}
