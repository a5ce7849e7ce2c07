import Crypto
import Foundation
import Logging
import RoostAPI
import RoostCore
import RoostDatabase

/// The configured database, which holds the rows, and the bus, which carries events between nodes.
struct Storage {
    let database: any Database
    /// The database, if it is in the data directory.
    let file: SQLiteDatabase?
    private let configuration: RoostServer.Configuration
    private let logger: Logger

    init(_ configuration: RoostServer.Configuration, logger: Logger) throws {
        self.configuration = configuration
        self.logger = logger
        if let address = configuration.database {
            if configuration.acceptsDataLoss {
                logger.warning(
                    """
                    --accept-data-loss is for SQLite and has no effect here. If PostgreSQL has lost commits, stop all nodes and give it a new \
                    epoch: roost epoch renew.
                    """)
            }
            database = try Self.postgreSQL(address, configuration, logger: logger)
            file = nil
        } else {
            try configuration.requireDatabaseOfBus()
            let file = try Self.sqlite(configuration)
            for note in file.notes { logger.warning("\(note)") }
            for loss in file.losses { logger.error("Data is lost, which --accept-data-loss accepts. \(loss)") }
            if configuration.acceptsDataLoss, file.losses.isEmpty {
                logger.warning(
                    "No file of the database is missing or older: drop --accept-data-loss, or the next loss will go unnoticed.")
            }
            (database, self.file) = (file, file)
        }
    }

    /// Returns a failure of the start as sentences with the remedy, if that is known.
    func explained(_ error: any Error) -> any Error { file?.explained(error) ?? error }

    /// Makes this server a node of a cluster. Nil if its database is in the data directory: then it is the only node.
    func joinCluster(hub: Hub, readiness: Readiness, metrics: ServerMetrics) throws -> ClusterNode? {
        guard configuration.database != nil else { return nil }
        let name = NodeID(UUID().uuidString.lowercased())
        logger.notice("This is node \(name).")
        return try ClusterNode(
            node: name, hub: hub, bus: try bus(), database: database, readiness: readiness,
            presenceTimeout: configuration.presenceTimeout, gatherTimeout: configuration.gatherTimeout, metrics: metrics,
            logger: logger)
    }

    private static func sqlite(_ configuration: RoostServer.Configuration) throws -> SQLiteDatabase {
        do {
            return try SQLiteDatabase(
                directory: configuration.dataDirectory, acceptsDataLoss: configuration.acceptsDataLoss,
                pageCacheBytes: configuration.pageCacheBytes, base: nil, clock: configuration.clock)
        } catch let damaged as DamagedFiles {
            var reported = damaged
            reported.acceptingCommand = configuration.acceptingCommand
            throw reported
        }
    }

    private static func postgreSQL(
        _ address: String, _ configuration: RoostServer.Configuration, logger: Logger
    ) throws -> any Database {
        #if Cluster
        let database = try PostgreSQLDatabase(url: address, laneCount: configuration.laneCount) { logger.warning("\($0)") }
        let durability = try database.durability()
        if durability.fsync != "on" {
            logger.warning("The database server runs with fsync off: acknowledged changes are lost if its machine fails.")
        }
        return database
        #else
        throw RoostServer.Unsupported.withoutCluster
        #endif
    }

    private func bus() throws -> any Bus {
        guard let address = configuration.bus else { return NoBus() }
        #if Cluster
        return try NATSBus(url: address, prefix: configuration.busPrefix, logger: logger)
        #else
        throw RoostServer.Unsupported.withoutCluster
        #endif
    }

    // MARK: The secret

    /// Returns the secret of the data directory; made on the first run. The database holds its fingerprint: all nodes of a cluster must have the
    /// same secret, or one would refuse tokens that another accepts, and a database belongs to the secret that it was used with.
    func tokenSecret() throws -> Data {
        let file = SecretFile(directory: configuration.dataDirectory)
        try file.requirePrivate()
        let known = try database.read { try $0.setting(Self.fingerprintName) }
        let accepts = self.file != nil && configuration.acceptsDataLoss
        func wrong(isMissing: Bool) -> WrongSecret {
            WrongSecret(
                path: file.url.path, isOfCluster: self.file == nil, isMissing: isMissing,
                acceptingCommand: configuration.acceptingCommand)
        }
        if known != nil, !FileManager.default.fileExists(atPath: file.url.path) {
            guard accepts else { throw wrong(isMissing: true) }
            logger.error(
                "The token secret is missing, which --accept-data-loss accepts. A new one is made: all tokens become invalid.")
        }
        let secret = try file.readOrMake().secret
        let own = Self.fingerprint(of: secret)
        let held = try database.write(lane: 0) { transaction in
            let held = try transaction.setting(Self.fingerprintName, orNew: own)
            guard held != own, accepts else { return held }
            try transaction.execute("UPDATE settings SET value = \(own) WHERE name = \(Self.fingerprintName)")
            return own
        }
        guard held == own else { throw wrong(isMissing: false) }
        return secret
    }

