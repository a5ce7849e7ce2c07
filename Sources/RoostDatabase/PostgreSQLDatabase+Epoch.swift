#if Cluster
import RoostCore

extension PostgreSQLDatabase {
    /// Gives the database a new epoch, after it lost commits: a backup was restored, or a standby took over that was behind.
    ///
    /// - Throws: ``DatabaseFailure`` while nodes are connected, which would continue with the old epoch and with positions that no longer
    ///   exist.
    public func renewEpoch(to new: String) throws {
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
            try transaction.renewEpoch(to: new)
        }
    }
}
#endif
