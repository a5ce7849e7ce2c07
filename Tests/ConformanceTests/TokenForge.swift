import Crypto
import Foundation
import JWTKit
import RoostServer
import RoostTestSupport

/// Tokens of every kind, valid and invalid, made byte by byte; and the file of keys that a server checks them with.
struct TokenForge: Sendable {
    let secret: Data
    let shared = Data(repeating: 0x5A, count: 32)
    let elliptic = P256.Signing.PrivateKey()
    let edwards = Curve25519.Signing.PrivateKey()
    let rsa: JWTKit.Insecure.RSA.PrivateKey
    let now = Date().timeIntervalSince1970.rounded(.down)

    init(secret: Data) throws {
        self.secret = secret
        rsa = try JWTKit.Insecure.RSA.PrivateKey(pem: Self.rsaKey)
    }

    /// A server's first run makes its secret; a later one accepts no secret without its database.
    init(firstRunIn directory: URL) async throws {
        try await TestServer(directory: directory).stop()
        try self.init(secret: SecretFile(directory: directory).read())
    }

    static func base64(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// A valid payload with further members.
    func claims(_ more: String = "", exp: String? = nil) -> String {
        #"{"sub":"ann","exp":\#(exp ?? String(Int(now) + 600))\#(more.isEmpty ? "" : "," + more)}"#
    }

    func token(_ header: String, _ payload: String, sign: (Data) throws -> Data) rethrows -> String {
        let text = Self.base64(Data(header.utf8)) + "." + Self.base64(Data(payload.utf8))
        return text + "." + Self.base64(try sign(Data(text.utf8)))
    }

    /// Signed with the secret of the data directory, whatever the header says.
    func own(_ header: String = #"{"alg":"HS256"}"#, _ payload: String? = nil) -> String {
        token(header, payload ?? claims()) { Self.hmac($0, secret) }
    }

    static func hmac(_ text: Data, _ key: Data) -> Data {
        Data(HMAC<SHA256>.authenticationCode(for: text, using: SymmetricKey(data: key)))
    }

    func shared(_ header: String = #"{"alg":"HS256","kid":"shared"}"#, _ payload: String? = nil) -> String {
        token(header, payload ?? claims()) { Self.hmac($0, shared) }
    }

    func es256(_ header: String = #"{"alg":"ES256","kid":"ec"}"#, _ payload: String? = nil) throws -> String {
        try token(header, payload ?? claims()) { try elliptic.signature(for: $0).rawRepresentation }
    }

    func edDSA(_ header: String = #"{"alg":"EdDSA","kid":"ed"}"#, _ payload: String? = nil) throws -> String {
        try token(header, payload ?? claims()) { try edwards.signature(for: $0) }
    }

    func rs256(_ header: String = #"{"alg":"RS256","kid":"rsa"}"#, _ payload: String? = nil) async throws -> String {
        let signer = try await JWTKeyCollection().add(rsa: rsa, digestAlgorithm: .sha256).getKey()
        return try token(header, payload ?? claims()) { Data(try signer.sign($0)) }
    }

    /// The members of each key, by its name.
    var keys: [String: [String: String]] {
        get throws {
            let point = elliptic.publicKey.x963Representation
            let (modulus, exponent) = try rsa.publicKey.getKeyPrimitives()
            return [
                "shared": ["kty": "oct", "kid": "shared", "alg": "HS256", "k": Self.base64(shared)],
                "ec": [
                    "kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "use": "sig", "x": Self.base64(point[1..<33]),
                    "y": Self.base64(point[33..<65]),
                ],
                "ed": [
                    "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": Self.base64(edwards.publicKey.rawRepresentation),
                ],
                "rsa": ["kty": "RSA", "kid": "rsa", "alg": "RS256", "n": Self.base64(modulus), "e": Self.base64(exponent)],
            ]
        }
    }

    /// Writes a set of keys where a server finds it.
    func write(_ keys: [[String: String]], to file: URL, mode: Int = 0o600) throws {
        try Self.write(JSONEncoder().encode(["keys": keys]), to: file, mode: mode)
    }

    static func write(_ data: Data, to file: URL, mode: Int = 0o600) throws {
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let temporary = file.appendingPathExtension("new")
        _ = FileManager.default.createFile(atPath: temporary.path, contents: data, attributes: [.posixPermissions: mode])
        // Created with the process's mask.
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: temporary.path)
        guard rename(temporary.path, file.path) == 0 else { throw Missed("a file of keys") }
    }

