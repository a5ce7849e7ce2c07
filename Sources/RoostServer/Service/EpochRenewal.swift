import Foundation
import RoostDatabase

/// Gives a PostgreSQL database a new epoch, once all nodes are stopped.
package enum EpochRenewal {
    /// - Returns: The new epoch.
    /// - Throws: A failure that says what is wrong, without a password; ``RoostServer/Unsupported``.
    package static func run(url: String) throws -> String {
        #if Cluster
        let epoch = UUID().uuidString.lowercased()
        try PostgreSQLDatabase(url: url, laneCount: 1, migrates: false).renewEpoch(to: epoch)
        return epoch
        #else
        throw RoostServer.Unsupported.withoutCluster
        #endif
    }
}
