import Crypto
import Foundation
import JWTKit
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Tokens that some libraries accept and others don't, over every way in.
@Suite struct TokenVectorTests {
    /// A server that has a key of each kind.
    private static func server(
        _ change: @escaping @Sendable (inout RoostServer.Configuration) -> Void = { _ in }
    ) async throws -> (TestServer, TokenForge) {
        let directory = TemporaryDirectory.make()
        let forge = try await TokenForge(firstRunIn: directory)
        let file = directory.appending(path: "keys.json")
        try forge.write(try Array(forge.keys.values), to: file)
        let server = try await TestServer(directory: directory) {
            $0.tokenKeys = file
            change(&$0)
        }
        return (server, forge)
    }

    /// The code of the refusal, or `welcome`: over HTTP, by the header of the upgrade, by the first frame.
    private static func answers(_ token: String, _ server: TestServer) async throws -> [String] {
        var answers: [String] = []
        // A header can carry neither a line break nor more than its limit.
        let isOneLine = !token.contains { $0.isNewline } && token.utf8.count < 8192
        if isOneLine {
            let answer = try await server.request("GET", "/v1/me", token: token)
            answers.append(answer.status == 200 ? "welcome" : "\(answer.status) \(answer.code ?? "")")
        }
        for byHeader in isOneLine ? [true, false] : [false] {
            let socket = try await RawSocket.open(
                port: server.port, headers: byHeader ? ["Authorization: Bearer \(token)"] : [])
            if !byHeader { try await socket.send(json: AuthenticateFrame(token: token)) }
            guard case .text(let text) = await socket.next() else { throw Missed("a first frame") }
            if text.hasPrefix(#"{"welcome""#) {
                answers.append("welcome")
            } else {
                guard case .close(let code, let reason) = await socket.next() else { throw Missed("a close") }
                answers.append("\(code) \(reason)")
            }
            await socket.close()
        }
        return answers
    }

    private static let refused = ["401 unauthenticated", "4001 unauthenticated", "4001 unauthenticated"]

