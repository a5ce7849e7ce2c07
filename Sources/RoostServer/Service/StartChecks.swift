import Logging
public import RoostAPI
import RoostCore
import RoostDatabase

/// A server's checks before it serves: the clocks, and in a cluster the database's timeline and whether the settings match the other nodes'.
struct StartChecks {
    private let configuration: RoostServer.Configuration
    private let database: any Database
    private let logger: Logger
    private let machineNow: Timestamp

    /// How far the clock may be from the newest message without a warning.
    private enum Distance {
        static let aheadMilliseconds: Int64 = 365 * 86_400_000
        static let behindMilliseconds: Int64 = 60_000
        /// How far a node's clock may be from the database's without a warning.
        static let ofMachineMilliseconds: Int64 = 30_000
    }

    init(
        _ configuration: RoostServer.Configuration, _ database: any Database, _ logger: Logger, machineNow: Timestamp = .now
    ) {
        self.machineNow = machineNow
        self.configuration = configuration
        self.database = database
        self.logger = logger
    }

    /// - Throws: ``RoostServer/Unsupported`` for a clock that is wrong beyond doubt; `DatabaseFailure`.
    func run(tokenKeys keys: TokenKeys) throws {
        try checkClock()
        guard configuration.database != nil else { return }
        try database.keepTimeline()
        Self.warnOfNewTimeline(of: database, logger)
        try compareSettings(keys)
    }

    /// A setting that must be the same on all nodes.
    struct SharedSetting {
        let name: String
        let value: String
        /// What to do if it isn't.
        var remedy = "if you are changing it, restart the others too"
    }

    /// Returns the keys whose tokens a node accepts. A node that lacks a key of the others refuses tokens that they accept, and one that still has
    /// a key removed there accepts tokens that they refuse.
    static func tokenKeys(_ keys: TokenKeys) -> SharedSetting {
        SharedSetting(
            name: "token-keys", value: keys.names.joined(separator: ", "),
            remedy: "copy the files of keys from a node that has them right")
    }

    // MARK: The clock

    /// PostgreSQL's clock if nodes share one, otherwise the machine's.
    private func checkClock() throws {
        let now = database.now()
        guard RoostServer.times.contains(now) else {
            throw RoostServer.Unsupported(
                "The clock says \(now), which can't be right: times from \(RoostServer.times.lowerBound) to "
                    + "\(RoostServer.times.upperBound) can be stored. Set it, then start again.")
        }
        if configuration.database != nil { try checkMachine(against: now) }
        guard let newest = try database.read({ try IDGenerator.newestTime(in: $0) }) else { return }
        let distance = now.milliseconds - newest.milliseconds
        if distance > Distance.aheadMilliseconds {
            logger.warning(
                """
                The clock says \(now), and the newest message dates from \(newest). If the clock is wrong, stop now and set it: the \
                times of a channel's messages never decrease, so later messages would keep this time too.
                """)
        } else if distance < -Distance.behindMilliseconds {
            logger.warning(
                """
                The clock says \(now), and the newest ids were made at \(newest). New ids continue from there. Set the clock if it \
                is wrong.
                """)
        }
    }

    /// A node decides by its own clock whether a token has expired.
    private func checkMachine(against now: Timestamp) throws {
        guard RoostServer.times.contains(machineNow) else {
            throw RoostServer.Unsupported(
                "This machine's clock says \(machineNow), and PostgreSQL's \(now). With this clock every token would be expired, "
                    + "or none would ever expire. Set it, then start again.")
        }
        Self.warn(ofMachineAt: machineNow, whileDatabaseIsAt: now, logger)
    }

    /// Warns if this machine's clock and the database's are too far apart.
    ///
    /// - Returns: Whether they are.
    @discardableResult
    static func warn(ofMachineAt machineNow: Timestamp, whileDatabaseIsAt now: Timestamp, _ logger: Logger) -> Bool {
        let distance = machineNow.milliseconds - now.milliseconds
        guard abs(distance) > Distance.ofMachineMilliseconds else { return false }
        let consequence = distance > 0 ? "early" : "late, and new ones may be refused as issued in the future"
        logger.warning(
            """
            This machine's clock says \(machineNow), and PostgreSQL's \(now). If this one is wrong, tokens expire here \
            \(abs(distance) / 1000) s too \(consequence). If PostgreSQL's is, messages, silences and revocations have wrong times. Set \
            the clock.
            """)
        return true
    }

    // MARK: The timeline

    /// Warns of a database server that doesn't continue the commits that the rows were written with. Some of them may be missing, and nothing else shows
    /// that: the rows have the epoch that clients know.
    static func warnOfNewTimeline(of database: any Database, _ logger: Logger) {
        // What can't be read now is unknown; the next start or reconnection compares again.
        guard let found = try? database.changedTimeline() else { return }
        logger.warning(
            """
            The database's timeline is \(found.current), and was \(found.stored): a standby has taken over, or a backup was restored. If \
            that lost commits, stop all nodes and give the database a new epoch: roost epoch renew.
            """)
    }

    // MARK: The settings

    /// Compares the settings. Nodes that differ apply different rules to the same users. That isn't an error while a setting is being changed node
    /// by node.
    private func compareSettings(_ keys: TokenKeys) throws {
        let options = configuration.options
        let shared = [
            SharedSetting(name: "channels-per-user", value: "\(options.channelsPerUser)"),
            SharedSetting(name: "history-for-new-members", value: "\(options.showsHistoryToNewMembers)"),
            SharedSetting(name: "token-lifetime-max", value: "\(options.tokenLifetimeSecondsMax)"),
            SharedSetting(name: "confusable-names", value: options.confusableNames.rawValue),
            SharedSetting(name: "mention-all", value: "\(options.isMentionAllEnabled)"),
            SharedSetting(name: "mentions-per-message", value: "\(options.mentionsPerMessage)"),
            SharedSetting(name: "mention-notify-cap", value: "\(options.mentionNotifyCap)"),
            SharedSetting(name: "undeletion", value: "\(options.undeletionSeconds)"),
            SharedSetting(name: "message-versions", value: "\(options.versionSeconds)"),
            SharedSetting(name: "push-level", value: options.pushLevel.rawValue),
            SharedSetting(name: "token-issuer", value: configuration.tokenIssuer ?? "any"),
            SharedSetting(name: "token-audience", value: configuration.tokenAudience ?? "any"),
            SharedSetting(name: "bus-prefix", value: configuration.busPrefix),
            SharedSetting(name: "bus", value: configuration.bus == nil ? "none" : "there is one"), Self.tokenKeys(keys),
        ]
        let others = try database.write(lane: 0) { transaction in try shared.map { try transaction.exchange($0) } }
        for (setting, other) in zip(shared, others) {
            guard let other, other != setting.value else { continue }
            logger.warning(
                """
                The setting \(setting.name) is \(setting.value) here, but the node that started before this one has \(other). It must \
                be the same on all nodes: \(setting.remedy).
                """)
        }
    }
}

extension Transaction {
    /// Stores a node's value of a setting.
    ///
    /// - Returns: The value of the node that started before it.
    func exchange(_ setting: StartChecks.SharedSetting) throws -> String? {
        try replaceSetting("shared.\(setting.name)", with: setting.value)
    }
}

extension RoostServer {
    /// The clock times with which a server starts: those that message ids can carry, from 2024 to August 2093.
    public static var times: Range<Timestamp> { IDGenerator.times }
}
