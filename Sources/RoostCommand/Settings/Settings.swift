import ArgumentParser
import Foundation
import Logging
import RoostAPI
import RoostServer

/// The settings of one run, each with its source: flags override the environment, which overrides the file, which overrides the default.
struct Settings: Sendable {
    struct Entry: Sendable {
        let setting: Setting
        let value: Setting.Value
        let origin: SettingSources.Origin

        /// The value to show, without a password or another secret.
        var shown: Setting.Value {
            guard setting.mayHoldPassword, value != setting.standard, case .text(let text) = value else { return value }
            return .text(ShownAddress.of(text))
        }

        /// The same with its unit, for a table.
        var shownWithUnit: String { "\(shown)" + (setting.unit.map { " \($0)" } ?? "") }

        /// The value and its source in a sentence, as `60 s (the default)`. Only for a value without secrets.
        fileprivate var valueWithOrigin: String { "\(value) (" + (origin == .standard ? "the default" : "from \(origin)") + ")" }
    }

    /// The configuration file of a data directory, which is read if no other one is named.
    static let fileName = Backup.settingsName

    private let entries: [Entry]
    /// Warnings about the sources: variables that look like settings and aren't.
    let warnings: [String]
    /// Warnings about values that count as their maximum, which was higher in an earlier version.
    let lowered: [String]
    /// The configuration file of another user's data directory, if it can't be seen whether there is one. Its settings are missing here.
    let unseenFile: String?

    /// Reads all sources.
    ///
    /// - Parameter standardData: The data directory if no source names one.
    static func load(
        _ flags: SettingFlags, standardData: String = "\(Setting.data.standard)",
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) async throws -> Settings {
        var sources = SettingSources(flags: flags.given, environment: environment)
        var unseenFile: String?
        if let file = flags.config ?? environment.variable("ROOST_CONFIG") {
            try await sources.add(file: file)
        } else {
            // The file in the data directory is found by the directory, so it can't set the directory.
            let directory = try await sources.value(of: .data)?.0.description ?? standardData
            let file = URL(filePath: directory).appending(path: Self.fileName).relativePath
            if access(file, F_OK) == 0 {
                try await sources.add(file: file)
                let named = try await sources.value(of: .data)
                if let named, case .file = named.1 {
                    throw Failure("\(file): data can't be set by a file inside the data directory.")
                }
            } else if errno == EACCES {
                unseenFile = file
            }
        }
        var entries: [Entry] = []
        for setting in Setting.all {
            let standard = setting.name == Setting.data.name ? .text(standardData) : setting.standard
            let (value, origin) = try await sources.value(of: setting) ?? (standard, .standard)
            entries.append(Entry(setting: setting, value: value, origin: origin))
        }
        let settings = Settings(entries: entries, warnings: sources.warnings, lowered: sources.lowered, unseenFile: unseenFile)
        try settings.requireTimeForPings()
        return settings
    }

    /// - Throws: A ``Failure``, or a `ValidationError` if a flag gave one of the two, that names both and their sources.
    private func requireTimeForPings() throws {
        guard seconds(.idleTimeout) <= seconds(.pingInterval), let idle = entry(.idleTimeout), let ping = entry(.pingInterval)
        else {
            return
        }
        let text =
            "idle-timeout is \(idle.valueWithOrigin); it must be longer than ping-interval, which is \(ping.valueWithOrigin), "
            + "or every quiet client would be considered gone."
        let isMistakeInFlag = [idle.origin, ping.origin].contains { if case .flag = $0 { true } else { false } }
        if isMistakeInFlag { throw ValidationError(text) }
        throw Failure(text)
    }

    var all: [Entry] { entries }

    private func entry(_ setting: Setting) -> Entry? { entries.first { $0.setting.name == setting.name } }

    private func value(_ setting: Setting) -> Setting.Value { entry(setting)?.value ?? setting.standard }

    func text(_ setting: Setting) -> String { value(setting).description }

