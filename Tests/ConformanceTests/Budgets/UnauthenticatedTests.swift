import NIOCore
import RoostAPI
import RoostTestSupport
import Testing

/// The limits of a socket before authentication.
@Suite struct UnauthenticatedTests {
    struct OversizedInput: Sendable, CustomTestStringConvertible {
        let name: String
        let frames: [[UInt8]]
        var testDescription: String { name }
    }

    private static func spaces(_ count: Int) -> [UInt8] { [UInt8](repeating: 32, count: count) }

    static let cases: [OversizedInput] = [
        OversizedInput(name: "a frame of 16 KiB and one byte", frames: [RawSocket.frame(opcode: 1, spaces(16_385))]),
        OversizedInput(name: "the head of one, and nothing after it", frames: [[0x81, 0xFE, 0x40, 0x01]]),
        OversizedInput(
            name: "fragments of 16 KiB and one byte together",
            frames: [
                RawSocket.frame(opcode: 1, spaces(16_000), isFinal: false), RawSocket.frame(opcode: 0, spaces(385), isFinal: false),
            ]),
        OversizedInput(
            name: "more than 16 KiB of pings",
            frames: Array(repeating: RawSocket.frame(opcode: 9, spaces(125)), count: 16_384 / 125 + 1)),
    ]

    @Test("I21 an unauthenticated socket may send 16 KiB, and is closed with 1009 beyond that", arguments: cases)
    func closes(_ bad: OversizedInput) async throws {
        let server = try await TestServer.shared()
        let socket = try await RawSocket.open(port: server.port)
        for frame in bad.frames { socket.connection.post(frame) }
        guard case .close(let code, _) = await socket.next() else { throw Missed("a close") }
        #expect(code == 1009)
    }

    @Test("I21 a client that keeps sending learns why its socket is closed, and is cut off after a moment")
    func goesOnSending() async throws {
        let server = try await TestServer.shared()
        let socket = try await RawSocket.open(port: server.port, isHalfClosable: true)
        try await socket.connection.setReading(false)
        let large = RawSocket.frame(opcode: 1, Self.spaces(RoostAPI.Limits.messageSizeBytes + 1))
        try await socket.connection.send(large)
        for _ in 0..<100 { try await socket.connection.send(Self.spaces(1000)) }
        try await socket.connection.setReading(true)
        guard case .close(1009, _) = await socket.next() else { throw Missed("a close") }

        let endless = try await RawSocket.open(port: server.port, isHalfClosable: true)
        try await endless.connection.setReading(false)
        try await endless.connection.send(large)
        let deadline = ContinuousClock.now + .seconds(20)
        await #expect(throws: (any Error).self) {
            while ContinuousClock.now < deadline { try await endless.connection.send(Self.spaces(1000)) }
        }
    }

    @Test("I21 an authenticate frame of exactly 16 KiB is read")
    func atTheLimit() async throws {
        let server = try await TestServer()
        let socket = try await RawSocket.open(port: server.port)
        var frame = Array("{\"authenticate\":{\"token\":\"\(try await server.token("ann"))\"}".utf8)
        frame += Self.spaces(16_384 - frame.count - 1) + Array("}".utf8)
        try await socket.connection.send(RawSocket.frame(opcode: 1, frame))
        guard case .text(let welcome) = await socket.next() else { throw Missed("a welcome") }
        #expect(welcome.hasPrefix(#"{"welcome""#))
        try await server.stop()
    }

    @Test("I21 frames after the authenticate frame wait for the welcome, and are then carried out")
    func pipelined() async throws {
        let server = try await TestServer()
        let socket = try await RawSocket.open(port: server.port)
        let token = try await server.token("ann")
        let call = #"{"call":1,"operation":"user.me"}"#
        let bad = #"{"call":"#
        var bytes = RawSocket.frame(opcode: 1, try JSONWriter.bytes(of: AuthenticateFrame(token: token)))
        for text in [call, bad] { bytes += RawSocket.frame(opcode: 1, Array(text.utf8)) }
        try await socket.connection.send(bytes)
        var kinds: [String] = []
        for _ in 0..<3 {
            guard case .text(let text) = await socket.next() else { throw Missed("a frame") }
            kinds.append(String(text.prefix(9)))
        }
        #expect(Set(kinds) == [#"{"welcome"#, #"{"reply":"#, #"{"error":"#])
        #expect(kinds.first == #"{"welcome"#)
        // With an invalid token, none of them is even read.
        let stranger = try await RawSocket.open(port: server.port)
        try await stranger.connection.send(
            RawSocket.frame(opcode: 1, try JSONWriter.bytes(of: AuthenticateFrame(token: "nonsense")))
                + RawSocket.frame(opcode: 1, Array(call.utf8)))
        guard case .text(let refusal) = await stranger.next() else { throw Missed("a refusal") }
        #expect(refusal.contains("unauthenticated"))
        guard case .close(4001, _) = await stranger.next() else { throw Missed("a close") }
        try await server.stop()
    }
}
