#if Cluster
import Testing

/// Tests on real nodes, PostgreSQL and NATS: one after the other, since each uses the whole machine.
@Suite(.serialized) enum RealClusterTests {
    /// A statement that ends once another one waits for a lock of the same database, and after 20 seconds at the latest.
    static let waitForWaiter = """
        DO $$ BEGIN FOR number IN 1..2000 LOOP
            PERFORM pg_stat_clear_snapshot();
            EXIT WHEN EXISTS (SELECT 1 FROM pg_stat_activity
                              WHERE datname = current_database() AND wait_event_type = 'Lock');
            PERFORM pg_sleep(0.01);
        END LOOP; END $$
        """
}
#endif
