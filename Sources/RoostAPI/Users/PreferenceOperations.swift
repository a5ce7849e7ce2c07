/// A user's own settings, which nobody else sees.
public struct Preferences: Codable, Hashable, Sendable {
    /// Whether invitations make the user a member at once, without asking (SB-18). True unless the user changes it.
    public var autoAcceptInvitations: Bool = true
    // derived: init
    public init(autoAcceptInvitations: Bool = true) { self.autoAcceptInvitations = autoAcceptInvitations }
}

extension Preferences: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("autoAcceptInvitations", autoAcceptInvitations)
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
    public init() {}
    public func validate() throws(RoostError) {}
}

/// Replaces the given fields of the caller's own preferences.
public struct UpdatePreferences: Operation {
    public typealias Response = Preferences
    public static let name = "preferences.update"
    public static let method = HTTPMethod.patch
    public static let path = "/v1/me/preferences"
    public static let permission = Permission.userUpdateMe
    public static let summary = "Update the calling user's own preferences."

    public var autoAcceptInvitations: Bool?
    // derived: init
    public init(autoAcceptInvitations: Bool? = nil) { self.autoAcceptInvitations = autoAcceptInvitations }
    public func validate() throws(RoostError) {}
}
