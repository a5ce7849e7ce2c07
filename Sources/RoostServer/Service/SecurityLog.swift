import Logging
import RoostAPI
import RoostCore

/// Logs refused access and changes by administrators. Never logs a token, a secret or a user's text: only why a token was refused, and a
/// connection's address.
struct SecurityLog: Sendable {
    private let logger: Logger
    private let pace = LogThrottle()

    init(logger: Logger) { self.logger = logger }

    /// Logs a refused or missing token.
    func refusedAuthentication(_ refusal: RoostError, over transport: ServerMetrics.Transport, from address: String?) {
        write(.notice, "A client was refused", kind: "authentication \(transport.rawValue) \(refusal.code.rawValue)") {
            ["transport": "\(transport.rawValue)", "code": "\(refusal.code.rawValue)", "address": "\(address ?? "unknown")"]
        }
    }

    /// A limit at which requests or connections are refused, named after its setting.
    enum Limit: String {
        case connections = "connections-max"
        case connectionsOfAddress = "unauthenticated-connections-per-address"
        case connectionsOfUser = "connections-per-user"
        case requestsOfUser = "requests-per-user"
        case memory = "memory-budget"
        case memoryOfProcess = "memory-limit"
        /// A quarter of the memory budget, for one user.
        case memoryOfUser = "memory-budget, a quarter for one user"
        /// Not a setting: how many channels all connections of a user may receive together.
        case channelsOfUser = "the channels of a user's connections"
        /// Not a setting: the limit of queued operations.
        case queue = "the queue"
    }

    /// Logs a refusal at a limit. One line per second for each limit, with the user or address that reached it.
    func reached(_ limit: Limit, user: UserID? = nil, address: ClientAddress? = nil) {
        write(.warning, "Limit reached", kind: "limit \(limit.rawValue)") {
            var metadata: Logger.Metadata = ["limit": "\(limit.rawValue)"]
            // A token can name a user by an invalid id.
            if let user, (try? user.validate(field: "user")) != nil { metadata["user"] = "\(user)" }
            if let address { metadata["address"] = "\(address)" }
            return metadata
        }
    }

    /// Operations that change what others may do, except the one for profiles, which a backend may call for every user.
    private static let administrative = Set(
        Operations.all.filter { [.configManage, .userManage].contains($0.permission) && !$0.isReadOnly }.map { $0.name }
    ).subtracting([UpsertUser.name])

    /// Logs a successful operation if it changes what others may do, or signs out one of the caller's devices, which anyone may do often.
    func done(_ operation: String, by caller: Caller) {
        if operation == SignOutDevice.name {
            write(.notice, "A device was signed out", kind: operation) { ["user": "\(caller.user)"] }
        }
        guard Self.administrative.contains(operation) else { return }
        logger.notice(
            "Permissions or access of others were changed.",
            metadata: ["operation": "\(operation)", "user": "\(caller.user)", "role": "\(caller.role.rawValue)"])
    }

    private func write(_ level: Logger.Level, _ text: String, kind: String, _ metadata: () -> Logger.Metadata) {
        guard logger.logLevel <= level, let turn = pace.turn(kind) else { return }
        logger.log(level: level, "\(text)\(turn.suffix).", metadata: metadata())
    }
}
