import Foundation
import NIOCore
import RoostAPI
import RoostTestSupport
import Testing

/// The moment in which HTTP becomes a socket: bytes before, in and after a request for an upgrade, however they are cut into packets.
@Suite struct UpgradeTests {
    static let upgrade = request("GET", "/v1/socket", upgradeHeaders)
    private static let upgradeHeaders = [
        "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]

    private static func request(_ method: String, _ path: String, _ headers: [String] = [], body: String = "") -> String {
        (["\(method) \(path) HTTP/1.1", "Host: 127.0.0.1"] + headers).joined(separator: "\r\n") + "\r\n\r\n" + body
    }

    private static func frame(_ token: String) throws -> [UInt8] {
        RawSocket.frame(opcode: 1, try JSONWriter.bytes(of: AuthenticateFrame(token: token)))
    }

    /// Returns what the server sends until it contains the needle, or until the server closes.
    private static func answer(_ connection: RawConnection, until needle: String) async -> String {
        var bytes: [UInt8] = []
        while let more = await connection.receive() {
            bytes += Array(more.readableBytesView)
            if String(decoding: bytes, as: UTF8.self).contains(needle) { break }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the frames after a connection's 101, up to the last awaited one, or until the server closes.
    static func frames(on connection: RawConnection, until isLast: (ServerFrame) -> Bool) async throws -> [ServerFrame] {
        var received = ByteBuffer()
        var isSocket = false
        var frames: [ServerFrame] = []
        while var bytes = await connection.receive(within: .seconds(60)) {
            received.writeBuffer(&bytes)
            if !isSocket {
                guard let end = Data(received.readableBytesView).range(of: Data("\r\n\r\n".utf8)) else { continue }
                let head = received.readString(length: end.upperBound) ?? ""
                guard head.hasPrefix("HTTP/1.1 101") else { throw Missed("a 101: \(head)") }
                isSocket = true
            }
            while let frame = ServerFrame.read(from: &received) {
                frames.append(frame)
                if isLast(frame) { return frames }
            }
        }
        return frames
    }

    private static func isAlive(_ server: TestServer) async throws -> Bool {
        try await server.request("GET", "/livez").status == 200
    }

    @Test("I21 frames in the same packet as the request for the socket are its first frames")
    func framesBehindTheUpgrade() async throws {
        let server = try await TestServer()
        let connection = try await RawConnection.connect(port: server.port)
        try await connection.send(Array(Self.upgrade.utf8) + Self.frame(try await server.token("ann")))
        let text = await Self.answer(connection, until: "pingIntervalSeconds")
        #expect(text.hasPrefix("HTTP/1.1 101") && text.contains(#"{"welcome":{"user":"ann""#))
        try await server.stop()
    }

    @Test("I21 a byte after the request for the socket begins a frame; a bad one closes only that socket")
    func oneByte() async throws {
        let server = try await TestServer()
        for byte in UInt8.min...UInt8.max {
            let connection = try await RawConnection.connect(port: server.port)
            try await connection.send(Array(Self.upgrade.utf8) + [byte])
            #expect(await Self.answer(connection, until: "\r\n\r\n").hasPrefix("HTTP/1.1 101"))
            // Fourteen bytes complete the frame's header, whatever the byte, and every client's frame has a mask.
            try await connection.send([UInt8](repeating: 0, count: 13))
            _ = await connection.receiveAll()
            await connection.close()
        }
        #expect(try await Self.isAlive(server))
        try await server.stop()
    }

    @Test(
        "I21 more bytes than allowed before authentication, in one packet with the request for the socket, close it with 1009",
        arguments: UnauthenticatedTests.cases)
    func tooMuchBehindTheUpgrade(_ bad: UnauthenticatedTests.OversizedInput) async throws {
        let server = try await TestServer.shared()
        let connection = try await RawConnection.connect(port: server.port)
        try await connection.send(Array(Self.upgrade.utf8) + bad.frames.joined())
        let frames = try await Self.frames(on: connection) { if case .close = $0 { true } else { false } }
        guard case .close(let code, _) = frames.last else { throw Missed("a close: \(frames)") }
        #expect(code == 1009)
        await connection.close()
        #expect(try await Self.isAlive(server))
    }

    @Test("I21 I18 a flood of invalid frames, sent together with the request for the socket, closes only that socket")
    func floodBehindTheUpgrade() async throws {
        let server = try await TestServer()
        let connection = try await RawConnection.connect(port: server.port)
        let letters = [UInt8](repeating: 65, count: 1 << 20)
        connection.post(Array(Self.upgrade.utf8) + letters)
        for _ in 1..<64 { connection.post(letters) }
        #expect(await connection.isClosed())
        #expect(try await Self.isAlive(server))
        try await server.stop()
    }

    @Test("I21 a request for the socket and its first frames may be cut anywhere")
    func cutAnywhere() async throws {
        let server = try await TestServer()
        let bytes = Array(Self.upgrade.utf8) + (try Self.frame(try await server.token("ann")))
        try await withThrowingTaskGroup { group in
            for cut in bytes.indices.dropFirst() {
                group.addTask {
                    let connection = try await RawConnection.connect(port: server.port)
                    try await connection.send(bytes[..<cut])
                    // If the first part gets an answer, it is read before the second is sent.
                    if cut >= Self.upgrade.utf8.count {
                        #expect(await Self.answer(connection, until: "\r\n\r\n").hasPrefix("HTTP/1.1 101"))
                    }
                    try await connection.send(bytes[cut...])
                    let text = await Self.answer(connection, until: "pingIntervalSeconds")
                    #expect(text.contains(#"{"welcome":{"user":"ann""#), "cut at \(cut)")
                    await connection.close()
                }
                if cut % 16 == 0 { try await group.waitForAll() }
            }
            try await group.waitForAll()
        }
        try await server.stop()
    }

    @Test("no compression is negotiated, for a socket or for an answer")
    func compression() async throws {
        let server = try await TestServer()
        let offer = ["Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"]
        let connection = try await RawConnection.connect(port: server.port)
        try await connection.send(Self.request("GET", "/v1/socket", Self.upgradeHeaders + offer))
        let head = await Self.answer(connection, until: "\r\n\r\n")
        #expect(head.hasPrefix("HTTP/1.1 101") && !head.lowercased().contains("sec-websocket-extensions"))
        let answer = try await server.request("GET", "/openapi.json", headers: ["Accept-Encoding: gzip, deflate, br"])
        #expect(answer.status == 200 && answer.headers["content-encoding"] == nil)
        await connection.close()
        try await server.stop()
    }

    /// Bytes in one packet, and the statuses that answer them until the server closes.
    struct Sequence: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: String
        let statuses: [Int]
        var testDescription: String { name }
    }

    private static let livez = request("GET", "/livez")
    private static let post = request("POST", "/v1/channels", ["Content-Length: 2"], body: "{}")
    static let sequences: [Sequence] = [
        .init(name: "an upgrade after a GET", bytes: livez + upgrade, statuses: [200, 426]),
        .init(name: "an upgrade and frames after a GET", bytes: livez + upgrade + "\u{01}\u{02}\u{03}", statuses: [200, 426]),
        .init(name: "an upgrade after a POST with a body", bytes: post + upgrade, statuses: [401, 426]),
        .init(name: "a request after an upgrade after a GET", bytes: livez + upgrade + livez, statuses: [200, 426]),
        .init(
            name: "an upgrade with a body",
            bytes: request("GET", "/v1/socket", upgradeHeaders + ["Content-Length: 3"], body: "abc"),
            statuses: [426]),
        .init(
            name: "an upgrade with a body in chunks",
            bytes: request("GET", "/v1/socket", upgradeHeaders + ["Transfer-Encoding: chunked"], body: "3\r\nabc\r\n0\r\n\r\n"),
            statuses: [426]),
        .init(
            name: "an upgrade with a body and frames after it",
            bytes: request("GET", "/v1/socket", upgradeHeaders + ["Content-Length: 3"], body: "abc\u{01}\u{02}"), statuses: [426]),
        .init(
            name: "an upgrade with an invalid key",
            bytes: request("GET", "/v1/socket", upgradeHeaders.dropLast() + ["Sec-WebSocket-Key: x"]), statuses: [426]),
        .init(
            name: "HTTP/2 in plain text offered, and a request behind it",
            bytes: request("GET", "/livez", ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AA"]) + livez,
            statuses: [200]),
        .init(name: "a socket on another path", bytes: request("GET", "/livez", upgradeHeaders), statuses: [200]),
        .init(name: "CONNECT", bytes: request("CONNECT", "127.0.0.1:80") + "\u{16}\u{03}\u{01}", statuses: [404]),
    ]

    @Test("I21 an impossible upgrade is answered over HTTP, and ends its connection", arguments: sequences)
    func refused(_ sequence: Sequence) async throws {
        let server = try await TestServer.shared()
        let connection = try await RawConnection.connect(port: server.port)
        try await connection.send(sequence.bytes)
        let text = await connection.receiveAll()
        let statuses = text.split(separator: "HTTP/1.1 ").compactMap { Int($0.prefix(3)) }
        #expect(statuses == sequence.statuses)
        if statuses.last == 426 {
            let answer = text.lowercased()
            #expect(answer.contains("\r\nupgrade: websocket\r\n") && answer.contains("\r\nconnection: close, upgrade\r\n"))
        }
        await connection.close()
        #expect(try await Self.isAlive(server))
    }

    @Test("I21 a second request for the socket after the first isn't a frame, and closes the socket")
    func twoUpgrades() async throws {
        let server = try await TestServer()
        let connection = try await RawConnection.connect(port: server.port)
        try await connection.send(Self.upgrade + Self.upgrade)
        let text = await connection.receiveAll()
        #expect(text.hasPrefix("HTTP/1.1 101") && text.components(separatedBy: "HTTP/1.1").count == 2)
        #expect(try await Self.isAlive(server))
        try await server.stop()
    }

    @Test("I21 I18 bytes after a request that ends its connection are discarded, not kept")
    func floodBehindTheLast() async throws {
        let server = try await TestServer()
        let connection = try await RawConnection.connect(port: server.port)
        try await connection.send(Self.request("CONNECT", "127.0.0.1:80"))
        for _ in 0..<64 { connection.post([UInt8](repeating: 65, count: 1 << 20)) }
        #expect(try TestServer.parse(await Self.answer(connection, until: "}")).status == 404)
        await connection.close()
        #expect(try await Self.isAlive(server))
        try await server.stop()
    }
}
