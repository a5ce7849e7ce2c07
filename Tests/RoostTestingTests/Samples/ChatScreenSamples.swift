import Foundation
import Observation
import Roost

// sample.begin
@MainActor @Observable
final class ChatScreenModel {
    let channel: LiveChannel
    let messages: MessageList
    var draft = ""
    private(set) var problem: String?

    init(_ id: ChannelID, of chat: Chat) {
        channel = chat.channel(id)
        messages = channel.messages()
    }

    var title: String { channel.channel?.displayName ?? "\(channel.id)" }
    var canSend: Bool { !draft.isEmpty && channel.hasPermission(.messageSend) }

    /// The message is on this device's disk when this returns, and in the list right after.
    func send() async {
        let text = draft
        draft = ""
        let isKept = await attempt { _ = try await self.channel.send(text) }
        if !isKept, draft.isEmpty { draft = text }
    }

    /// Called for each row that becomes visible.
    func appeared(_ item: MessageItem) async {
        if item.id == messages.items.first?.id { await attempt { try await self.messages.loadOlder() } }
        // Rows on their way come behind whatever arrives.
        guard item.id == messages.items.last(where: { $0.message != nil })?.id else { return }
        if let seq = item.message?.seq { await attempt { try await self.channel.markRead(upTo: seq) } }
        await attempt { try await self.messages.loadNewer() }
    }

    func retry(_ item: MessageItem) async { await messages.retry(item) }
    func discard(_ item: MessageItem) async { await messages.discard(item) }

    /// Shows refusals. Without a connection there is nothing to show: the next row that appears tries again.
    @discardableResult
    private func attempt(_ step: () async throws -> Void) async -> Bool {
        do {
            try await step()
            problem = nil
            return true
        } catch let error as RoostError where error.code == .notConnected {
            return false
        } catch {
            problem = error.localizedDescription
            return false
        }
    }
}
// sample.end
