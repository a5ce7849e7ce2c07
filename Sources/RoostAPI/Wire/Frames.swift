/// A client's first frame, which authenticates it unless the upgrade request had an Authorization header.
public struct AuthenticateFrame: Codable, Hashable, Sendable {
    /// The content of an `authenticate` frame.
    public struct Credentials: Codable, Hashable, Sendable {
        /// The signed token. It is sent here or in the Authorization header, never in the URL.
        public var token: String
        /// The client's name and version: `roost-swift/0.1.0`. The server doesn't use it.
        public var client: String?
        /// The device, for the list of its user's devices. Nil for a connection without a device.
        public var device: DeviceDescription?
        // derived: init
        /// Creates a value with these fields. Those that are left out have their defaults.
        public init(token: String, client: String? = nil, device: DeviceDescription? = nil) {
            self.token = token
            self.client = client
            self.device = device
        }
    }
    /// The credentials.
    public var authenticate: Credentials
    /// Makes the frame of a token, the name of the client and the device that it runs on.
    public init(token: String, client: String? = nil, device: DeviceDescription? = nil) {
        authenticate = Credentials(token: token, client: client, device: device)
    }
}

/// The server's response to a successful authentication.
public struct WelcomeFrame: Codable, Hashable, Sendable {
    /// The content of a `welcome` frame.
    public struct Welcome: Codable, Hashable, Sendable {
        /// The token's user.
        public var user: UserID
        /// The user's role in the app.
        public var role: AppRole
        /// The number of this connection on its node.
        public var connection: Int64
        /// Permanently identifies the server's data, even after a backup is restored: a client may send it the calls it has queued.
        public var server: String
        /// Changes when a backup is restored. A client with another epoch discards its cache and starts over.
        public var epoch: String
        /// The server's version.
        public var version: String
        /// The server's clock.
        public var now: Timestamp
        /// When the token expires; the socket is then closed with `CloseCode.tokenExpired`.
        public var tokenExpiresAt: Timestamp
        /// How often the server pings, in seconds. A client that receives nothing for twice that long should reconnect.
        public var pingIntervalSeconds: Int

        // derived: init
        /// Creates a value with these fields.
        public init(
            user: UserID, role: AppRole, connection: Int64, server: String, epoch: String, version: String, now: Timestamp,
            tokenExpiresAt: Timestamp, pingIntervalSeconds: Int
        ) {
            self.user = user
            self.role = role
            self.connection = connection
            self.server = server
            self.epoch = epoch
            self.version = version
            self.now = now
            self.tokenExpiresAt = tokenExpiresAt
            self.pingIntervalSeconds = pingIntervalSeconds
        }
    }
    /// Information about the server and the connection.
    public var welcome: Welcome
    // derived: init
    /// Creates a value with these fields.
    public init(welcome: Welcome) { self.welcome = welcome }
}

/// A call of an operation over a socket.
public struct CallFrame<Call: Operation>: Encodable, Sendable {
    /// Chosen by the client and returned with the reply; unique among the pending calls of this socket.
    public var call: Int64
    /// Deduplicates retries: the server doesn't repeat a change that it made with the same key. For operations that take one.
    public var key: IdempotencyKey?
    /// The operation with its fields.
    public var with: Call

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(call: Int64, key: IdempotencyKey? = nil, with: Call) {
        self.call = call
        self.key = key
        self.with = with
    }

    private enum CodingKeys: String, CodingKey { case call, operation, key, with }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(call, forKey: .call)
        try container.encode(Call.name, forKey: .operation)
        try container.encodeIfPresent(key?.rawValue, forKey: .key)
        try container.encode(with, forKey: .with)
    }
}

