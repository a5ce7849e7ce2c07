import NIOConcurrencyHelpers
import RoostAPI

/// The parts of a write that concern live objects.
struct StoreChange: Hashable, Sendable {
    /// Whether everything may have changed.
    var isEverything = false
    var channels: Set<ChannelID> = []
    /// Those whose own row was written: their names, pictures and counts.
    var channelRows: Set<ChannelID> = []
    /// The channels whose pending messages changed.
    var outbox: Set<ChannelID> = []
    /// Whether pending operations changed, of any channel or none.
    var isOutbox = false
    /// The channels in which a user became or stopped being a member, or got another role.
    var members: Set<ChannelID> = []
    /// The channels that the user has left, or that start over on this device: what was known of their members is no longer valid.
    var renewed: Set<ChannelID> = []
    /// The channels in which the user's own membership changed.
    var memberships: Set<ChannelID> = []
    /// The users who are shown differently now.
    var users: Set<UserID> = []
    /// Whether the user's own data changed: invitations, preferences.
    var isOwn = false
    /// Whether the user has logged out: the store is empty and stays so.
    var isEnd = false

    static let everything = StoreChange(isEverything: true, isOwn: true)
    static let end = StoreChange(isEverything: true, isOwn: true, isEnd: true)

    var isEmpty: Bool {
        !isEverything && !isOwn && !isOutbox && channels.isEmpty && outbox.isEmpty && users.isEmpty
    }

    mutating func merge(_ other: StoreChange) {
        isEverything = isEverything || other.isEverything
        channels.formUnion(other.channels)
        channelRows.formUnion(other.channelRows)
        outbox.formUnion(other.outbox)
        isOutbox = isOutbox || other.isOutbox
        members.formUnion(other.members)
        renewed.formUnion(other.renewed)
        memberships.formUnion(other.memberships)
        users.formUnion(other.users)
        isOwn = isOwn || other.isOwn
        isEnd = isEnd || other.isEnd
    }
}

extension StoreChange {
    /// - Parameter users: The users in the writes who are shown differently now.
    init(_ writes: [StoreWrite], _ kinds: CachedRowKinds, introducing users: [UserID] = []) {
        self.users = Set(users)
        for write in writes {
            if let channel = write.channel { channels.insert(channel) }
            switch write {
            // Only the cache knows which overlays these remove and which visits they end.
            case .erase, .keepOverlays, .keepVisits: self.merge(.everything)
            case .channel(let channel): channelRows.insert(channel.channelId)
            case .leave(let channel), .forget(let channel): renewed.insert(channel)
            case .overlay(nil, _): isOwn = true
            case .rows(let rows, let stream): kinds.note(rows, of: stream, in: &self)
            case .rowsOfCached(let rows, let channel): kinds.note(rows, of: .channel(channel), in: &self)
            default: break
            }
        }
    }
}

/// Notifies live objects that something they show was written. Changes not yet consumed are merged into one.
final class ChangeSignals: Sendable {
    /// The data that a live object shows.
    enum Topic: Hashable, Sendable {
        case channel(ChannelID)
        /// The same, and the user's pending messages in it.
        case messages(ChannelID)
        /// Every channel.
        case channels
        /// The user's own data except channels.
        case own
        /// The user's pending operations.
        case outbox

        func concerns(_ change: StoreChange) -> Bool {
            // Only the live objects know which users are shown where.
            if change.isEverything || !change.users.isEmpty { return true }
            return switch self {
            case .channel(let channel): change.channels.contains(channel)
            case .messages(let channel): change.channels.contains(channel) || change.outbox.contains(channel)
            case .channels: !change.channels.isEmpty
            case .own: change.isOwn
            case .outbox: change.isOutbox
            }
        }
    }

    private struct Subscriber {
        var topic: Topic
        var pending: StoreChange
        var continuation: AsyncStream<Void>.Continuation
    }

    private struct State {
        var subscribers: [Int: Subscriber] = [:]
        var lastNumber = 0
        var hasEnded = false
    }

    private let state = NIOLockedValueBox(State())

    /// Returns a change of everything at once, then one after each change of the topic.
    func changes(of topic: Topic) -> StoreChanges {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLockedValue { state in
            state.lastNumber += 1
            let pending: StoreChange = state.hasEnded ? .end : .everything
            state.subscribers[state.lastNumber] = Subscriber(topic: topic, pending: pending, continuation: continuation)
            return state.lastNumber
        }
        continuation.yield()
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLockedValue { $0.subscribers.removeValue(forKey: number) }
        }
        return StoreChanges(signals: stream, number: number, source: self)
    }

    func signal(_ change: StoreChange) {
        let concerned = state.withLockedValue { state in
            var concerned: [AsyncStream<Void>.Continuation] = []
            for (number, subscriber) in state.subscribers where subscriber.topic.concerns(change) {
                state.subscribers[number]?.pending.merge(change)
                concerned.append(subscriber.continuation)
            }
            return concerned
        }
        // Waking a task takes its lock. Cancelling it holds that lock and waits for the one above.
        for continuation in concerned { continuation.yield() }
    }

    /// Notifies all live objects, later ones included, that the user has logged out.
    func end() {
        state.withLockedValue { $0.hasEnded = true }
        signal(.end)
    }

    fileprivate func take(_ number: Int) -> StoreChange {
        state.withLockedValue { state in
            let change = state.subscribers[number]?.pending ?? StoreChange()
            state.subscribers[number]?.pending = StoreChange()
            return change
        }
    }
}

/// The changes that one live object follows. Those that happen while it works arrive merged into one afterwards.
struct StoreChanges: AsyncSequence, Sendable {
    typealias Element = StoreChange
    fileprivate let signals: AsyncStream<Void>
    fileprivate let number: Int
    fileprivate let source: ChangeSignals

    func makeAsyncIterator() -> Iterator {
        Iterator(signals: signals.makeAsyncIterator(), number: number, source: source)
    }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var signals: AsyncStream<Void>.Iterator
        fileprivate let number: Int
        fileprivate let source: ChangeSignals

        mutating func next() async -> StoreChange? {
            while await signals.next() != nil {
                let change = source.take(number)
                if !change.isEmpty { return change }
            }
            return nil
        }
    }
}
