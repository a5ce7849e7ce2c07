import Foundation
import Logging
import RoostAPI
import RoostCore
import Synchronization

/// Checks tokens with the current keys.
final class TokenVerifier: Sendable {
    /// The rules for every token, regardless of its key.
    struct Rules: Sendable {
        var lifetimeSecondsMax = AppOptions.tokenLifetimeSecondsStandard
        /// The required value of the claim `iss`; nil for any.
        var issuer: String?
        /// The value that the claim `aud` must contain; nil for any.
        var audience: String?
    }

    private let rules: Rules
    /// The keys, and the tokens that they have verified.
    private let keys: Mutex<(TokenKeys, CheckedTokens)>
    private let logger: Logger
    private let refusals = LogThrottle()

    init(_ keys: TokenKeys, rules: Rules = Rules(), logger: Logger) {
        self.keys = Mutex((keys, CheckedTokens()))
        self.rules = rules
        self.logger = logger
    }

    /// Whether the current keys refuse tokens without a key name.
    var isTokenSecretRetired: Bool { keys.withLock { $0.0.isTokenSecretRetired } }

    /// Whether the current keys, or the retirement of the secret, are those of the data directory's key ring.
    var needsKeyRing: Bool { keys.withLock { $0.0.needsKeyRing } }

    func replace(_ keys: TokenKeys) { self.keys.withLock { $0 = (keys, CheckedTokens()) } }

    /// Checks a token. A failure is `token_expired` or `unauthenticated`, and reveals nothing about a token without a valid signature.
    func verify(_ token: String) -> Result<VerifiedToken, RoostError> {
        do {
            let (keys, checked) = keys.withLock { $0 }
            let claims = try checked.claims(of: token) { () throws(TokenRefusal) in try keys.claims(of: token) }
            return .success(try check(claims, now: Date().timeIntervalSince1970))
        } catch {
            if error.error.code != .tokenExpired, refusals.shouldLog() {
                logger.notice("A token was refused.", metadata: ["reason": "\(error.reason)"])
            }
            return .failure(error.error)
        }
    }

    /// Throws `token_expired` if a token has expired since it was checked.
    func requireUnexpired(_ token: VerifiedToken) throws(RoostError) {
        guard token.expiresAt > .now else { throw Self.expired }
    }

    private static let expired = RoostError(.tokenExpired, "The token has expired. Get another.")

    /// - Parameter now: Unix seconds.
    func check(_ claims: TokenKeys.Claims, now: Double) throws(TokenRefusal) -> VerifiedToken {
        let leeway = Double(TokenLeeway.seconds)
        guard claims.exp > now else {
            throw TokenRefusal("it has expired", reporting: Self.expired)
        }
        if let nbf = claims.nbf, nbf > now + leeway { throw Self.refusal("its nbf is later than now", "isn't valid yet", "nbf") }
        if let iat = claims.iat, iat > now + leeway {
            throw Self.refusal("its iat is later than now", "was issued in the future", "iat")
        }
        let lifetime = claims.exp - (claims.iat ?? now)
        guard lifetime <= Double(rules.lifetimeSecondsMax) else {
            throw Self.refusal(
                "its lifetime is longer than \(rules.lifetimeSecondsMax) s (token-lifetime-max)",
                "is valid for too long: a token may have at most \(rules.lifetimeSecondsMax) s from its iat, or from now, to its exp",
                "exp", limit: rules.lifetimeSecondsMax)
        }
        if let issuer = rules.issuer, claims.iss != issuer {
            throw Self.refusal("its iss isn't the issuer", "has another issuer", "iss")
        }
        if let audience = rules.audience, claims.aud?.values.contains(audience) != true {
            throw Self.refusal("its aud doesn't name the audience", "is for another audience", "aud")
        }
        let user = UserID(claims.sub)
        do {
            try user.validate(field: "sub")
            try Limits.check(claims.name, length: Limits.displayNameLength, field: "name")
            try Limits.check(claims.jti, length: Limits.identifierLength, field: "jti")
        } catch {
            let reported = RoostError(
                .unauthenticated, "The token has an invalid claim: \(error.message)", field: error.field, limit: error.limit)
            throw TokenRefusal(error.message, reporting: reported)
        }
        return VerifiedToken(
            user: user, role: claims.role ?? .user, displayName: Limits.displayName(fromClaim: claims.name),
            expiresAt: Self.timestamp(claims.exp),
            identity: TokenIdentity(user: user, issuedAt: claims.iat.map(Self.timestamp), id: claims.jti))
    }

    private static func refusal(_ reason: String, _ message: String, _ claim: String, limit: Int? = nil) -> TokenRefusal {
        TokenRefusal(
            reason, reporting: RoostError(.unauthenticated, "The token \(message).", field: claim, limit: limit.map { Int64($0) }))
    }

    /// Rounded, because seconds with milliseconds aren't exact in binary.
    private static func timestamp(_ seconds: Double) -> Timestamp {
        Timestamp(milliseconds: Int64((min(max(seconds, 0), 253_402_300_799) * 1000).rounded()))
    }
}

/// The user and role that a checked token names.
struct VerifiedToken: Hashable, Sendable {
    let user: UserID
    let role: AppRole
    let displayName: String?
    let expiresAt: Timestamp
    /// The facts that revocations refer to.
    let identity: TokenIdentity
}
