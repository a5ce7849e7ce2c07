import Foundation
import Observation
import Roost

// sample.begin
@MainActor @Observable
final class ChatScreenModel {
    let channel: LiveChannel
    let messages: MessageList
    var draft = ""
    /// Why the last text wasn't sent.
    private(set) var sendProblem: String?
    /// Why the list doesn't continue.
    private(set) var loadProblem: String?

    init(_ id: ChannelID, of chat: Chat) {
        channel = chat.channel(id)
        messages = channel.messages()
    }

    var title: String { channel.channel?.displayName ?? "\(channel.id)" }
    var canSend: Bool { !draft.allSatisfy(\.isWhitespace) && channel.hasPermission(.messageSend) }

    /// The message is on this device's disk when this returns, and in the list right after.
    func send() async {
        let text = draft
        draft = ""
        do {
            try await channel.send(text)
            sendProblem = nil
        } catch {
            sendProblem = words(for: error)
            if draft.isEmpty { draft = text }
        }
    }

    /// Called for each row that becomes visible.
    func appeared(_ item: MessageItem) async {
        if item.id == messages.items.first?.id { await load { try await self.messages.loadOlder() } }
        // Rows on their way come behind whatever arrives.
        guard item.id == messages.items.last(where: { $0.message != nil })?.id else { return }
        if let seq = item.message?.seq { await load { try await self.channel.markRead(upTo: seq) } }
        await load { try await self.messages.loadNewer() }
    }

    private func load(_ step: () async throws -> Void) async {
        do {
            try await step()
            loadProblem = nil
        } catch let error as RoostError where !error.isRetryable {
            loadProblem = words(for: error)
        } catch {
            // Without a connection, or if the row has left the screen, which cancels its task, the next row tries again.
        }
    }

    /// Why the server refused a message, or a change to it: the user retries or discards it.
    func refusal(of item: MessageItem) -> String? {
        if case .failed(let error) = item.change ?? item.state { words(for: error) } else { nil }
    }

    func retry(_ item: MessageItem) async { await messages.retry(item) }
    func discard(_ item: MessageItem) async { await messages.discard(item) }

    /// In English. To show it in the user's language, go by the error's code, field and limit.
    private func words(for error: any Error) -> String { error.localizedDescription }
}
// sample.end
