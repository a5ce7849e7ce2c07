import Foundation
import NIOCore
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// HTTP/1.1 as browsers and proxies expect it: requests as bytes, and the exact statuses and headers of the answers.
@Suite struct HTTPTests {
    struct Exchange: Sendable, CustomTestStringConvertible {
        let name: String
        /// Line ends are written as one character, and `TOKEN` stands for a token of ann's.
        let request: String
        /// Statuses in order, until the server closes or nothing more arrives.
        let statuses: [Int]
        /// Headers of the last answer; an empty value is an absent header.
        var headers: [String: String] = [:]
        /// The body of the last answer.
        var body: String?
        /// The field that the last answer's problem document names.
        var field: String?
        /// Whether the server ends the connection.
        var closes = false
        var testDescription: String { name }
    }

    private static let token = "\nAuthorization: Bearer TOKEN"
    private static func get(_ path: String, _ headers: String = "", method: String = "GET") -> String {
        "\(method) \(path) HTTP/1.1\nHost: a\(headers)\n\n"
    }
    private static func post(_ path: String, _ body: String, _ headers: String = "") -> String {
        "POST \(path) HTTP/1.1\nHost: a\(token)\(headers)\nContent-Length: \(body.utf8.count)\n\n\(body)"
    }
    private static func fields(_ count: Int, of sizeBytes: Int) -> String {
        String(repeating: "\nX: " + String(repeating: "x", count: sizeBytes), count: count)
    }
    private static let livez = get("/livez")
    private static let create = #"{"type":"group"}"#
    /// The answer's body for a target or headers over the limits.
    private static let tooLarge =
        #"{"type":"urn:roost:error:invalid_argument","title":"Invalid Argument","status":400,"code":"invalid_argument","#
        + #""detail":"The request's target or its headers are too large: the target and each header have at most 8192 bytes, "#
        + #"all of them together 16384, and there are at most 64 headers."}"#

