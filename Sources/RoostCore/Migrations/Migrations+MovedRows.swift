/// The step for an index without the values that each message changes.
extension Migrations {
    /// Each message changes its sender's `read_count`, and each mark its reader's. `members_by_user` contained it for totals,
    /// which now read it from the row. The remaining columns change rarely, so a message and a mark write one B-tree less.
    ///
    /// PostgreSQL moves a changed row, and adds an entry for it to each index of its table, unless its page has room and no
    /// index contains a changed column. So the table leaves room: each of its partitions, if an operator has partitioned it. A
    /// fill factor set by the operator is kept.
    @Sendable static func movedRows(_ dialect: Dialect) -> [SQL] {
        var statements: [SQL] = [
            "DROP INDEX members_by_user",
            "CREATE INDEX members_by_user ON members (user_id, state, is_channel_deleted, channel_id)",
        ]
        if let room = dialect.roomForChanges {
            statements.append(
                """
                DO $$ DECLARE part regclass; BEGIN
                    FOR part IN
                        SELECT oid FROM pg_class
                        WHERE (oid = 'members'::regclass AND relkind = 'r'
                            OR oid IN (SELECT relid FROM pg_partition_tree('members') WHERE isleaf))
                            AND NOT EXISTS (SELECT 1 FROM unnest(reloptions) AS given (setting) WHERE setting LIKE 'fillfactor=%')
                    LOOP EXECUTE format('ALTER TABLE %s SET (\(room))', part); END LOOP;
                END $$
                """)
        }
        return statements
    }
}
