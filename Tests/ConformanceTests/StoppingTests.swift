import Foundation
import Logging
import NIOCore
import Roost
import RoostAPI
import RoostCore
import RoostDatabase
import RoostServer
import RoostTestSupport
import Testing

/// How a server shuts down: within its window and a moment, whatever is connected, notifying every client.
@Suite struct StoppingTests {
    /// `ROOST_STOPS` sets the number of stops, for an otherwise idle machine.
    private static let stops = ProcessInfo.processInfo.environment["ROOST_STOPS"].flatMap { Int($0) }
    private static let tries = stops ?? 2
    /// Each try takes all of it. A machine busy with other tests needs a longer one to answer in.
    private static let window = Duration.milliseconds(stops == nil ? 1500 : 400)

    @Test("a server ends within its window whatever is connected, isn't ready until then, and answers or closes every client")
    func everyKind() async throws {
        var slowest = Duration.zero
        for _ in 0..<Self.tries {
            let server = try await TestServer { $0.drainWindow = Self.window }
            let crowd = try await Crowd(server)
            async let statuses = crowd.askWhileItStops()
            let begin = ContinuousClock.now
            await server.beginStop()
            try await server.stop()
            let took = ContinuousClock.now - begin
            slowest = max(slowest, took)
            // The promise is a second; a machine busy with other tests is given much more. A server that waited for its clients would take
            // longer still.
            #expect(took >= Self.window && took < Self.window + .seconds(Self.stops == nil ? 20 : 1), "it took \(took)")
            let asked = await statuses
            #expect(!asked.isEmpty && Set(asked) == [503])
            try await crowd.expectEnds()
        }
        if Self.stops != nil { print("\(Self.tries) times, \(slowest) at most with a window of \(Self.window)") }
    }

    @Test("a request in progress when the server stops is answered with notice that the connection ends")
    func inFlight() async throws {
        let server = try await TestServer { $0.drainWindow = .seconds(5) }
        let token = try await server.token("ann")
        let connection = try await RawConnection.connect(port: server.port)
        let body = #"{"channel":"general","type":"community"}"#
        let head =
            "POST /v1/channels HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        try await connection.send(head + body.prefix(5))
        let idle = try await RawConnection.connect(port: server.port)
        try await idle.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(await idle.receive().map { String(buffer: $0) }?.hasPrefix("HTTP/1.1 200") == true)
        await server.beginStop()
        // An idle connection goes first: once it is gone the server is stopping.
        #expect(await idle.receive() == nil)
        try await connection.send(String(body.dropFirst(5)))
        let answer = try TestServer.parse(await connection.receiveAll())
        #expect(answer.status == 200)
        #expect(answer.headers["connection"] == "close")
        let late = try await server.request("GET", "/livez", headers: [])
        #expect(late.status == 200)
        #expect(late.headers["connection"] == "close")
        await #expect(throws: (any Error).self) { try await RawSocket.open(port: server.port) }
        try await server.stop()
    }

