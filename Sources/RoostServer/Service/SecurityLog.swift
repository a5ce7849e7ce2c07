import Logging
import RoostAPI
import RoostCore

/// Lines about who was kept out, and about what administrators changed. Never a token, a secret or what anybody wrote: of a token only why it
/// was refused, of a connection only its address.
struct SecurityLog: Sendable {
    private let logger: Logger
    private let pace = LogPace()

    init(logger: Logger) { self.logger = logger }

    /// A token was refused, or didn't come.
    func refusedAuthentication(_ refusal: RoostError, over transport: ServerMetrics.Transport, from address: String?) {
        write(.notice, "A client wasn't let in", kind: "authentication \(transport.rawValue) \(refusal.code.rawValue)") {
            ["transport": "\(transport.rawValue)", "code": "\(refusal.code.rawValue)", "address": "\(address ?? "unknown")"]
        }
    }

    /// Operations that change what others may do. Not that of profiles, which a backend may call for every user that there is.
    private static let administrative = Set(
        Operations.all.filter { [.configManage, .userManage].contains($0.permission) && !$0.isReadOnly }.map { $0.name }
    ).subtracting([UpsertUser.name])

    /// An operation was done. Those that change what others may do have a line.
    func done(_ operation: String, by caller: Caller) {
        guard Self.administrative.contains(operation) else { return }
        logger.notice(
            "What others may do was changed.",
            metadata: ["operation": "\(operation)", "user": "\(caller.user)", "role": "\(caller.role.rawValue)"])
    }

    private func write(_ level: Logger.Level, _ text: String, kind: String, _ metadata: () -> Logger.Metadata) {
        guard logger.logLevel <= level, let turn = pace.turn(kind) else { return }
        logger.log(level: level, "\(text)\(turn.suffix).", metadata: metadata())
    }
}
