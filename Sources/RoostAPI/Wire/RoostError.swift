public import Foundation

/// An error: its code, what was refused, and what would have been allowed.
///
/// Over HTTP it is an `application/problem+json` document (RFC 9457), on a socket the `error` of a reply. Codes are stable; messages are
/// for people and may change.
public struct RoostError: Error, Codable, Hashable, Sendable {
    /// The stable code of the refusal (ledger §8.9).
    public enum Code: String, Codable, CaseIterable, Sendable, WireEnumeration {
        /// There is no valid token.
        case unauthenticated
        /// The token has expired; a new one is fetched.
        case tokenExpired = "token_expired"
        /// The token was revoked; a new one is fetched.
        case tokenRevoked = "token_revoked"
        /// The user is deactivated; no token is accepted.
        case userDeactivated = "user_deactivated"
        /// There is no connection, or it was lost before the response.
        case notConnected = "not_connected"
        /// A field is invalid: ``RoostError/field``.
        case invalidArgument = "invalid_argument"
        /// A field is beyond its limit: ``RoostError/field`` and ``RoostError/limit``.
        case limitExceeded = "limit_exceeded"
        /// There is no such operation.
        case unknownOperation = "unknown_operation"
        /// It doesn't exist, or the caller may not know of it.
        case notFound = "not_found"
        /// Something of that name already exists.
        case alreadyExists = "already_exists"
        /// The caller's role doesn't permit it.
        case notPermitted = "not_permitted"
        /// It is for members.
        case notMember = "not_member"
        /// There is no pending invitation.
        case notInvited = "not_invited"
        /// The message is someone else's.
        case notMessageOwner = "not_message_owner"
        /// The channel's type allows it to nobody, or only to admins.
        case kindForbids = "kind_forbids"
        /// The value to change is fixed.
        case immutableField = "immutable_field"
        /// Joining the channel requires an invitation.
        case inviteRequired = "invite_required"
        /// The user is banned from the channel: ``RoostError/until``.
        case banned
        /// The user may not send in the channel: ``RoostError/until``.
        case muted
        /// The channel is frozen: only operators send.
        case frozen
        /// The channel is silenced for ordinary members: ``RoostError/until``.
        case channelMuted = "channel_muted"
        /// Only admins, or only operators, send in this channel.
        case sendNotAllowed = "send_not_allowed"
        /// The message mentions more users than one may: ``RoostError/limit``.
        case mentionLimit = "mention_limit"
        /// The app has turned off mentions of whole channels.
        case mentionAllDisabled = "mention_all_disabled"
        /// The message's mentions contradict one another.
        case mentionInvalid = "mention_invalid"
        /// The app has turned off the requested feature.
        case featureDisabled = "feature_disabled"
        /// Another page of the same query is being fetched. Only the SDK throws it.
        case queryInProgress = "query_in_progress"
        /// Another process or another chat has this device's files, or may have them, because an app in the background has released shared ones.
        /// Nothing was done, and a later attempt may succeed. Only the SDK throws it.
        case storageInUse = "storage_in_use"
        /// This device's files couldn't be opened, read or written, for instance because the disk is full. Nothing was stored, and a later attempt may
        /// succeed. Only the SDK throws it.
        case storageFailed = "storage_failed"
        /// This device's files were deleted or replaced, or aren't this version's: only a new chat helps, which makes new ones. Only the SDK throws it.
        case storageGone = "storage_gone"
        /// The user's files couldn't be deleted. A chat that logs out has ended all the same; another attempt may delete them. Only the SDK throws it.
        case storageNotDeleted = "storage_not_deleted"
        /// It has another version now, which ``RoostError/limit`` holds.
        case conflictVersion = "conflict_version"
        /// The idempotency key was used for another request.
        case keyReused = "key_reused"
        /// The idempotency key is older than keys are kept: it is no longer known whether the call was carried out.
        case keyExpired = "key_expired"
        /// The channel has reached its limit of members.
        case memberLimit = "member_limit"
        /// A user has reached the limit of channels.
        case channelLimit = "channel_limit"
        /// The client's position is from before a backup was restored. The SDK starts over by itself.
        case resyncRequired = "resync_required"
        /// The caller exceeded a rate limit: ``RoostError/retryAfterMilliseconds`` says when to retry.
        case rateLimited = "rate_limited"
        /// The server is overloaded: nothing was done, and a later attempt may succeed.
        case overloaded
        /// The server can't carry it out at the moment, or gave no answer in time: it may or may not have been carried out.
        case unavailable
        /// The server failed, or sent an invalid response.
        case internalError = "internal_error"
    }