    @Test("an answer that a client is still reading when the server stops arrives whole")
    func slowReader() async throws {
        let server = try await TestServer { $0.drainWindow = .seconds(5) }
        let idle = try await RawConnection.connect(port: server.port)
        try await idle.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(await idle.receive().map { String(buffer: $0) }?.hasPrefix("HTTP/1.1 200") == true)
        let slow = try await RawConnection.connect(port: server.port, isNarrow: true)
        try await slow.setReading(false)
        try await slow.send("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
        // Once its beginning has arrived, the answer has been written, and most of it is queued.
        slow.readOnce()
        var bytes = await slow.receive().map { Array($0.readableBytesView) } ?? []
        #expect(!bytes.isEmpty && bytes.count < 65_536)
        await server.beginStop()
        // Once an idle connection is gone, the others have been notified too.
        #expect(await idle.receive() == nil)
        try await slow.setReading(true)
        while let more = await slow.receive() { bytes += Array(more.readableBytesView) }
        let answer = try TestServer.parse(String(decoding: bytes, as: UTF8.self))
        #expect(answer.headers["content-length"] == String(answer.body.utf8.count))
        try await server.stop()
    }

    @Test(
        "a server that stops while its disk hangs ends in time, removes its control socket first, and releases its files once the disk responds"
    )
    func hangingDisk() async throws {
        let directory = TemporaryDirectory.make()
        let control = directory.appending(path: "roost.control").path
        // Whether there is a socket when the server gives up on the disk: it can't have unlocked the directory by then.
        let hasSocket = Mailbox<Bool>()
        let logger = Logger(label: "test") { _ in
            LogTexts { text in
                guard text.contains("still waiting for the database") else { return }
                hasSocket.put(FileManager.default.fileExists(atPath: control))
            }
        }
        let server = try await TestServer(directory: directory, logger: logger)
        #expect(FileManager.default.fileExists(atPath: control))
        let (begun, hanging) = (Mailbox<Void>(), DispatchSemaphore(value: 0))
        let operation = Task {
            try await server.perform { _ in
                begun.put(())
                _ = hanging.wait(timeout: .now() + 60)
            }
        }
        #expect(await begun.next() != nil)
        let start = ContinuousClock.now
        try await server.end()
        #expect(.now - start < .seconds(40))
        #expect(await hasSocket.next() == false)
        hanging.signal()
        try TemporaryPlace.waitUntilFree(server.directory)
        _ = await operation.result
    }

    @Test("a server that stops while its disk is slow stores and answers what it accepted, and has all of it in one file")
    func slowDisk() async throws {
        let server = try await TestServer()
        let (begun, waiting) = (Mailbox<Void>(), DispatchSemaphore(value: 0))
        let first = Task {
            try await server.perform { _ in
                begun.put(())
                _ = waiting.wait(timeout: .now() + 60)
            }
        }
        #expect(await begun.next() != nil)
        let others = ["one", "two"].map { name in
            Task {
                try await server.perform { context in
                    _ = try context.transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), \(name))")
                }
            }
        }
        try await eventually("the others are queued") {
            let page = try MetricsText(try await server.request("GET", "/metrics").body)
            return page.value("roost_queue_length", ["queue": "write"]) == 2
        }
        await server.beginStop()
        // Long after the sockets are closed, and long before the server gives up.
        DispatchQueue.global().asyncAfter(deadline: .now() + 1.5) { waiting.signal() }
        try await server.end()
        let names = try FileManager.default.contentsOfDirectory(atPath: server.directory.path).sorted()
        #expect(names == ["roost.lock", "roost.sqlite", "roost.state", "token-secret"])
        for operation in [first] + others { try await operation.value }
        try TemporaryPlace.waitUntilFree(server.directory)
        let stored = try SQLiteDatabase(directory: server.directory).read { transaction in
            try transaction.rows("SELECT name FROM settings WHERE name IN ('one', 'two') ORDER BY name") { $0.string() }
        }
        #expect(stored == ["one", "two"])
    }

    @Test("signals that arrive together are one: the server ends within its window")
    func doubledSignal() async throws {
        let process = try await ServerProcess.start(directory: TemporaryDirectory.make(), arguments: ["--drain-window", "2"])
        // Two of one kind may arrive as one.
        process.signal(SIGTERM)
        process.signal(SIGINT)
        #expect(await process.end(within: .seconds(60)) == 0)
    }

    @Test("a second signal, more than a second after the first, ends the process at once")
    func secondSignal() async throws {
        let directory = TemporaryDirectory.make()
        let process = try await ServerProcess.start(directory: directory, arguments: ["--drain-window", "300"])
        process.signal(SIGTERM)
        try await waitUntilUnready(process)
        let status = try await Polling.value {
            process.signal(SIGTERM)
            return await process.end(within: .milliseconds(100))
        } until: {
            $0 != nil
        }
        #expect(status == 128 + SIGTERM)
    }

    @Test("SIGHUP shuts down a server whose input is a terminal, whoever sends it; one more signal a second later ends it")
    func signalAfterHangUp() async throws {
        let terminal = try PseudoTerminal()
        let process = try await ServerProcess.start(
            directory: TemporaryDirectory.make(), arguments: ["--drain-window", "300"], input: terminal.programEnd)
        process.signal(SIGHUP)
        try await waitUntilUnready(process)
        // It stops gracefully meanwhile.
        #expect(await process.end(within: .milliseconds(1200)) == nil)
        process.signal(SIGTERM)
        let status = await process.end(within: .seconds(60))
        #expect(status == 128 + SIGTERM)
        if status == nil { try await process.killNow() }
        // Without this end, the other one is no terminal.
        withExtendedLifetime(terminal) {}
    }

    /// Waits until a server isn't ready: then it has handled the first signal.
    private func waitUntilUnready(_ process: ServerProcess) async throws {
        let port = process.port
        try await Polling.value {
            let connection = try await RawConnection.connect(port: port)
            // A connection still waiting for a request when the server begins to stop is closed.
            connection.post(Array("GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8))
            return await connection.receiveAll()
        } until: {
            $0.hasPrefix("HTTP/1.1 503")
        }
    }
}

/// Passes on the text of each log line.
private struct LogTexts: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning
    let record: @Sendable (String) -> Void

    init(_ record: @escaping @Sendable (String) -> Void) { self.record = record }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { record("\(event.message)") }
}

