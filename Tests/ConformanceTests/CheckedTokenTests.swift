import Foundation
import Logging
import RoostAPI
import RoostTestSupport
import Testing

@testable import RoostServer

/// Tokens whose signatures aren't checked a second time.
@Suite("Tokens checked before")
struct CheckedTokenTests {
    private static func keys(_ byte: UInt8 = 7) async -> TokenKeys { await TokenKeys(secret: Data(repeating: byte, count: 32)) }

    private static func token(_ keys: TokenKeys, _ user: UserID = "ann", expiresIn seconds: Double = 60) async throws -> String {
        try await keys.sign(.init(user: user, role: .user, expiresAt: Date(timeIntervalSinceNow: seconds)))
    }

    private static func code(_ verifier: TokenVerifier, _ token: String) async -> String {
        switch verifier.verify(token) {
        case .success(let verified): verified.user.rawValue
        case .failure(let refusal): refusal.code.rawValue
        }
    }

    @Test("an accepted token is refused once it has expired")
    func expiry() async throws {
        let keys = await Self.keys()
        let verifier = TokenVerifier(keys, logger: Logger(label: "test"))
        let token = try await Self.token(keys, expiresIn: 3)
        #expect(await Self.code(verifier, token) == "ann")
        try await Polling.value {
            await Self.code(verifier, token)
        } until: {
            $0 == "token_expired"
        }
    }

    @Test("an accepted token is refused as soon as its key is removed, and accepted again once the key is back")
    func otherKeys() async throws {
        let (keys, others) = (await Self.keys(), await Self.keys(8))
        let verifier = TokenVerifier(keys, logger: Logger(label: "test"))
        let token = try await Self.token(keys)
        for _ in 0..<2 { #expect(await Self.code(verifier, token) == "ann") }
        verifier.replace(others)
        for _ in 0..<2 { #expect(await Self.code(verifier, token) == "unauthenticated") }
        verifier.replace(keys)
        #expect(await Self.code(verifier, token) == "ann")
    }

    @Test("a token that differs from an accepted one in any byte is checked, and a refused one is refused again")
    func otherBytes() async throws {
        let keys = await Self.keys()
        let verifier = TokenVerifier(keys, logger: Logger(label: "test"))
        let token = try await Self.token(keys)
        #expect(await Self.code(verifier, token) == "ann")
        for index in token.indices {
            var other = token
            other.replaceSubrange(index...index, with: [token[index] == "A" ? "B" : "A"])
            for _ in 0..<2 { #expect(await Self.code(verifier, other) == "unauthenticated") }
        }
        #expect(await Self.code(verifier, token) == "ann")
    }

    @Test("I18 the cache of checked tokens is bounded, and keeps those in use")
    func bounded() async throws {
        let keys = await Self.keys()
        let checked = CheckedTokens(sizeBytesMax: 32 << 10)
        var checks: [String: Int] = [:]
        func use(_ token: String, _ name: String) throws {
            let claims = try checked.claims(of: token) { () throws(TokenRefusal) in
                checks[name, default: 0] += 1
                return try keys.claims(of: token)
            }
            #expect(claims.sub == name)
        }
        let used = try await Self.token(keys, "used")
        let once = try await Self.token(keys, "once")
        try use(once, "once")
        for number in 0..<300 {
            try use(used, "used")
            try use(try await Self.token(keys, UserID("user-\(number)")), "user-\(number)")
            #expect(checked.count < 80)
        }
        try use(once, "once")
        #expect(checks["used"] == 1)
        #expect(checks["once"] == 2)
        #expect(throws: TokenRefusal.self) { try use("garbage", "garbage") }
        #expect(throws: TokenRefusal.self) { try use(String(repeating: "x", count: 9000), "garbage") }
    }
}