    /// Stores that the secret is retired, for starts without the file that says so, and refuses keys that would make it valid again.
    ///
    /// - Parameter fingerprint: That of the secret: another secret isn't retired with it.
    func confirmRetirement(_ keys: TokenKeys, of fingerprint: String) throws {
        if keys.isTokenSecretRetired {
            return try database.write(lane: 0) { try $0.rememberRetirement(of: fingerprint) }
        }
        guard try database.read({ try $0.setting(Self.retirementName) }) == fingerprint else { return }
        let path = TokenKeyRing(directory: configuration.dataDirectory).url.path
        let lost = TokenKeyFiles.RetirementLost(directory: configuration.dataDirectory)
        guard file != nil else { throw lost }
        guard configuration.acceptsDataLoss else {
            throw RoostServer.Unsupported("\(lost) To make the secret's tokens valid again: \(configuration.acceptingCommand).")
        }
        logger.error(
            "The token secret was retired, and \(path) doesn't say so, which --accept-data-loss accepts. The secret's tokens are valid again."
        )
        try database.write(lane: 0) { try $0.forget(Self.retirementName) }
    }

    static let fingerprintName = "token-secret"
    /// Holds the fingerprint of the retired secret.
    static let retirementName = "token-secret-retired"

    /// Returns a secret's fingerprint for the database. It doesn't reveal the secret.
    static func fingerprint(of secret: Data) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: Data("roost token secret".utf8), using: SymmetricKey(data: secret))
        return Data(code).base64EncodedString()
    }

    struct WrongSecret: Error, CustomStringConvertible {
        let path: String
        let isOfCluster: Bool
        let isMissing: Bool
        let acceptingCommand: String
        var description: String {
            if isOfCluster {
                return "The nodes of a cluster sign and check tokens with one secret, and this one's isn't theirs. "
                    + "Copy the file token-secret from the data directory of another node to \(path)."
            }
            return
                (isMissing
                ? "The token secret \(path) is missing" : "The token secret \(path) isn't the one that the database was used with")
                + ": all existing tokens would become invalid. Put the right one back. To go on with another: \(acceptingCommand)."
        }
    }
}

extension RoostServer.Configuration {
    /// The command that starts the server despite the loss. It names the directory, so it can't start another server's.
    fileprivate var acceptingCommand: String { "roost serve --data \(dataDirectory.relativePath.shellWord) --accept-data-loss" }
}

extension Transaction {
    /// Stores that the secret with this fingerprint is retired.
    func rememberRetirement(of fingerprint: String) throws {
        _ = try replaceSetting(Storage.retirementName, with: fingerprint)
    }

    /// Stores which secret a name means, and throws `RoostError` if another node of the cluster has another secret by that name. A name is never
    /// reused for another key, so a node that was offline can't confuse them.
    func confirmTokenKeys(_ fingerprints: [String: String]) throws {
        for (name, own) in fingerprints.sorted(by: { $0.key < $1.key }) where try setting("token-key:\(name)", orNew: own) != own {
            throw RoostError(
                .alreadyExists,
                "Another node has, or had, a different key named \(name). Copy token-keys.json from its data directory, or give the new key another name."
            )
        }
    }
}

extension RoostServer.Configuration {
    /// Refuses a bus for a server that doesn't share its database.
    package func requireDatabaseOfBus() throws(RoostServer.Unsupported) {
        guard bus == nil || database != nil else {
            throw RoostServer.Unsupported(
                "A bus connects several nodes, which need a shared database. Name one with --database postgres://…")
        }
    }
}

extension RoostServer {
    /// Something that this server can't do as built or configured.
    public struct Unsupported: Error, CustomStringConvertible {
        public let description: String
        init(_ description: String) { self.description = description }

        static let withoutCluster = Unsupported(
            "This roost was built without PostgreSQL and NATS. Build it with them: "
                + "swift build -c release --product roost --traits Cluster --static-swift-stdlib")
    }
}