    @Test("a token of every kind of key is accepted, over HTTP, by the header of an upgrade and by a frame")
    func good() async throws {
        let (server, forge) = try await Self.server()
        let soon = Int(forge.now) + 30
        let good = [
            "HS256": forge.own(), "HS256 by name": forge.shared(), "ES256": try forge.es256(), "EdDSA": try forge.edDSA(),
            "RS256": try await forge.rs256(), "typ": forge.own(#"{"typ":"at+jwt","alg":"HS256"}"#),
            "unknown parameters": forge.own(#"{"alg":"HS256","x":1,"jku":"https://evil.example","jwk":{"kty":"oct"}}"#),
            "unknown claims": forge.own(#"{"alg":"HS256"}"#, forge.claims(#""iss":"x","aud":["y"],"scope":"z""#)),
            "fractions": forge.own(#"{"alg":"HS256"}"#, forge.claims(#""iat":\#(Int(forge.now)).25"#, exp: "\(soon).5")),
            "a clock that is ahead by less than a minute": forge.own(
                #"{"alg":"HS256"}"#, forge.claims(#""iat":\#(soon),"nbf":\#(soon)"#)),
        ]
        for (name, token) in good {
            #expect(try await Self.answers(token, server) == ["welcome", "welcome", "welcome"], "\(name)")
        }
        try await server.stop()
    }

    @Test("a token that confuses algorithm and key is refused, over HTTP, by the header of an upgrade and by a frame")
    func confusedKeys() async throws {
        let (server, forge) = try await Self.server()
        let none = forge.token(#"{"alg":"none"}"#, forge.claims()) { _ in Data() }
        let secrets = [
            Data(forge.elliptic.publicKey.pemRepresentation.utf8), forge.elliptic.publicKey.x963Representation,
            Data(forge.rsa.publicKey.pemRepresentation.utf8), forge.rsa.publicKey.derRepresentation,
            forge.edwards.publicKey.rawRepresentation,
        ]
        var bad = [
            "alg none": none, "alg None": forge.own(#"{"alg":"None"}"#), "alg hs256": forge.own(#"{"alg":"hs256"}"#),
            "none with kid": forge.token(#"{"alg":"none","kid":"shared"}"#, forge.claims()) { _ in Data() },
            "HS384": forge.own(#"{"alg":"HS384"}"#), "no alg": forge.own(#"{"typ":"JWT"}"#),
            "alg null": forge.own(#"{"alg":null}"#), "alg a number": forge.own(#"{"alg":1}"#),
            "an unknown kid": forge.own(#"{"alg":"HS256","kid":"unknown"}"#),
            "an empty kid": forge.own(#"{"alg":"HS256","kid":""}"#), "kid a number": forge.own(#"{"alg":"HS256","kid":1}"#),
            "a kid that is a path": forge.own(#"{"alg":"HS256","kid":"../token-secret"}"#),
            "the secret under another's name": forge.own(#"{"alg":"HS256","kid":"shared"}"#),
            "another's secret without a name": forge.shared(#"{"alg":"HS256"}"#),
            "ES256 without a name": try forge.es256(#"{"alg":"ES256"}"#),
            "ES256 named as EdDSA": try forge.es256(#"{"alg":"EdDSA","kid":"ec"}"#),
            "ES256 with Ed's name": try forge.es256(#"{"alg":"ES256","kid":"ed"}"#),
            "EdDSA with EC's name": try forge.edDSA(#"{"alg":"EdDSA","kid":"ec"}"#),
            "RS256 named as PS256": try await forge.rs256(#"{"alg":"PS256","kid":"rsa"}"#),
            "RS256 named as RS512": try await forge.rs256(#"{"alg":"RS512","kid":"rsa"}"#),
            "RS256 with the shared key's name": try await forge.rs256(#"{"alg":"RS256","kid":"shared"}"#),
            "a DER signature": try forge.token(#"{"alg":"ES256","kid":"ec"}"#, forge.claims()) {
                try forge.elliptic.signature(for: $0).derRepresentation
            },
            "an ES256 signature of zeros": forge.token(#"{"alg":"ES256","kid":"ec"}"#, forge.claims()) { _ in Data(count: 64) },
            "an empty signature": forge.token(#"{"alg":"HS256"}"#, forge.claims()) { _ in Data() },
            "a signature cut off": forge.token(#"{"alg":"HS256"}"#, forge.claims()) {
                TokenForge.hmac($0, forge.secret).prefix(31)
            },
        ]
        for (index, secret) in secrets.enumerated() {
            for (name, kid) in [("ec", "ec"), ("rsa", "rsa"), ("ed", "ed")] {
                bad["HS256 with public key \(index) as \(name)"] = forge.token(#"{"alg":"HS256","kid":"\#(kid)"}"#, forge.claims())
                {
                    TokenForge.hmac($0, secret)
                }
            }
        }
        for (name, token) in bad { #expect(try await Self.answers(token, server) == Self.refused, "\(name)") }
        try await server.stop()
    }

    @Test("a token that isn't in canonical form is refused, over HTTP, by the header of an upgrade and by a frame")
    func forms() async throws {
        let (server, forge) = try await Self.server()
        let good = forge.own()
        let parts = good.split(separator: ".").map(String.init)
        let far = Int(forge.now) + 600
        // The last letter of a 32-byte signature has two unused bits.
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let last = alphabet.firstIndex(of: good.last ?? "A") ?? 0
        func payload(_ text: String) -> String { forge.own(#"{"alg":"HS256"}"#, text) }
        var bytes = Data(#"{"sub":"a"#.utf8)
        bytes.append(0xFF)
        bytes.append(contentsOf: #"","exp":\#(far)}"#.utf8)
        let text = TokenForge.base64(Data(#"{"alg":"HS256"}"#.utf8)) + "." + TokenForge.base64(bytes)
        let bad = [
            "crit": forge.own(#"{"alg":"HS256","crit":["exp"],"exp":\#(far)}"#),
            "crit of b64": forge.own(#"{"alg":"HS256","b64":true,"crit":["b64"]}"#),
            "an empty crit": forge.own(#"{"alg":"HS256","crit":[]}"#), "crit null": forge.own(#"{"alg":"HS256","crit":null}"#),
            "two algs": forge.own(#"{"alg":"none","alg":"HS256"}"#),
            "two algs, one escaped": forge.own(#"{"alg":"none","\u0061lg":"HS256"}"#),
            "two kids": forge.shared(#"{"alg":"HS256","kid":"ec","kid":"shared"}"#),
            "two subs": payload(#"{"sub":"bob","sub":"ann","exp":\#(far)}"#),
            "two roles": payload(#"{"sub":"ann","role":"user","role":"admin","exp":\#(far)}"#),
            "two exps": payload(#"{"sub":"ann","exp":1,"exp":\#(far)}"#),
            "no exp": payload(#"{"sub":"ann"}"#), "exp null": payload(#"{"sub":"ann","exp":null}"#),
            "exp a string": payload(#"{"sub":"ann","exp":"\#(far)"}"#), "exp true": payload(#"{"sub":"ann","exp":true}"#),
            "exp an array": payload(#"{"sub":"ann","exp":[\#(far)]}"#), "exp of 10^400": payload(#"{"sub":"ann","exp":1e400}"#),
            "exp in 100 years": payload(#"{"sub":"ann","exp":\#(far + 3_155_760_000)}"#),
            "exp of 2^63": payload(#"{"sub":"ann","exp":9223372036854775808}"#),
            "iat a string": payload(forge.claims(#""iat":"\#(far)""#)), "nbf a string": payload(forge.claims(#""nbf":"0""#)),
            "nbf in the future": payload(forge.claims(#""nbf":\#(far)"#)),
            "iat in the future": payload(forge.claims(#""iat":\#(far)"#)),
            "an iat so old that the lifetime is too long": payload(forge.claims(#""iat":1"#)),
            "no sub": payload(#"{"exp":\#(far)}"#), "an empty sub": payload(#"{"sub":"","exp":\#(far)}"#),
            "sub a number": payload(#"{"sub":1,"exp":\#(far)}"#), "sub with U+0000": payload(#"{"sub":"a\u0000","exp":\#(far)}"#),
            "an unknown role": payload(forge.claims(#""role":"root""#)), "jti a number": payload(forge.claims(#""jti":1"#)),
            "a long jti": payload(forge.claims(#""jti":"\#(String(repeating: "x", count: 129))""#)),
            "a payload that is an array": payload("[]"), "a payload that is no JSON": payload("ann"),
            "an empty payload": payload(""),
            "a payload that isn't UTF-8": text + "." + TokenForge.base64(TokenForge.hmac(Data(text.utf8), forge.secret)),
            "padding": parts[0] + "." + parts[1] + "." + parts[2] + "=",
            "the other alphabet": good.replacing("-", with: "+").replacing("_", with: "/") + "/",
            "bits that don't count": String(good.dropLast()) + String(alphabet[last ^ 1]),
            "a fourth part": good + ".", "five parts": good + ".a.b", "two parts": parts[0] + "." + parts[1],
            "a part in front": "." + good, "a space within": parts[0] + ". " + parts[1] + "." + parts[2],
            "a tab within": parts[0] + ".\t" + parts[1] + "." + parts[2],
        ]
        for (name, token) in bad {
            #expect(try await Self.answers(token, server) == Self.refused, "\(name)")
        }
        // These don't fit into a header.
        let inFrames = [
            "a line break": parts[0] + ".\n" + parts[1] + "." + parts[2], "a line break behind": good + "\n",
            "9,000 bytes": payload(forge.claims(#""x":"\#(String(repeating: "x", count: 9000))""#)),
        ]
        for (name, token) in inFrames {
            #expect(try await Self.answers(token, server) == ["4001 unauthenticated"], "\(name)")
        }
        for exp in ["1", "0", "-1", "-1e300", "\(Int(forge.now)).0"] {
            let over = ["401 token_expired", "4002 token_expired", "4002 token_expired"]
            #expect(try await Self.answers(payload(#"{"sub":"ann","exp":\#(exp)}"#), server) == over, "exp \(exp)")
        }
        try await server.stop()
    }

    @Test("a token that exceeds the longest lifetime is refused with the limit, counted from iat or from now")
    func lifetime() async throws {
        let (server, forge) = try await Self.server { $0.options.tokenLifetimeSecondsMax = 3600 }
        let now = Int(forge.now)
        func answer(_ payload: String) async throws -> String? {
            let answer = try await server.request("GET", "/v1/me", token: forge.own(#"{"alg":"HS256"}"#, payload))
            return answer.status == 200 ? nil : try answer.decoded(JSONValue.self)["detail"]?.text
        }
        let refusal = "The token is valid for too long: a token may have at most 3600 s from its iat, or from now, to its exp."
        #expect(try await answer(#"{"sub":"ann","iat":\#(now),"exp":\#(now + 3600)}"#) == nil)
        #expect(try await answer(#"{"sub":"ann","iat":\#(now),"exp":\#(now + 3601)}"#) == refusal)
        #expect(try await answer(#"{"sub":"ann","iat":\#(now - 3000),"exp":\#(now + 601)}"#) == refusal)
        #expect(try await answer(#"{"sub":"ann","exp":\#(now + 3500)}"#) == nil)
        #expect(try await answer(#"{"sub":"ann","exp":\#(now + 3700)}"#) == refusal)
        try await server.stop()
    }

    @Test("the refusal of a token with a valid signature names the claim, and its limit, over HTTP and on a socket")
    func refusedClaims() async throws {
        let (server, forge) = try await Self.server { $0.tokenIssuer = "https://login.example" }
        let (far, long) = (Int(forge.now) + 600, String(repeating: "x", count: 129))
        func invalid(_ message: String, _ field: String, limit: Int64? = nil) -> RoostError {
            RoostError(.unauthenticated, "The token has an invalid claim: \(message)", field: field, limit: limit)
        }
        func unreadable(_ field: String) -> RoostError {
            RoostError(
                .unauthenticated, "The token has no sub or no exp, or a claim whose type or value isn't known.", field: field)
        }
        let cases = [
            (#""name":"\#(long)""#, invalid("name has a limit of 128 characters.", "name", limit: 128)),
            (#""name":"a\u0000""#, invalid("name must not contain the character U+0000.", "name")),
            (#""jti":"\#(long)""#, invalid("jti has a limit of 128 characters.", "jti", limit: 128)),
            (#""nbf":\#(far)"#, RoostError(.unauthenticated, "The token isn't valid yet.", field: "nbf")),
            (
                #""name":7"#,
                unreadable("name")
            ),
            (#""role":"root""#, unreadable("role")), (#""aud":5"#, unreadable("aud")), (#""iat":"now""#, unreadable("iat")),
        ]
        for (claim, expected) in cases {
            let token = forge.own(#"{"alg":"HS256"}"#, forge.claims(#""iss":"https://login.example","# + claim))
            let answer = try await server.request("GET", "/v1/me", token: token)
            #expect(try [answer.status, answer.decoded(Problem.self).refusal == expected ? 0 : 1] == [401, 0], "\(answer.body)")
            let socket = try await RawSocket.open(port: server.port)
            try await socket.send(json: AuthenticateFrame(token: token))
            guard case .text(let text) = await socket.next() else { throw Missed("an error") }
            #expect(try JSONDecoder().decode([String: RoostError].self, from: Data(text.utf8)) == ["error": expected])
            await socket.close()
        }
        let other = try await server.request("GET", "/v1/me", token: forge.own())
        #expect(
            try other.decoded(Problem.self).refusal == RoostError(.unauthenticated, "The token has another issuer.", field: "iss"))
        for (payload, field) in [(#"{"sub":"ann"}"#, "exp"), (#"{"exp":\#(far)}"#, "sub"), (#"{"sub":"ann","exp":"x"}"#, "exp")] {
            let answer = try await server.request("GET", "/v1/me", token: forge.own(#"{"alg":"HS256"}"#, payload))
            #expect(try answer.decoded(Problem.self).refusal == unreadable(field), "\(payload)")
        }
        try await server.stop()
    }

    @Test("a token is valid for 30 days at most unless the operator sets another lifetime")
    func standardLifetime() async throws {
        let (server, forge) = try await Self.server()
        let now = Int(forge.now)
        func status(_ seconds: Int) async throws -> Int {
            let token = forge.own(#"{"alg":"HS256"}"#, #"{"sub":"ann","iat":\#(now),"exp":\#(now + seconds)}"#)
            return try await server.request("GET", "/v1/me", token: token).status
        }
        #expect(try await status(30 * 86_400) == 200)
        #expect(try await status(30 * 86_400 + 1) == 401)
        try await server.stop()
    }

    @Test("a token of 8,192 bytes is accepted and a longer one refused, in a header 8,185; an id of 128 characters is accepted")
    func longest() async throws {
        let (server, forge) = try await Self.server()
        // Three bytes are four letters; the last of these is one letter.
        func sized(_ payloadBytes: Int, _ header: String = #"{"alg":"HS256"}"#) -> String {
            let text = String(repeating: "x", count: payloadBytes - forge.claims(#""x":"""#).utf8.count)
            return forge.own(header, forge.claims(#""x":"\#(text)""#))
        }
        let (fitting, larger) = (sized(6095), sized(6096))
        #expect([fitting, larger].map(\.utf8.count) == [8192, 8193])
        // They don't fit into a header.
        #expect(try await Self.answers(fitting, server) == ["welcome"])
        #expect(try await Self.answers(larger, server) == ["4001 unauthenticated"])
        // A header's value has the same limit, including `Bearer ` before the token. A longer one isn't HTTP.
        let ofHeaders = [sized(6090), sized(6089, #"{"alg" :"HS256"}"#)]
        #expect(ofHeaders.map(\.utf8.count) == [8185, 8186])
        var statuses: [Int] = []
        for token in ofHeaders { statuses.append(try await server.request("GET", "/v1/me", token: token).status) }
        #expect(statuses == [200, 400])
        let named = forge.own(#"{"alg":"HS256"}"#, forge.claims(#""jti":"\#(String(repeating: "x", count: 128))""#))
        #expect(try await Self.answers(named, server) == ["welcome", "welcome", "welcome"])
        try await server.stop()
    }

    @Test("a token without a valid signature is refused with the same bytes, whatever it contains")
    func unsigned() async throws {
        let (server, _) = try await Self.server()
        let stranger = try TokenForge(secret: Data(repeating: 9, count: 32))
        let far = Int(stranger.now) + 600
        var tokens = [
            stranger.claims(), stranger.claims(#""role":"admin""#), stranger.claims(#""nbf":\#(far)"#), stranger.claims(exp: "1"),
            stranger.claims(exp: "\(far + 3_155_760_000)"), #"{"sub":"a/b","exp":\#(far)}"#, "{}",
        ].map { stranger.own(#"{"alg":"HS256"}"#, $0) }
        tokens += [
            "garbage", stranger.own(#"{"alg":"none"}"#), stranger.own(#"{"alg":"HS256","kid":"unknown"}"#),
            stranger.own(#"{"alg":"HS256","kid":"ec"}"#), stranger.shared(#"{"alg":"ES256","kid":"shared"}"#),
        ]
        var answers: Set<String> = []
        for token in tokens {
            let answer = try await server.request("GET", "/v1/me", token: token)
            answers.insert("\(answer.status) \(answer.body)")
        }
        #expect(answers.count == 1 && answers.first?.hasPrefix("401 ") == true, "\(answers)")
        try await server.stop()
    }

    @Test("iss and aud are checked if they are set")
    func issuerAndAudience() async throws {
        let (server, forge) = try await Self.server {
            $0.tokenIssuer = "https://login.example"
            $0.tokenAudience = "chat"
        }
        func status(_ claims: String) async throws -> Int {
            try await server.request("GET", "/v1/me", token: forge.own(#"{"alg":"HS256"}"#, forge.claims(claims))).status
        }
        #expect(try await status(#""iss":"https://login.example","aud":"chat""#) == 200)
        #expect(try await status(#""iss":"https://login.example","aud":["mail","chat"]"#) == 200)
        for bad in [
            "", #""iss":"https://login.example""#, #""aud":"chat""#, #""iss":"https://login.example/","aud":"chat""#,
            #""iss":"https://login.example","aud":"chats""#, #""iss":"https://login.example","aud":[]"#,
            #""iss":["https://login.example"],"aud":"chat""#, #""iss":"https://login.example","aud":{"chat":1}"#,
        ] {
            #expect(try await status(bad) == 401, "\(bad)")
        }
        try await server.stop()
    }
}
