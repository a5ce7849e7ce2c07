import Foundation
import RoostAPI
import RoostServer

/// A setting that an operator can give by a flag, by the environment or in the configuration file, under one name.
struct Setting: Sendable {
    /// The kind of valid values.
    enum Kind: Sendable {
        case text
        /// Origins of web pages, or `none`.
        case origins
        /// IP addresses and networks, or `none`.
        case networks
        case choice([String])
        case whole(ClosedRange<Int>)
        /// The same, or 0 for none.
        case wholeOrNone(ClosedRange<Int>)
        /// Yes or no, written `true` or `false`.
        case flag
        case seconds(ClosedRange<Double>)
    }

    enum Value: Hashable, Sendable {
        case text(String)
        case whole(Int)
        case flag(Bool)
        case seconds(Double)
    }

    /// The name of the flag and of the key in the file.
    let name: String
    let kind: Kind
    let standard: Value
    let help: String
    /// Whether it can hold a password, which is never shown.
    var mayHoldPassword: Bool = false
    /// The maximum that a whole number had in an earlier version, if it was higher: values up to it count as the maximum, and don't prevent a start.
    var formerMax: Int?
    /// The unit of a whole number, shown next to it. A value of seconds has its own.
    var unit: String?

    /// The name of the environment variable: `ROOST_DRAIN_WINDOW` for `drain-window`.
    var environmentName: String { "ROOST_" + name.uppercased().replacing("-", with: "_") }

    /// Returns the maximum for a value that is above it and was valid in an earlier version; nil for any other value.
    func maximum(insteadOf value: Value) -> Int? {
        guard case .whole(let range) = kind, case .whole(let number) = value, let formerMax else { return nil }
        return number > range.upperBound && number <= formerMax ? range.upperBound : nil
    }
}