/// One client of every kind that can hold a server up.
private final class Crowd: Sendable {
    private let server: TestServer
    private let connections: [RawConnection]
    private let sockets: [RawSocket]
    private let client: Chat
    private let busy: Task<Int, Never>

    init(_ server: TestServer) async throws {
        self.server = server
        let port = server.port
        let token = try await server.token("ann")
        func connection(_ text: String = "") async throws -> RawConnection {
            let connection = try await RawConnection.connect(port: port)
            if !text.isEmpty { try await connection.send(text) }
            return connection
        }
        let kept = try await connection("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        guard await kept.receive() != nil else { throw Missed("an answer") }
        let slowReader = try await connection()
        try await slowReader.setReading(false)
        for _ in 0..<200 { slowReader.post(Array("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".utf8)) }
        let upload = "POST /v1/channels HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\nContent-Length: 500\r\n\r\n{"
        connections = [
            try await connection(), try await connection("GET /li"), try await connection("GET /livez HTTP/1.1\r\nHost:"), kept,
            slowReader,
            try await connection(upload),
        ]
        let deaf = try await server.socket("deaf")
        let deafConnection = deaf.connection
        try await deafConnection.setReading(false)
        let text = String(repeating: "x", count: 10_000)
        _ = try await deaf.post(CreateChannel(channel: "heap"))
        for number in 0..<40 { _ = try await deaf.post(SendMessage(channel: "heap", clientId: ClientID("\(number)"), text: text)) }
        for _ in 0..<200 { deafConnection.post(RawSocket.frame(opcode: 1, Array(Self.list.utf8))) }
        sockets = [try await RawSocket.open(port: port), try await server.socket("bob"), deaf]
        client = Chat(url: server.url, user: "carol", configuration: .init(storage: .inMemory)) { try await server.token("carol") }
        try await client.connect()
        busy = Task {
            // Asks every 50 ms, on one connection while it is kept open, and counts the missing answers.
            var missing = 0
            while !Task.isCancelled, let connection = try? await RawConnection.connect(port: port) {
                while !Task.isCancelled {
                    guard (try? await connection.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")) != nil else { break }
                    let start = ContinuousClock.now
                    guard let answer = await connection.receive(within: .seconds(15)) else {
                        if ContinuousClock.now - start > .seconds(14) { missing += 1 }
                        break
                    }
                    if String(buffer: answer).lowercased().contains("connection: close") { break }
                    try? await Task.sleep(for: .milliseconds(50))
                }
                await connection.close()
            }
            return missing
        }
    }

    private static let list = #"{"call":9,"operation":"message.list","with":{"channel":"heap","limit":100}}"#

    /// The statuses of `/readyz` from the first that isn't 200 until the port is closed.
    func askWhileItStops() async -> [Int] {
        var statuses: [Int] = []
        while let answer = try? await server.request("GET", "/readyz") {
            if answer.status != 200 || !statuses.isEmpty { statuses.append(answer.status) }
        }
        return statuses
    }

    /// Checks that every connection has ended, whatever it was doing.
    func expectEnds() async throws {
        for connection in connections {
            try? await connection.setReading(true)
            #expect(await connection.isClosed(within: .seconds(15)))
        }
        for socket in sockets {
            let connection = socket.connection
            try? await connection.setReading(true)
            #expect(await connection.isClosed(within: .seconds(15)))
        }
        busy.cancel()
        #expect(await busy.value == 0)
        await client.disconnect()
    }
}
