import Foundation
import Logging
import RoostAPI
import Synchronization

@testable import Roost

/// A client without clock, network or chance: a machine with a store and an outbox in memory, fed by hand.
struct Harness {
    var sync: Sync
    let store: Store
    let outbox: Outbox
    /// Its number among those that share the outbox.
    let chat = Int(Self.tokens.next())
    /// The machine's outputs since the last ``take()``.
    private(set) var outputs: [Sync.Output] = []
    /// Calls that were sent and not answered yet, by number.
    private(set) var calls: [Int64: String] = [:]
    /// The keys of all calls of an operation, in their order.
    private(set) var keys: [String: [String?]] = [:]
    /// Includes the ids of operations in the outbox, from which a restarted client continues.
    private var lastToken = Self.tokens.next()

    private static let tokens = Counter()

    static let user: UserID = "ann"
    static let channel: ChannelID = "general"

    init(settings: Sync.Settings = Sync.Settings()) async throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        try await self.init(
            store: Store(url: nil, user: Self.user, logger: logger), outbox: Outbox(url: nil, logger: logger), settings: settings)
    }

    /// A client that starts from the files, as after a restart.
    init(store: Store, outbox: Outbox, settings: Sync.Settings = Sync.Settings()) async throws {
        self.store = store
        self.outbox = outbox
        sync = Sync(
            user: Self.user, client: "test", settings: settings, saved: try await store.savedState(),
            outbox: try await outbox.saved(),
            random: NoChance())
    }

    /// The same client after a restart.
    func restarted() async throws -> Harness { try await Harness(store: store, outbox: outbox) }

    /// Feeds one input, and performs the machine's requests of the files.
    mutating func feed(_ input: Sync.Input) async throws {
        var kept: [Sync.Input] = []
        var written = WrittenOutbox()
        for output in sync.handle(input) {
            outputs.append(output)
            switch output {
            case .store(let writes): try await store.write(writes)
            case .outbox(let write): written.merge(try await outbox.apply([write], by: chat))
            case .awaitKept(let token, let id, let channel):
                let isGone = written.gone.contains(id)
                kept.append(.kept(token, id, of: channel, isGone: isGone, inFlight: written.takeInFlight()))
            case .awaitNoted(let id, let channel):
                kept.append(.noted(id, of: channel, as: written.rows[id], isTaken: written.taken.contains(id)))
            case .send(let bytes), .sendBeforeStoring(let bytes):
                guard let call = try? JSONDecoder().decode(SentCall.self, from: Data(bytes)) else { break }
                calls[call.call] = call.operation
                keys[call.operation, default: []].append(call.key)
            default: break
            }
        }
        for input in kept { try await feed(input) }
    }

    /// The client id of the message in flight.
    var inFlight: ClientID? {
        guard let queue = sync.queues[Self.channel], let id = queue.inFlight else { return nil }
        return queue.items[id]?.message?.clientId
    }

    /// Requests an operation that is kept until it is carried out.
    mutating func enqueue(_ operation: OutboxOperation) async throws {
        lastToken += 1
        var mayBeDeleted = false
        if operation.isDeletion || operation.isUndeletion {
            mayBeDeleted = try await store.read { try $0.serverMayHaveDeleted(messageOf: operation) }
        }
        try await feed(
            .enqueue(lastToken, operation, id: lastToken, at: Timestamp(milliseconds: 0), mayBeDeleted: mayBeDeleted))
    }

    mutating func take() -> [Sync.Output] {
        defer { outputs = [] }
        return outputs
    }

    /// Calls of a connection that is gone aren't answered.
    mutating func forgetCalls() { calls = [:] }

    // MARK: The server's side

    mutating func receive(_ frame: some Encodable) async throws {
        try await feed(.transport(sync.connection, .message(try JSONWriter.bytes(of: frame))))
    }

    mutating func receive(text: String) async throws {
        try await feed(.transport(sync.connection, .message(Array(text.utf8))))
    }

    /// Connects up to the resume call, which is left unanswered.
    mutating func connect(
        epoch: String = "first", server: String = "server", role: AppRole = .user, at now: Timestamp = Timestamp(milliseconds: 0)
    ) async throws {
        try await open()
        try await welcome(epoch: epoch, server: server, role: role, at: now)
    }

    /// Connects up to sending the server a token.
    mutating func open() async throws {
        try await feed(.start)
        if sync.isFetchingToken { try await feed(.token("token")) }
        try await feed(.transport(sync.connection, .opened))
    }

    mutating func welcome(
        epoch: String = "first", server: String = "server", role: AppRole = .user, at now: Timestamp = Timestamp(milliseconds: 0)
    ) async throws {
        try await receive(
            WelcomeFrame(
                welcome: .init(
                    user: Self.user, role: role, connection: 1, server: server, epoch: epoch, version: "0.1.0",
                    now: now,
                    tokenExpiresAt: Timestamp(milliseconds: 0), pingIntervalSeconds: 30)))
    }

    /// Connects, with the general channel as sent to a fresh client: two messages of bob's, seq 2 and 3, unread.
    mutating func connectWithChannel(role: AppRole = .user) async throws {
        try await connect(role: role)
        try await answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [fresh()], hasMore: false))
    }

    /// Answers the oldest unanswered call of an operation.
    mutating func answer(_ operation: String, with result: some Encodable) async throws {
        try await receive(Reply(reply: try take(operation), result: result))
    }

    mutating func refuse(_ operation: String, with error: RoostError) async throws {
        try await receive(Refusal(reply: try take(operation), error: error))
    }

    private mutating func take(_ operation: String) throws -> Int64 {
        guard let number = calls.filter({ $0.value == operation }).keys.min() else { throw Missing(operation: operation) }
        calls[number] = nil
        return number
    }

    /// Answers the oldest unanswered call of an operation as already done by an earlier call.
    mutating func answerDone(_ operation: String) async throws {
        try await receive(text: #"{"reply":\#(try take(operation)),"done":true}"#)
    }

    struct Missing: Error { var operation: String }

    // MARK: The user's view

    /// The channels that the list of all shows.
    func listed() async throws -> [ChannelID] { try await store.read { try ChannelQuery(hidden: .all).places(in: $0).map(\.id) } }
    func view() async throws -> ChannelView? { try await store.read { try $0.channelView(Self.channel) } }
    func unread() async throws -> Int? { try await view()?.unreadCount }
    func window() async throws -> MessageWindow {
        try await store.read { database in
            var window = MessageWindow(pageSize: 100)
            try window.read(.stay, of: Self.channel, in: database)
            return window
        }
    }

    func texts() async throws -> [String] {
        let pending = try await outbox.items(of: Self.channel)
        let onTheirWay = try await store.read { database in
            let arrived = try database.ownMessages(among: pending.compactMap { $0.message?.clientId }, in: Self.channel)
            return pending.filter { $0.message.map { !arrived.contains($0.clientId) } ?? true }
        }
        let sender = UserSummary(userId: Self.user)
        let items = try await window().rows.map(\.item) + onTheirWay.compactMap { MessageItem($0, sender: sender) }
        return items.map { $0.state == .sent ? $0.text : "\($0.text)…" }
    }

    /// The messages that a list opened at a seq shows.
    func texts(at seq: Seq) async throws -> [String] {
        try await store.read { database in
            var window = MessageWindow(pageSize: 100)
            try window.read(.open(seq), of: Self.channel, in: database)
            return window.isLost ? ["lost"] : window.rows.map(\.item.text)
        }
    }

    mutating func send(_ text: String, clientId: ClientID) async throws {
        let operation = SendMessage(channel: Self.channel, clientId: clientId, text: text)
        try await enqueue(.send(operation))
    }
}

private struct SentCall: Decodable {
    var call: Int64
    var operation: String
    var key: String?
}

/// Numbers that are unique among clients.
private final class Counter: Sendable {
    private let last = Atomic<Int64>(0)
    func next() -> Int64 { last.add(1000, ordering: .relaxed).newValue }
}

private struct Reply<Value: Encodable>: Encodable {
    var reply: Int64
    var result: Value
}

private struct Refusal: Encodable {
    var reply: Int64
    var error: RoostError
}

/// Always draws the lowest number, so no random part lengthens a wait.
struct NoChance: RandomNumberGenerator, Sendable {
    mutating func next() -> UInt64 { 0 }
}
