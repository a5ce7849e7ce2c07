import RoostAPI

/// Knows whether what the server has answered of a channel still holds.
///
/// While a channel is followed, events say what has changed since. They don't say it of the time before the user came back to the channel, nor if the
/// channel came to this device afresh: then the server has to be asked again, although the connection is the same.
@MainActor
final class ChannelAnswer {
    /// Whether something has changed since the server was asked.
    private(set) var isOutdated = false
    private let channel: ChannelID
    private let driver: SyncDriver
    /// Whether the server was asked, and with which generation of the channel's position; nil if the channel wasn't followed.
    private var isAsked = false
    private var generation: Int64?

    init(of channel: ChannelID, _ driver: SyncDriver) {
        self.channel = channel
        self.driver = driver
    }

    /// Takes note that the server is asked now. Its answer includes everything that is in the store.
    func ask() async throws {
        isOutdated = false
        generation = try await storedGeneration()
        isAsked = true
    }

    /// Something has changed of which only the server knows what.
    func outdate() { isOutdated = true }

    /// Looks whether the channel has begun afresh on this device, or has ended, since the server was asked.
    ///
    /// - Returns: Whether it has.
    func hasBegunAfresh() async -> Bool {
        guard isAsked else { return false }
        do {
            return try await storedGeneration() != generation
        } catch {
            // What is shown stays: whoever reads the store to show it says that it can't be read.
            return false
        }
    }

    private func storedGeneration() async throws -> Int64? {
        let channel = channel
        return try await driver.files().store.read { try $0.generation(of: channel) }
    }
}
