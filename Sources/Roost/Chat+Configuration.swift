public import Foundation
public import Logging
import RoostAPI

extension Chat {
    /// Where a client keeps its files: a folder for each user and server, with its data and its queued operations.
    ///
    /// The folder goes by the host, the port and the path of the server's address, as they are written there, and not by the scheme: an app that changes from `http` to
    /// `https` keeps its files. If another server is behind that address, its data replace those of the former one with the first connection, and operations that
    /// were meant for the former one wait (``LiveOutbox/isForAnotherServer``).
    public enum Storage: Hashable, Sendable {
        /// The app's own folder where the system has such files: in `Application Support` on Apple's systems, in `$XDG_DATA_HOME` or
        /// `~/.local/share` on Linux. The app's name there is its bundle identifier, or the name of the program if it has none.
        case standard
        /// This directory, which is made if it isn't there. One process at a time has a user's files in it; others may read them with
        /// ``StoredChat``.
        case directory(URL)
        /// The same, for a directory that an app shares with its extensions, such as an App Group's. iOS terminates an app that holds a lock there in
        /// the background (`0xdead10cc`), so the client releases the files when the app goes there: until the app is back, the client is offline, other
        /// processes may take the files, and sending throws `unavailable`. An app that connects in the background has the files again, and releases
        /// them with ``Chat/disconnect()``.
        ///
        /// A chat that is made in the background, in an app that a push has launched for instance, has the files only while it is connected or tries
        /// to connect, or while it opens or writes them: what is sent without a connection is kept, unless another process has the files.
        /// ``Chat/disconnect()`` ends an attempt to connect too.
        case shared(URL)
        /// Nothing is written: queued messages are lost with the process, and each start fetches everything.
        case inMemory

        /// Whether other processes have the files when the app is in the background.
        var isShared: Bool { if case .shared = self { true } else { false } }

        /// Nil where nothing is written.
        ///
        /// - Throws: `CocoaError` when the system has no place for data.
        var directory: URL? {
            get throws {
                switch self {
                case .standard:
                    try FileManager.default.url(
                        for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true
                    )
                    .appending(component: Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName)
                    .appending(component: "Roost", directoryHint: .isDirectory)
                case .directory(let url), .shared(let url): url
                case .inMemory: nil
                }
            }
        }
    }

    /// An app's settings. Every field has a default.
    public struct Configuration: Sendable {
        /// Where the client's files are.
        public var storage: Storage = .standard
        /// How this device appears in the user's list of devices (``Chat/devices()``). If nil, it isn't listed.
        public var device: DeviceInfo? = .current
        /// The size that the cache is trimmed to: when it is opened, and after each sixteenth of that size that the chat has received, so that it may take an
        /// eighth more in between. The oldest messages are deleted, first those of channels that were never shown or haven't been for longest,
        /// last those of channels with a ``MessageList``. The newest 100 of each channel stay, and what a list shows; the outbox isn't part of the cache. While another
        /// chat of this process has the same files, nothing is deleted.
        public var cacheSizeBytesMax: Int = 256 << 20
        /// Called, on any thread, with problems with this device's files that don't stop the client. Tell the user if an outbox had to be set
        /// aside. If nil, problems are only logged.
        public var onStorageProblem: (@Sendable (StorageProblem) -> Void)?
        /// Whether the client checks its connection by itself when the app comes to the foreground or the network changes, on systems that
        /// report this. An app that turns it off calls ``Chat/nudge()``; files of ``Storage/shared(_:)`` aren't released in the background then.
        public var followsSystem: Bool = true
        /// The log for failures. It never contains tokens or messages.
        public var logger: Logger = Logger(label: "roost")
        /// The bounds of the wait between attempts to connect. Each wait is random, from 0 to a time that doubles with each attempt, from the
        /// lower bound to the upper one.
        public var backoff: ClosedRange<Duration> = .milliseconds(500)...(.seconds(30))
        /// How long a call waits for its answer. For what was missed the client waits longer after it waited in vain, up to eight times as long.
        public var callTimeout: Duration = .seconds(30)
        /// Whether an operation that is refused for a time, as in a channel that is silenced for an hour, holds up its channel's queue and is
        /// sent again afterwards, which keeps the order. Otherwise it counts as refused, and the next one is sent.
        public var waitsForEndOfRefusal: Bool = true
        /// The transport of the frames.
        public var transport: any Transport = Configuration.standardTransport
        /// The clock of timeouts and waits.
        public var clock: any Clock<Duration> = ContinuousClock()

        // derived: init
        /// A configuration with the defaults for everything else.
        public init(
            storage: Storage = .standard, device: DeviceInfo? = .current, cacheSizeBytesMax: Int = 256 << 20,
            onStorageProblem: (@Sendable (StorageProblem) -> Void)? = nil, followsSystem: Bool = true,
            logger: Logger = Logger(label: "roost"), backoff: ClosedRange<Duration> = .milliseconds(500)...(.seconds(30)),
            callTimeout: Duration = .seconds(30), waitsForEndOfRefusal: Bool = true,
            transport: any Transport = Configuration.standardTransport, clock: any Clock<Duration> = ContinuousClock()
        ) {
            self.storage = storage
            self.device = device
            self.cacheSizeBytesMax = cacheSizeBytesMax
            self.onStorageProblem = onStorageProblem
            self.followsSystem = followsSystem
            self.logger = logger
            self.backoff = backoff
            self.callTimeout = callTimeout
            self.waitsForEndOfRefusal = waitsForEndOfRefusal
            self.transport = transport
            self.clock = clock
        }

        /// `WebSocketTransport`; on watchOS, which doesn't let apps open sockets, `URLSessionTransport`.
        public static var standardTransport: any Transport {
            #if os(watchOS)
            URLSessionTransport()
            #else
            WebSocketTransport()
            #endif
        }

        func environment(
            url: URL, user: UserID, token: @escaping @Sendable () async throws -> String
        ) -> SyncDriver.Environment {
            var settings = Sync.Settings()
            settings.backoff = backoff
            settings.callTimeout = callTimeout
            settings.outgoingSizeBytesMax = transport.outgoingSizeBytesMax
            settings.waitsForEndOfRefusal = waitsForEndOfRefusal
            let dayClock = clock as? any DayClock
            return SyncDriver.Environment(
                url: url, user: user, storage: storage, device: device, settings: settings, cacheSizeBytesMax: cacheSizeBytesMax,
                onStorageProblem: onStorageProblem ?? { _ in },
                transport: transport, clock: clock, random: SystemRandomNumberGenerator(),
                now: { dayClock?.timestamp ?? Timestamp(Date()) }, token: token, logger: logger)
        }
    }
}

/// A clock that tells the time of day too, instead of the device's: that of a test server.
package protocol DayClock: Clock<Duration> {
    var timestamp: Timestamp { get }
}
