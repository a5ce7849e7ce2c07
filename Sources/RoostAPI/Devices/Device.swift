/// The id of a device: made by its client, once, and unique among the user's devices.
public struct DeviceID: Identifier {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static var schema: Schema { .string(maxLength: Limits.deviceIDLength, pattern: VisibleText.identifierPattern) }

    /// Throws unless it is an identifier of 1 to `Limits.deviceIDLength` characters.
    package func validateLength(field: String) throws(RoostError) {
        // Before the length of other identifiers, which is larger.
        guard rawValue.count <= Limits.deviceIDLength else {
            throw .limitExceeded(field, limit: Limits.deviceIDLength, unit: "characters")
        }
        try validate(field: field)
    }
}

/// What a client says of its device when it authenticates.
public struct DeviceDescription: Codable, Hashable, Sendable {
    /// Made once and kept: 1 to 64 characters, as other identifiers.
    public var deviceId: DeviceID
    /// What its user calls it: up to 128 characters.
    public var name: String?
    /// What it runs on, such as `iOS` or `Linux`: up to 32 characters.
    public var platform: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(deviceId: DeviceID, name: String? = nil, platform: String? = nil) {
        self.deviceId = deviceId
        self.name = name
        self.platform = platform
    }

    /// Throws when something in it is outside its limits. The refusal's field is the path in the frame: `device.name`.
    public func validate() throws(RoostError) {
        try deviceId.validateLength(field: "device.deviceId")
        try Limits.check(name, length: Limits.deviceNameLength, field: "device.name")
        try Limits.check(platform, length: Limits.platformLength, field: "device.platform")
    }
}

/// A device of the calling user's, which has named itself when it authenticated.
public struct Device: Codable, Hashable, Sendable {
    /// The device.
    public var deviceId: DeviceID
    /// What its user calls it, if it said so.
    public var name: String?
    /// What it runs on, if it said so.
    public var platform: String?
    /// When it first authenticated, or did so again after it was signed out.
    public var createdAt: Timestamp
    /// When it last connected, to the minute.
    public var lastUsedAt: Timestamp
    /// Whether the call comes from it.
    public var isCurrent: Bool

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        deviceId: DeviceID, name: String? = nil, platform: String? = nil, createdAt: Timestamp, lastUsedAt: Timestamp,
        isCurrent: Bool
    ) {
        self.deviceId = deviceId
        self.name = name
        self.platform = platform
        self.createdAt = createdAt
        self.lastUsedAt = lastUsedAt
        self.isCurrent = isCurrent
    }
}

extension Device: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("deviceId", deviceId)
        json.member("name", name)
        json.member("platform", platform)
        json.member("createdAt", createdAt)
        json.member("lastUsedAt", lastUsedAt)
        json.member("isCurrent", isCurrent)
        json.endObject()
    }
}

/// The calling user's devices, those first that were used last: at most ``Limits/devicesPerUser``.
public struct ListDevices: Operation {
    public typealias Response = [Device]
    public static let name = "device.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/me/devices"
    public static let permission = Permission.streamRead
    public static let summary = "The calling user's own devices, those first that were used last."

    // derived: init
    /// Creates a value, which has no fields.
    public init() {}
    public func validate() throws(RoostError) {}
}

/// Signs a device of the caller's out: its sockets are closed as those of a revoked token, the token that it connected with last is revoked, and it isn't
/// listed any more. The caller's own device may be the one.
///
/// A token without a `jti` can't be revoked alone: it stays valid, and the device is listed again when it connects with it. The answer says so.
/// - Throws: `not_found` with the field `device` for one that isn't listed; `rate_limited` for more than ``Limits/signOutsPerMinute`` a minute of one
///   user.
public struct SignOutDevice: Operation {
    public typealias Response = SignedOutDevice
    public static let name = "device.signOut"
    public static let method = HTTPMethod.post
    public static let path = "/v1/me/devices/{device}/sign-out"
    public static let permission = Permission.userUpdateMe
    public static let summary = "Sign one of the calling user's own devices out."

    /// The device, by the id that it has in `device.list`.
    public var device: DeviceID

    // derived: init
    /// Creates a value with these fields.
    public init(device: DeviceID) { self.device = device }

    public func validate() throws(RoostError) { try device.validateLength(field: "device") }
}

/// A device that was signed out.
public struct SignedOutDevice: Codable, Hashable, Sendable {
    /// The device.
    public var deviceId: DeviceID
    /// Whether its token is of no use any more: it was revoked, or has ended by itself. False for a token without a `jti`, which stays valid until it
    /// ends, and for any if nine tenths of the single tokens that can be revoked at one time are (``Limits/revokedTokens``).
    public var isTokenRevoked: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(deviceId: DeviceID, isTokenRevoked: Bool) {
        self.deviceId = deviceId
        self.isTokenRevoked = isTokenRevoked
    }
}
