import RoostAPI

/// Knows whether what the server has answered of a channel still holds.
///
/// While a channel is followed, events say what has changed since. They don't say it of the time before the user came back to the channel, nor if the
/// channel came to this device afresh, nor if the user may read it again: then the server has to be asked again, although the connection is the same.
@MainActor
final class ChannelAnswer {
    /// Whether something has changed since the server was asked.
    private(set) var isOutdated = false
    private let channel: ChannelID
    private let driver: SyncDriver
    /// Whether the server was asked, and with which generation of the channel's position; nil if the channel wasn't followed.
    private var isAsked = false
    private var generation: Int64?
    /// Whether the user may read the channel, as it was known last.
    private var mayRead = false

    init(of channel: ChannelID, _ driver: SyncDriver) {
        self.channel = channel
        self.driver = driver
    }

    /// Takes note that the server is asked now. Its answer includes everything that is in the store.
    func ask() async throws {
        isOutdated = false
        (generation, mayRead) = try await stored()
        isAsked = true
    }

    /// Something has changed of which only the server knows what.
    func outdate() { isOutdated = true }

    /// Looks whether the channel has begun afresh on this device or has ended since the server was asked, or the user may read it again.
    ///
    /// - Returns: Whether that is so.
    func hasBegunAfresh() async -> Bool {
        guard isAsked else { return false }
        do {
            let now = try await stored()
            // A right that was lost meanwhile and is back counts, whether the server was asked in between or not.
            defer { mayRead = now.mayRead }
            return now.generation != generation || now.mayRead && !mayRead
        } catch {
            // What is shown stays: whoever reads the store to show it says that it can't be read.
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
