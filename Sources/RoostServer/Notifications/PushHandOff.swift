package import RoostAPI
import RoostCore
import Synchronization

/// Passes pushes to the app that sends them. Called at least once for each: one whose outcome is lost is handed off again, with the same message.
package typealias PushSender = @Sendable (_ notifications: [PushNotification]) async throws -> Void

/// Hands off the pushes of a channel to members without a connection to any node: connected members get the event (ST-07).
struct PushHandOff: Sendable {
    let engine: Engine
    let send: PushSender

    /// - Returns: The channel's position up to which its pushes are handed off.
    func perform(_ effect: Effect) async throws -> String {
        let found = try await read { try $0.pushes(for: effect) }
        let connected = try await connected(among: Set(found.notifications.flatMap { $0.recipients.map(\.user) }))
        let notifications = found.notifications.compactMap { found in
            var notification = found
            notification.recipients.removeAll { connected.contains($0.user) }
            return notification.recipients.isEmpty ? nil : notification
        }
        if !notifications.isEmpty { try await send(notifications) }
        return String(found.upTo)
    }

    /// Returns which of some users have a connection to any node. Nodes that don't answer in time are ignored: a redundant push is better than a
    /// missing one.
    private func connected(among users: Set<UserID>) async throws -> Set<UserID> {
        var connected: Set<UserID> = []
        for part in users.map(\.rawValue).sorted().chunked(by: Limits.usersPerCall) {
            let asked = part.map { UserID($0) }
            connected.formUnion(
                try await read(.users(asked)) { context in
                    asked.filter { context.presence.isConnected($0) || context.connectedElsewhere.contains($0) }
                })
        }
        return connected
    }

    /// Reads with the server's own rights.
    private func read<Value: Sendable>(
        _ presence: PresenceRequirement = .none, _ run: @escaping @Sendable (Context) throws -> Value
    ) async throws -> Value {
        let found = Found<Value>()
        let traits = Job.Traits(operation: OperationName.effect, isReadOnly: true, requiredPresence: presence)
        try await engine.perform(traits, for: .server) { context in
            found.value = try run(context)
            return []
        }
        guard let value = found.value else { throw RoostError(.internalError, "A read ended without a result.") }
        return value
    }

    /// The result of a rule that may run more than once: the last run counts.
    private final class Found<Value: Sendable>: Sendable {
        private let held = Mutex<Value?>(nil)
        var value: Value? {
            get { held.withLock { $0 } }
            set { held.withLock { $0 = newValue } }
        }
    }
}

extension EffectSettings {
    /// These settings, with pushes handed off to a sender. Without a sender, pushes stay queued for a server that has one.
    func handingOffPushes(to sender: PushSender?, through engine: Engine) -> EffectSettings {
        var settings = self
        guard let sender else {
            settings.kinds.removeAll { $0.name == .push }
            return settings
        }
        settings.performers[.push] = PushHandOff(engine: engine, send: sender).perform
        return settings
    }
}
