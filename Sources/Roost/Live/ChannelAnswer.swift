import RoostAPI

/// Tracks whether the server's answer about a channel still holds.
///
/// While a channel is followed, events report the changes since. They don't cover the time before the user came back to the channel, a channel that
/// this device has fetched again, or a right to read that the user has regained: in these cases the server has to be asked again, even on the same
/// connection.
@MainActor
final class ChannelAnswer {
    /// Whether something has changed since the last request.
    private(set) var isOutdated = false
    private let channel: ChannelID
    private let driver: SyncDriver
    /// Whether the server was asked, and at which generation of the channel's position; nil if the channel wasn't followed.
    private var isAsked = false
    private var generation: Int64?
    /// Whether the user may read the channel, as of the last check.
    private var mayRead = false

    init(of channel: ChannelID, _ driver: SyncDriver) {
        self.channel = channel
        self.driver = driver
    }

    /// Records that the server is being asked now. Its answer includes everything that is in the store.
    func ask() async throws {
        isOutdated = false
        (generation, mayRead) = try await stored()
        isAsked = true
    }

    /// Records that something has changed, and that only the server knows what.
    func markOutdated() { isOutdated = true }

    /// Checks whether, since the last request, the channel has started over or ended on this device, or the user has regained the right to read it.
    func hasChannelRestarted() async -> Bool {
        guard isAsked else { return false }
        do {
            let now = try await stored()
            // A right that was lost and regained counts, whether the server was asked in between or not.
            defer { mayRead = now.mayRead }
            return now.generation != generation || now.mayRead && !mayRead
        } catch {
            // The object keeps showing what it has; the code that reads the store to show it reports the error.
            return false
        }
    }

    private func stored() async throws -> (generation: Int64?, mayRead: Bool) {
        let (channel, now) = (channel, driver.environment.now())
        return try await driver.files().store.read { database in
            let permissions = try database.permissions(in: channel, now: now)
            return (try database.generation(of: channel), permissions.contains(.historyRead))
        }
    }
}