    static let methods: [Exchange] = [
        Exchange(name: "GET", request: livez, statuses: [200], headers: ["content-length": "3", "connection": ""], body: "ok\n"),
        Exchange(name: "HEAD", request: get("/livez", method: "HEAD"), statuses: [200], headers: ["content-length": "3"], body: ""),
        Exchange(
            name: "two tokens", request: get("/v1/me", token + token), statuses: [400], field: "Authorization", closes: true),
        Exchange(
            name: "two tokens for a socket",
            request: get(
                "/v1/socket",
                token + token + "\nUpgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Version: 13"
                    + "\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
            statuses: [400], field: "Authorization", closes: true),
        Exchange(
            name: "an answer before the end of the body",
            request: "POST /v1/channels HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n3000000\n{", statuses: [401],
            headers: ["connection": "close"], closes: true),
        Exchange(
            name: "HEAD, GET and HEAD of one connection stay in step",
            request: get("/livez", method: "HEAD") + livez + get("/nowhere", method: "HEAD") + livez,
            statuses: [200, 200, 404, 200],
            body: "ok\n"),
        Exchange(name: "HEAD of an operation", request: get("/v1/me", token, method: "HEAD"), statuses: [200], body: ""),
        Exchange(
            name: "HEAD of what only takes POST", request: get("/v1/channels/a/join", token, method: "HEAD"), statuses: [405],
            body: ""),
        Exchange(
            name: "OPTIONS", request: get("/v1/channels", method: "OPTIONS"), statuses: [204],
            headers: ["allow": "GET, HEAD, POST, OPTIONS", "content-length": "", "access-control-allow-origin": ""], body: ""),
        Exchange(
            name: "OPTIONS of the server", request: get("*", method: "OPTIONS"), statuses: [204],
            headers: ["allow": "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"], body: ""),
        Exchange(name: "OPTIONS of nothing", request: get("/nowhere", method: "OPTIONS"), statuses: [404]),
        Exchange(
            name: "a method that a path doesn't take", request: get("/v1/channels", token, method: "PUT"), statuses: [405],
            headers: ["allow": "GET, HEAD, POST, OPTIONS", "content-type": "application/problem+json"]),
        Exchange(
            name: "POST to /livez", request: get("/livez", method: "POST"), statuses: [405],
            headers: ["allow": "GET, HEAD, OPTIONS"]),
        Exchange(
            name: "the socket without an upgrade", request: get("/v1/socket"), statuses: [426],
            headers: ["upgrade": "websocket", "connection": "Upgrade"]),
        Exchange(
            name: "the socket without an upgrade, then a request on the same connection", request: get("/v1/socket") + livez,
            statuses: [426, 200], headers: ["upgrade": "", "connection": ""]),
        Exchange(
            name: "the socket without an upgrade, with Connection: close",
            request: get("/v1/socket", "\nConnection: close") + livez, statuses: [426],
            headers: ["upgrade": "websocket", "connection": "close, Upgrade"], closes: true),
        Exchange(name: "TRACE", request: get("/livez", method: "TRACE"), statuses: [405], headers: ["allow": "GET, HEAD, OPTIONS"]),
        Exchange(
            name: "a method of another protocol", request: get("/livez", method: "PROPFIND"), statuses: [405],
            headers: ["allow": "GET, HEAD, OPTIONS"]),
        Exchange(
            name: "an unknown method", request: get("/livez", method: "FETCH"), statuses: [400], headers: ["allow": ""],
            body: #"{"type":"urn:roost:error:invalid_argument","title":"Invalid Argument","status":400,"code":"invalid_argument","#
                + #""detail":"This is not an HTTP request, or its method is unknown."}"#,
            closes: true),
        Exchange(
            name: "an unknown method, after a request", request: livez + get("/v1/me", token, method: "FOO"),
            statuses: [200, 400], closes: true),
        Exchange(name: "a method in small letters", request: get("/livez", method: "get"), statuses: [400], closes: true),
    ]

    static let paths: [Exchange] = [
        Exchange(name: "a slash at the end", request: get("/v1/me/", token), statuses: [404]),
        Exchange(name: "two slashes", request: get("/v1//me", token), statuses: [404]),
        Exchange(name: "two slashes at the beginning", request: get("//v1/me", token), statuses: [404]),
        Exchange(name: "an escaped letter", request: get("/v1/%6de", token), statuses: [404]),
        Exchange(name: "dots", request: get("/v1/x/../me", token), statuses: [404]),
        Exchange(name: "an encoded slash", request: get("/v1/channels/a%2Fb", token), statuses: [400], field: "channel"),
        Exchange(
            name: "an invalid escape in a path", request: get("/v1/channels/a%zz", token), statuses: [400], field: "channel"),
        Exchange(name: "half an escape in a path", request: get("/v1/channels/a%2", token), statuses: [400], field: "channel"),
        Exchange(
            name: "an escape that isn't UTF-8 in a path", request: get("/v1/channels/a%ff", token), statuses: [400],
            field: "channel"),
        Exchange(name: "an escaped zero", request: get("/v1/channels/a%00", token), statuses: [400], field: "channel"),
        Exchange(
            name: "an invalid escape in a query", request: get("/v1/channels?nameContains=%zz", token), statuses: [400],
            field: "nameContains"),
        Exchange(
            name: "an escape that isn't UTF-8 in a query", request: get("/v1/channels?nameContains=%ff", token), statuses: [400],
            field: "nameContains"),
        Exchange(
            name: "an invalid escape in a list", request: get("/v1/channels?types=group,%g0", token), statuses: [400],
            field: "types"),
        Exchange(
            name: "an invalid escape in a name", request: get("/v1/channels?%zz=1", token), statuses: [400], field: "%zz"),
        Exchange(name: "an escape in a name", request: get("/v1/channels?%6cimit=1", token), statuses: [200]),
        Exchange(name: "an empty query", request: get("/v1/me?", token), statuses: [200]),
        Exchange(name: "an unknown field", request: get("/v1/me?x=1", token), statuses: [400], field: "x"),
        Exchange(name: "a proxy's form of a target", request: get("http://a/livez"), statuses: [200]),
        Exchange(name: "a proxy's form without a path", request: get("http://a?x"), statuses: [200]),
        Exchange(name: "a scheme of something else", request: get("ftp://a/livez"), statuses: [400], closes: true),
        Exchange(name: "a target that begins with nothing", request: get("livez"), statuses: [400], closes: true),
        Exchange(name: "a fragment", request: get("/livez#x"), statuses: [400], closes: true),
    ]

    static let heads: [Exchange] = [
        Exchange(name: "no Host", request: "GET /livez HTTP/1.1\n\n", statuses: [400], field: "Host", closes: true),
        Exchange(
            name: "HEAD without Host", request: "HEAD /livez HTTP/1.1\n\n", statuses: [400],
            headers: ["content-type": "application/problem+json", "connection": "close"], body: "", closes: true),
        Exchange(
            name: "GET without Host behind HEAD", request: get("/livez", method: "HEAD") + "GET /livez HTTP/1.1\n\n",
            statuses: [200, 400], field: "Host", closes: true),
        Exchange(name: "two Hosts", request: get("/livez", "\nHost: b"), statuses: [400], field: "Host", closes: true),
        Exchange(name: "the same Host twice", request: get("/livez", "\nHost: a"), statuses: [400], field: "Host", closes: true),
        Exchange(
            name: "a Host with a path", request: "GET /livez HTTP/1.1\nHost: a/b\n\n", statuses: [400], field: "Host", closes: true),
        Exchange(
            name: "HTTP/1.0 without Host", request: "GET /livez HTTP/1.0\n\n", statuses: [200], headers: ["connection": "close"],
            closes: true),
        Exchange(name: "HTTP/2 in plain text", request: "PRI * HTTP/2.0\n\nSM\n\n", statuses: [400], closes: true),
        Exchange(name: "HTTP/3.0", request: "GET /livez HTTP/3.0\nHost: a\n\n", statuses: [400], closes: true),
        Exchange(
            name: "Connection: close", request: get("/livez", "\nConnection: close") + livez, statuses: [200],
            headers: ["connection": "close"], closes: true),
        Exchange(
            name: "Connection: Close among others", request: get("/livez", "\nConnection: x, Close") + livez, statuses: [200],
            headers: ["connection": "close"], closes: true),
        Exchange(
            name: "a bad head behind good requests is answered after them", request: livez + livez + get("/livez", "\nHost: b"),
            statuses: [200, 200, 400], closes: true),
        Exchange(
            name: "no HTTP behind a good request is answered after it", request: livez + "THIS IS NOT HTTP\n\n",
            statuses: [200, 400],
            closes: true),
        Exchange(name: "a header of 8,192 bytes", request: get("/livez", fields(1, of: 8192)), statuses: [200]),
        Exchange(
            name: "a header of 8,193 bytes", request: get("/livez", fields(1, of: 8193)), statuses: [400], body: tooLarge,
            closes: true),
        Exchange(
            name: "a target of 8,192 bytes", request: get("/livez?" + String(repeating: "x", count: 8185)), statuses: [200],
            body: "ok\n"),
        Exchange(
            name: "a target of 8,193 bytes", request: get("/livez?" + String(repeating: "x", count: 8186)), statuses: [400],
            body: tooLarge, closes: true),
        // The target and `Host` take 11 bytes, and each header's name one.
        Exchange(
            name: "headers of 16,384 bytes together", request: get("/livez", fields(1, of: 8192) + fields(1, of: 8179)),
            statuses: [200]),
        Exchange(
            name: "headers of 16,385 bytes together", request: get("/livez", fields(1, of: 8192) + fields(1, of: 8180)),
            statuses: [400], closes: true),
        // With `Host`.
        Exchange(name: "64 headers", request: get("/livez", fields(63, of: 1)), statuses: [200]),
        Exchange(
            name: "65 headers", request: get("/livez", fields(64, of: 1)), statuses: [400], body: tooLarge, closes: true),
        Exchange(name: "a space before the colon", request: get("/livez", "\nX : y"), statuses: [400], closes: true),
        Exchange(
            name: "another expectation", request: post("/v1/channels", create, "\nExpect: tea"), statuses: [417], field: "Expect",
            closes: true),
    ]

    static let bodies: [Exchange] = [
        Exchange(
            name: "JSON that says so", request: post("/v1/channels", create, "\nContent-Type: application/json"), statuses: [200]),
        Exchange(
            name: "JSON in UTF-8", request: post("/v1/channels", create, "\nContent-Type: Application/JSON; charset=UTF-8"),
            statuses: [200]),
        Exchange(name: "JSON without a Content-Type", request: post("/v1/channels", create), statuses: [200]),
        Exchange(
            name: "a form", request: post("/v1/channels", create, "\nContent-Type: application/x-www-form-urlencoded"),
            statuses: [415],
            headers: ["content-type": "application/problem+json"], field: "Content-Type"),
        Exchange(
            name: "a form, then a request on the same connection",
            request: post("/v1/channels", create, "\nContent-Type: text/plain") + livez, statuses: [415, 200]),
        Exchange(
            name: "JSON in another encoding",
            request: post("/v1/channels", create, "\nContent-Type: application/json; charset=utf-16"),
            statuses: [415], field: "Content-Type"),
        Exchange(
            name: "no body, of whatever type", request: post("/v1/channels/none/join", "", "\nContent-Type: text/plain"),
            statuses: [404],
            field: "channel"),
        Exchange(
            name: "no body and no length, of whatever type",
            request: get("/v1/channels/none/join", token + "\nContent-Type: text/plain", method: "POST"), statuses: [404],
            field: "channel"),
        Exchange(
            name: "a body where none is expected", request: get("/v1/me", token + "\nContent-Length: 2") + "{}", statuses: [400],
            field: "body"),
        Exchange(
            name: "a length over the limit", request: get("/v1/channels", token + "\nContent-Length: 1048577", method: "POST"),
            statuses: [413], headers: ["connection": "close"], field: "body", closes: true),
        Exchange(
            name: "a length over every limit",
            request: get("/v1/channels", token + "\nContent-Length: 18446744073709551615", method: "POST"),
            statuses: [413], closes: true),
        Exchange(
            name: "a length that doesn't fit 64 bits",
            request: get("/v1/channels", token + "\nContent-Length: 99999999999999999999", method: "POST"), statuses: [400],
            closes: true),
        Exchange(
            name: "a length and chunks", request: post("/v1/channels", "0\n\n", "\nTransfer-Encoding: chunked"), statuses: [400],
            closes: true),
        Exchange(
            name: "chunks and a length", request: get("/livez", "\nTransfer-Encoding: chunked\nContent-Length: 3") + "0\n\n",
            statuses: [400], closes: true),
        Exchange(name: "two lengths", request: post("/v1/channels", create, "\nContent-Length: 3"), statuses: [400], closes: true),
        Exchange(
            name: "the same length twice", request: post("/v1/channels", create, "\nContent-Length: 16"), statuses: [400],
            closes: true),
        Exchange(
            name: "a length below zero", request: get("/v1/channels", "\nContent-Length: -1", method: "POST"), statuses: [400],
            closes: true),
        Exchange(
            name: "a length with a sign", request: get("/v1/channels", "\nContent-Length: +1", method: "POST"), statuses: [400],
            closes: true),
        Exchange(
            name: "a coding that isn't chunked",
            request: get("/v1/channels", "\nTransfer-Encoding: gzip, chunked", method: "POST") + "0\n\n",
            statuses: [501], field: "Transfer-Encoding", closes: true),
        Exchange(
            name: "chunks",
            request: get("/v1/channels", token + "\nTransfer-Encoding: chunked", method: "POST") + "10\n\(create)\n0\n\n" + livez,
            statuses: [200, 200]),
        Exchange(
            name: "a chunk with an invalid length",
            request: get("/v1/channels", token + "\nTransfer-Encoding: chunked", method: "POST") + "zz\n",
            statuses: [400], closes: true),
        Exchange(
            name: "Expect: 100-continue", request: post("/v1/channels", create, "\nExpect: 100-continue"), statuses: [100, 200]),
        Exchange(
            name: "Expect: 100-continue for a body that is too large",
            request: get("/v1/channels", token + "\nExpect: 100-continue\nContent-Length: 2000000", method: "POST"),
            statuses: [413],
            closes: true),
        Exchange(
            name: "Expect: 100-continue with its body, after another request",
            request: livez + post("/v1/channels", create, "\nExpect: 100-continue"),
            statuses: [200, 200]),
        Exchange(name: "Expect: 100-continue without a body", request: get("/livez", "\nExpect: 100-continue"), statuses: [200]),
    ]

    @Test(
        "I21 a request gets its exact answer, and the connection stays in step or ends", arguments: methods + paths + heads + bodies
    )
    func answers(_ test: Exchange) async throws {
        let server = try await TestServer.shared()
        let token = try await server.token("ann")
        let connection = try await RawConnection.connect(port: server.port)
        // A body's line ends count as two bytes only where the parts of HTTP are.
        let bytes = test.request.replacing("TOKEN", with: token).replacing("\n", with: "\r\n")
        try await connection.send(bytes)
        let answers = await Self.answers(on: connection, atLeast: test.statuses.count, untilClosed: test.closes)
        #expect(answers.map(\.status) == test.statuses)
        guard let last = answers.last else { return }
        for (name, value) in test.headers { #expect(last.headers[name, default: ""] == value, "\(name)") }
        if let body = test.body { #expect(last.body == body) }
        if let field = test.field { #expect(try last.decoded(JSONValue.self)["field"]?.text == field) }
        if last.status >= 400, !last.body.isEmpty { #expect(last.headers["content-type"] == "application/problem+json") }
        await connection.close()
    }

    @Test("I21 a body that exceeds its limit is refused before its end, and its connection is closed")
    func longChunks() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        let connection = try await RawConnection.connect(port: server.port)
        let head = "POST /v1/channels HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\nTransfer-Encoding: chunked\r\n\r\n"
        try await connection.send(head)
        for _ in 0..<20 { connection.post(Array("10000\r\n".utf8) + [UInt8](repeating: 32, count: 65_536) + Array("\r\n".utf8)) }
        let answers = await Self.answers(on: connection, atLeast: 1, untilClosed: true)
        #expect(answers.map(\.status) == [413])
        #expect(answers.last?.headers["connection"] == "close")
        try await server.stop()
    }

    @Test(
        "I21 a user whose id is a word of another path is found by it, and Allow names the methods documented for the path",
        arguments: [("remove", "POST, OPTIONS"), ("role", "POST, OPTIONS"), ("invite", "GET, HEAD, OPTIONS")])
    func idsThatAreWords(_ word: String, _ allowed: String) async throws {
        let server = try await TestServer()
        let ann = try await server.token("ann")
        let path = "/v1/channels/group:club/members/\(word)"
        _ = try await server.request("GET", "/v1/me", token: try await server.token(UserID(word)))
        let made = try await server.request(
            "POST", "/v1/channels", token: ann, body: #"{"type":"group","channel":"group:club","users":["\#(word)"]}"#)
        #expect(made.status == 200)

        let answer = try await server.request("GET", path, token: ann)
        #expect(answer.status == 200)
        #expect(try answer.decoded(JSONValue.self)["member"]?["userId"]?.text == word)
        #expect(try await server.request("HEAD", path, token: ann).status == 200)
        #expect(try await server.request("OPTIONS", path).headers["allow"] == allowed)
        let refused = try await server.request("PATCH", path, token: ann)
        #expect([String(refused.status), refused.headers["allow"]] == ["405", allowed])
        try await server.stop()
    }

    // MARK: Web pages

    private static func origins(
        _ allowed: [String], _ requests: [(method: String, path: String, headers: [String])]
    ) async throws
        -> [[String: String]]
    {
        let origins = try AllowedOrigins(allowed)
        let server = try await TestServer { $0.allowedOrigins = origins }
        var answers: [[String: String]] = []
        for request in requests {
            let answer = try await server.request(request.method, request.path, headers: request.headers)
            answers.append(answer.headers.filter { $0.key.hasPrefix("access-control") || $0.key == "vary" })
        }
        try await server.stop()
        return answers
    }

    private static let preflight = ["Access-Control-Request-Method: PATCH", "Access-Control-Request-Headers: authorization"]

    @Test("a page of an allowed origin may send and read, one of another may not, and caches keep them apart")
    func origins() async throws {
        let answers = try await Self.origins(
            ["https://app.example.com", "http://localhost:3000"],
            [
                ("OPTIONS", "/v1/channels/x", ["Origin: https://app.example.com"] + Self.preflight),
                ("OPTIONS", "/v1/channels/x", ["Origin: https://evil.example.com"] + Self.preflight),
                ("GET", "/v1/me", ["Origin: http://localhost:3000"]),
                ("GET", "/v1/me", ["Origin: null"]),
                ("GET", "/v1/me", []),
                // These are refused before routing, and the last isn't a valid request.
                ("GET", "/v1/me", ["Origin: http://localhost:3000", "Content-Length: 2000000"]),
                ("GET", "/v1/me", ["Origin: https://evil.example.com", "Authorization: Bearer a", "Authorization: Bearer b"]),
                ("FOO", "/v1/me", ["Origin: http://localhost:3000"]),
            ])
        let exposed = "Retry-After, WWW-Authenticate, Allow"
        #expect(
            answers == [
                [
                    "access-control-allow-origin": "https://app.example.com", "vary": "Origin",
                    "access-control-allow-methods": "GET, HEAD, PATCH, DELETE, OPTIONS",
                    "access-control-allow-headers": "Authorization, Content-Type, Roost-Act-As, Idempotency-Key, If-Match",
                    "access-control-max-age": "7200",
                ],
                ["vary": "Origin"],
                [
                    "access-control-allow-origin": "http://localhost:3000", "vary": "Origin",
                    "access-control-expose-headers": exposed,
                ],
                ["vary": "Origin"],
                ["vary": "Origin"],
                [
                    "access-control-allow-origin": "http://localhost:3000", "vary": "Origin",
                    "access-control-expose-headers": exposed,
                ],
                ["vary": "Origin"],
                ["vary": "Origin"],
            ])
    }

    @Test("without a setting no page may read anything; with * each may, without credentials")
    func anyOrigin() async throws {
        let requests = [
            ("OPTIONS", "/v1/me", ["Origin: https://a.example"] + Self.preflight), ("GET", "/v1/me", ["Origin: https://a.example"]),
        ]
        #expect(try await Self.origins([], requests) == [[:], [:]])
        let answers = try await Self.origins(["*"], requests)
        #expect(answers.map { $0["access-control-allow-origin"] } == ["*", "*"])
        #expect(answers.allSatisfy { $0["access-control-allow-credentials"] == nil && $0["vary"] == nil })
    }

    @Test(
        "an invalid origin is refused when the server is set up",
        arguments: [
            "", "app.example.com", "https://", "https://a.example/", "https://a.example/x", "https://A.example", "ftp://a.example",
            "https://u@a.example", "null", "https://*.example.com,", "https://a.example?x",
        ])
    func badOrigins(_ origin: String) {
        #expect(throws: AllowedOrigins.Unusable.self) { _ = try AllowedOrigins([origin]) }
    }

    // MARK: Reading answers

    /// Splits the received bytes into answers by their lengths, as a client has to.
    static func answers(on connection: RawConnection, atLeast count: Int, untilClosed: Bool) async -> [TestServer.Answer] {
        var bytes: [UInt8] = []
        while let more = await connection.receive() {
            bytes += Array(more.readableBytesView)
            if !untilClosed, cut(bytes).count >= count { break }
        }
        return cut(bytes)
    }

    static func cut(_ bytes: [UInt8]) -> [TestServer.Answer] {
        var answers: [TestServer.Answer] = []
        var rest = bytes[...]
        while let end = rest.firstRange(of: Array("\r\n\r\n".utf8)),
            let head = try? TestServer.parse(String(decoding: rest[..<end.upperBound], as: UTF8.self))
        {
            // An answer to HEAD has a length and no body: the next answer follows it, or nothing.
            let body = rest[end.upperBound...]
            let isNext = body.isEmpty || body.starts(with: "HTTP/1.1 ".utf8)
            let length = isNext ? 0 : Int(head.headers["content-length"] ?? "0") ?? 0
            guard body.count >= length else { break }
            answers.append(
                .init(status: head.status, headers: head.headers, body: String(decoding: body.prefix(length), as: UTF8.self)))
            rest = body.dropFirst(length)
        }
        return answers
    }
}
