import Foundation
import RoostAPI
import RoostTestSupport
import Testing

@testable import RoostServer

/// The memory and the descriptors of a server's whole process during hundreds of hostile connections, and after they have left.
///
/// The bounds have room for a debug build. `roost bench hostile` measures thousands on a release build.
@Suite(.serialized) struct MemoryStormTests {
    private static let mebibyte = 1 << 20

    /// A value of `/proc/PID/status`, in MiB.
    private static func mebibytes(_ name: String, of server: WatchedServer) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(server.process.identifier)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
        guard let size = line?.split(separator: " ").dropLast().last.flatMap({ Int($0) }) else { throw Missed(name) }
        return size / 1024
    }

    /// The files and connections that the server has open, one of which asks for it.
    private static func openFiles(of server: WatchedServer) async throws -> Double {
        guard let count = try await server.metrics().value("process_open_fds") else { throw Missed("a number of open files") }
        return count
    }

    private static let firstFrame = RawSocket.frame(opcode: 1, letters(16_384)).dropLast()
    private static let frame = RawSocket.frame(opcode: 1, letters(Limits.messageSizeBytes)).dropLast()
    private static let fragments = (0..<5).flatMap { RawSocket.frame(opcode: $0 == 0 ? 1 : 0, letters(60_000), isFinal: false) }

    private static func letters(_ count: Int) -> [UInt8] { [UInt8](repeating: 97, count: count) }

    private static func upgrade(token: String?) -> [UInt8] {
        let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        return Array(
            """
            GET /v1/socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\(authorization)\r\n
            """.utf8)
    }

    /// The input of one connection, of seven kinds: unfinished, or with answers that aren't read.
    private static func bytes(_ number: Int, token: String) -> [UInt8] {
        switch number % 7 {
        case 0: Array("GET / HTTP/1.1\r\nHost: x\r\nX: ".utf8) + letters(7900)
        case 1: upgrade(token: nil) + firstFrame
        case 2: Array(String(repeating: "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", count: 100).utf8)
        case 3:
            Array(
                """
                POST /v1/channels HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\nContent-Type: application/json\r\n\
                Content-Length: \(Limits.bodySizeBytes)\r\n\r\n
                """.utf8) + letters(Limits.bodySizeBytes - 1)
        case 4: upgrade(token: token) + frame
        // Without the end of its head.
        case 5: Array(upgrade(token: token).dropLast(2))
        default: upgrade(token: token) + fragments
        }
    }

    /// Opens connections that send all that and read nothing.
    private static func attack(_ server: WatchedServer, count: Int) async throws -> [RawConnection] {
        var tokens: [String] = []
        for number in 0..<20 { tokens.append(try await server.token(UserID("mallory\(number)"))) }
        var connections: [RawConnection] = []
        for number in 0..<count {
            let connection = try await RawConnection.connect(port: server.port)
            try await connection.setReading(false)
            connection.post(bytes(number, token: tokens[number / 7 % tokens.count]))
            connections.append(connection)
        }
        return connections
    }

    @Test(
        "I18 the memory for 280 hostile connections is bounded; it and all descriptors are returned when they leave, refused ones too"
    )
    func givenBack() async throws {
        let server = try await WatchedServer.start(arguments: ["--connections-max", "340"])
        // Made once, on the first request.
        _ = try await server.request("GET", "/openapi.json")
        let before = try Self.mebibytes("VmRSS", of: server)
        let filesBefore = try await Self.openFiles(of: server)
        var connections = try await Self.attack(server, count: 280)
        try await Polling.value {
            try await server.metrics().value("roost_held_bytes") ?? 0
        } until: {
            $0 > 16_000_000
        }
        // More than are accepted, which send nothing. On a slow machine some of the first are gone by now.
        try await Polling.value {
            for _ in 0..<90 { connections.append(try await .connect(port: server.port)) }
            return try await server.request("GET", "/openapi.json").status
        } until: {
            $0 == 503
        }
        for connection in connections { await connection.close() }
        // Only health checks are answered until there is room.
        try await Polling.value {
            try await server.request("GET", "/openapi.json").status
        } until: {
            $0 == 200
        }
        try await Polling.value {
            try await server.metrics().value("roost_held_bytes") ?? -1
        } until: {
            $0 == 0
        }
        let grown = try Self.mebibytes("VmHWM", of: server) - before
        #expect(grown < 96, "\(grown) MiB")
        let left = try await Polling.value {
            try Self.mebibytes("VmRSS", of: server) - before
        } until: {
            $0 < 24
        }
        // There are 40 connections of each kind. The server may have opened a few files for itself.
        try await Polling.value {
            try await Self.openFiles(of: server) - filesBefore
        } until: {
            $0 < 10
        }
        print("Memory of a storm: \(before) MiB at rest, \(grown) more at the peak, \(left) more afterwards.")
        try await server.stop()
    }

    @Test("I18 new members of large channels get a copy each, and few of these are held at a time")
    func told() async throws {
        let (userCount, channelCount) = (99, 8)
        let server = try await WatchedServer.start()
        let token = try await server.token("ann")
        let text = String(repeating: "x", count: 90_000)
        for number in 0..<channelCount {
            let channel = try await server.request(
                "POST", "/v1/channels", token: token,
                body: #"{"type":"group","channel":"c\#(number)","displayName":"c","metadata":{"a":"\#(text)"}}"#)
            #expect(channel.status < 300, "\(channel.body)")
            let message = try await server.request(
                "POST", "/v1/channels/c\(number)/messages", token: token,
                body: #"{"clientId":"m","text":"hi","metadata":{"a":"\#(text)"}}"#)
            #expect(message.status < 300, "\(message.body)")
        }
        var sockets: [RawConnection] = []
        for number in 0..<userCount {
            let connection = try await RawConnection.connect(port: server.port)
            try await connection.setReading(false)
            connection.post(Self.upgrade(token: try await server.token(UserID("user\(number)"))))
            sockets.append(connection)
        }
        try await Polling.value {
            let connections = try await server.metrics().samples.filter { $0.name == "roost_connections" }
            return connections.first { $0.labels["state"] == "authenticated" }?.value
        } until: {
            $0 == Double(userCount)
        }
        // Resets the peak.
        try Data("5".utf8).write(to: URL(filePath: "/proc/\(server.process.identifier)/clear_refs"))
        let before = try Self.mebibytes("VmHWM", of: server)
        let users = (0..<userCount).map { "\"user\($0)\"" }.joined(separator: ",")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<channelCount {
                group.addTask {
                    let answer = try await server.request(
                        "POST", "/v1/channels/c\(number)/members", token: token, body: "{\"users\":[\(users)]}")
                    #expect(answer.status < 300, "\(answer.body)")
                }
            }
            try await group.waitForAll()
        }
        // A lagging event loop delivers after the calls are answered.
        let reported = try await Polling.value {
            try await server.metrics().value("roost_sent_bytes_total") ?? 0
        } until: {
            $0 > Double(userCount * channelCount * 2 * text.utf8.count)
        }
        let grown = try Self.mebibytes("VmHWM", of: server) - before
        #expect(grown < 64, "\(grown) MiB")
        print("Memory of notifications: \(grown) MiB for \(Int(reported) >> 20).")
        for connection in sockets { await connection.close() }
        try await server.stop()
    }

    @Test("I18 of simultaneous bodies as many are read as there is room for; the others are refused as overloaded")
    func bodies() async throws {
        let server = try await WatchedServer.start(arguments: ["--memory-budget", "8"])
        var connections: [RawConnection] = []
        var tokens: [String] = []
        for number in 0..<40 {
            connections.append(try await RawConnection.connect(port: server.port))
            tokens.append(try await server.token(UserID("mallory\(number)")))
        }
        for (connection, token) in zip(connections, tokens) {
            connection.post(
                Array(
                    """
                    POST /v1/channels HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\nContent-Type: application/json\r\n\
                    Content-Length: \(Limits.bodySizeBytes)\r\n\r\n{
                    """.utf8))
        }
        // The server refuses new users at their first authentication while more bodies than that begin at one moment.
        try await Polling.value {
            try await server.metrics().samples.filter { $0.name == "roost_refusals_total" && $0.labels["code"] == "overloaded" }
                .reduce(0) { $0 + $1.value }
        } until: {
            $0 >= 32
        }
        #expect(try await server.metrics().value("roost_held_bytes") ?? .infinity <= Double(8 * Self.mebibyte))
        for connection in connections { await connection.close() }
        try await server.stop()
    }

    @Test("I18 the process's limit isn't exceeded: others are refused as overloaded near it, and served again afterwards")
    func limit() async throws {
        let limitMebibytes = MemoryGovernor.limitBytesMin / Self.mebibyte
        let server = try await WatchedServer.start(arguments: ["--memory-limit", "\(limitMebibytes)", "--memory-budget", "512"])
        let token = try await server.token("ann")
        #expect(try await server.request("GET", "/v1/me", token: token).status == 200)
        var hostile = try await Self.attack(server, count: 490)
        // On a slow machine the first are gone before the last arrive: a body has a deadline.
        let refusal = try await Polling.value(within: .seconds(60)) {
            let answer = try await server.request("GET", "/v1/me", token: token)
            if answer.status != 503, hostile.count < 4000 { hostile += try await Self.attack(server, count: 105) }
            return answer
        } until: {
            $0.status == 503
        }
        #expect(refusal.code == "overloaded")
        #expect(try await server.request("GET", "/livez").status == 200)
        for connection in hostile { await connection.close() }
        try await Polling.value {
            try await server.request("GET", "/v1/me", token: token).status
        } until: {
            $0 == 200
        }
        let peak = try Self.mebibytes("VmHWM", of: server)
        #expect(peak < limitMebibytes, "\(peak) MiB")
        print("Memory limit: \(peak) of \(limitMebibytes) MiB at the peak.")
        try await server.stop()
    }
}
