import Foundation
import RoostAPI
import RoostDatabase
import RoostServer
import RoostTestSupport
import Testing

/// Who is let in, over both transports.
@Suite struct TokenTests {
    private static func unsigned(_ header: String, _ payload: String, signature: String = "") -> String {
        func encode(_ text: String) -> String {
            Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
        return encode(header) + "." + encode(payload) + "." + signature
    }

    struct BadToken: Sendable, CustomTestStringConvertible {
        let name: String
        let code: String
        let closeCode: CloseCode
        let make: @Sendable (TestServer) async throws -> String
        var testDescription: String { name }
    }

    static let cases = [
        BadToken(name: "garbage", code: "unauthenticated", closeCode: .unauthenticated) { _ in "garbage" },
        BadToken(name: "empty", code: "unauthenticated", closeCode: .unauthenticated) { _ in "" },
        BadToken(name: "alg none", code: "unauthenticated", closeCode: .unauthenticated) { _ in
            unsigned(#"{"alg":"none","typ":"JWT"}"#, #"{"sub":"ann","exp":99999999999,"role":"admin"}"#)
        },
        BadToken(name: "another algorithm", code: "unauthenticated", closeCode: .unauthenticated) { _ in
            unsigned(#"{"alg":"HS512","typ":"JWT"}"#, #"{"sub":"ann","exp":99999999999}"#, signature: "AAAA")
        },
        BadToken(name: "a forged payload", code: "unauthenticated", closeCode: .unauthenticated) { server in
            let parts = try await server.token("ann").split(separator: ".")
            let forged = unsigned("", #"{"sub":"ann","exp":99999999999,"role":"admin"}"#).split(
                separator: ".", omittingEmptySubsequences: false)
            return [parts[0], forged[1], parts[2]].joined(separator: ".")
        },
        BadToken(name: "another secret", code: "unauthenticated", closeCode: .unauthenticated) { _ in
            let keys = await TokenKeys(secret: Data(repeating: 7, count: 32))
            return try await keys.sign(.init(user: "ann", role: .admin, expiresAt: Date(timeIntervalSinceNow: 60)))
        },
        BadToken(name: "expired", code: "token_expired", closeCode: .tokenExpired) { try await $0.token("ann", expiresIn: -1) },
        BadToken(name: "an invalid user", code: "unauthenticated", closeCode: .unauthenticated) { try await $0.token("a/b") },
    ]

    @Test("an invalid token is refused over HTTP and over a socket", arguments: cases)
    func refused(_ bad: BadToken) async throws {
        let server = try await TestServer.shared()
        let token = try await bad.make(server)
        let answer = try await server.request("GET", "/v1/me", token: token)
        #expect(
            [String(answer.status), answer.code, answer.headers["content-type"]] == ["401", bad.code, "application/problem+json"])

        let socket = try await RawSocket.open(port: server.port)
        try await socket.send(json: AuthenticateFrame(token: token))
        guard case .text(let text) = await socket.next() else { throw Missed("an error frame") }
        #expect(text.contains(#""code":"\#(bad.code)""#))
        guard case .close(let code, _) = await socket.next() else { throw Missed("a close") }
        #expect(code == bad.closeCode.rawValue)
    }

    @Test("a token in the URL isn't accepted, one in the upgrade's header is")
    func placesOfTheToken() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        #expect(try await server.request("GET", "/v1/users/ann?token=\(token)").status == 401)

        let byHeader = try await RawSocket.open(port: server.port, headers: ["Authorization: Bearer \(token)"])
        guard case .text(let welcome) = await byHeader.next() else { throw Missed("a welcome") }
        #expect(welcome.hasPrefix(#"{"welcome":{"user":"ann""#))

        let byURL = try await RawSocket.open(port: server.port, path: "/v1/socket?token=\(token)")
        try await byURL.send(text: #"{"call":1,"operation":"user.me"}"#)
        guard case .text(let refusal) = await byURL.next() else { throw Missed("a refusal") }
        #expect(refusal.contains("unauthenticated"))
        guard case .close(let code, _) = await byURL.next() else { throw Missed("a close") }
        #expect(code == CloseCode.unauthenticated.rawValue)
        try await server.stop()
    }

    @Test("a cookie authenticates nobody, over HTTP or over a socket, and no answer sets one")
    func cookies() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        let headers = ["Cookie: token=\(token); Authorization=Bearer \(token)", "Origin: https://evil.example"]
        let refused = try await server.request("GET", "/v1/me", headers: headers)
        let good = try await server.request("GET", "/v1/me", token: token)
        #expect(refused.status == 401 && good.status == 200)
        for answer in [refused, good] { #expect(answer.headers["set-cookie"] == nil) }

        let socket = try await RawSocket.open(port: server.port, headers: headers)
        try await socket.send(text: #"{"call":1,"operation":"user.me"}"#)
        guard case .text(let refusal) = await socket.next() else { throw Missed("a refusal") }
        #expect(refusal.contains("unauthenticated"))
        guard case .close(let code, _) = await socket.next() else { throw Missed("a close") }
        #expect(code == CloseCode.unauthenticated.rawValue)
        try await server.stop()
    }

    @Test("a socket that doesn't authenticate is closed in time")
    func silence() async throws {
        let server = try await TestServer { $0.authenticationTimeout = .milliseconds(200) }
        let socket = try await RawSocket.open(port: server.port)
        guard case .close(let code, _) = await socket.next() else { throw Missed("a close") }
        #expect(code == CloseCode.authenticationTimeout.rawValue)
        try await server.stop()
    }

    @Test("a socket is closed when its token expires")
    func expiry() async throws {
        let server = try await TestServer()
        let socket = try await RawSocket.connect(port: server.port, token: try await server.token("ann", expiresIn: 5))
        guard case .close(let code, _) = await socket.next() else { throw Missed("a close") }
        #expect(code == CloseCode.tokenExpired.rawValue)
        try await server.stop()
    }

    @Test("a call whose body arrives after its token has expired is refused")
    func expiredMeanwhile() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann", expiresIn: 5)
        let late = try await RawConnection.connect(port: server.port)
        let body = #"{"type":"community"}"#
        let head = [
            "POST /v1/channels HTTP/1.1", "Host: roost", "Authorization: Bearer \(token)", "Content-Type: application/json",
            "Content-Length: \(body.utf8.count)", "Connection: close",
        ]
        try await late.send(head.joined(separator: "\r\n") + "\r\n\r\n")
        // On a socket the close says that the token has expired.
        let socket = try await RawSocket.connect(port: server.port, token: token)
        guard case .close = await socket.next() else { throw Missed("a close") }
        try await late.send(body)
        let answer = await late.receiveAll()
        #expect(answer.hasPrefix("HTTP/1.1 401") && answer.contains(#""code":"token_expired""#), "\(answer)")
        try await server.stop()
    }

    @Test("only its owner can read the secret, which has 256 bits, is made once, and is on disk before it is used")
    func secretFile() throws {
        let directory = TemporaryDirectory.make()
        let file = SecretFile(directory: directory)
        let record = FileSync.Record()
        let (secret, isNew) = try FileSync.$record.withValue(record) { try file.readOrMake() }
        let path = directory.path
        #expect(record.take() == [directory.deletingLastPathComponent().path, "\(path)/token-secret.new", path])
        let mode = try FileManager.default.attributesOfItem(atPath: file.url.path)[.posixPermissions] as? Int
        #expect(isNew && secret.count == 32 && mode == 0o600)
        #expect(try file.readOrMake().secret == secret)
    }
}
