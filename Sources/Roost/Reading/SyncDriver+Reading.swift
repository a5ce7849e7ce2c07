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

extension Database {
    fileprivate func serverReadSeq(of channel: ChannelID) throws -> Seq {
        // The server may have received the mark as unread without its answer being stored.
        guard try overlay(of: channel)?.unreadAfterSeq == nil else { return 0 }
        return try membership(of: channel)?.readSeq ?? 0
    }
}
