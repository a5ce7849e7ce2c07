public import RoostAPI

/// An app-defined signal that a user sends to a channel's watchers (``LiveChannel/signals``).
public struct ChannelSignal: Hashable, Sendable {
    /// The sender: possibly the user, from this device or another.
    public let sender: UserID
    /// The app's name for this kind of signal.
    public let type: String
    /// The content, a JSON object.
    public let metadata: JSONValue?
}

extension LiveChannel {
    /// Sends a signal to the channel's watchers, including this device if it watches. It isn't stored: users who aren't connected and watching at
    /// this moment never get it.
    ///
    /// - Parameters:
    ///   - type: The app's name for this kind of signal, 1 to 128 characters.
    ///   - metadata: A JSON object of up to `Limits.signalSizeBytes`.
    /// - Throws: `RoostError` with `rate_limited` beyond `Limits.signalsPerSecond`, the codes of sending a message if the user may not, and the
    ///   errors of ``Chat/call(_:isolation:)``.
    public func sendSignal(_ type: String, metadata: JSONValue? = nil) async throws {
        _ = try await chat.call(SendSignal(channel: id, type: type, metadata: metadata))
    }

    /// The signals sent with ``sendSignal(_:metadata:)`` from now on, while the channel is watched. If more than 100 are queued, the oldest are dropped.
    public var signals: AsyncStream<ChannelSignal> { chat.driver.signals.ownSignals(of: id) }
}
