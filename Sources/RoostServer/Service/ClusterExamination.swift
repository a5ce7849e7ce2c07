import Foundation
import Logging
import RoostDatabase

/// Checks whether the servers behind a cluster can be reached, and changes nothing in them.
package enum ClusterExamination {
    /// Examines the database for an operator.
    ///
    /// - Returns: Its version and commit settings, and whether an acknowledged commit is on disk.
    /// - Throws: A failure that says what is wrong, without a password; ``RoostServer/Unsupported``.
    package static func database(_ url: String) throws -> (found: String, isDurable: Bool) {
        #if Cluster
        let found = try PostgreSQLDatabase.examine(url: url)
        let text = "PostgreSQL \(found.version), fsync \(found.fsync), synchronous_commit \(found.synchronousCommit)"
        return (text, found.fsync == "on")
        #else
        throw RoostServer.Unsupported.withoutCluster
        #endif
    }

    /// Waits for the bus to answer, at most 3 seconds.
    package static func bus(_ url: String) throws -> Bool {
        #if Cluster
        var quiet = Logger(label: "roost.examination")
        quiet.logLevel = .critical
        let bus = try NATSBus(url: url, logger: quiet)
        try bus.start { _ in }
        defer { bus.stop() }
        let deadline = ContinuousClock.now + .seconds(3)
        while !bus.isConnected, ContinuousClock.now < deadline { Thread.sleep(forTimeInterval: 0.02) }
        return bus.isConnected
        #else
        throw RoostServer.Unsupported.withoutCluster
        #endif
    }
}
