import Crypto
import Foundation
import JWTKit
import RoostAPI

/// A key that checks the signatures of tokens. Its algorithm is fixed: a token that names another algorithm isn't accepted by it.
struct TokenKey: Sendable {
    enum Algorithm: String, CaseIterable, Sendable {
        case hs256 = "HS256"
        case es256 = "ES256"
        case edDSA = "EdDSA"
        case rs256 = "RS256"
    }

    private enum Material: Sendable {
        case secret(SymmetricKey)
        case p256(P256.Signing.PublicKey)
        case ed25519(Curve25519.Signing.PublicKey)
        case rsa(any JWTAlgorithm)
    }

    /// The name by which tokens refer to it; nil for the secret of the data directory.
    let id: String?
    let algorithm: Algorithm
    private let material: Material

    private init(id: String?, _ algorithm: Algorithm, _ material: Material) {
        self.id = id
        self.algorithm = algorithm
        self.material = material
    }

    /// Whether it can also sign.
    var isSecret: Bool { algorithm == .hs256 }

    func isSignature(_ signature: Data, of text: Data) -> Bool {
        switch material {
        case .secret(let key): HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: text, using: key)
        case .p256(let key):
            (try? P256.Signing.ECDSASignature(rawRepresentation: signature)).map { key.isValidSignature($0, for: text) } ?? false
        case .ed25519(let key): key.isValidSignature(signature, for: text)
        case .rsa(let key): (try? key.verify(signature, signs: text)) ?? false
        }
    }

    /// Nil for a public key.
    func sign(_ text: Data) -> Data? {
        guard case .secret(let key) = material else { return nil }
        return Data(HMAC<SHA256>.authenticationCode(for: text, using: key))
    }

    /// The fingerprint by which nodes compare their secrets without revealing them. Nil for a public key.
    var fingerprint: String? {
        guard case .secret(let key) = material else { return nil }
        return Data(HMAC<SHA256>.authenticationCode(for: Data("roost token secret".utf8), using: key)).base64EncodedString()
    }
}

extension TokenKey {
    init(id: String?, secret: Data) {
        self.init(id: id, .hs256, .secret(SymmetricKey(data: secret)))
    }

    /// A key of a JWK set (RFC 7517). Each kind of key has exactly one algorithm here; if the key names an algorithm, it must be that one.
    init(_ jwk: JSONWebKey, id: String) async throws(TokenKeySet.Unusable) {
        let algorithm: Algorithm
        let material: Material
        switch (jwk.kty, jwk.crv) {
        case ("oct", nil):
            guard let secret = jwk.k.flatMap({ Base64URL.decode($0.utf8) }), secret.count >= TokenKeys.secretSizeBytesMin else {
                throw .init("k must be at least \(TokenKeys.secretSizeBytesMin) bytes in base 64 for URLs")
            }
            (algorithm, material) = (.hs256, .secret(SymmetricKey(data: secret)))
        case ("EC", "P-256"):
            guard let x = Self.bytes(jwk.x, 32), let y = Self.bytes(jwk.y, 32),
                let key = try? P256.Signing.PublicKey(x963Representation: Data([4]) + x + y)
            else { throw .init("x and y aren't a point of P-256") }
            (algorithm, material) = (.es256, .p256(key))
        case ("OKP", "Ed25519"):
            guard let x = Self.bytes(jwk.x, 32), let key = try? Curve25519.Signing.PublicKey(rawRepresentation: x) else {
                throw .init("x isn't a key of Ed25519")
            }
            (algorithm, material) = (.edDSA, .ed25519(key))
        case ("RSA", nil):
            (algorithm, material) = (.rs256, .rsa(try await Self.rsa(jwk)))
        default:
            throw .init(
                "kty \(jwk.kty ?? "")\(jwk.crv.map { " with crv \($0)" } ?? "") isn't one of oct, EC P-256, OKP Ed25519, RSA")
        }
        guard jwk.alg == nil || jwk.alg == algorithm.rawValue else {
            throw .init("alg must be \(algorithm.rawValue) for a key of this kind")
        }
        guard algorithm == .hs256 || !jwk.isPrivate else {
            throw .init("it is a private key, which doesn't belong here: the server needs the public one")
        }
        self.init(id: id, algorithm, material)
    }

    private static func rsa(_ jwk: JSONWebKey) async throws(TokenKeySet.Unusable) -> any JWTAlgorithm {
        guard let n = jwk.n, let modulus = Base64URL.decode(n.utf8), let e = jwk.e, Base64URL.decode(e.utf8) != nil else {
            throw .init("n and e must be in base 64 for URLs")
        }
        // Larger keys make signature checks more expensive, and anyone can request those.
        let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
        guard (2048...8192).contains(bits) else { throw .init("n must have 2048 to 8192 bits, not \(bits)") }
        guard let key = try? Insecure.RSA.PublicKey(modulus: n, exponent: e),
            let algorithm = try? await JWTKeyCollection().add(rsa: key, digestAlgorithm: .sha256).getKey()
        else { throw .init("n and e aren't an RSA key") }
        return algorithm
    }

    private static func bytes(_ text: String?, _ count: Int) -> Data? {
        text.flatMap { Base64URL.decode($0.utf8) }.flatMap { $0.count == count ? $0 : nil }
    }
}

/// A key of a JWK set, as in its file.
struct JSONWebKey: Codable {
    var kty: String?
    var kid: String?
    var alg: String?
    var use: String?
    var crv: String?
    var x: String?
    var y: String?
    var n: String?
    var e: String?
    var k: String?
    /// The parts of private keys.
    var d: String?
    var p: String?
    var q: String?

    var isPrivate: Bool { d != nil || p != nil || q != nil || (kty != "oct" && k != nil) }
}
