public import Foundation
public import JWTKit
public import RoostAPI

/// Makes and checks the tokens with which clients say who they are: JSON Web Tokens signed with one secret.
///
/// The algorithm is pinned: a token whose header names another one than `HS256`, `none` among them, is refused before its signature is looked
/// at. `exp` is required. The secret is made on the first run and never leaves the data directory.
public struct TokenKeys: Sendable {
    /// What a token says.
    public struct Claims: JWTPayload, Sendable {
        /// The user.
        public var sub: SubjectClaim
        public var exp: ExpirationClaim
        public var nbf: NotBeforeClaim?
        public var role: AppRole?
        /// The display name that the user gets when the token is the first to name them.
        public var name: String?

        public init(user: UserID, role: AppRole, displayName: String? = nil, expiresAt: Date) {
            sub = SubjectClaim(value: user.rawValue)
            exp = ExpirationClaim(value: expiresAt)
            self.role = role
            name = displayName
        }

        public func verify(using algorithm: some JWTAlgorithm) throws {
            try exp.verifyNotExpired()
            try nbf?.verifyNotBefore()
        }
    }

    private let keys: JWTKeyCollection

    /// Bytes of a secret, at least: as many as the digest has (RFC 7518 §3.2).
    public static let secretSizeBytesMin = 32

    public init(secret: Data) async {
        keys = JWTKeyCollection()
        await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
    }

    /// Makes a token.
    public func sign(_ claims: Claims) async throws -> String { try await keys.sign(claims) }

    /// Checks a token. A failure is `token_expired` or `unauthenticated`, and tells nothing of the token.
    func verify(_ token: String) async -> Result<VerifiedToken, RoostError> {
        let refusal = RoostError(.unauthenticated, "The token is not valid.")
        guard token.utf8.count <= 8192, Self.algorithm(of: token) == "HS256" else { return .failure(refusal) }
        do {
            let claims = try await keys.verify(token, as: Claims.self)
            let user = UserID(claims.sub.value)
            try user.validate(field: "sub")
            try Limits.check(claims.name, length: Limits.displayNameLength, field: "name")
            let expiresAt = min(claims.exp.value.timeIntervalSince1970, 253_402_300_799)
            return .success(
                VerifiedToken(
                    user: user, role: claims.role ?? .user, displayName: Limits.displayName(fromClaim: claims.name),
                    expiresAt: Timestamp(milliseconds: Int64(expiresAt * 1000))))
        } catch let error as JWTError where error.errorType == .claimVerificationFailure && error.failedClaim is ExpirationClaim {
            return .failure(RoostError(.tokenExpired, "The token is over. Get another."))
        } catch let error as RoostError {
            return .failure(RoostError(.unauthenticated, "The token names no lawful user: \(error.message)"))
        } catch {
            return .failure(refusal)
        }
    }

    /// The algorithm that a token's header names.
    private static func algorithm(of token: String) -> String? {
        struct Header: Decodable { let alg: String }
        guard let first = token.split(separator: ".", omittingEmptySubsequences: false).first else { return nil }
        var text = first.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        text += String(repeating: "=", count: (4 - text.count % 4) % 4)
        guard let data = Data(base64Encoded: text) else { return nil }
        return try? JSONDecoder().decode(Header.self, from: data).alg
    }
}

/// Who a checked token names.
struct VerifiedToken: Sendable {
    let user: UserID
    let role: AppRole
    let displayName: String?
    let expiresAt: Timestamp
}
