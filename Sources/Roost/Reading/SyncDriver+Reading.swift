import GRDB
import RoostAPI

extension SyncDriver {
    /// How far the server has said that a channel is read which an operation is to mark as read; 0 if it hasn't, or if that is to change.
    func toldReadSeq(for operation: OutboxOperation) async -> Seq {
        guard case .read(let mark) = operation else { return 0 }
        return await toldReadSeq(of: mark.channel)
    }

    func toldReadSeq(of channel: ChannelID) async -> Seq {
        // Not in the caller's task: if that is cancelled, nothing can be read in it, and a mark that isn't needed might undo one of another device.
        (try? await Task { try await files().store.read { try $0.toldReadSeq(of: channel) } }.value) ?? 0
    }
}

extension Database {
    fileprivate func toldReadSeq(of channel: ChannelID) throws -> Seq {
        // The server may have taken what is to be unread, and its word of that isn't stored.
        guard try overlay(of: channel)?.unreadAfterSeq == nil else { return 0 }
        return try membership(of: channel)?.readSeq ?? 0
    }
}
