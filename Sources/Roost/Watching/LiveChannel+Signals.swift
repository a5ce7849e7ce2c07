public import RoostAPI

/// What an app's user tells those who watch a channel in passing (``LiveChannel/signals``).
public struct ChannelSignal: Hashable, Sendable {
    /// Who told it: the user themself, where another of their devices, or this one, did.
    public let sender: UserID
    /// The app's own name for what is told.
    public let type: String
    /// What is told: a JSON object.
    public let metadata: JSONValue?
}

extension LiveChannel {
    /// Tells those who watch the channel something in passing, this device too if it watches. Nothing of it is stored: who isn't connected and watching at this
    /// moment never learns of it.
    ///
    /// - Parameters:
    ///   - type: The app's own name for it, 1 to 128 characters.
    ///   - metadata: A JSON object of up to `Limits.signalSizeBytes`.
    /// - Throws: `RoostError` with `rate_limited` beyond `Limits.signalsPerSecond`, the codes of sending where the user may not send, and as
    ///   ``Chat/call(_:)`` does.
    public func sendSignal(_ type: String, metadata: JSONValue? = nil) async throws {
        _ = try await chat.call(SendSignal(channel: id, type: type, metadata: metadata))
    }

    /// What is told with ``sendSignal(_:metadata:)`` from now on, while the channel is watched. Of more than 100 that weren't read, the oldest are dropped.
    public var signals: AsyncStream<ChannelSignal> {
        let news = chat.driver.signals.news(of: id)
        let (stream, continuation) = AsyncStream.makeStream(of: ChannelSignal.self, bufferingPolicy: .bufferingNewest(100))
        let task = Task {
            for await news in news {
                guard case .signal(let signal) = news, let custom = signal.custom, let sender = signal.sender else { continue }
                continuation.yield(ChannelSignal(sender: sender, type: custom.type, metadata: custom.metadata))
            }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }
}
