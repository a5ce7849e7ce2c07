/// A user's private settings.
public struct Preferences: Codable, Hashable, Sendable {
    /// Whether invitations make the user a member at once, without asking (SB-18). True unless the user changes it.
    public var autoAcceptInvitations: Bool = true
    /// Whether others are notified that the user is typing. True unless the user changes it.
    public var sharesTyping: Bool = true  // wire: may be absent
    /// Whether others are notified, and may ask, how far the user has read. True unless the user changes it. A user who doesn't share it
    /// still sees that of others.
    public var sharesReading: Bool = true  // wire: may be absent
    /// Whether others are notified that messages have reached the user's devices, in channels with delivery events. True unless the user
    /// changes it. Users who don't share how far they have read don't share this either.
    public var sharesDelivery: Bool = true  // wire: may be absent
    /// Whether others see that the user is online and which channels they watch. True unless the user changes it. If false, they are
    /// invisible: offline to everyone else, on all of their devices.
    public var sharesPresence: Bool = true  // wire: may be absent
    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        autoAcceptInvitations: Bool = true, sharesTyping: Bool = true, sharesReading: Bool = true, sharesDelivery: Bool = true,
        sharesPresence: Bool = true
    ) {
        self.autoAcceptInvitations = autoAcceptInvitations
        self.sharesTyping = sharesTyping
        self.sharesReading = sharesReading
        self.sharesDelivery = sharesDelivery
        self.sharesPresence = sharesPresence
    }
}

extension Preferences {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case autoAcceptInvitations, sharesTyping, sharesReading, sharesDelivery, sharesPresence
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(autoAcceptInvitations, forKey: .autoAcceptInvitations)
        try container.encode(sharesTyping, forKey: .sharesTyping)
        try container.encode(sharesReading, forKey: .sharesReading)
        try container.encode(sharesDelivery, forKey: .sharesDelivery)
        try container.encode(sharesPresence, forKey: .sharesPresence)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        autoAcceptInvitations = try container.decode(Bool.self, forKey: .autoAcceptInvitations)
        sharesTyping = try container.decodeIfPresent(Bool.self, forKey: .sharesTyping) ?? true
        sharesReading = try container.decodeIfPresent(Bool.self, forKey: .sharesReading) ?? true
        sharesDelivery = try container.decodeIfPresent(Bool.self, forKey: .sharesDelivery) ?? true
        sharesPresence = try container.decodeIfPresent(Bool.self, forKey: .sharesPresence) ?? true
    }
}

extension Preferences {
    /// Returns the preferences with an update applied.
    package func applying(_ update: UpdatePreferences) -> Preferences {
        Preferences(
            autoAcceptInvitations: update.autoAcceptInvitations ?? autoAcceptInvitations,
            sharesTyping: update.sharesTyping ?? sharesTyping, sharesReading: update.sharesReading ?? sharesReading,
            sharesDelivery: update.sharesDelivery ?? sharesDelivery,
            sharesPresence: update.sharesPresence ?? sharesPresence)
    }
}

extension Preferences: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("autoAcceptInvitations", autoAcceptInvitations)
        json.member("sharesTyping", sharesTyping)
        json.member("sharesReading", sharesReading)
        json.member("sharesDelivery", sharesDelivery)
        json.member("sharesPresence", sharesPresence)
        json.endObject()
    }
}

/// The caller's own preferences.
public struct GetPreferences: Operation {
    public typealias Response = Preferences
    public static let name = "preferences.get"
    public static let method = HTTPMethod.get
    public static let path = "/v1/me/preferences"
    public static let permission = Permission.userRead
    public static let summary = "The calling user's own preferences."

    // derived: init
    /// Creates a value, which has no fields.
    public init() {}
    public func validate() throws(RoostError) {}
}

/// Replaces the given fields of the caller's own preferences.
///
/// - Throws: `rate_limited` for more than ``Limits/signalsPerSecond`` per second by one user, or with `sharesPresence` more than
///   ``Limits/presenceChangesPerMinute`` per minute.
public struct UpdatePreferences: Operation {
    public typealias Response = Preferences
    public static let name = "preferences.update"
    public static let method = HTTPMethod.patch
    public static let path = "/v1/me/preferences"
    public static let permission = Permission.userUpdateMe
    public static let summary = "Update the calling user's own preferences."

    /// Whether invitations make the user a member at once (SB-15).
    public var autoAcceptInvitations: Bool?
    /// Whether others are notified that the user is typing.
    public var sharesTyping: Bool?
    /// Whether others are notified how far the user has read.
    public var sharesReading: Bool?
    /// Whether others are notified that messages have reached the user's devices.
    public var sharesDelivery: Bool?
    /// Whether others see the user online; false makes them invisible.
    public var sharesPresence: Bool?
    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        autoAcceptInvitations: Bool? = nil, sharesTyping: Bool? = nil, sharesReading: Bool? = nil, sharesDelivery: Bool? = nil,
        sharesPresence: Bool? = nil
    ) {
        self.autoAcceptInvitations = autoAcceptInvitations
        self.sharesTyping = sharesTyping
        self.sharesReading = sharesReading
        self.sharesDelivery = sharesDelivery
        self.sharesPresence = sharesPresence
    }
    public func validate() throws(RoostError) {}
}
