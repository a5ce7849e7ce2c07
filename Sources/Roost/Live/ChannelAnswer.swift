import RoostAPI

/// Tracks whether the server's answer about a channel still holds.
///
/// While a channel is followed, events report the changes since. They don't cover the time before the user came back to the channel, a channel that
/// this device has fetched again, or a right that the user has regained: in these cases the server has to be asked again, even on the same connection.
@MainActor
final class ChannelAnswer {
    /// Whether something has changed since the last request.
    private(set) var isOutdated = false
    private let channel: ChannelID
    private let driver: SyncDriver
    /// A right that counts beside that to read.
    private let right: Permission?
    /// Whether the server was asked, and at which generation of the channel's position; nil if the channel wasn't followed.
    private var isAsked = false
    private var generation: Int64?
    /// The user's rights in the channel, as of the last check.
    private var rights = Rights()

    /// What the user may do in the channel, as far as this device knows.
    private struct Rights {
        var mayRead = false
        /// Whether the user has ``ChannelAnswer/right``. True if nothing is known of the user's permissions: those that arrive with the first answer
        /// are no reason to ask for it again.
        var hasRight = true
    }

    /// - Parameter right: A right that the server requires for the answer and that a role may grant without the right to read, if there is one.
    init(of channel: ChannelID, _ driver: SyncDriver, needing right: Permission? = nil) {
        self.channel = channel
        self.driver = driver
        self.right = right
    }

    /// Records that the server is being asked now. Its answer includes everything that is in the store.
    func ask() async throws {
        isOutdated = false
        (generation, rights) = try await stored()
        isAsked = true
    }

    /// Records that something has changed, and that only the server knows what.
    func markOutdated() { isOutdated = true }

    /// Checks whether, since the last request, the channel has started over or ended on this device, or the user has regained a right that counts.
    func hasChannelRestarted() async -> Bool {
        guard isAsked else { return false }
        do {
            let now = try await stored()
            // A right that was lost and regained counts, whether the server was asked in between or not.
            defer { rights = now.rights }
            let isRegained = now.rights.mayRead && !rights.mayRead || now.rights.hasRight && !rights.hasRight
            return now.generation != generation || isRegained
        } catch {
            // The object keeps showing what it has; the code that reads the store to show it reports the error.
            return false
        }
    }

    private func stored() async throws -> (generation: Int64?, rights: Rights) {
        let (channel, right, now) = (channel, right, driver.environment.now())
        return try await driver.files().store.read { database in
            let permissions = try database.permissions(in: channel, now: now)
            var rights = Rights(mayRead: permissions.contains(.historyRead))
            if let right, !permissions.isEmpty { rights.hasRight = permissions.contains(right) }
            return (try database.generation(of: channel), rights)
        }
    }
}
