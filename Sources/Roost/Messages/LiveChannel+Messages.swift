import Foundation
public import RoostAPI

extension LiveChannel {
    /// The channel's messages as a live collection. Each call makes a new one; keep it while it is shown.
    ///
    ///     let messages = channel.messages(around: .firstUnread)
    ///
    /// - Parameters:
    ///   - anchor: Where it begins.
    ///   - pageSize: Messages that one page adds, 1 to 100.
    public func messages(around anchor: MessageAnchor = .newest, pageSize: Int = 30) -> MessageList {
        MessageList(of: id, around: anchor, pageSize: pageSize, in: chat)
    }

    /// Returns a message by its id: from this device if it is cached, else from the server.
    ///
    /// - Throws: `RoostError` with `not_found` for one that the user can't see, or that was deleted for good; and as ``Chat/call(_:)`` does.
    public func message(_ message: MessageID) async throws -> Message {
        let id = id
        if let cached = try? await chat.driver.files().store.read({ try $0.message(message, in: id) }) { return cached }
        return try await chat.call(GetMessage(channel: id, message: message))
    }

    /// Sends a message. It is on this device's disk when this returns, is shown as pending, and is sent as soon as that is
    /// possible, after the ones before it, also after a restart.
    ///
    /// - Returns: The client id of the message, by which a list shows its state.
    /// - Throws: `RoostError` with the code of a limit that the draft is outside of, `unavailable` when this device can't store it.
    @discardableResult
    public func send(_ draft: MessageDraft) async throws -> ClientID {
        let operation = try Self.operation(draft, in: id)
        try await chat.driver.enqueue(operation)
        return operation.clientId
    }

    /// Sends a text. See ``send(_:)-(MessageDraft)``.
    @discardableResult
    public func send(_ text: String) async throws -> ClientID { try await send(MessageDraft(text: text)) }

    /// Sends a message and waits until the server has it on disk; offline, that may be long. Cancelling ends the wait, not the sending.
    ///
    /// - Throws: As ``send(_:)-(MessageDraft)``, and the code with which the server refused the message: `not_member`,
    ///   `not_permitted`, `not_found`. The refused message stays in the list until it is retried or discarded.
    @discardableResult
    public func sendConfirmed(_ draft: MessageDraft) async throws -> Message {
        try await chat.driver.sendConfirmed(try Self.operation(draft, in: id))
    }

    private static func operation(_ draft: MessageDraft, in channel: ChannelID) throws -> SendMessage {
        let operation = draft.operation(in: channel, clientId: draft.clientId ?? ClientID(UUID().uuidString.lowercased()))
        try operation.validate()
        return operation
    }

    /// Replaces the given parts of a message's content (SB-58).
    ///
    /// - Throws: `RoostError` with `not_message_owner` for someone else's, `not_found` for a deleted one, and as ``Chat/call(_:)``
    ///   does.
    @discardableResult
    public func edit(
        _ message: MessageID, text: String? = nil, customType: String? = nil, data: String? = nil, metadata: JSONValue? = nil,
        tags: [String]? = nil
    ) async throws -> Message {
        try await chat.call(
            EditMessage(
                channel: id, message: message, text: text, customType: customType, data: data, metadata: metadata, tags: tags))
    }

    /// Deletes a message: its place stays, its content is removed (SB-59). Deleting it again changes nothing.
    ///
    /// - Throws: `RoostError` with `not_message_owner` for someone else's, and as ``Chat/call(_:)`` does.
    @discardableResult
    public func delete(_ message: MessageID) async throws -> Message {
        try await chat.call(DeleteMessage(channel: id, message: message))
    }
}
