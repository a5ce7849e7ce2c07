public import Foundation
public import Logging
import RoostAPI

extension Chat {
    /// Where a client keeps its files: a folder for each user and server, with its data and its queued operations.
    ///
    /// The folder is named after the host, port and path of the server's address, exactly as written, and not its scheme: an app that changes from
    /// `http` to `https` keeps its files. If the address now belongs to another server, the first connection replaces the former server's data, and
    /// operations meant for the former server wait (``LiveOutbox/isForAnotherServer``).
    public enum Storage: Hashable, Sendable {
        /// The app's own folder in the system's usual location: `Application Support` on Apple's systems, `$XDG_DATA_HOME` or `~/.local/share` on
        /// Linux. The folder is named after the app's bundle identifier, or after the program if it has none.
        ///
        /// On tvOS it is in `Caches`, because an app can't write to `Application Support` there: the system may delete it while the app isn't
        /// running, together with the messages that haven't been sent.
        case standard
        /// This directory, which is created if it doesn't exist. Only one process at a time can open a user's files; others can read them with
        /// ``StoredChat``. An App Group's directory has to be ``shared(_:)``.
        case directory(URL)
        /// Like ``directory(_:)``, for a directory that an app shares with its extensions, such as an App Group's. iOS terminates an app that holds a
        /// lock there in the background (`0xdead10cc`), so the client releases the files when the app goes to the background: until the app is back,
        /// other processes may open the files, and sending throws `storage_in_use`. An app that connects in the background opens the files again, and
        /// releases them with ``Chat/disconnect()``.
        ///
        /// A chat created in the background, for instance in an app launched by a push, holds the files only while it is connected or connecting, or
        /// while it opens or writes them: messages sent without a connection are kept, unless another process has the files open.
        /// ``Chat/disconnect()`` also ends an attempt to connect.
        case shared(URL)
        /// Nothing is written: queued messages are lost with the process, and each start fetches everything.
        case inMemory

        /// Whether other processes may open the files while the app is in the background.
        var isShared: Bool { if case .shared = self { true } else { false } }

        /// Nil if nothing is written.
        ///
        /// - Throws: `CocoaError` when the system has no place for data.
        var directory: URL? {
            get throws {
                switch self {
                case .standard:
                    try FileManager.default.url(for: Self.dataDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
                        .appending(component: Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName)
                        .appending(component: "Roost", directoryHint: .isDirectory)
                case .directory(let url), .shared(let url): url
                case .inMemory: nil
                }
            }
        }

        /// The system's directory for an app's data. On Apple TV only `Caches` is writable.
        private static var dataDirectory: FileManager.SearchPathDirectory {
            #if os(tvOS)
            .cachesDirectory
            #else
            .applicationSupportDirectory
            #endif
        }
    }

    /// An app's settings. Every field has a default.
    public struct Configuration: Sendable {
        /// Where the client keeps its files.
        public var storage: Storage = .standard
        /// How this device appears in the user's list of devices (``Chat/devices()``). If nil, it isn't listed.
        public var device: DeviceInfo? = .current
        /// The size that the cache is trimmed to: when it is opened, and each time the chat has received another sixteenth of that size, so the cache
        /// may exceed it by up to an eighth. The oldest messages are deleted, starting with the channels that were never shown or not for longest and
        /// ending with those that have a ``MessageList``. The newest 100 messages of each channel and the messages that a list shows are kept; the
        /// outbox isn't part of the cache. While another chat of this process has the same files open, nothing is deleted.
        public var cacheSizeBytesMax: Int = 256 << 20
        /// Called, on any thread, with problems with this device's files that don't stop the client. Tell the user if an outbox had to be set aside.
        /// If nil, problems are only logged.
        public var onStorageProblem: (@Sendable (StorageProblem) -> Void)?
        /// Whether the client follows the app and the network by itself, on systems that report these.
        ///
        /// On iOS, tvOS, watchOS and visionOS, which suspend apps, it ends its connection when the app goes to the background, and connects again when
        /// the app is back. Meanwhile nothing counts as read by ``LiveChannel/startReading()``, and the user gets pushes. A connection that the app
        /// makes in the background lasts until ``Chat/disconnect()``. On all of Apple's systems it checks its connection when the app comes to the
        /// foreground and when the network changes.
        ///
        /// If false, the app calls ``Chat/nudge()`` itself, and the client stays connected in the background until the system suspends the app: that is
        /// for an app that keeps running there, for calls or music, and calls ``Chat/disconnect()`` itself. Files of ``Storage/shared(_:)`` aren't
        /// released then.
        public var followsSystem: Bool = true
        /// The log for failures. Tokens and messages are never logged.
        public var logger: Logger = Logger(label: "roost")
        /// The bounds of the wait between attempts to connect. Each wait is random, from 0 to a maximum that starts at the lower bound and doubles
        /// with each attempt, up to the upper bound.
        public var backoff: ClosedRange<Duration> = .milliseconds(500)...(.seconds(30))
        /// How long a call waits for its answer. A request to catch up waits longer after each timeout, up to eight times as long.
        public var callTimeout: Duration = .seconds(30)
        /// Whether an operation that is refused for a limited time, for instance because its channel is silenced for an hour, holds up its channel's
        /// queue until it can be sent again, which keeps the order. If false, it counts as refused and the next operation is sent.
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

/// A clock that also provides the time of day, in place of the device's clock: a test server's clock.
package protocol DayClock: Clock<Duration> {
    var timestamp: Timestamp { get }
}
