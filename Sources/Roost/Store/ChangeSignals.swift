import RoostAPI
import Synchronization

/// Tells live objects that something they show was written. Signals that nobody has acted on yet are one.
final class ChangeSignals: Sendable {
    /// What a live object shows.
    enum Topic: Hashable, Sendable {
        case channel(ChannelID)
        /// Every channel.
        case channels
    }

    private struct State {
        var followers: [Int: (topic: Topic, continuation: AsyncStream<Void>.Continuation)] = [:]
        var lastNumber = 0
    }

    private let state = Mutex(State())

    /// A signal at once, and one after each change of the topic.
    func signals(for topic: Topic) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.lastNumber += 1
            state.followers[state.lastNumber] = (topic, continuation)
            return state.lastNumber
        }
        continuation.yield()
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.followers.removeValue(forKey: number) }
        }
        return stream
    }

    /// Something of these channels was written.
    func signal(_ channels: Set<ChannelID>) {
        state.withLock { state in
            for follower in state.followers.values {
                switch follower.topic {
                case .channels: follower.continuation.yield()
                case .channel(let channel): if channels.contains(channel) { follower.continuation.yield() }
                }
            }
        }
    }

    /// Everything may have changed.
    func signalAll() {
        state.withLock { state in
            for follower in state.followers.values { follower.continuation.yield() }
        }
    }
}
