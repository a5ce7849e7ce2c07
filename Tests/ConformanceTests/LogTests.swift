import Foundation
import Logging
import RoostAPI
import RoostCore
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// What a server's log contains, and what it doesn't.
@Suite struct LogTests {
    @Test("a refused client has a line with the reason; no line at any level contains a token, secret or text")
    func secrets() async throws {
        let server = try await WatchedServer.start(arguments: ["--log-level", "trace"])
        let text = "text-that-nobody-logs"
        let good = [
            try await server.token("ann"), try await server.token("backend", role: .service),
            try await server.token("root", role: .admin),
        ]
        let bad = [
            try await server.token("ann", expiresIn: -10), String(good[0].dropLast(3)) + "abc", "guess.of.somebody",
            "secret-guess-no-dots",
            String(repeating: "x", count: 9000),
        ]
        let socket = try await RawSocket.connect(port: server.port, token: good[0])
        try await socket.call(CreateChannel(channel: "general", type: "community"))
        try await socket.call(SendMessage(channel: "general", clientId: "1", text: text))
        try await socket.send(text: #"{"call":"\#(text)"#)
        for token in bad {
            _ = try await server.request("GET", "/v1/me", token: token)
            let refused = try await RawSocket.open(port: server.port)
            try await refused.send(json: AuthenticateFrame(token: token))
            while case .text = await refused.next() {}
            await refused.close()
            // A header can't be longer.
            guard token.utf8.count < 8000 else { continue }
            let byHeader = try await RawSocket.open(port: server.port, headers: ["Authorization: Bearer \(token)"])
            while case .text = await byHeader.next() {}
            await byHeader.close()
        }
        for token in good {
            _ = try await server.request("GET", "/v1/channels/general?token=\(token)", token: token)
            _ = try await server.request(
                "POST", "/v1/channels/general/messages", token: token, body: #"{"text":"\#(text)","oops":1}"#)
        }
        let type = #"{"basedOn":"community","policy":{"send":"operators"}}"#
        #expect(try await server.request("PUT", "/v1/channel-types/own", token: good[2], body: type).status == 200)
        await socket.close()
        try await server.stop()

        let log = server.log
        let secret = try String(contentsOf: server.directory.appending(path: "token-secret"), encoding: .utf8)
        let secrets = (good + bad + [secret.trimmingCharacters(in: .whitespacesAndNewlines), text]).flatMap { value in
            // Even a part of a token must not be logged, above all its signature.
            [value] + value.split(separator: ".").map(String.init).filter { $0.count > 20 }
        }
        #expect(secrets.filter { log.contains($0) } == [])
        let lines = log.split(separator: "\n").map(String.init)
        let refusals = lines.filter { $0.contains("A client was refused") }
        for words in ["transport=socket", "transport=http", "code=token_expired", "code=unauthenticated"] {
            #expect(refusals.contains { $0.contains(words) }, "\(words) in \(refusals)")
        }
        #expect(refusals.filter { !$0.contains("address=127.0.0.1") } == [])
        #expect(lines.contains { $0.contains("A token was refused") && $0.contains("reason=") })
        #expect(
            lines.contains {
                $0.contains("Permissions or access of others were changed") && $0.contains("type.put") && $0.contains("user=root")
            }
        )
    }

    @Test("nobody writes text of their own into the reason why a token was refused, except the plain name of a key")
    func refusedText() async throws {
        let keys = await TokenKeys(secret: Data(repeating: 7, count: 32))
        func reasons(_ header: String, _ payload: String = "{}") -> [String] {
            let lines = Mutex<[String]>([])
            let verifier = TokenVerifier(
                keys,
                logger: Logger(label: "test", factory: { _ in LogLines { line in lines.withLock { $0.append(line) } } }))
            let parts = [Data(header.utf8), Data(payload.utf8), Data(count: 32)]
            _ = verifier.verify(parts.map { TokenForge.base64($0) }.joined(separator: "."))
            return lines.withLock { $0 }
        }
        func named(_ kid: String) -> [String] { reasons(#"{"alg":"HS256","kid":"\#(kid)"}"#) }
        let longest = String(repeating: "k", count: 64)
        for kid in ["2027-key_1.a", longest] { #expect(named(kid) == ["reason=there is no key with the kid \(kid)"]) }
        let others = ["x A client was refused. address=203.0.113.9", "", "a=b", "clé", "²", "\u{FF41}", longest + "k"]
        for kid in others { #expect(named(kid) == ["reason=there is no key with its kid"], "\(kid)") }
        let twice = #"{"text that people wrote":{"a":1,"a":2}}"#
        #expect(reasons(twice) == ["reason=its header has a member more than once"])
        #expect(reasons(#"{"alg":"HS256"}"#, twice) == ["reason=its payload has a member more than once"])
    }

    @Test("a revoked token and a deactivated user are each refused with their own line and count, over both transports")
    func accessRefused() async throws {
        let server = try await WatchedServer.start()
        let root = try await RawSocket.connect(port: server.port, token: try await server.token("root", role: .admin))
        for user in ["bob", "cat"] as [UserID] { try await root.call(UpsertUser(user: user)) }
        let tokens = [try await server.token("bob"), try await server.token("cat")]
        try await root.call(RevokeUserTokens(user: "bob"))
        try await root.call(DeactivateUser(user: "cat"))
        for token in tokens {
            _ = try await server.request("GET", "/v1/me", token: token)
            let socket = try await RawSocket.open(port: server.port)
            try await socket.send(json: AuthenticateFrame(token: token))
            while case .text = await socket.next() {}
            await socket.close()
        }
        let page = try await server.metrics()
        await root.close()
        try await server.stop()
        let refusals = ["http", "socket"].flatMap { transport in
            ["token_revoked", "user_deactivated"].map { (transport: transport, code: $0) }
        }
        for (transport, code) in refusals {
            #expect(page.value("roost_authentications_total", ["transport": transport, "result": code]) == 1)
        }
        // Each token is counted once.
        #expect(page.value("roost_authentications_total", ["transport": "socket", "result": "ok"]) == 1)
        #expect(page.value("roost_authentications_total", ["transport": "http", "result": "ok"]) == nil)
        let lines = server.log.split(separator: "\n").filter { $0.contains("A client was refused") }
        for (transport, code) in refusals {
            let words = ["transport=\(transport)", "code=\(code)", "address=127.0.0.1"]
            #expect(lines.filter { line in words.allSatisfy { line.contains($0) } }.count == 1, "\(lines)")
        }
        #expect(lines.count == refusals.count)
    }

    @Test("behind a trusted proxy the line of a refusal has the client's address, over both transports; without trust the proxy's")
    func addressBehindAProxy() async throws {
        for isTrusted in [true, false] {
            let server = try await WatchedServer.start(arguments: isTrusted ? ["--trusted-proxies", "127.0.0.0/8"] : [])
            let headers = ["Authorization: Bearer a.b.c", "X-Forwarded-For: 203.0.113.7"]
            _ = try await TestServer.request("GET", "/v1/me", port: server.port, headers: headers)
            let socket = try await RawSocket.open(port: server.port, headers: headers)
            while case .text = await socket.next() {}
            await socket.close()
            try await server.stop()
            let lines = server.log.split(separator: "\n").filter { $0.contains("A client was refused") }
            #expect(lines.count == 2)
            #expect(lines.filter { !$0.contains(isTrusted ? "address=203.0.113.7" : "address=127.0.0.1") } == [])
        }
    }

    @Test("reached limits are counted, and get a line with the setting and the user or address, one a second")
    func limits() async throws {
        let server = try await WatchedServer.start(
            arguments: ["--unauthenticated-connections-per-address", "5", "--connections-per-user", "2"])
        var sockets: [RawSocket] = []
        for _ in 0..<2 { sockets.append(try await server.socket("ann")) }
        let third = try await RawSocket.open(port: server.port)
        try await third.send(json: AuthenticateFrame(token: try await server.token("ann")))
        while case .text = await third.next() {}
        var connections: [RawConnection] = []
        for _ in 0..<100 { connections.append(try await .connect(port: server.port)) }
        let ofUser = "limit=connections-per-user"
        let ofAddress = "limit=unauthenticated-connections-per-address"
        _ = try await Polling.value {
            server.log
        } until: {
            $0.contains(ofUser) && $0.contains(ofAddress)
        }
        for connection in connections { await connection.close() }
        // Until the address has capacity again, the page is refused too.
        let page = try await Polling.value {
            try await server.request("GET", "/metrics")
        } until: {
            $0.status == 200
        }
        let refused = try ["user", "address", "total"].map { reason in
            try MetricsText(page.body).value("roost_connections_refused_total", ["reason": reason]) ?? 0
        }
        #expect(refused[0] == 1 && refused[1] >= 1 && refused[2] == 0)
        for socket in sockets + [third] { await socket.close() }
        try await server.stop()
        let lines = server.log.split(separator: "\n").filter { $0.contains("Limit reached") }
        #expect(lines.filter { $0.contains(ofUser) && $0.contains("user=ann") && $0.contains("address=127.0.0.1") }.count == 1)
        let addresses = lines.filter { $0.contains(ofAddress) && $0.contains("address=127.0.0.1") }
        #expect((1...20).contains(addresses.count))
    }

    @Test("a user whom a token names by an invalid id is in no line about a limit")
    func invalidUser() {
        let lines = Mutex<[String]>([])
        let security = SecurityLog(
            logger: Logger(label: "test", factory: { _ in LogLines { line in lines.withLock { $0.append(line) } } }))
        security.reached(.requestsOfUser, user: UserID("ann\nroot came in"))
        security.reached(.memoryOfUser, user: "ann")
        #expect(lines.withLock { $0 } == ["limit=requests-per-user", "limit=memory-budget, a quarter for one user user=ann"])
    }

    @Test(
        "each change of types, roles, tokens or users' access and each device sign-out has a line; nothing else has one"
    )
    func administration() {
        let lines = Mutex<[String]>([])
        let security = SecurityLog(
            logger: Logger(label: "test", factory: { _ in LogLines { line in lines.withLock { $0.append(line) } } }))
        let caller = Caller(user: "root", role: .admin)
        for operation in Operations.all { security.done(operation.name, by: caller) }
        security.done("type.put", by: caller)
        let logged = [
            "role.delete", "role.put", "token.revoke", "type.delete", "type.put", "type.put", "user.deactivate",
            "user.reactivate", "user.revokeTokens",
        ]
        let signOut = "user=root"
        #expect(lines.withLock { $0.sorted() } == logged.map { "operation=\($0) role=admin user=root" } + [signOut])
    }

    @Test("a thousand refusals at once make a few lines, which say how many were left out")
    func paced() {
        let now = Mutex<UInt64>(5_000_000_000)
        let pace = LogThrottle(now: { now.withLock { $0 } })
        func turns(_ kind: String, _ count: Int) -> [LogThrottle.Turn] { (0..<count).compactMap { _ in pace.turn(kind) } }
        #expect(turns("one", 1000).map(\.suppressedCount) == [0])
        #expect(turns("two", 10).map(\.suffix) == [""])
        now.withLock { $0 += 1_000_000_000 }
        #expect(turns("one", 3).map(\.suffix) == [" (and 999 like it)"])
        now.withLock { $0 += 1_000_000_000 }
        #expect(turns("one", 1).map(\.suppressedCount) == [2])
        // Names can't fill the memory: beyond a number of kinds the others share one pace.
        let others = (0..<10 * LogThrottle.kindsMax).flatMap { turns("kind \($0)", 1) }
        #expect(others.count <= LogThrottle.kindsMax + 1)
    }
}
