public import Foundation
public import Logging
import RoostAPI

extension Chat {
    /// An app's settings. Every field has a default.
    public struct Configuration: Sendable {
        /// The directory of the client's files, with a folder for each user and server. Nil keeps everything in memory: messages on their
        /// way are then lost with the process.
        public var directory: URL?
        /// The size that the cache is brought under when it is opened. The oldest messages go, first those of channels whose messages
        /// weren't shown or weren't for longest; the newest 100 of each channel stay.
        public var cacheSizeBytesMax: Int = 256 << 20
        /// The log for failures. It never contains tokens or messages.
        public var logger: Logger = Logger(label: "roost")
        /// The bounds of the wait between two attempts to connect. Each wait is drawn evenly from 0 to a time that doubles between
        /// them.
        public var backoff: ClosedRange<Duration> = .milliseconds(500)...(.seconds(30))
        /// How long a call waits for its answer.
        public var callTimeout: Duration = .seconds(30)
        /// The transport of the frames.
        public var transport: any Transport = WebSocketTransport()
        /// The clock of timeouts and waits.
        public var clock: any Clock<Duration> = ContinuousClock()

        // derived: init
        /// A configuration with the defaults for everything else.
        public init(
            directory: URL? = nil, cacheSizeBytesMax: Int = 256 << 20, logger: Logger = Logger(label: "roost"),
            backoff: ClosedRange<Duration> = .milliseconds(500)...(.seconds(30)), callTimeout: Duration = .seconds(30),
            transport: any Transport = WebSocketTransport(), clock: any Clock<Duration> = ContinuousClock()
        ) {
            self.directory = directory
            self.cacheSizeBytesMax = cacheSizeBytesMax
            self.logger = logger
            self.backoff = backoff
            self.callTimeout = callTimeout
            self.transport = transport
            self.clock = clock
        }

        func environment(
            url: URL, user: UserID, token: @escaping @Sendable () async throws -> String
        ) -> SyncDriver.Environment {
            var settings = Sync.Settings()
            settings.backoff = backoff
            settings.callTimeout = callTimeout
            return SyncDriver.Environment(
                url: url, user: user, directory: directory, settings: settings, cacheSizeBytesMax: cacheSizeBytesMax,
                transport: transport, clock: clock, random: SystemRandomNumberGenerator(),
                now: { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }, token: token, logger: logger)
        }
    }
}