extension Setting {
    static let data = Setting(
        name: "data", kind: .text, standard: .text("roost-data"), help: "The data directory. It is created if it doesn't exist.")
    static let database = Setting(
        name: "database", kind: .text, standard: .text("sqlite"),
        help: "Where data is stored: sqlite for a file in the data directory, or a PostgreSQL server for several nodes, "
            + "as postgres://user@host/name. A password is best given in the environment.",
        mayHoldPassword: true)
    static let bus = Setting(
        name: "bus", kind: .text, standard: .text("none"),
        help: "The bus that carries events between nodes, as nats://host:4222.", mayHoldPassword: true)
    static let busPrefix = Setting(
        name: "bus-prefix", kind: .text, standard: .text("roost"),
        help: "The prefix of the subjects on NATS: each cluster that shares a NATS server needs its own. The same on all nodes.")
    static let lanes = Setting(
        name: "lanes", kind: .whole(1...64), standard: .whole(4),
        help: "Transactions that write to PostgreSQL at the same time. SQLite has one.")
    static let lockTimeout = Setting(
        name: "lock-timeout", kind: .seconds(1...600), standard: .seconds(10),
        help: "Seconds that an operation waits for a PostgreSQL row that another transaction has locked.")
    static let presenceTimeout = Setting(
        name: "presence-timeout", kind: .seconds(2...60), standard: .seconds(3),
        help: "Seconds of silence after which another node of a cluster, with its users, is considered gone.")
    static let host = Setting(
        name: "host", kind: .text, standard: .text("127.0.0.1"),
        help: "The address to listen on. The default serves this machine only; 0.0.0.0 serves every network.")
    static let port = Setting(
        name: "port", kind: .whole(0...65_535), standard: .whole(8080), help: "The port; 0 for any free one.")
    static let allowOrigin = Setting(
        name: "allow-origin", kind: .origins, standard: .text("none"),
        help:
            "Origins of web pages that may read responses over HTTP, separated by commas, such as https://app.example.com; * for any."
    )
    static let logLevel = Setting(
        name: "log-level", kind: .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]),
        standard: .text("info"), help: "Minimum level to log, on standard error.")
    static let drainWindow = Setting(
        name: "drain-window", kind: .seconds(0...600), standard: .seconds(5),
        help:
            "Seconds over which sockets are closed when the server shuts down. It ends a second later, or five if its disk is slow."
    )
    static let connectionsMax = Setting(
        name: "connections-max", kind: .whole(1...1_000_000), standard: .whole(18_000),
        help: "Maximum number of connections. Each takes an open file. Health checks have a reserve.")
    static let unauthenticatedConnectionsPerAddress = Setting(
        name: "unauthenticated-connections-per-address", kind: .whole(1...1_000_000), standard: .whole(1000),
        help: "Unauthenticated connections per address.")
    static let connectionsPerUser = Setting(
        name: "connections-per-user", kind: .whole(1...1_000_000), standard: .whole(200),
        help: "Connections per user. Tokens with the roles admin and service are exempt.")
    static let requestsPerUser = Setting(
        name: "requests-per-user", kind: .whole(1...1_000_000), standard: .whole(64),
        help: "Concurrent HTTP requests per user. Tokens with the roles admin and service are exempt.")
    static let memoryBudget = Setting(
        name: "memory-budget", kind: .whole(8...1_048_576), standard: .whole(24),
        help: "MiB that may be buffered for all clients: their calls, and what they haven't read yet.",
        unit: "MiB")
    static let memoryLimit = Setting(
        name: "memory-limit", kind: .wholeOrNone(128...1_048_576), standard: .whole(0),
        help: "MiB of memory that the process may use; 0 for no limit. Near it, less is buffered for clients.",
        unit: "MiB")
    static let pageCache = Setting(
        name: "page-cache", kind: .whole(4...1_048_576), standard: .whole(12),
        help: "MiB of SQLite pages to cache; long channel lists may use up to two thirds as much again. No effect with PostgreSQL.",
        unit: "MiB")
    static let trustedProxies = Setting(
        name: "trusted-proxies", kind: .networks, standard: .text("none"),
        help: "Addresses and networks of proxies whose X-Forwarded-For gives the client's address, such as 10.0.0.0/8,::1.")
    static let pingInterval = Setting(
        name: "ping-interval", kind: .seconds(1...3600), standard: .seconds(25), help: "Seconds between two pings of a socket.")
    static let idleTimeout = Setting(
        name: "idle-timeout", kind: .seconds(2...7200), standard: .seconds(60),
        help: "Seconds of silence after which a socket's client is considered gone. Must be longer than the ping interval.")
    static let authenticationTimeout = Setting(
        name: "authentication-timeout", kind: .seconds(1...600), standard: .seconds(10),
        help: "Seconds that a socket has to authenticate.")
    static let eventLoops = Setting(
        name: "event-loops", kind: .whole(0...1024), standard: .whole(0),
        help: "Threads that serve sockets; 0 for as many as the machine has cores.")
    static let tokenKeys = Setting(
        name: "token-keys", kind: .text, standard: .text("none"),
        help: "A JWK set with further keys that tokens may be signed with (HS256, ES256, EdDSA, RS256), reloaded when it changes. "
            + "The same keys on all nodes of a cluster.")
    static let tokenIssuer = Setting(
        name: "token-issuer", kind: .text, standard: .text("any"),
        help: "Required iss claim of tokens. The same on all nodes of a cluster.")
    static let tokenAudience = Setting(
        name: "token-audience", kind: .text, standard: .text("any"),
        help: "Audience that the aud claim of tokens must contain. The same on all nodes of a cluster.")
    static let tokenLifetimeMax = Setting(
        name: "token-lifetime-max", kind: .whole(60...Limits.tokenLifetimeSecondsMax),
        standard: .whole(AppOptions.tokenLifetimeSecondsStandard),
        help: "Maximum token lifetime, in seconds. The same on all nodes of a cluster.", unit: "s")
    static let channelTypes = Setting(
        name: "channel-types", kind: .text, standard: .text("none"),
        help:
            "A JSON file with your own channel types and roles, stored in the database at each start. See docs/channel-types.md.")
    static let channelsPerUser = Setting(
        name: "channels-per-user", kind: .whole(1...Limits.channelsPerUserMax), standard: .whole(AppOptions().channelsPerUser),
        help: "Channels that one user may be a member of. The same on all nodes of a cluster.")
    static let historyForNewMembers = Setting(
        name: "history-for-new-members", kind: .flag, standard: .flag(AppOptions().showsHistoryToNewMembers),
        help: "Whether new members of a channel see its earlier messages. The same on all nodes of a cluster.")
    static let confusableNames = Setting(
        name: "confusable-names", kind: .choice(AppOptions.ConfusableNames.allCases.map(\.rawValue)),
        standard: .text(AppOptions().confusableNames.rawValue),
        help: "Whether a new name or id may look like another one in the app (UTS 39): allowed or refused. The same on all nodes "
            + "of a cluster.")
    static let mentionAll = Setting(
        name: "mention-all", kind: .flag, standard: .flag(AppOptions().isMentionAllEnabled),
        help: "Whether a message may mention its whole channel. The same on all nodes of a cluster.")
    static let mentionsPerMessage = Setting(
        name: "mentions-per-message", kind: .whole(1...Limits.mentionsPerMessageMax),
        standard: .whole(AppOptions().mentionsPerMessage),
        help: "Users that one message may mention by name. The same on all nodes of a cluster.", formerMax: 100)
    static let mentionNotifyCap = Setting(
        name: "mention-notify-cap", kind: .whole(0...Limits.mentionsPerMessageMax), standard: .whole(AppOptions().mentionNotifyCap),
        help: "Maximum number of mentioned users that a message notifies. The same on all nodes of a cluster.", formerMax: 100)
    static let undeletion = Setting(
        name: "undeletion", kind: .whole(0...Limits.undeletionSecondsMax), standard: .whole(AppOptions().undeletionSeconds),
        help:
            "Seconds for which a deleted message can be undeleted, and its content is kept; 0: not at all. The same on all "
            + "nodes of a cluster.", unit: "s")
    static let messageVersions = Setting(
        name: "message-versions", kind: .whole(0...Limits.versionSecondsMax), standard: .whole(AppOptions().versionSeconds),
        help:
            "Seconds for which operators can read the earlier versions of an edited message; 0: not at all. The same on all nodes "
            + "of a cluster.", unit: "s")

    // derived: all
    /// Every setting, in display order.
    static let all: [Setting] = [
        data, database, bus, busPrefix, lanes, lockTimeout, presenceTimeout, host, port, allowOrigin, logLevel, drainWindow,
        connectionsMax, unauthenticatedConnectionsPerAddress, connectionsPerUser, requestsPerUser, memoryBudget, memoryLimit,
        pageCache, trustedProxies, pingInterval, idleTimeout, authenticationTimeout, eventLoops, tokenKeys, tokenIssuer,
        tokenAudience, tokenLifetimeMax, channelTypes, channelsPerUser, historyForNewMembers, confusableNames, mentionAll,
        mentionsPerMessage, mentionNotifyCap, undeletion, messageVersions,
    ]

    /// The origins in a text.
    static func origins(_ text: String) throws -> AllowedOrigins {
        if text == "none" { return .none }
        return try AllowedOrigins(
            text.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmingCharacters(in: .whitespaces) })
    }

    /// The addresses and networks in a text.
    ///
    /// - Throws: `TrustedProxies.Malformed` with the first entry that is neither.
    static func networks(_ text: String) throws -> [String] {
        if text == "none" { return [] }
        let networks = text.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmingCharacters(in: .whitespaces) }
        _ = try TrustedProxies(networks)
        return networks
    }

    /// The known name nearest to an unknown one, if it is close enough to be a typo.
    static func suggestion(for name: String, among known: [String]) -> String {
        known.nearest(to: name).map { "Did you mean \($0)?" } ?? "Known: \(known.joined(separator: ", "))."
    }
}

