public import Foundation

/// A refusal: what was refused, its code, and what would have been allowed.
///
/// Over HTTP it is an `application/problem+json` document (RFC 9457), on a socket the `error` of a reply. Codes are stable; messages are
/// for people and may change.
public struct RoostError: Error, Codable, Hashable, Sendable {
    /// The stable code of the refusal (ledger §8.9).
    public enum Code: String, Codable, CaseIterable, Sendable, WireEnumeration {
        case unauthenticated
        case tokenExpired = "token_expired"
        case tokenRevoked = "token_revoked"
        case userDeactivated = "user_deactivated"
        case notConnected = "not_connected"
        case invalidArgument = "invalid_argument"
        case limitExceeded = "limit_exceeded"
        case unknownOperation = "unknown_operation"
        case notFound = "not_found"
        case alreadyExists = "already_exists"
        case notPermitted = "not_permitted"
        case notMember = "not_member"
        case notInvited = "not_invited"
        case notMessageOwner = "not_message_owner"
        case kindForbids = "kind_forbids"
        case immutableField = "immutable_field"
        case inviteRequired = "invite_required"
        case banned
        case muted
        case frozen
        case channelMuted = "channel_muted"
        case sendNotAllowed = "send_not_allowed"
        case conflictVersion = "conflict_version"
        case keyReused = "key_reused"
        case memberLimit = "member_limit"
        case channelLimit = "channel_limit"
        case resyncRequired = "resync_required"
        case overloaded
        case unavailable
        case internalError = "internal_error"
    }

    /// What is wrong, for programs: it stays when the sentence changes.
    public var code: Code
    /// One sentence for a person.
    public var message: String
    /// The field of the request that was refused.
    public var field: String?
    /// The limit that the field went past, in the unit that the message names.
    public var limit: Int64?
    /// The rule that refused, as the permission table names it.
    public var rule: String?
    /// When a refusal ends that ends by itself: a ban, a mute, a silence.
    public var until: Timestamp?
    /// When the same request may be tried again.
    public var retryAfterMilliseconds: Int64?

    // derived: init (_ code, _ message)
    public init(
        _ code: Code, _ message: String, field: String? = nil, limit: Int64? = nil, rule: String? = nil, until: Timestamp? = nil,
        retryAfterMilliseconds: Int64? = nil
    ) {
        self.code = code
        self.message = message
        self.field = field
        self.limit = limit
        self.rule = rule
        self.until = until
        self.retryAfterMilliseconds = retryAfterMilliseconds
    }

    /// An invalid value of a field: `channel must not be empty.`
    public static func invalidArgument(_ field: String, _ reason: String) -> RoostError {
        RoostError(.invalidArgument, "\(field) \(reason).", field: field)
    }

    /// A field past its limit: `text has a limit of 20000 characters.`
    public static func limitExceeded(_ field: String, limit: Int, unit: String) -> RoostError {
        RoostError(.limitExceeded, "\(field) has a limit of \(limit) \(unit).", field: field, limit: Int64(limit))
    }

    /// The same answer for something that doesn't exist and something that the caller may not know of.
    public static func notFound(_ what: String) -> RoostError {
        RoostError(.notFound, "There is no such \(what).", field: what)
    }

    /// Whether the same request may succeed later without a change.
    public var isRetryable: Bool {
        switch code {
        case .overloaded, .unavailable, .internalError, .notConnected: true
        default: false
        }
    }

    /// The HTTP status that carries this code.
    public var status: Int {
        switch code {
        case .unauthenticated, .tokenExpired, .tokenRevoked: 401
        case .userDeactivated, .notPermitted, .notMember, .notInvited, .notMessageOwner, .kindForbids, .inviteRequired, .banned,
            .muted, .frozen,
            .channelMuted, .sendNotAllowed:
            403
        case .notFound, .unknownOperation: 404
        case .alreadyExists, .memberLimit, .channelLimit, .notConnected, .resyncRequired, .immutableField: 409
        case .conflictVersion: 412
        case .keyReused: 422
        case .limitExceeded: 413
        case .invalidArgument: 400
        case .overloaded, .unavailable: 503
        case .internalError: 500
        }
    }
}

extension RoostError: CustomStringConvertible, LocalizedError {
    /// The code and the message: `not_found: There is no such channel.`
    public var description: String { "\(code.rawValue): \(message)" }

    /// ``message``, which `localizedDescription` gives for it.
    public var errorDescription: String? { message }
}
