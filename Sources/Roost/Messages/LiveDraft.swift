public import Observation
public import RoostAPI

/// The user's draft in a channel, as a live object: the same on all of their devices, and invisible to everyone else.
///
/// Text passed to ``LiveChannel/setDraft(_:metadata:)`` is shown at once. An app fills its text field with the draft when the field appears, but not
/// while the user types in it: a draft from another device would replace the user's text.
@MainActor @Observable
public final class LiveDraft {
    /// The draft; nil if there is none.
    public private(set) var draft: ChannelDraft?
    /// The draft's text; empty if there is no draft.
    public var text: String { draft?.text ?? "" }
    /// The phase of the live object.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's store has answered.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let channel: ChannelID
    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = Observers<ChannelDraft?>()

    init(of channel: ChannelID, in chat: Chat) {
        self.channel = channel
        self.chat = chat
        follower = Follower(chat.driver)
        follower.follow(
            .channel(channel),
            reload: { [weak self] change in
                guard change.isEverything || change.channels.contains(channel) else { return }
                try await self?.reload()
            })
    }

    /// The state from now on, starting with the current one. A slow reader gets the newest state, not every one in between.
    public var updates: AsyncStream<ChannelDraft?> {
        observers.values(of: self, startingWith: follower.hasAnswer ? .some(draft) : nil)
    }

    /// Calls back with the draft, and again on every change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (ChannelDraft?) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? .some(draft) : nil, callback)
    }

    private func reload() async throws {
        let channel = channel
        let draft = try await chat.driver.files().store.read { try $0.draft(of: channel) }
        guard !follower.hasAnswer || draft != self.draft else { return follower.answered() }
        self.draft = draft
        follower.answered()
        observers.notify(draft)
    }
}

extension LiveChannel {
    /// The user's draft in this channel, as a live object. Each call makes a new one; keep it while it is shown.
    public func draft() -> LiveDraft { LiveDraft(of: id, in: chat) }

    /// Replaces the user's draft in this channel, on all of their devices. An empty text removes it; so does sending a message with the same text.
    ///
    /// Call this on each change of the text. When this returns, the draft is stored on this device; live drafts show it right after. It is sent a
    /// second later, including later changes.
    /// - Parameters:
    ///   - text: Up to `Limits.messageTextLength` characters.
    ///   - metadata: The app's own data, an object, for instance the draft's mentions or the message it replies to. Ignored if the text is empty.
    /// - Throws: `RoostError` with the code of a limit, `storage_failed`, `storage_in_use` or `storage_gone` if this device can't store it.
    public func setDraft(_ text: String, metadata: JSONValue? = nil) async throws {
        let operation = SetDraft(channel: id, text: text, metadata: text.isEmpty ? nil : metadata)
        try operation.validate()
        try await chat.driver.enqueue(.draft(operation))
    }
}
