import Logging
import RoostAPI
import RoostCore
import RoostDatabase

/// What a server looks at before it serves: the clock, and whether it is set as the other nodes are.
struct StartChecks {
    private let configuration: RoostServer.Configuration
    private let database: any Database
    private let logger: Logger

    /// So far the clock may be from the newest message without a word.
    private enum Distance {
        static let aheadMilliseconds: Int64 = 365 * 86_400_000
        static let behindMilliseconds: Int64 = 60_000
    }

    init(_ configuration: RoostServer.Configuration, _ database: any Database, _ logger: Logger) {
        self.configuration = configuration
        self.database = database
        self.logger = logger
    }

    /// - Throws: ``RoostServer/Unsupported`` for a clock that is wrong beyond doubt; `DatabaseFailure`.
    func run() throws {
        try checkClock()
        if configuration.database != nil { try compareSettings() }
    }

    // MARK: The clock

    /// PostgreSQL's clock where nodes share one, and the machine's otherwise.
    private func checkClock() throws {
        let now = database.now()
        guard IDGenerator.times.contains(now) else {
            throw RoostServer.Unsupported(
                "The clock says \(now), which can't be right: times from \(IDGenerator.times.lowerBound) to "
                    + "\(IDGenerator.times.upperBound) can be stored. Set it, then start again.")
        }
        guard let newest = try database.read({ try IDGenerator.newestTime(in: $0) }) else { return }
        let distance = now.milliseconds - newest.milliseconds
        if distance > Distance.aheadMilliseconds {
            logger.warning(
                """
                The clock says \(now), and the newest message is of \(newest). If the clock is wrong, stop now and set it: the times of \
                a channel's messages never fall, so that later ones would carry this time too.
                """)
        } else if distance < -Distance.behindMilliseconds {
            logger.warning(
                "The clock says \(now), and the newest ids were made at \(newest). Ids count on from there. Set the clock if it is wrong."
            )
        }
    }

    // MARK: The settings

    /// Nodes that differ serve the same users by different rules. It is no error while a setting is being changed, node by node.
    private func compareSettings() throws {
        let options = configuration.options
        let shared = [
            ("channels-per-user", "\(options.channelsPerUser)"), ("history-for-new-members", "\(options.showsHistoryToNewMembers)"),
            ("token-lifetime-max", "\(options.tokenLifetimeSecondsMax)"),
            ("bus-prefix", configuration.busPrefix), ("bus", configuration.bus == nil ? "none" : "there is one"),
        ]
        let others = try database.write(lane: 0) { transaction in
            try shared.map { name, own in try transaction.replaceSetting("shared.\(name)", with: own) }
        }
        for ((name, own), other) in zip(shared, others) {
            guard let other, other != own else { continue }
            logger.warning(
                """
                The setting \(name) is \(own) here, and the node that started before this one has \(other). It has to be the same on \
                all nodes: if you are changing it, start the others anew too.
                """)
        }
    }
}
