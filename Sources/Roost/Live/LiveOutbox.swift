public import Observation
public import RoostAPI

/// The user's operations that the server hasn't carried out, as a live object: messages and changes on their way, and those that were refused.
///
/// An app shows it so that its user can decide about refused operations, and has to ask its user if ``isForAnotherServer`` is true. Operations that
/// this version can't read aren't in it (``StorageProblem/Kind/operationsNotRead``).
///
/// After the server was restored from its backup, a message that was acknowledged and hadn't come back as an event is sent again, and its queued edits and deletions
/// follow it. If the app was restarted after the acknowledgement, they name the message's former id, and may be refused with `not_found`.
@MainActor @Observable
public final class LiveOutbox {
    /// An operation of the user's.
    public struct Entry: Identifiable, Hashable, Sendable {
        /// How far it has come.
        public enum State: Hashable, Sendable {
            /// It is sent as soon as possible.
            case pending
            /// The server refuses it until a certain time (`until` of the error), when it is sent again.
            case waiting(RoostError)
            /// The server refused it, and what it showed was taken back. With `key_expired` it may have been carried out: it went unanswered for
            /// longer than the server remembers operations.
            case failed(RoostError)
            /// It was meant for the data of another server, and isn't sent until the app says so.
            case forAnotherServer
        }

        /// Names the operation in this device's outbox, also after a restart of the app. It is drawn at random, and says nothing of the order.
        public let id: Int64
        /// The operation's name in the protocol, such as `message.send` or `channel.hide`.
        public let operation: String
        /// The channel that it concerns; nil if there is none.
        public let channel: ChannelID?
        /// When the user asked for it, by this device's clock.
        public let createdAt: Timestamp
        /// How far it has come.
        public let state: State

        init(_ item: OutboxItem, server: String?) {
            (id, channel, createdAt) = (item.id, item.channel, item.createdAt)
            operation = type(of: item.operation.operation).name
            if item.isForAnother(than: server) {
                state = .forAnotherServer
            } else if let error = item.failure {
                state = item.isWaiting ? .waiting(error) : .failed(error)
            } else {
                state = .pending
            }
        }
    }

    /// How many operations ``entries`` begins with, and ``loadMore()`` adds.
    public nonisolated static let pageSize = 300

    /// The oldest operations, in the order in which they are sent: ``pageSize`` at most, and as many more with each ``loadMore()``. Refused ones keep
    /// their place, and so come to the front.
    public private(set) var entries: [Entry] = []
    /// The number of all operations, whether they are in ``entries`` or not.
    public private(set) var count = 0
    /// Whether ``loadMore()`` would add something.
    public var hasMore: Bool { count > entries.count }
    /// Whether some operations were meant for another server than the one that is connected: its data was replaced by something other than its
    /// own backup. The app asks its user, then calls ``sendOperationsForAnotherServer()`` or ``discardOperationsForAnotherServer()``.
    public private(set) var isForAnotherServer = false
    /// How far it has come.
    public var phase: LivePhase { follower.phase }

    /// Returns once the device's outbox has answered.
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

    /// The entries from now on, the current ones first.
    public var updates: AsyncStream<[Entry]> { observers.values(of: self, startingWith: follower.hasAnswer ? entries : nil) }

    /// Calls back with the entries, and again on every change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor ([Entry]) -> Void) -> ObservationToken {
        observers.add(startingWith: follower.hasAnswer ? entries : nil, callback)
    }

    /// Adds a page of later operations. Does nothing if there are none.
    ///
    /// - Throws: `RoostError` with `unavailable` if this device can't read them. Then nothing was added.
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

    /// Retries a refused operation. Does nothing for other operations, nor for those that are meant for another server.
    public func retry(_ entry: Entry) async { await driver.request(.retry(.operation(entry.id, of: entry.channel))) }

    /// Discards an operation, and takes back what it shows. If the server has carried it out meanwhile, it stays.
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
