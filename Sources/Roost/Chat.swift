public import Foundation
import Logging
public import RoostAPI

/// A user's chat: channels, messages and unread counts that follow the server and are also available offline.
///
/// Make one for each signed-in user and keep it: it disconnects when it is released. Live objects keep it alive, except ``connection``,
/// ``preferences``, ``unread`` and ``outbox``, which it owns. It connects, fetches tokens, reconnects, catches up and retries by itself; the app only
/// shows live objects and awaits calls.
///
///     let chat = Chat(url: server, user: "ann") { try await backend.chatToken() }
///     try await chat.connect()
///     try await chat.channel("general").send("hi")
///
/// Two chats of one user in one process share their files. A second process is refused with `storage_in_use`.
public final class Chat: Sendable {
    /// The user that the chat belongs to.
    public let user: UserID
    let driver: SyncDriver
    private let following: ObservationToken?
    @MainActor private var liveConnection: LiveConnection?
    @MainActor private var livePreferences: LivePreferences?
    @MainActor private var liveUnread: LiveUnread?
    @MainActor private var liveOutbox: LiveOutbox?
    /// The delegates' observations by the delegates' identifiers.
    @MainActor var delegates: [String: ObservationToken] = [:]

    /// - Parameters:
    ///   - url: The server, like `https://chat.example.com`; a path is needed only if a proxy serves the socket elsewhere.
    ///   - user: The user that the tokens are for.
    ///   - configuration: Settings such as storage and timeouts.
    ///   - token: Returns a token for the user. It is called again when a token has expired or was refused, and retried later if it throws. One call
    ///     runs at a time. A call that hasn't returned within a minute is cancelled; if it ignores the cancellation, the next one runs beside it. If
    ///     the user's session in the app has ended, it throws a `RoostError` with `unauthenticated`: that error becomes the status
    ///     (``ConnectionStatus/failed(_:)``), and it isn't called again until the app connects again.
    public init(
        url: URL, user: UserID, configuration: Configuration = Configuration(), token: @escaping @Sendable () async throws -> String
    ) {
        self.user = user
        driver = SyncDriver(configuration.environment(url: url, user: user, token: token))
        following = configuration.followsSystem ? driver.followSystem() : nil
    }

    deinit {
        let driver = driver
        driver.events.end()
        driver.signals.end()
        driver.noteStop()
        Task { await driver.abandon() }
    }

    /// The connection as a live object.
    @MainActor public var connection: LiveConnection {
        if let liveConnection { return liveConnection }
        let connection = LiveConnection(driver.statuses)
        liveConnection = connection
        return connection
    }

    /// The user's preferences as a live object.
    @MainActor public var preferences: LivePreferences {
        if let livePreferences { return livePreferences }
        let preferences = LivePreferences(driver)
        livePreferences = preferences
        return preferences
    }

    /// Returns once the preferences show what is stored, if the app uses them.
    @MainActor func showPreferences() async { await livePreferences?.showNow() }

    /// The unread messages of all of the user's channels, as a live object (AM-44).
    @MainActor public var unread: LiveUnread {
        if let liveUnread { return liveUnread }
        let unread = LiveUnread(driver)
        liveUnread = unread
        return unread
    }

    /// The user's operations that the server hasn't carried out yet, as a live object.
    @MainActor public var outbox: LiveOutbox {
        if let liveOutbox { return liveOutbox }
        let outbox = LiveOutbox(driver)
        liveOutbox = outbox
        return outbox
    }

    /// Connects, and returns once everything missed is stored on this device.
    ///
    /// While there is no network, or while the token provider throws, it keeps trying; ``LiveConnection/status`` says why. An app that starts
    /// offline calls ``start()`` instead.
    /// - Parameter timeout: How long to wait; nil to wait indefinitely. The client keeps trying after the timeout.
    /// - Throws: `RoostError` with `not_connected` after the timeout, with the reason, if ``disconnect()`` is called meanwhile, and if the app goes
    ///   to the background (the client connects by itself when the app is back, see ``Configuration/followsSystem``); the server's refusal, such as
    ///   `unauthenticated` or `token_expired` (the client keeps trying, see ``ConnectionStatus/refused(_:)``); `invalid_argument`, immediately, if
    ///   the URL isn't a server address; `storage_in_use` if another process has this device's files, `storage_failed` if they can't be opened or
    ///   read, and `storage_gone` if they were deleted, in which case only a new chat can connect; `unauthenticated`, without another attempt, if the
    ///   token provider throws it, and after ``logOut(discardingUnsent:signingOutDevice:)``; `CancellationError`.
    public func connect(timeout: Duration? = nil) async throws {
        try await driver.connect(timeout: timeout)
        await liveConnection?.catchUp()
    }

    /// Starts connecting and returns at once. Live objects show this device's data; ``LiveConnection/status`` reports problems.
    public func start() {
        let (driver, stops) = (driver, driver.stopCount)
        Task {
            do {
                try await driver.start(since: stops)
            } catch {
                driver.environment.logger.error("The client can't start.", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Closes the connection and stays offline until ``connect(timeout:)`` or ``start()``. The outbox is kept.
    public func disconnect() async {
        driver.noteStop()
        await driver.stop()
        await liveConnection?.catchUp()
    }

    /// Notifies the client that the app came to the foreground or the network changed. On Apple platforms the client notices both by itself
    /// (``Configuration/followsSystem``).
    ///
    /// A client that waits for its next attempt connects at once, unless the server asked it to wait. A connected client pings the server, and
    /// reconnects if it hears nothing within 5 seconds. After ``disconnect()`` this does nothing. Without nudges, a dead connection is noticed after
    /// two of the server's ping intervals.
    public func nudge() {
        let driver = driver
        Task { await driver.nudge() }
    }

    /// Calls any operation of the protocol.
    ///
    /// To send messages, use ``LiveChannel/send(_:)-(String)`` instead, which keeps them until they have arrived.
    ///
    /// Calls, including those of live objects, reach the server in the order in which they are made, even if the caller doesn't wait for each answer.
    /// Two tasks created one after the other on the main actor keep that order; the children of an `async let` or a task group don't. Leave
    /// `isolation` out: it defaults to the caller's actor, whose order the calls keep.
    ///
    /// - Throws: `RoostError` with `not_connected` while offline, when nothing is sent, or if the connection is lost before the answer, when the
    ///   operation may or may not have been carried out. The same uncertainty applies to `unavailable`, if no answer arrives in time, and to
    ///   `CancellationError`, if the task is cancelled. Also, without asking the server, the code of a limit, and `storage_in_use` or `storage_failed` if
    ///   this device's files can't be opened; and every code that the operation documents.
    public func call<Call: RoostAPI.Operation>(
        _ operation: Call, isolation: isolated (any Actor)? = #isolation
    ) async throws -> Call.Response {
        try operation.validate()
        return try await Self.answer(to: operation, try await driver.call(operation))
    }

    /// Decodes an answer off the caller's actor, usually the main actor.
    @concurrent
    private static func answer<Call: RoostAPI.Operation>(to operation: Call, _ answer: CallAnswer) async throws -> Call.Response {
        do {
            return try answer.decoded()
        } catch {
            throw RoostError(.internalError, "The answer couldn't be read: \(error)")
        }
    }
}
