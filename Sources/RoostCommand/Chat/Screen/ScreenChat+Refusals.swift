import Roost
import RoostAPI

/// Operations in the outbox that the server has refused.
extension ScreenChat {
    /// Reports operations refused since the last call, except messages, whose rows show it.
    func reportRefusals() {
        let lines = newRefusals()
        if !lines.isEmpty { state.showResult(lines.map { $0 + " /retry or /discard" }, width: RawTerminal.size.width) }
    }

    /// The operations refused since the last call, a sentence each.
    func newRefusals() -> [String] {
        // Messages show it themselves, and marking as read isn't requested by the user.
        let others = [SendMessage.name, MarkRead.name]
        let refused = room.chat.outbox.entries.filter { $0.error != nil && !others.contains($0.operation) }
        let new = refused.filter { !reportedRefusals.contains($0.id) }
        reportedRefusals = Set(refused.map(\.id))
        return new.map { entry in
            let place = entry.channel.flatMap { $0 == state.channel ? nil : " in #\($0.rawValue.safe())" } ?? ""
            return "\(Self.name(of: entry.operation))\(place) was refused: \(entry.error?.summaryLine ?? "")"
        }
    }

    private static func name(of operation: String) -> String {
        switch operation {
        case EditMessage.name: "an edit"
        case DeleteMessage.name: "a deletion"
        case MarkUnread.name: "marking as unread"
        default: operation
        }
    }

    /// Sends all refused operations of this channel again: messages, edits and others.
    func retryRefused() {
        settle({ $0.isRefused }, { await $0.retry($1) }, { $0.error != nil }, { await $0.retry($1) })
    }

    /// Discards the operations of this channel that were refused, wait for the end of a refusal, or are meant for another server.
    func discardRefused() {
        settle(
            { $0.isRefused || $0.waits }, { await $0.discard($1) }, { $0.error != nil || $0.waits }, { await $0.discard($1) })
    }

    /// Rows first, which may show a refusal before the outbox does; an operation in both is settled once.
    private func settle(
        _ isRow: @escaping @MainActor (MessageItem) -> Bool, _ row: @escaping @MainActor (MessageList, MessageItem) async -> Void,
        _ isEntry: @escaping @MainActor (LiveOutbox.Entry) -> Bool,
        _ entry: @escaping @MainActor (LiveOutbox, LiveOutbox.Entry) async -> Void
    ) {
        let (channel, list) = (room.channel.id, list)
        attempt { screen in
            let outbox = screen.room.chat.outbox
            try await outbox.loaded()
            let entries = outbox.entries.filter { ($0.channel == nil || $0.channel == channel) && isEntry($0) }
            let rows = list.items.filter(isRow)
            for item in rows { await row(list, item) }
            for item in entries { await entry(outbox, item) }
            if rows.isEmpty, entries.isEmpty { screen.events.yield(.notice("nothing was refused")) }
        }
    }
}

extension MessageItem {
    /// Whether it, or the user's change of it, was permanently refused.
    fileprivate var isRefused: Bool {
        [state, change].contains { if case .failed = $0 { true } else { false } }
    }
    fileprivate var waits: Bool {
        [state, change].contains {
            switch $0 {
            case .waiting, .forAnotherServer: true
            case nil, .sent, .pending, .failed: false
            }
        }
    }
}

extension LiveOutbox.Entry {
    /// The error with which the server permanently refused it.
    fileprivate var error: RoostError? { if case .failed(let error) = state { error } else { nil } }
    fileprivate var waits: Bool {
        switch state {
        case .waiting, .forAnotherServer: true
        case .pending, .failed: false
        }
    }
}