/// Announces that the server is about to close this socket, and when to reconnect.
public struct ClosingFrame: Codable, Hashable, Sendable {
    /// The content of a `closing` frame.
    public struct Closing: Codable, Hashable, Sendable {
        /// Why, in English.
        public var reason: String
        /// How long a client should wait before reconnecting.
        public var retryAfterMilliseconds: Int64
        // derived: init
        /// Creates a value with these fields.
        public init(reason: String, retryAfterMilliseconds: Int64) {
            self.reason = reason
            self.retryAfterMilliseconds = retryAfterMilliseconds
        }
    }
    /// The reason, and when to reconnect.
    public var closing: Closing
    // derived: init
    /// Creates a value with these fields.
    public init(closing: Closing) { self.closing = closing }
}

/// Announces that a watch has ended on this connection, since its user may no longer watch the channel.
public struct UnwatchedFrame: Codable, Hashable, Sendable {
    /// The content of an `unwatched` frame.
    public struct Unwatched: Codable, Hashable, Sendable {
        /// The channel that is no longer watched.
        public var channel: ChannelID
        // derived: init
        /// Creates a value with these fields.
        public init(channel: ChannelID) { self.channel = channel }
    }
    /// The watch that ended.
    public var unwatched: Unwatched
    // derived: init
    /// Creates a value with these fields.
    public init(unwatched: Unwatched) { self.unwatched = unwatched }
}

extension UnwatchedFrame.Unwatched: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channel", channel)
        json.endObject()
    }
}

extension UnwatchedFrame: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("unwatched", unwatched)
        json.endObject()
    }
}

/// Announces that this connection no longer reads a channel, because its user has marked messages as unread on any device, or may no longer
/// read the channel (AM-46).
public struct ReadingEndedFrame: Codable, Hashable, Sendable {
    /// The content of a `readingEnded` frame.
    public struct ReadingEnded: Codable, Hashable, Sendable {
        /// The channel that is no longer read.
        public var channel: ChannelID
        // derived: init
        /// Creates a value with these fields.
        public init(channel: ChannelID) { self.channel = channel }
    }
    /// The reading that ended.
    public var readingEnded: ReadingEnded
    // derived: init
    /// Creates a value with these fields.
    public init(readingEnded: ReadingEnded) { self.readingEnded = readingEnded }
}

extension ReadingEndedFrame.ReadingEnded: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channel", channel)
        json.endObject()
    }
}

extension ReadingEndedFrame: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("readingEnded", readingEnded)
        json.endObject()
    }
}

/// The codes with which Roost closes a WebSocket, in addition to those of RFC 6455.
public enum CloseCode: UInt16, CaseIterable, Sendable {
    /// The server is shutting down; reconnect as the `closing` frame said (RFC 6455's registry: service restart).
    case restart = 1012
    /// No token, or an invalid one. Get another before connecting again.
    case unauthenticated = 4001
    /// The token has expired. Get another and reconnect.
    case tokenExpired = 4002
    /// No token within the time allowed.
    case authenticationTimeout = 4003
    /// The token was revoked. Get another and reconnect.
    case tokenRevoked = 4004
    /// The user is deactivated: no token works until an admin reactivates them. Don't reconnect until the app is asked to.
    case userDeactivated = 4005
    /// The client's backlog exceeded its budget. Reconnect and resume: nothing is lost.
    case resume = 4008
    /// The server can't take the connection now: it is overloaded or shutting down. Reconnect later.
    case tryAgainLater = 4029

    /// The meaning of the code and what a client should do, in a few words.
    public var meaning: String {
        switch self {
        case .restart: "The server restarts. Reconnect when the closing frame said, and resume."
        case .unauthenticated: "No token, or an invalid one. Get another before connecting again."
        case .tokenExpired: "The token has expired. Get another and reconnect."
        case .authenticationTimeout: "No token within the time allowed. Reconnect and authenticate at once."
        case .tokenRevoked: "The token was revoked. Get another and reconnect."
        case .userDeactivated: "The user is deactivated. Tell them; don't reconnect until the app is asked to."
        case .resume: "The client didn't read what was sent. Reconnect and resume: nothing is lost."
        case .tryAgainLater: "The server can't accept the connection now. Try again later."
        }
    }
}
