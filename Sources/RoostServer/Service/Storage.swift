import Crypto
import Foundation
import Logging
import RoostCore
import RoostDatabase

/// The engines that a configuration names: where the rows are, and what carries events between nodes.
struct Storage {
    let database: any Database
    private let configuration: RoostServer.Configuration
    private let logger: Logger

    init(_ configuration: RoostServer.Configuration, logger: Logger) throws {
        self.configuration = configuration
        self.logger = logger
        if let address = configuration.database {
            database = try Self.postgreSQL(address, configuration, logger: logger)
        } else {
            guard configuration.bus == nil else {
                throw RoostServer.Unsupported(
                    "A bus is for several nodes, and they need a database that they share. Name one with --database postgres://…")
            }
            database = try SQLiteDatabase(directory: configuration.dataDirectory)
        }
    }

    /// The node among the others. Nil where the data directory is all there is, and with it nobody else.
    func joinCluster(hub: Hub, readiness: Readiness) throws -> ClusterNode? {
        guard configuration.database != nil else { return nil }
        let name = NodeID(UUID().uuidString.lowercased())
        logger.notice("This is node \(name).")
        return try ClusterNode(node: name, hub: hub, bus: try bus(), database: database, readiness: readiness, logger: logger)
    }

    private static func postgreSQL(
        _ address: String, _ configuration: RoostServer.Configuration, logger: Logger
    ) throws -> any Database {
        #if Cluster
        let database = try PostgreSQLDatabase(url: address, laneCount: configuration.laneCount)
        let durability = try database.durability()
        if durability.fsync != "on" {
            logger.warning("The database server runs with fsync off: what is acknowledged is lost when its machine fails.")
        }
        return database
        #else
        throw RoostServer.Unsupported.withoutCluster
        #endif
    }

    private func bus() throws -> any Bus {
        guard let address = configuration.bus else { return NoBus() }
        #if Cluster
        return try NATSBus(url: address, logger: logger)
        #else
        throw RoostServer.Unsupported.withoutCluster
        #endif
    }

    // MARK: The secret

    /// The secret of the data directory; made on the first run of the first node. All nodes of a cluster must have the same, or a client whose
    /// token one of them takes would be refused by another: the database holds its fingerprint.
    func tokenSecret() throws -> Data {
        let file = SecretFile(directory: configuration.dataDirectory)
        guard configuration.database != nil else { return try file.readOrMake().secret }
        let known = try database.read { try $0.setting("token-secret") }
        if known != nil, !FileManager.default.fileExists(atPath: file.url.path) { throw WrongSecret(path: file.url.path) }
        let secret = try file.readOrMake().secret
        let fingerprint = HMAC<SHA256>.authenticationCode(for: Data("roost token secret".utf8), using: SymmetricKey(data: secret))
        let own = Data(fingerprint).base64EncodedString()
        let held = try database.write(lane: 0) { try $0.setting("token-secret", orNew: own) }
        guard held == own else { throw WrongSecret(path: file.url.path) }
        return secret
    }

    struct WrongSecret: Error, CustomStringConvertible {
        let path: String
        var description: String {
            "The nodes of a cluster sign and check tokens with one secret, and this one's isn't theirs. "
                + "Copy the file token-secret from the data directory of another node to \(path)."
        }
    }
}

extension RoostServer {
    /// What was asked for can't be done as this server was built or configured.
    public struct Unsupported: Error, CustomStringConvertible {
        public let description: String
        init(_ description: String) { self.description = description }

        static let withoutCluster = Unsupported(
            "This roost was built without PostgreSQL and NATS. Build it with them: swift build -c release --traits Cluster.")
    }
}
