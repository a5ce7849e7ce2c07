public import Observation
public import RoostAPI

/// The user's operations that the server hasn't carried out, as a live object: messages and changes on their way, and refused ones.
///
/// An app shows it so that the user can decide about refused operations. If ``isForAnotherServer`` is true, the app has to ask the user. Operations
/// that this version can't read aren't included (``StorageProblem/Kind/operationsNotRead``).
///
/// If the server is restored from its backup, a message that was acknowledged but hadn't come back as an event is sent again, and its queued edits
/// and deletions follow it. If the app was restarted after the acknowledgement, they name the message's former id, and may be refused with
/// `not_found`.
@MainActor @Observable
public final class LiveOutbox {
    /// One of the user's operations.
    public struct Entry: Identifiable, Hashable, Sendable {
        /// An operation's state.
        public enum State: Hashable, Sendable {
            /// It is sent as soon as possible.
            case pending
            /// The server refuses it until a certain time (`until` of the error), and it is sent again then.
            case waiting(RoostError)
            /// The server refused it, and its effect is no longer shown. With `key_expired` it may have been carried out: it went unanswered for
            /// longer than the server remembers operations.
            case failed(RoostError)
            /// It was meant for another server's data, and isn't sent until the app says so.
            case forAnotherServer
        }

        /// Identifies the operation in this device's outbox, also after a restart of the app. The id is random and says nothing about the order.
        public let id: Int64
        /// The operation's name in the protocol, such as `message.send` or `channel.hide`.
        public let operation: String
        /// The channel that it concerns; nil if none.
        public internal(set) var channel: ChannelID?
        /// The client id of the message that it sends, or that it changes and that was itself on its way; nil for other operations.
        public internal(set) var clientId: ClientID?
        /// The stored messages that it changes, up to 100 for `message.deleteMany` and `message.deleteForMe`; empty for other operations.
        public internal(set) var messages: [MessageID] = []
        /// What it would write: the content of a message, the parts that an edit replaces (an empty text if it keeps the text), a draft's text and
        /// metadata. Nil for other operations.
        public internal(set) var content: MessageContent?
        /// When the user asked for it, by this device's clock.
        public let createdAt: Timestamp
        /// The operation's state.
        public let state: State

        // derived: init
        /// Makes an entry for previews and tests of an app's views: the outbox makes its entries itself.
        public init(
            id: Int64, operation: String, channel: ChannelID? = nil, clientId: ClientID? = nil, messages: [MessageID] = [],
            content: MessageContent? = nil, createdAt: Timestamp, state: State
        ) {
            self.id = id
            self.operation = operation
            self.channel = channel
            self.clientId = clientId
            self.messages = messages
            self.content = content
            self.createdAt = createdAt
            self.state = state
        }

        init(_ item: OutboxItem, server: String?) {
            (id, channel, createdAt) = (item.id, item.channel, item.createdAt)
            operation = type(of: item.operation.operation).name
            (clientId, messages, content) = (item.operation.clientId, item.operation.storedMessages, item.operation.content)
            if item.isForAnother(than: server) {
                state = .forAnotherServer
            } else if let error = item.failure {
                state = item.isWaiting ? .waiting(error) : .failed(error)
            } else {
                state = .pending
            }
        }
    }

    /// How many operations ``entries`` starts with, and how many ``loadMore()`` adds.
    public nonisolated static let pageSize = 300

    /// The oldest operations, in the order in which they are sent: at most ``pageSize``, and as many more with each ``loadMore()``. Refused ones keep
    /// their place, and so move to the front.
    public private(set) var entries: [Entry] = []
    /// The total number of operations, whether they are in ``entries`` or not.
    public private(set) var count = 0
    /// Whether ``loadMore()`` would add entries.
    public var hasMore: Bool { count > entries.count }
    /// Whether some operations were meant for another server than the connected one: its data was replaced, and not from its own backup. The app asks
    /// the user, then calls ``sendOperationsForAnotherServer()`` or ``discardOperationsForAnotherServer()``.
    public private(set) var isForAnotherServer = false
    /// The phase of the live object.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's outbox has been read.
    ///
    /// - Throws: The `RoostError` of ``phase``; `CancellationError`.
    public func loaded() async throws { try await follower.loaded() }

    @ObservationIgnored private let driver: SyncDriver
    @ObservationIgnored private var limit = LiveOutbox.pageSize
    @ObservationIgnored private let follower: Follower
    @ObservationIgnored private let observers = Observers<[Entry]>()

    init(_ driver: SyncDriver) {
        self.driver = driver
        follower = Follower(driver)
        follower.follow(.outbox, reload: { [weak self] _ in try await self?.reload() })
    }

    /// The entries from now on, starting with the current ones.
    public var updates: AsyncStream<[Entry]> { observers.values(of: self, startingWith: follower.hasAnswer ? entries : nil) }

    /// Calls back with the entries, and again on every change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor ([Entry]) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? entries : nil, callback)
    }

    /// Adds a page of later operations. Does nothing if there are none.
    ///
    /// - Throws: `RoostError` with `storage_failed` if this device can't read them. Nothing was added then.
    public func loadMore() async throws {
        guard hasMore else { return }
        try await follower.take(asksServer: false) {
            self.limit += Self.pageSize
            do {
                try await self.reload()
            } catch {
                self.limit -= Self.pageSize
                throw error
            }
        }
    }

    /// Retries a refused operation. Does nothing for other operations, or for those meant for another server.
    public func retry(_ entry: Entry) async { await driver.request(.retry(.operation(entry.id, of: entry.channel))) }

    /// Discards an operation and stops showing its effect. If the server has carried it out meanwhile, the effect stays.
    public func discard(_ entry: Entry) async { await driver.request(.discard(.operation(entry.id, of: entry.channel))) }

    /// Sends the operations that were meant for another server to this one (``isForAnotherServer``).
    public func sendOperationsForAnotherServer() async { await driver.request(.resolveOthers(discard: false)) }

    /// Discards the operations that were meant for another server (``isForAnotherServer``).
    public func discardOperationsForAnotherServer() async { await driver.request(.resolveOthers(discard: true)) }

    private func reload() async throws {
        let outbox = try await driver.files().outbox
        let server = await driver.knownServer()
        let (items, count) = try await outbox.oldest(limit: limit)
        let entries = items.map { Entry($0, server: server) }
        let isForAnother = if let server { try await outbox.holdsOperations(notFor: server) } else { false }
        guard
            !follower.hasAnswer || entries != self.entries || count != self.count || isForAnother != isForAnotherServer
        else { return follower.answered() }
        (self.entries, self.count, isForAnotherServer) = (entries, count, isForAnother)
        follower.answered()
        observers.notify(entries)
    }
}

extension OutboxOperation {
    /// The client id of the message that it sends, or of the pending one that it changes.
    fileprivate var clientId: ClientID? {
        if let sent { return sent.clientId }
        guard case .sent(let clientId)? = changed.first else { return nil }
        return clientId
    }

    /// The stored messages that it changes.
    fileprivate var storedMessages: [MessageID] {
        changed.compactMap { if case .stored(let message) = $0 { message } else { nil } }
    }

    /// The content of a message or a draft, or what an edit replaces of it.
    fileprivate var content: MessageContent? {
        switch self {
        case .send(let operation): return operation.content
        case .edit(let operation, _):
            var content = MessageContent(text: "")
            content.apply(operation)
            return content
        case .draft(let operation): return MessageContent(text: operation.text, metadata: operation.metadata)
        default: return nil
        }
    }
}