    /// For these tests only.
    private static let rsaKey = """
        -----BEGIN RSA PRIVATE KEY-----
        MIIEowIBAAKCAQEAl4RyvHjrbhvagnzY44Qjyl/y0QmdpdiRdc0K5nwsRmbqv5Eb
        51NqzXGcFrbANZ39DTqgn/2RYdcqCa1KRjqBWLZlXYZAB2EkWdJp8BBA/MP/N4pb
        Lxkj3lVShvJubUeYBs4qRDeQNtC0v3003tzIfx7+HIL/Fxn9oxg5U2YT/zF+EVek
        97Lxs2t+XlrlfYZKuElfOq/w+WEa9MNMshmoEM0Gh7hGTRuy0BReBuyomcToq/SQ
        GRAKhobzbwnhGdKjZLuFTH5vZl/kukCEyP/OR/IjHWMzLRsZqowJ7PUuNu9MN9d0
        ng02sAmt/08HXTbYd4u2sGLxMlMhzuVcmwpqawIDAQABAoIBADqhKkKq6bLsPUPz
        6nszZSQIt61Ssrl7kWHLi1W/o+REK78f9/Ot0CyaMyOI6Nx2e3Z0grYWCP0apK4k
        65I8TlPVFGk5qyoP2WCWbp7Rs0v7zZSgyYLyj/IXAv2r7rYDl5y+hxVpiLjlTqOw
        X9aDCWRDSmIfAHVgfchv9bLDU6aR17qxjV5wc30Nkss1fxmOyo1gH6uiHLtaNQlC
        bohYA3Wmde6Va1ig9c1l06PXqxyFi4tsgO7F8vpZ+w/+5Sv8NySlToIWq4I43BSv
        qF4bMREBSI7sNfJNDIdTi9v/mjybH4rWol6ka+m15TUQV+RsZTlt8oh9FAO4EHeR
        aArbwCECgYEA1hPxxRm3mStnafVZjesvvRSYq4JqmgbNNhOd7pzM2yGnXbqLPnKw
        D7RwByXY69oyybkGF3ZM2/MfTtY8Y2dYtnHN5fc2xMJhZU3I7Bt5pDe0x6PU/hN8
        LubLu61J+zEct1Tv58j4GCluV+J/5BWeOY4aLx05NlFUTaZdfshTlmECgYEAtTA/
        cqazAxLMkyctzoS/GrkhQQJ0d/+Yem4FDQ3hPKrOTYnlM5qOs8am9/xtCq7/n7vw
        fdyz84sP2A+Dax+2sK3a1E1B/1Eyls7UL4mV+y5YEATWFspLq/Sx+/hlAKMm6tq3
        PoYfb4PttL3v9ixaM/BNGk3Pc6wFoDBTQZKS3EsCgYB1RkvGDAaWND7cvvmmU1a9
        oFDadAFuC5fTrf9wvhlDWjZTlGO/fBiTIefVIpio68my1FdP9xC31YIrMBW45t6k
        Y8fF2R35v/qXAnu1TH/gxFuWmluOLKJ1Fx442/+RSiBPFoquUVwH8HpwTrZ8/pLF
        OOGDOeEjrn4eY6sITznrQQKBgFKFHuCAu5bywOlkNqCQJNlu545MJ+9fIXrhELvZ
        TnPq9vqpixHtmoCWQQVAmgj7msCNQAKSugJ5m0W0Cw6G6xWcmMWISj6WJIw6trjP
        2NcFTGY/TaIjkENItqcjghzAMcFUy5BWVYrccy6WMuvTV2HAV91bAtiTyBwk5kY/
        E1PxAoGBALGmeekX4y09twgM+qUu05tbgOWfTXRPxhh1qmV+GfWfdE6Ee33SuAUQ
        wjtSPdkY5XmDZIYK22R5QNpqlu388phKK1XCGAV4vlqaKvd4XQ6g7hVDw/NwEV5r
        pvLjRGWjOWjT7CmgRrk/L1Xzm4MgKtQGH9sgrkjpWiQcHne6wKD/
        -----END RSA PRIVATE KEY-----
        """
}
