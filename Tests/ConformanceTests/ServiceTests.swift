import Foundation
import Logging
import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostServer

/// The server around the operations: health, description, shutdown, the lock on the data directory.
@Suite struct ServiceTests {
    @Test("I21 every refusal over HTTP is a problem document, malformed requests included")
    func problems() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        var answers = [
            try await server.request("GET", "/nowhere"),
            try await server.request("PATCH", "/v1/channels"),
            try await server.request("GET", "/v1/socket"),
            try await server.request("GET", "/v1/me"),
            try await server.request("GET", "/v1/channels/none", token: token),
            try await server.request("GET", "/v1/channels?limit=x", token: token),
            try await server.request("GET", "/v1/channels?limit=1&limit=2", token: token),
            try await server.request("POST", "/v1/channels", token: token, body: "{"),
            try await server.request("POST", "/v1/channels", token: token, body: "[]"),
            try await server.request("POST", "/v1/channels?type=community", token: token, body: "{}"),
            try await server.request("POST", "/v1/channels/general/watch", token: token, body: "{}"),
        ]
        let connection = try await RawConnection.connect(port: server.port)
        try await connection.send("THIS IS NOT HTTP\r\n\r\n")
        answers.append(try TestServer.parse(await connection.receiveAll()))
        #expect(answers.map(\.status) == [404, 405, 426, 401, 404, 400, 400, 400, 400, 400, 409, 400])
        #expect(answers.allSatisfy { $0.headers["content-type"] == "application/problem+json" && $0.code != nil })
        try await server.stop()
    }

    #if os(Linux)
    @Test("the server's threads have names that top, ps and perf show")
    func threadNames() async throws {
        let server = try await WatchedServer.start()
        // A backup has a thread while it runs.
        let backups = Task {
            while !Task.isCancelled {
                let answer = try await ControlSocket.ask(
                    .init(backup: TemporaryDirectory.make().path, withSecret: false), in: server.directory)
                try #require(answer.backup != nil, "\(answer.error ?? "")")
            }
        }
        var missing = Set([
            "roost-lane-1", "roost-reader-1", "roost-reader-2", "roost-signals", "roost-copier", "roost-effects", "roost-memory",
            "roost-control",
        ])
        // A thread gets its name once it runs.
        try? await eventually("all threads") {
            missing.subtract(try server.process.threadNames())
            return missing.isEmpty
        }
        #expect(missing.isEmpty)
        backups.cancel()
        _ = await backups.result
        try await server.stop()
    }
    #endif

    @Test("ST-02 watching over HTTP is refused: there is no connection")
    func watchOverHTTP() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        _ = try await server.request("POST", "/v1/channels", token: token, body: #"{"channel":"general","type":"community"}"#)
        let answer = try await server.request("POST", "/v1/channels/general/watch", token: token, body: "{}")
        #expect([String(answer.status), answer.code] == ["409", "not_connected"])
        try await server.stop()
    }

    @Test("AM-13 ids with spaces, letters of any script and percent signs travel in paths")
    func idsInPaths() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        for (id, path) in [
            ("a b", "a%20b"), ("50%", "50%25"), ("日本", "%E6%97%A5%E6%9C%AC"), ("a?b#c", "a%3Fb%23c"), ("a+b", "a+b"),
        ] {
            let body = #"{"channel":"\#(id)","type":"community"}"#
            let created = try await server.request("POST", "/v1/channels", token: token, body: body)
            let found = try await server.request("GET", "/v1/channels/\(path)", token: token)
            let ids = try [created, found].map { try $0.decoded(ChannelView.self).channel.channelId }
            #expect(ids == [ChannelID(id), ChannelID(id)])
        }
        try await server.stop()
    }

    @Test("AM-13 the ids that a server makes for channels have unpredictable endings")
    func unknownIDs() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        var ends: Set<String> = []
        for _ in 0..<3 {
            let created = try await server.request("POST", "/v1/channels", token: token, body: #"{"type":"community"}"#)
            ends.insert(String(try created.decoded(ChannelView.self).channel.channelId.rawValue.suffix(12)))
        }
        #expect(ends.count == 3)
        try await server.stop()
    }

    @Test("the front page, the API description, health and metrics are served")
    func service() async throws {
        let server = try await TestServer()
        let page = try await server.request("GET", "/")
        // Not "joins a conversation": conversations can't be joined.
        #expect(page.body.contains("<code>roost chat general --as ann</code> opens a\nchannel."))
        #expect(page.headers["content-type"] == "text/html; charset=utf-8" && page.body.contains("/openapi.json"))
        // It supports dark mode too, and has an icon, so browsers request none.
        #expect(page.body.contains("color-scheme: light dark") && page.body.contains(#"<link rel="icon" href="data:,">"#))
        let description = try await server.request("GET", "/openapi.json").decoded(JSONValue.self)
        guard case .object(let paths) = description["paths"] else { throw Missed("paths") }
        let named = paths.values.flatMap { path -> [String] in
            guard case .object(let methods) = path else { return [] }
            return methods.values.compactMap { $0["operationId"]?.text }
        }
        #expect(Set(named) == Set(Operations.all.map { $0.name }))
        let others = [
            try await server.request("GET", "/livez").status, try await server.request("GET", "/readyz").status,
            try await server.request("GET", "/asyncapi.json").status,
        ]
        #expect(others == [200, 200, 200])
        #expect(try await server.request("GET", "/metrics").body.contains("roost_sockets 0"))
        try await server.stop()
    }

    @Test("the front page runs no script, and no text answer can be taken for another type")
    func pageHeaders() async throws {
        let server = try await TestServer()
        for path in ["/", "/livez", "/readyz", "/metrics"] {
            let answer = try await server.request("GET", path)
            let seen = ["content-security-policy", "x-content-type-options"].map { answer.headers[$0] }
            #expect(answer.headers["content-type"]?.hasPrefix("text/") == true)
            #expect(seen == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:", "nosniff"], "\(path)")
        }
        try await server.stop()
    }

    @Test("a stopping server closes its sockets with a time to reconnect, and keeps what it acknowledged")
    func drains() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        try await socket.call(CreateChannel(channel: "general"))
        let message = try await socket.call(SendMessage(channel: "general", clientId: "c", text: "kept"))
        await server.beginStop()
        guard case .text(let closing) = await socket.next() else { throw Missed("a closing frame") }
        #expect(closing.hasPrefix(#"{"closing":{"reason":"restart","retryAfterMilliseconds":"#))
        guard case .close(let code, _) = await socket.next() else { throw Missed("a close") }
        #expect(code == CloseCode.restart.rawValue)
        try await server.stop()

        let again = try await TestServer(directory: server.directory)
        let page = try await again.socket("ann").call(ListMessages(channel: "general"))
        #expect(page.messages == [message])
        try await again.stop()
    }

    @Test("a first start that can't listen is refused with the reason, and leaves no data directory")
    func addressInUse() async throws {
        let server = try await TestServer()
        let data = TemporaryDirectory.make()
        let run = try await CommandRun.roost(arguments: ["serve", "--data", data.path, "--port", "\(server.port)"])
        #expect(run.status == 1 && run.errors.contains("Port \(server.port) on 127.0.0.1 is in use."))
        #expect(!FileManager.default.fileExists(atPath: data.path))
        try await server.stop()
    }

    @Test("a data directory that can't be made is refused with the system's error")
    func directoryInTheWay() async throws {
        let place = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let file = place.appending(path: "file")
        try Data("x".utf8).write(to: file)
        let run = try await CommandRun.roost(arguments: ["serve", "--data", "\(file.path)/data", "--port", "0"])
        let expected =
            "Error: The data directory \(file.path)/data can't be created: Not a directory. Give another one with --data.\n"
        #expect(run.status == 1 && run.errors.hasSuffix(expected), "\(run.errors)")
    }

    @Test(
        "an invalid database or bus URL is refused with what it has to be, and its secret isn't repeated",
        arguments: [
            ("DATABASE", "ann:s3cret@localhost/roost", "database must be sqlite or like postgres://user@host/name"),
            ("DATABASE", "mysql://ann:s3cret@localhost/roost", "database must be sqlite or like postgres://user@host/name"),
            ("DATABASE", "SQLite", "database must be sqlite or like postgres://user@host/name"),
            ("BUS", "ann:s3cret@localhost", "bus must be none or like nats://host:4222"),
        ])
    func mistypedServer(name: String, value: String, requirement: String) async throws {
        let data = TemporaryDirectory.make()
        let environment = ["ROOST_DATA": data.path, "ROOST_\(name)": value]
        let message = "\(requirement) (from ROOST_\(name))"
        let refused = try await CommandRun.roost(arguments: ["serve", "--port", "0"], environment: environment)
        #expect([refused.errors, refused.output] == ["Error: \(message).\n", ""])
        #expect(refused.status == 1 && !FileManager.default.fileExists(atPath: data.path))
        let shown = try await CommandRun.roost(arguments: ["config", "show"], environment: environment)
        #expect(shown.status == 0 && shown.output.contains("ROOST_\(name)"), "\(shown.errors)")
        let warning = "No server will start with this value, which is shown as … because it may hold a secret."
        #expect(shown.errors == "Warning: \(message). \(warning)\n")
        let examined = try await CommandRun.roost(arguments: ["doctor", "--url", "http://127.0.0.1:1"], environment: environment)
        #expect(
            examined.output.contains("\(name.lowercased()): \(message). The server won't start with this value: correct it\n"),
            "\(examined.output)")
        let flag = try await CommandRun.roost(arguments: ["serve", "--port", "0", "--\(name.lowercased())", value])
        #expect(
            flag.status == 64 && flag.errors.hasPrefix("Error: \(requirement) (from --\(name.lowercased())).\n"), "\(flag.errors)")
        #expect(![shown, examined, flag].contains { ($0.errors + $0.output).contains("s3cret") })
    }

    @Test("page-cache is the size of the page caches of the database in the data directory")
    func pageCache() throws {
        var configuration = RoostServer.Configuration(dataDirectory: TemporaryDirectory.make())
        configuration.pageCacheBytes = 40 << 20
        let database = try #require(try Storage(configuration, logger: Logger(label: "test")).file)
        #expect(try database.pageCacheKibibytes() == [30 << 10, 5 << 10, 5 << 10])
        try database.close()
    }

    @Test("I20 a second server on the same data directory is refused with a clear message")
    func lock() async throws {
        let server = try await TestServer()
        let error = await #expect(throws: DirectoryLock.Held.self) { _ = try await TestServer(directory: server.directory) }
        #expect(
            error?.description.contains("is in use by another Roost server (process \(ProcessInfo.processInfo.processIdentifier))")
                == true)
        try await server.stop()
    }
}
