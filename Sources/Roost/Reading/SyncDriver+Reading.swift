import GRDB
import RoostAPI

extension SyncDriver {
    /// How far a channel is read according to the server, for an operation that marks it as read; 0 if the server hasn't said, or if that is about to
    /// change.
    func serverReadSeq(for operation: OutboxOperation) async -> Seq {
        guard case .read(let mark) = operation else { return 0 }
        return await serverReadSeq(of: mark.channel)
    }

    func serverReadSeq(of channel: ChannelID) async -> Seq {
        // In a separate task: in a cancelled task nothing can be read, and an unnecessary mark might undo one of another device.
        (try? await Task { try await files().store.read { try $0.serverReadSeq(of: channel) } }.value) ?? 0
    }
}

extension SyncDriver {
    /// Marks all of the user's channels as read that have something unread.
    func markAllRead(isolation: isolated (any Actor)? = #isolation) async throws { try await markAllRead(order.take()) }

    /// - Parameter turn: Passed on when all marks are kept: only then is it known which channels they are for.
    private func markAllRead(_ turn: CallOrder.Turn) async throws {
        defer { turn.pass() }
        try await turn.comes()
        let unread = try await unreadChannels()
        // In the app's order they would wait for this turn.
        let marks = CallOrder()
        for channel in unread { try await enqueue(.read(MarkRead(channel: channel)), marks.take()) }
    }

    /// The channels that have unread messages or mention the user, as far as this device knows.
    private func unreadChannels() async throws -> [ChannelID] {
        do {
            return try await prepare().store.read { database in
                let places = try ChannelQuery(hidden: .all).places(in: database)
                // A message that was read may mention the user after a later edit. Deleted channels aren't among the places.
                let mentioning = try Set(places.map(\.id)).intersection(database.mentioningChannels())
                return Set(places.filter { $0.unreadCount > 0 }.map(\.id)).union(mentioning).sorted()
            }
        } catch {
            throw thrown(error)
        }
    }
}

extension Database {
    fileprivate func serverReadSeq(of channel: ChannelID) throws -> Seq {
        // The server may have received the mark as unread without its answer being stored.
        guard try overlay(of: channel)?.unreadAfterSeq == nil else { return 0 }
        return try membership(of: channel)?.readSeq ?? 0
    }
}
