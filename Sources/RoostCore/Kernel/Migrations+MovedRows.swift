/// The step of an index without what each message changes.
extension Migrations {
    /// Each message changes its sender's `read_count`, and each mark its reader's. `members_by_user` had it for totals, which read it in the row now: what stays in
    /// the index changes seldom, so that a message and a mark write a tree less.
    ///
    /// PostgreSQL puts a changed row in another place, and an entry for it into each index of its table, unless its page has room and no index has what
    /// was changed. So the table leaves room: each of its partitions, where an operator has divided it. A fill factor that the operator has set stays.
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
