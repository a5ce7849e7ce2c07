public import Foundation
public import RoostAPI

/// Makes and checks the tokens that identify clients: JSON Web Tokens (RFC 7519).
///
/// A token without `kid` is signed with the secret of the data directory, one with `kid` with the key of that name; no others are valid. Each key
/// has one algorithm; a token whose header names another one, including `none`, is refused before its signature is checked.
public struct TokenKeys: Sendable {
    /// The claims of a token.
    public struct Claims: Codable, Sendable {
        /// The user.
        public var sub: String
        /// When the token expires, in seconds since 1970.
        public var exp: Double
        /// When the token becomes valid, in seconds since 1970; nil for at once.
        public var nbf: Double?
        /// The time of issue in seconds since 1970, which revocations depend on.
        public var iat: Double?
        /// The token's own id, by which it can be revoked.
        public var jti: String?
        /// The issuer, which ``RoostServer/Configuration/tokenIssuer`` may require.
        public var iss: String?
        /// The audience, which ``RoostServer/Configuration/tokenAudience`` may require to contain a value.
        public var aud: Audience?
        /// The role that the token gives its user; nil for `user`.
        public var role: AppRole?
        /// The display name of the user if the token creates the user.
        public var name: String?

        /// The claims of a token without issuer and audience.
        public init(
            user: UserID, role: AppRole, displayName: String? = nil, expiresAt: Date, issuedAt: Date? = Date(), id: String? = nil
        ) {
            sub = user.rawValue
            exp = Self.number(expiresAt)
            iat = issuedAt.map(Self.number)
            jti = id
            self.role = role
            name = displayName
        }

        /// Seconds with milliseconds, so a token issued right after a revocation is newer than it.
        private static func number(_ date: Date) -> Double { (date.timeIntervalSince1970 * 1000).rounded(.down) / 1000 }
    }

    /// The audience of a token: one text or several.
    public struct Audience: Codable, Sendable {
        /// The texts.
        public var values: [String]
        /// An audience of these texts.
        public init(_ values: [String]) { self.values = values }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            values = try (try? [container.decode(String.self)]) ?? container.decode([String].self)
        }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            if values.count == 1 { try container.encode(values[0]) } else { try container.encode(values) }
        }
    }

    /// The secret of the data directory, unless it is retired.
    private var tokenSecret: TokenKey?
    /// The keys that tokens refer to by name.
    private var named: [String: TokenKey] = [:]
    private var signingKey: TokenKey?
    /// Whether anything depends on the key ring of the data directory: without it, keys would be unknown, or a retired secret valid again.
    private(set) var needsKeyRing = false

    /// The fewest bytes of a secret: the size of the digest (RFC 7518 §3.2).
    public static let secretSizeBytesMin = 32

    /// Keys that consist of a secret, at least as long as the digest.
    public init(secret: Data) async { self.init(secret: secret, own: TokenKeySet(), others: TokenKeySet()) }

    /// - Parameters:
    ///   - own: The keys of the data directory.
    ///   - others: Those of the operator's file. A name in both means the key of the data directory.
    init(secret: Data, own: TokenKeySet, others: TokenKeySet) {
        let key = TokenKey(id: nil, secret: secret)
        tokenSecret = own.isTokenSecretRetired ? nil : key
        named = others.keys.merging(own.keys) { _, own in own }
        signingKey = own.signingName.flatMap { own.keys[$0] } ?? tokenSecret
        needsKeyRing = !own.keys.isEmpty || own.isTokenSecretRetired
    }

    /// Whether tokens without a key name are refused.
    var isTokenSecretRetired: Bool { tokenSecret == nil }

    var count: Int { named.count + (tokenSecret == nil ? 0 : 1) }

    /// The names of the keys that tokens may be signed with; `token-secret` for tokens without a key name.
    var names: [String] { (Array(named.keys) + (tokenSecret == nil ? [] : [TokenKeyRing.tokenSecretName])).sorted() }

    /// Makes a token.
    ///
    /// - Throws: `RoostError` when the secret of the data directory is retired and no other key signs.
    public func sign(_ claims: Claims) async throws -> String {
        guard let signingKey else {
            throw RoostError(.unavailable, "The token secret is retired, and no other key signs. See roost keys.")
        }
        struct Header: Encodable {
            let alg: String
            let typ = "JWT"
            let kid: String?
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let header = Base64URL.encode(try encoder.encode(Header(alg: signingKey.algorithm.rawValue, kid: signingKey.id)))
        let text = header + "." + Base64URL.encode(try encoder.encode(claims))
        guard let signature = signingKey.sign(Data(text.utf8)) else {
            throw RoostError(.unavailable, "A public key can't sign.")
        }
        return text + "." + Base64URL.encode(signature)
    }

    /// Returns the claims of a token whose signature is valid.
    func claims(of token: String) throws(TokenRefusal) -> Claims {
        let text = try TokenText(token)
        let key: TokenKey
        if let name = text.header.kid {
            guard let found = named[name] else { throw TokenRefusal(unknownKey: name) }
            key = found
        } else {
            guard let tokenSecret else { throw TokenRefusal("it names no key, and the token secret is retired") }
            key = tokenSecret
        }
        guard text.header.alg == key.algorithm.rawValue else {
            throw TokenRefusal("its alg isn't that of its key, \(key.algorithm.rawValue)")
        }
        guard key.isSignature(text.signature, of: text.signed) else { throw TokenRefusal("its signature is wrong") }
        do {
            return try JSONDecoder().decode(Claims.self, from: text.payload)
        } catch {
            throw TokenRefusal(
                "its claims sub and exp are missing, or one isn't of its type",
                reporting: RoostError(
                    .unauthenticated, "The token has no sub or no exp, or a claim whose type or value isn't known.",
                    field: Self.claim(of: error)))
        }
    }

    /// The name of the claim that can't be read; nil if the payload isn't an object.
    private static func claim(of error: any Error) -> String? {
        switch error as? DecodingError {
        case .keyNotFound(let key, _): key.stringValue
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            context.codingPath.first?.stringValue
        default: nil
        }
    }
}
