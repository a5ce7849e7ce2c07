#if Cluster
import RoostCore

extension PostgreSQLDatabase {
    /// Gives the database a new epoch after it has lost commits: a backup was restored, or a standby that was behind took over.
    ///
    /// From then on the rows belong to the server's current timeline: a node that starts doesn't warn of it. The tables stay as they are: nodes of their
    /// version may be running.
    ///
    /// - Throws: ``DatabaseFailure`` while nodes are connected, which would continue with the old epoch and with positions that no longer exist, and
    ///   for a database that has no epoch; `Migrations.NewerDatabase`.
    public func renewEpoch(to new: String) throws {
        let current = try? timeline()
        try write(lane: 0) { transaction in
            let connected =
                try transaction.first(
                    """
                    SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = \(AdvisoryLock.kind)
                    AND objid::bigint < \(AdvisoryLock.migration) AND granted AND pid <> pg_backend_pid()
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                    """
                ) { $0.int() } ?? 0
            guard connected == 0 else {
                throw DatabaseFailure(
                    message:
                        "\(connected) connections of nodes are open. Stop all nodes first: they hold positions of the old epoch.",
                    kind: .fatal)
            }
            let hasTables = try transaction.first("SELECT count(to_regclass('migrations'))") { $0.int() } == 1
            if hasTables { try Migrations.made(in: transaction) }
            guard hasTables, try transaction.renewEpoch(to: new) == 1 else {
                throw DatabaseFailure(
                    message: "The database has no epoch: no server has started on it. Is it the one that was restored?",
                    kind: .fatal)
            }
            try transaction.forget(Self.timelineSetting)
            if let current { _ = try transaction.setting(Self.timelineSetting, orNew: current) }
        }
    }
}
#endif
