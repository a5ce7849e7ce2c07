/// Deactivates a user: all their requests and sockets are refused with `user_deactivated`, whatever the token.
///
/// Memberships, messages and counters stay, and others can still write to the user's channels. Deactivating a deactivated user changes
/// nothing.
public struct DeactivateUser: Operation {
    public typealias Response = User
    public static let name = "user.deactivate"
    public static let method = HTTPMethod.post
    public static let path = "/v1/users/{user}/deactivate"
    public static let permission = Permission.userManage
    public static let summary = "Deactivate a user; memberships and messages stay. For admins."

    /// The user to deactivate.
    public var user: UserID
    // derived: init
    /// Creates a value with these fields.
    public init(user: UserID) { self.user = user }
    public func validate() throws(RoostError) { try user.validate(field: "user") }
}

/// Reactivates a deactivated user, whose unrevoked tokens work again. Reactivating an active user changes nothing.
public struct ReactivateUser: Operation {
    public typealias Response = User
    public static let name = "user.reactivate"
    public static let method = HTTPMethod.post
    public static let path = "/v1/users/{user}/reactivate"
    public static let permission = Permission.userManage
    public static let summary = "Reactivate a deactivated user. For admins."

    /// The user to reactivate.
    public var user: UserID
    // derived: init
    /// Creates a value with these fields.
    public init(user: UserID) { self.user = user }
    public func validate() throws(RoostError) { try user.validate(field: "user") }
}

/// The moment from which a user's tokens are valid.
public struct TokenRevocation: Codable, Hashable, Sendable {
    /// The tokens' user.
    public var userId: UserID
    /// Tokens of the user issued before this moment are refused, and so are tokens without a time of issue.
    public var before: Timestamp

    // derived: init
    /// Creates a value with these fields.
    public init(userId: UserID, before: Timestamp) {
        self.userId = userId
        self.before = before
    }
}

/// Revokes all tokens of a user that were issued before a moment, by their claim `iat`. A token without `iat` counts as older than any moment.
///
/// Sockets that hold such a token are closed. The moment only moves forward: an earlier one changes nothing.
/// - Throws: `not_found` with the field `user`; `invalid_argument` with the field `before` for a moment that is more than 60 seconds ahead.
public struct RevokeUserTokens: Operation {
    public typealias Response = TokenRevocation
    public static let name = "user.revokeTokens"
    public static let method = HTTPMethod.post
    public static let path = "/v1/users/{user}/revoke-tokens"
    public static let permission = Permission.userManage
    public static let summary = "Revoke a user's tokens issued before a moment. For admins."

    /// The user whose tokens are revoked.
    public var user: UserID
    /// Now when left out; with several nodes, by the later of the node's clock and PostgreSQL's. At most 60 seconds in the future, for tokens of an
    /// issuer whose clock is ahead: until then new tokens are refused too.
    public var before: Timestamp?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(user: UserID, before: Timestamp? = nil) {
        self.user = user
        self.before = before
    }

    public func validate() throws(RoostError) { try user.validate(field: "user") }
}

/// A single revoked token.
public struct RevokedToken: Codable, Hashable, Sendable {
    /// The token's claim `jti`.
    public var tokenId: String
    /// When the revocation is deleted: when the token expires, or at the end of the longest lifetime that it can have.
    public var expiresAt: Timestamp

    // derived: init
    /// Creates a value with these fields.
    public init(tokenId: String, expiresAt: Timestamp) {
        self.tokenId = tokenId
        self.expiresAt = expiresAt
    }
}

/// Revokes a single token by its claim `jti`. Sockets that hold it are closed. Revoking it again changes nothing.
public struct RevokeToken: Operation {
    public typealias Response = RevokedToken
    public static let name = "token.revoke"
    public static let method = HTTPMethod.post
    public static let path = "/v1/tokens/revoke"
    public static let permission = Permission.userManage
    public static let summary = "Revoke one token by its jti. For admins."

    /// The token's claim `jti`.
    public var tokenId: String
    /// When the token expires, its claim `exp`; the longest lifetime of a token from now when left out. The server then deletes the revocation.
    public var expiresAt: Timestamp?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(tokenId: String, expiresAt: Timestamp? = nil) {
        self.tokenId = tokenId
        self.expiresAt = expiresAt
    }

    public func validate() throws(RoostError) {
        guard !tokenId.isEmpty else { throw .invalidArgument("tokenId", "must not be empty") }
        try Limits.check(tokenId, length: Limits.identifierLength, field: "tokenId")
    }
}