extension Setting.Kind {
    /// Why a value isn't valid; nil if it is.
    func refusal(of value: Setting.Value) -> String? {
        switch (self, value) {
        case (.text, .text(let text)): text.isEmpty ? requirement : nil
        case (.origins, .text(let text)): (try? Setting.origins(text)) == nil ? requirement : nil
        case (.networks, .text(let text)): (try? Setting.networks(text)) == nil ? requirement : nil
        case (.choice(let choices), .text(let text)): choices.contains(text) ? nil : requirement
        case (.whole(let range), .whole(let number)): range.contains(number) ? nil : requirement
        case (.wholeOrNone(let range), .whole(let number)): number == 0 || range.contains(number) ? nil : requirement
        case (.flag, .flag): nil
        case (.seconds(let range), .seconds(let number)): range.contains(number) ? nil : requirement
        default: requirement
        }
    }

    var requirement: String {
        switch self {
        case .text: "must not be empty"
        case .origins: "must be origins separated by commas, such as https://app.example.com, or *"
        case .networks: "must be addresses and networks separated by commas, such as 10.0.0.0/8,::1"
        case .choice(let choices): "must be one of: \(choices.joined(separator: ", "))"
        case .whole(let range): "must be a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .wholeOrNone(let range): "must be 0 or a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .flag: "must be true or false"
        case .seconds(let range): "must be a number of seconds from \(Int(range.lowerBound)) to \(Int(range.upperBound))"
        }
    }
}

extension Setting.Kind {
    /// Whether a value of a JSON file has the type of the setting's values. Whether a number is whole is checked with its range.
    func matchesType(of value: JSONValue) -> Bool {
        switch (self, value) {
        case (.text, .string), (.origins, .string), (.networks, .string), (.choice, .string): true
        case (.whole, .integer), (.whole, .number), (.wholeOrNone, .integer), (.wholeOrNone, .number): true
        case (.seconds, .integer), (.seconds, .number), (.flag, .boolean): true
        default: false
        }
    }

    /// The requirement for a value of another type, such as an array or a number instead of a text in a JSON file.
    var typeRequirement: String {
        switch self {
        case .text: "must be a string"
        case .origins, .networks: "must be one string, with values separated by commas"
        case .choice, .whole, .wholeOrNone, .flag, .seconds: requirement
        }
    }
}

extension Setting.Value: CustomStringConvertible, Encodable {
    var description: String {
        switch self {
        case .text(let text): text
        case .whole(let number): String(number)
        case .flag(let isOn): String(isOn)
        case .seconds(let number): number == number.rounded() && abs(number) < 1e9 ? "\(Int(number)) s" : "\(number) s"
        }
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .text(let text): try text.encode(to: encoder)
        case .whole(let number): try number.encode(to: encoder)
        case .flag(let isOn): try isOn.encode(to: encoder)
        case .seconds(let number): try number.encode(to: encoder)
        }
    }
}