    func whole(_ setting: Setting) -> Int { if case .whole(let number) = value(setting) { number } else { 0 } }

    func flag(_ setting: Setting) -> Bool { value(setting) == .flag(true) }

    func seconds(_ setting: Setting) -> Duration {
        if case .seconds(let number) = value(setting) { .milliseconds(Int64(number * 1000)) } else { .zero }
    }

    var dataDirectory: URL { URL(filePath: text(.data), directoryHint: .isDirectory) }
    var logLevel: Logger.Level { Logger.Level(rawValue: text(.logLevel)) ?? .info }

    /// The address at which clients on this machine reach the server.
    ///
    /// - Parameter port: The actual port, since the setting may be 0 for any.
    func address(port: Int) throws -> URL {
        let host = text(.host)
        var components = URLComponents()
        components.scheme = "http"
        components.host = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "[::1]" : host.contains(":") ? "[\(host)]" : host
        components.port = port
        guard let url = components.url else { throw Failure("\(host) isn't a host.") }
        return url
    }

    /// The server's configuration.
    var server: RoostServer.Configuration {
        var configuration = RoostServer.Configuration(dataDirectory: dataDirectory)
        if text(.database) != "sqlite" { configuration.database = text(.database) }
        if text(.bus) != "none" { configuration.bus = text(.bus) }
        configuration.busPrefix = text(.busPrefix)
        configuration.laneCount = whole(.lanes)
        configuration.lockTimeout = seconds(.lockTimeout)
        configuration.presenceTimeout = seconds(.presenceTimeout)
        configuration.host = text(.host)
        configuration.port = whole(.port)
        configuration.allowedOrigins = (try? Setting.origins(text(.allowOrigin))) ?? .none
        configuration.drainWindow = seconds(.drainWindow)
        configuration.connectionsMax = whole(.connectionsMax)
        configuration.unauthenticatedConnectionsPerAddressMax = whole(.unauthenticatedConnectionsPerAddress)
        configuration.connectionsPerUserMax = whole(.connectionsPerUser)
        configuration.requestsPerUserMax = whole(.requestsPerUser)
        configuration.memoryBudgetBytes = whole(.memoryBudget) << 20
        configuration.memoryLimitBytes = whole(.memoryLimit) == 0 ? nil : whole(.memoryLimit) << 20
        configuration.pageCacheBytes = whole(.pageCache) << 20
        configuration.trustedProxies = (try? Setting.networks(text(.trustedProxies))) ?? []
        configuration.pingInterval = seconds(.pingInterval)
        configuration.idleTimeout = seconds(.idleTimeout)
        configuration.authenticationTimeout = seconds(.authenticationTimeout)
        if text(.channelTypes) != "none" { configuration.channelTypes = URL(filePath: text(.channelTypes)) }
        if text(.tokenKeys) != "none" { configuration.tokenKeys = URL(filePath: text(.tokenKeys)) }
        if text(.tokenIssuer) != "any" { configuration.tokenIssuer = text(.tokenIssuer) }
        if text(.tokenAudience) != "any" { configuration.tokenAudience = text(.tokenAudience) }
        configuration.options.tokenLifetimeSecondsMax = whole(.tokenLifetimeMax)
        configuration.options.channelsPerUser = whole(.channelsPerUser)
        configuration.options.showsHistoryToNewMembers = flag(.historyForNewMembers)
        configuration.options.confusableNames =
            AppOptions.ConfusableNames(rawValue: text(.confusableNames)) ?? configuration.options.confusableNames
        configuration.options.isMentionAllEnabled = flag(.mentionAll)
        configuration.options.mentionsPerMessage = whole(.mentionsPerMessage)
        configuration.options.mentionNotifyCap = whole(.mentionNotifyCap)
        configuration.options.undeletionSeconds = whole(.undeletion)
        configuration.options.versionSeconds = whole(.messageVersions)
        if whole(.eventLoops) > 0 { configuration.eventLoopCount = whole(.eventLoops) }
        return configuration
    }
}
