import ArgumentParser

/// The flags of every setting. They are read as text, since values from all sources are checked in one place.
struct SettingFlags: ParsableArguments {
    @Option(help: "A JSON file with settings. Default: DATA/roost.json if it exists. Environment: ROOST_CONFIG.")
    var config: String?
    @Option(help: Setting.data.flagHelp) var data: String?
    @Option(help: Setting.database.flagHelp) var database: String?
    @Option(help: Setting.bus.flagHelp) var bus: String?
    @Option(help: Setting.busPrefix.flagHelp) var busPrefix: String?
    @Option(help: Setting.lanes.flagHelp) var lanes: String?
    @Option(help: Setting.lockTimeout.flagHelp) var lockTimeout: String?
    @Option(help: Setting.presenceTimeout.flagHelp) var presenceTimeout: String?
    @Option(help: Setting.host.flagHelp) var host: String?
    @Option(help: Setting.port.flagHelp) var port: String?
    @Option(help: Setting.allowOrigin.flagHelp) var allowOrigin: String?
    @Option(help: Setting.logLevel.flagHelp) var logLevel: String?
    @Option(help: Setting.drainWindow.flagHelp) var drainWindow: String?
    @Option(help: Setting.connectionsMax.flagHelp) var connectionsMax: String?
    @Option(help: Setting.unauthenticatedConnectionsPerAddress.flagHelp) var unauthenticatedConnectionsPerAddress: String?
    @Option(help: Setting.connectionsPerUser.flagHelp) var connectionsPerUser: String?
    @Option(help: Setting.requestsPerUser.flagHelp) var requestsPerUser: String?
    @Option(help: Setting.memoryBudget.flagHelp) var memoryBudget: String?
    @Option(help: Setting.memoryLimit.flagHelp) var memoryLimit: String?
    @Option(help: Setting.pageCache.flagHelp) var pageCache: String?
    @Option(help: Setting.trustedProxies.flagHelp) var trustedProxies: String?
    @Option(help: Setting.pingInterval.flagHelp) var pingInterval: String?
    @Option(help: Setting.idleTimeout.flagHelp) var idleTimeout: String?
    @Option(help: Setting.authenticationTimeout.flagHelp) var authenticationTimeout: String?
    @Option(help: Setting.eventLoops.flagHelp) var eventLoops: String?
    @Option(help: Setting.tokenKeys.flagHelp) var tokenKeys: String?
    @Option(help: Setting.tokenIssuer.flagHelp) var tokenIssuer: String?
    @Option(help: Setting.tokenAudience.flagHelp) var tokenAudience: String?
    @Option(help: Setting.tokenLifetimeMax.flagHelp) var tokenLifetimeMax: String?
    @Option(help: Setting.channelTypes.flagHelp) var channelTypes: String?
    @Option(help: Setting.channelsPerUser.flagHelp) var channelsPerUser: String?
    @Option(help: Setting.historyForNewMembers.flagHelp) var historyForNewMembers: String?
    @Option(help: Setting.confusableNames.flagHelp) var confusableNames: String?
    @Option(help: Setting.mentionAll.flagHelp) var mentionAll: String?
    @Option(help: Setting.mentionsPerMessage.flagHelp) var mentionsPerMessage: String?
    @Option(help: Setting.mentionNotifyCap.flagHelp) var mentionNotifyCap: String?
    @Option(help: Setting.undeletion.flagHelp) var undeletion: String?
    @Option(help: Setting.messageVersions.flagHelp) var messageVersions: String?

    // derived: values of Setting, without config
    private var values: [(Setting, String?)] {
        [
            (.data, data), (.database, database), (.bus, bus), (.busPrefix, busPrefix), (.lanes, lanes),
            (.lockTimeout, lockTimeout), (.presenceTimeout, presenceTimeout), (.host, host), (.port, port),
            (.allowOrigin, allowOrigin), (.logLevel, logLevel), (.drainWindow, drainWindow), (.connectionsMax, connectionsMax),
            (.unauthenticatedConnectionsPerAddress, unauthenticatedConnectionsPerAddress),
            (.connectionsPerUser, connectionsPerUser), (.requestsPerUser, requestsPerUser), (.memoryBudget, memoryBudget),
            (.memoryLimit, memoryLimit), (.pageCache, pageCache), (.trustedProxies, trustedProxies), (.pingInterval, pingInterval),
            (.idleTimeout, idleTimeout), (.authenticationTimeout, authenticationTimeout), (.eventLoops, eventLoops),
            (.tokenKeys, tokenKeys), (.tokenIssuer, tokenIssuer), (.tokenAudience, tokenAudience),
            (.tokenLifetimeMax, tokenLifetimeMax), (.channelTypes, channelTypes), (.channelsPerUser, channelsPerUser),
            (.historyForNewMembers, historyForNewMembers), (.confusableNames, confusableNames), (.mentionAll, mentionAll),
            (.mentionsPerMessage, mentionsPerMessage), (.mentionNotifyCap, mentionNotifyCap), (.undeletion, undeletion),
            (.messageVersions, messageVersions),
        ]
    }

    /// The given values, by the name of the setting.
    var given: [String: String] {
        Dictionary(uniqueKeysWithValues: values.compactMap { setting, value in value.map { (setting.name, $0) } })
    }
}

extension Setting {
    fileprivate var flagHelp: ArgumentHelp {
        let valueName =
            switch kind {
            case .text, .choice, .origins, .networks: name
            case .whole, .wholeOrNone: "number"
            case .flag: "true or false"
            case .seconds: "seconds"
            }
        // The demo has its own directory.
        let standard = name == Setting.data.name ? "\(standard); for roost demo: \(Demo.standardData)" : "\(standard)"
        return ArgumentHelp("\(help) Default: \(standard). Environment: \(environmentName).", valueName: valueName)
    }
}
