import Foundation
import GRDB
import RoostAPI

/// The changes that the user's pending operations make to the user's own rows: they are shown at once, over the server's state.
struct Overlay: Codable, Hashable, Sendable {
    /// The channel is read at least up to here.
    var readSeq: Seq?
    /// Before that, it was marked as unread: it is read at most up to here.
    var unreadAfterSeq: Seq?
    var hiddenState: HiddenState?
    /// Whether the channel is muted for the user, and until when; nil if no operation changes that.
    var isMuted: Bool?
    var mutedUntil: Timestamp?
    /// The user has left the channel.
    var isLeaving = false
    var preferences: UpdatePreferences?
    /// The user's draft in the channel; one without a text for none.
    var draft: DraftOverlay?
    /// Messages up to here are concealed.
    var concealedSeq: Seq?
    /// The changes of messages, of the newest ones.
    var messages: [MessageOverlay] = []

    init() {}

    /// - Parameter items: In their order.
    init(_ items: some Sequence<OutboxItem>) {
        for item in items {
            // A device's clock may say anything. An overlay is stored as JSON, and must be readable.
            let time = item.createdAt.nearestOnTheWire
            switch item.operation {
            case .read(let operation): readSeq = operation.seq.map { max($0, readSeq ?? 0) } ?? readSeq
            case .unread(let operation):
                let target = max(0, operation.seq.subtractingWithSaturation(1))
                unreadAfterSeq = min(target, unreadAfterSeq ?? target)
                readSeq = readSeq.map { min($0, target) }
            case .hide(let operation):
                concealedSeq = item.concealedSeq ?? concealedSeq
                hiddenState = operation.allowAutoUnhide ?? true ? .hiddenAllowAutoUnhide : .hiddenPreventAutoUnhide
            case .unhide: hiddenState = .unhidden
            case .mute(let operation):
                let end = operation.seconds.flatMap { $0 > 0 ? time.adding(.seconds($0)) : nil }
                (isMuted, mutedUntil) = (true, end?.nearestOnTheWire ?? .forever)
            case .unmute: (isMuted, mutedUntil) = (false, nil)
            case .leave: isLeaving = true
            case .draft(let operation): draft = DraftOverlay(operation: operation, createdAt: time)
            case .preferences(let operation): preferences = preferences?.followed(by: operation) ?? operation
            case .edit(let operation, _): change(operation.message) { $0.edit(operation, at: time) }
            case .metaArrays(let operation): change(operation.message) { $0.update(operation) }
            case .delete, .deleteMany, .purge, .deleteForMe:
                for case .stored(let message) in item.operation.changed {
                    change(message) { $0.delete(at: time, onlyForUser: !item.operation.isDeletion) }
                }
            case .undelete(let operation): change(operation.message) { $0.undelete() }
            case .reset: concealedSeq = [concealedSeq, item.concealedSeq].compactMap(\.self).max()
            case .send: break
            }
        }
    }

    private mutating func change(_ message: MessageID, _ change: (inout MessageOverlay) -> Void) {
        let index = messages.firstIndex { $0.message == message } ?? messages.endIndex
        if index == messages.endIndex { messages.append(MessageOverlay(message: message)) }
        change(&messages[index])
    }

    var isEmpty: Bool { self == Overlay() }

    /// The seq up to which the channel is read by these operations; nil if they don't change it.
    fileprivate func seenSeq(before: Seq) -> Seq? {
        let seen = max(min(before, unreadAfterSeq ?? before), readSeq ?? 0, concealedSeq ?? 0)
        return seen == before ? nil : seen
    }

    /// The user's membership as shown.
    ///
    /// - Parameters:
    ///   - counters: The channel's counters.
    ///   - unread: The number of others' unread messages after the read position; nil if unknown here.
    func applied(to membership: Membership, _ counters: ChannelCounters?, unread: Int?) -> Membership {
        var shown = membership
        if let seenSeq = seenSeq(before: membership.readSeq) {
            shown.readSeq = seenSeq
            if let counters, let unread {
                let readCount = counters.ordinal.subtractingWithSaturation(unread)
                shown.readCount = seenSeq > membership.readSeq ? max(shown.readCount, readCount) : min(shown.readCount, readCount)
            }
        }
        if let hiddenState {
            shown.hiddenState = hiddenState
            shown.hiddenOrdinal = hiddenState == .unhidden ? 0 : counters?.ordinal ?? shown.hiddenOrdinal
        }
        if let isMuted { shown.notificationsMutedUntil = isMuted ? mutedUntil : nil }
        if isLeaving { shown.state = .none }
        return shown
    }

    /// Overlays are stored in the cache, beside the server's version of the same row, so everything that reads the row shows them.
    static let schema = """
        CREATE TABLE overlays (
            channel_id TEXT PRIMARY KEY NOT NULL, json BLOB NOT NULL, concealed_seq INTEGER, server_row BLOB
        ) WITHOUT ROWID;
        """
}

extension Database {
    /// The overlay of a channel; if nil, of what belongs to no channel.
    func overlay(of channel: ChannelID?) throws -> Overlay? {
        try json("SELECT json FROM overlays WHERE channel_id = ?", [channel?.rawValue ?? ""])
    }

    func overlays() throws -> [ChannelID?: Overlay] {
        var overlays: [ChannelID?: Overlay] = [:]
        try each("SELECT channel_id, json FROM overlays") { row in
            let name: String = try row.value()
            overlays[name.isEmpty ? nil : ChannelID(name)] = try StoredJSON.decode(from: row.value())
        }
        return overlays
    }

    func setOverlay(_ overlay: Overlay?, of channel: ChannelID?) throws {
        let membership = try channel.flatMap { try self.membership(of: $0) }
        let name = channel?.rawValue ?? ""
        if let overlay {
            try run(
                "INSERT OR REPLACE INTO overlays (channel_id, json, concealed_seq) VALUES (?, ?, ?)",
                [name, try StoredJSON.encode(overlay), overlay.concealedSeq])
        } else {
            try run("DELETE FROM overlays WHERE channel_id = ?", [name])
        }
        if let membership { try replace(membership) }
    }

    /// Removes the overlays of all channels but these.
    func keepOverlays(of channels: Set<ChannelID?>) throws {
        for name: String in try values("SELECT channel_id FROM overlays") {
            let channel = name.isEmpty ? nil : ChannelID(name)
            if !channels.contains(channel) { try setOverlay(nil, of: channel) }
        }
    }

    /// The membership as shown. The server's row is noted if an overlay may change it.
    func shown(_ membership: Membership) throws -> Membership {
        let channel = membership.channelId
        guard let overlay = try overlay(of: channel) else { return membership }
        try run(
            "UPDATE overlays SET server_row = ? WHERE channel_id = ?", [try StoredJSON.encode(membership), channel.rawValue])
        let counters = try counters(of: channel)
        let seen = overlay.seenSeq(before: membership.readSeq)
        return overlay.applied(to: membership, counters, unread: try unread(in: channel, after: seen, counters))
    }

    private func unread(in channel: ChannelID, after seq: Seq?, _ counters: ChannelCounters?) throws -> Int? {
        guard let seq, let counters else { return nil }
        if seq >= counters.seq { return 0 }
        let start: Seq? = try value("SELECT window_start FROM positions WHERE channel_id = ?", [channel])
        guard let start, start <= seq.addingWithSaturation(1) else { return nil }
        return try value(
            "SELECT COUNT(*) FROM messages WHERE channel_id = ? AND seq > ? AND is_own = 0 AND counts = 1", [channel, seq])
    }
}