    /// The error for programs: stable even if the sentence changes.
    public var code: Code
    /// One sentence for a person, in English, which names fields as the protocol does. It may change. To show it in the user's language, go by
    /// ``code``, ``field`` and ``limit``.
    public var message: String
    /// The refused field of the request.
    public var field: String?
    /// The limit that was exceeded, in the unit that the message names. For ``RoostError/Code/conflictVersion`` it is the current version instead.
    public var limit: Int64?
    /// The rule that refused, as the permission table names it.
    public var rule: String?
    /// When a temporary refusal ends: a ban, a mute, a silence.
    public var until: Timestamp?
    /// How long to wait before the same request may be tried again, in milliseconds. For a refusal that ends by itself it is the time that was left
    /// until ``until``, by the server's clock; nil if it never ends.
    public var retryAfterMilliseconds: Int64?

    // derived: init (_ code, _ message)
    /// Creates a value with these fields. Those that are left out have their defaults.
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

    /// ``retryAfterMilliseconds`` as a duration: how long to wait before the same request. Nil if the server doesn't say, and never negative.
    public var retryAfter: Duration? { retryAfterMilliseconds.map { Duration.milliseconds(max(0, $0)) } }

    /// An invalid value of a field: `channel must not be empty.`
    package static func invalidArgument(_ field: String, _ reason: String) -> RoostError {
        RoostError(.invalidArgument, "\(field) \(reason).", field: field)
    }

    /// A field beyond its limit: `text has a limit of 20000 characters.`
    package static func limitExceeded(_ field: String, limit: Int, unit: String) -> RoostError {
        RoostError(.limitExceeded, "\(field) has a limit of \(limit) \(unit).", field: field, limit: Int64(limit))
    }

    /// A list with a duplicate where each entry may occur once: `users must not contain duplicates.`
    package static func notUnique(_ field: String) -> RoostError { .invalidArgument(field, "must not contain duplicates") }

    /// The same error for a value nested in another value's field. An error without a field stays without one.
    package func inside(_ field: String) -> RoostError {
        var refusal = self
        refusal.field = self.field.map { "\(field).\($0)" }
        return refusal
    }

    /// The same error for something that doesn't exist and something that the caller may not know of.
    ///
    /// - Parameter field: The field that names it; by default the one with the name of what is missing.
    package static func notFound(_ what: String, field: String? = nil) -> RoostError {
        RoostError(.notFound, "There is no such \(what).", field: field ?? what)
    }

    /// Whether temporary trouble of the server, the connection or this device refused it, or a rate limit: the same request may succeed later.
    ///
    /// False for a rule's refusal, even if it ends by itself, as a mute or a silence does: such a refusal has ``until`` and ``retryAfter``. False for
    /// `query_in_progress` too.
    public var isRetryable: Bool {
        switch code {
        case .rateLimited, .overloaded, .unavailable, .internalError, .notConnected, .storageInUse, .storageFailed,
            .storageNotDeleted:
            true
        default: false
        }
    }
}

extension RoostError.Code {
    /// The status of an HTTP answer with this code; nil for those that only the SDK throws.
    package var httpStatus: Int? {
        switch self {
        case .unauthenticated, .tokenExpired, .tokenRevoked: 401
        case .userDeactivated, .notPermitted, .notMember, .notInvited, .notMessageOwner, .kindForbids, .inviteRequired, .banned,
            .muted, .frozen, .channelMuted, .sendNotAllowed, .mentionAllDisabled, .featureDisabled:
            403
        case .notFound, .unknownOperation: 404
        case .alreadyExists, .memberLimit, .channelLimit, .notConnected, .resyncRequired, .immutableField: 409
        case .conflictVersion: 412
        case .keyReused, .keyExpired: 422
        case .limitExceeded, .mentionLimit: 413
        case .invalidArgument, .mentionInvalid: 400
        case .rateLimited: 429
        case .overloaded, .unavailable: 503
        case .internalError: 500
        case .queryInProgress, .storageInUse, .storageFailed, .storageGone, .storageNotDeleted: nil
        }
    }
}

extension RoostError: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("code", code)
        json.member("message", message)
        json.member("field", field)
        json.member("limit", limit)
        json.member("rule", rule)
        json.member("until", until)
        json.member("retryAfterMilliseconds", retryAfterMilliseconds)
        json.endObject()
    }
}

extension RoostError: CustomStringConvertible, LocalizedError {
    /// The code and the message: `not_found: There is no such channel.`
    public var description: String { "\(code.rawValue): \(message)" }

    /// ``message``, which `localizedDescription` gives for it: in English, whatever the user's language.
    public var errorDescription: String? { message }
}
