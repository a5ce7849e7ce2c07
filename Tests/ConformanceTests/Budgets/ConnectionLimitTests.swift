import Foundation
import NIOCore
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// The limits on connections of one address, of one user and of all together, and the answers beyond them.
@Suite struct ConnectionLimitTests {
    private static let livez = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

    private static func open(_ count: Int, on server: TestServer) async throws -> [RawConnection] {
        var connections: [RawConnection] = []
        for _ in 0..<count { connections.append(try await .connect(port: server.port)) }
        return connections
    }

    /// Waits until the server has accepted the kernel's pending connections.
    private static func answer(of server: TestServer, to path: String, until status: Int) async throws -> TestServer.Answer {
        try await Polling.value {
            try await server.request("GET", path)
        } until: {
            $0.status == status
        }
    }

    @Test(
        "health checks are answered while one address is at its limit of connections, and everything else is refused with a code"
    )
    func oneAddress() async throws {
        let origins = try AllowedOrigins(["https://app.example.com"])
        let server = try await TestServer {
            $0.unauthenticatedConnectionsPerAddressMax = 20
            $0.allowedOrigins = origins
        }
        let held = try await Self.open(300, on: server)
        let refused = try await Self.answer(of: server, to: "/openapi.json", until: 503)
        #expect([refused.code, refused.headers["connection"], refused.headers["retry-after"]] == ["overloaded", "close", "2"])
        #expect(refused.headers["vary"] == "Origin")
        for path in ["/livez", "/readyz"] {
            let answer = try await server.request("GET", path)
            #expect(answer.status == 200)
            #expect(answer.headers["connection"] == "close")
        }
        await #expect(throws: (any Error).self) { try await server.socket("ann") }
        for connection in held { await connection.close() }
        // Once they are gone, the same address is served again.
        _ = try await Self.answer(of: server, to: "/openapi.json", until: 200)
        try await server.stop()
    }

    @Test("at the limit on open files the server waits before retrying, says so, and continues once it may open more")
    func openFiles() async throws {
        let server = try await WatchedServer.start()
        let process = server.process.identifier
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
        func limitOpenFiles(to count: Int) async throws {
            let run = try await CommandRun.program("/usr/bin/prlimit", arguments: ["--pid", "\(process)", "--nofile=\(count):"])
            guard run.status == 0 else { throw Missed("another limit on open files: \(run.errors)") }
        }
        try await limitOpenFiles(to: open + 4)
        var connections: [RawConnection] = []
        for _ in 0..<30 { connections.append(try await .connect(port: server.port)) }
        let text = "Couldn't accept a connection"
        _ = try await Polling.value {
            server.log
        } until: {
            $0.contains(text)
        }
        try await limitOpenFiles(to: open + 1000)
        #expect(try await server.request("GET", "/livez").status == 200)
        // Two tries are a tenth of a second apart, in which a spinning core would try a hundred thousand times.
        let failures = try await server.metrics().value("roost_accept_failures_total") ?? 0
        #expect((1...500).contains(failures))
        for connection in connections { await connection.close() }
        try await server.stop()
        #expect((1...60).contains(server.log.components(separatedBy: text).count - 1))
    }

    @Test("health checks are answered while every connection is held")
    func allHeld() async throws {
        let server = try await TestServer { $0.connectionsMax = 10 }
        let held = try await Self.open(200, on: server)
        let refused = try await Self.answer(of: server, to: "/v1/me", until: 503)
        #expect(refused.code == "overloaded")
        let head = try await server.request("HEAD", "/v1/me")
        #expect([String(head.status), head.body] == ["503", ""])
        let answer = try await server.request("GET", "/livez")
        #expect(answer.status == 200)
        // Pipelined requests are answered in order, refused or not; none is read after the refusal.
        let pipelined = try await RawConnection.connect(port: server.port)
        let paths = ["/livez", "/v1/me", "/livez"]
        try await pipelined.send(paths.map { "GET \($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined())
        let answers = await pipelined.receiveAll().components(separatedBy: "HTTP/1.1 ").dropFirst()
        #expect(answers.map { $0.prefix(3) } == ["200", "503"])
        #expect(answers.map { $0.lowercased().contains("connection: close") } == [false, true])
        for connection in held { await connection.close() }
        try await server.stop()
    }

    @Test("authenticated users don't count for their address, and have their own limit; services have none")
    func oneUser() async throws {
        let server = try await TestServer {
            $0.unauthenticatedConnectionsPerAddressMax = 3
            $0.connectionsPerUserMax = 4
        }
        var sockets: [RawSocket] = []
        for _ in 0..<4 { sockets.append(try await server.socket("ann")) }
        let fifth = try await RawSocket.open(port: server.port)
        try await fifth.send(json: AuthenticateFrame(token: try await server.token("ann")))
        guard case .text(let error) = await fifth.next() else { throw Missed("an error") }
        #expect(error.contains(#""code":"overloaded""#))
        #expect(await fifth.next() == .close(code: 4029, reason: "too many connections"))
        let overHTTP = try await server.request("GET", "/v1/me", token: try await server.token("ann"))
        #expect(overHTTP.status == 503)
        #expect(overHTTP.code == "overloaded")
        sockets.append(try await server.socket("bob"))
        for _ in 0..<6 { sockets.append(try await server.socket("backend", role: .service)) }
        await sockets[0].close()
        _ = try await Polling.value {
            try await server.request("GET", "/v1/me", token: try await server.token("ann"))
        } until: {
            $0.status == 200
        }
        for socket in sockets { await socket.close() }
        try await server.stop()
    }

    @Test("behind a trusted proxy the client's address counts, for sockets; without trust the header is ignored")
    func behindAProxy() async throws {
        for isTrusted in [true, false] {
            let server = try await TestServer {
                $0.unauthenticatedConnectionsPerAddressMax = 2
                $0.trustedProxies = isTrusted ? ["127.0.0.0/8"] : []
            }
            func open(_ address: String) async throws -> RawSocket {
                try await .open(port: server.port, headers: ["X-Forwarded-For: 198.51.100.9, \(address)"])
            }
            var sockets = [try await open("203.0.113.1"), try await open("203.0.113.1")]
            if isTrusted {
                await #expect(throws: (any Error).self) { try await open("203.0.113.1") }
                sockets.append(try await open("203.0.113.2"))
                #expect(try await server.request("GET", "/openapi.json").status == 200)
            } else {
                await #expect(throws: (any Error).self) { try await open("203.0.113.2") }
            }
            for socket in sockets { await socket.close() }
            try await server.stop()
        }
    }
}
