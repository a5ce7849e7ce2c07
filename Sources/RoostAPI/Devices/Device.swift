/// The id of a device: generated once by its client, unique among the user's devices.
public struct DeviceID: Identifier {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static func == (left: Self, right: Self) -> Bool { left.hasBytes(of: right) }
    public static func != (left: Self, right: Self) -> Bool { !left.hasBytes(of: right) }
    public func hash(into hasher: inout Hasher) { hashBytes(into: &hasher) }

    public static var schema: Schema { .string(maxLength: Limits.deviceIDLength, pattern: VisibleText.identifierPattern) }

    /// Throws unless it is an identifier of 1 to `Limits.deviceIDLength` characters and at most 512 bytes.
    package func validateLength(field: String) throws(RoostError) {
        // Checked before the limit of other identifiers, which is larger. The limit of bytes is the same.
        guard rawValue.utf8.count <= Limits.identifierSizeBytes else {
            throw .limitExceeded(
                field, limit: Limits.deviceIDLength, unit: "characters and \(Limits.identifierSizeBytes) bytes")
        }
        guard rawValue.count <= Limits.deviceIDLength else {
            throw .limitExceeded(field, limit: Limits.deviceIDLength, unit: "characters")
        }
        try validate(field: field)
    }
}

/// A client's description of its device, sent when it authenticates.
public struct DeviceDescription: Codable, Hashable, Sendable {
    /// Generated once and kept: 1 to 64 characters, like other identifiers.
    public var deviceId: DeviceID
    /// The user's name for it: up to 128 characters.
    public var name: String?
    /// The platform, such as `iOS` or `Linux`: up to 32 characters.
    public var platform: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(deviceId: DeviceID, name: String? = nil, platform: String? = nil) {
        self.deviceId = deviceId
        self.name = name
        self.platform = platform
    }

    /// Throws if a field is outside its limits. The error's field is the path in the frame: `device.name`.
    public func validate() throws(RoostError) {
        try deviceId.validateLength(field: "device.deviceId")
        try Limits.check(name, length: Limits.deviceNameLength, field: "device.name")
        try Limits.check(platform, length: Limits.platformLength, field: "device.platform")
    }
}

/// A device of the calling user that described itself when it authenticated.
public struct Device: Codable, Hashable, Sendable {
    /// The device.
    public var deviceId: DeviceID
    /// The user's name for it, if given.
    public var name: String?
    /// The platform, if given.
    public var platform: String?
    /// When it first authenticated, or did so again after being signed out.
    public var createdAt: Timestamp
    /// When it last connected, to the minute.
    public var lastUsedAt: Timestamp
    /// Whether the call was made from it.
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

extension Device: Identifiable {
    /// ``deviceId``, which is unique among the user's devices.
    public var id: DeviceID { deviceId }
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

/// The calling user's devices, the most recently used first: at most ``Limits/devicesPerUser``.
public struct ListDevices: Operation {
    public typealias Response = [Device]
    public static let name = "device.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/me/devices"
    public static let permission = Permission.streamRead
    public static let summary = "The calling user's own devices, the most recently used first."

    // derived: init
    /// Creates a value, which has no fields.
    public init() {}
    public func validate() throws(RoostError) {}
}

/// Signs out one of the caller's devices, possibly the current one: its sockets are closed as for a revoked token, the token that it last
/// connected with is revoked, and it is no longer listed.
///
/// A token without a `jti` can't be revoked alone: it stays valid, and the device is listed again if it connects with it. The response says so.
/// - Throws: `not_found` with the field `device` for one that isn't listed; `rate_limited` for more than ``Limits/signOutsPerMinute`` per
///   minute by one user.
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
    /// Whether its token was revoked. False for a token without a `jti`, which stays valid until it expires, and for any token while nine
    /// tenths of the capacity for revoked single tokens (``Limits/revokedTokens``) are in use.
    public var isTokenRevoked: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(deviceId: DeviceID, isTokenRevoked: Bool) {
        self.deviceId = deviceId
        self.isTokenRevoked = isTokenRevoked
    }
}
