import NIOConcurrencyHelpers
import RoostAPI

/// The parts of a write that concern live objects.
struct StoreChange: Hashable, Sendable {
    /// Whether everything may have changed.
    var isEverything = false
    var channels: Set<ChannelID> = []
    /// Those of them whose own row was written: their names, pictures and counts.
    var channelRows: Set<ChannelID> = []
    /// The channels of which messages on their way changed.
    var outbox: Set<ChannelID> = []
    /// Whether operations on their way changed, of whatever channel or none.
    var isOutbox = false
    /// The channels in which a user became or stopped being a member, or got another role.
    var members: Set<ChannelID> = []
    /// The channels that the user has left, or that begin anew on this device: what was known of their members doesn't hold any more.
    var renewed: Set<ChannelID> = []
    /// The channels in which the user's own membership changed.
    var memberships: Set<ChannelID> = []
    /// The users of whom something else is shown now.
    var users: Set<UserID> = []
    /// Whether something of the user's own changed: invitations, preferences.
    var isOwn = false
    /// Whether the user has logged out: there is nothing in the store, and won't be.
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
    /// - Parameter users: The users of the writes of whom something else is shown now.
    init(_ writes: [StoreWrite], _ kinds: CachedRowKinds, introducing users: [UserID] = []) {
        self.users = Set(users)
        for write in writes {
            if let channel = write.channel { channels.insert(channel) }
            switch write {
            // Which overlays it removes, and which visits it ends, only the cache knows.
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

/// Tells live objects that something they show was written. Changes that nobody has acted on yet are one.
final class ChangeSignals: Sendable {
    /// The data that a live object shows.
    enum Topic: Hashable, Sendable {
        case channel(ChannelID)
        /// The same, and the user's messages on their way to it.
        case messages(ChannelID)
        /// Every channel.
        case channels
        /// The user's own data besides channels.
        case own
        /// The user's operations on their way.
        case outbox

        func concerns(_ change: StoreChange) -> Bool {
            // Who is shown where, only the live objects know.
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

    /// A change at once, which is of everything, and one after each change of the topic.
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
        // Waking a task needs a lock of it, which is held while it is cancelled, and that waits for the lock above.
        for continuation in concerned { continuation.yield() }
    }

    /// Tells all live objects, those of later too, that the user has logged out.
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

/// The changes that one live object follows. What changes while it is at work comes as one change afterwards.
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
