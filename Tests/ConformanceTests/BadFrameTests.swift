import RoostAPI
import RoostTestSupport
import Testing

/// Frames that a client must not send over a socket, each with its close code.
@Suite struct BadFrameTests {
    struct BadFrames: Sendable, CustomTestStringConvertible {
        let name: String
        let frames: [[UInt8]]
        let closeCode: UInt16
        var testDescription: String { name }
    }

    /// The first fragments of a message, without its last.
    private static func fragments(_ count: Int, of sizeBytes: Int) -> [[UInt8]] {
        let spaces = [UInt8](repeating: 32, count: sizeBytes)
        let next = RawSocket.frame(opcode: 0, spaces, isFinal: false)
        return [RawSocket.frame(opcode: 1, spaces, isFinal: false)] + Array(repeating: next, count: count - 1)
    }

    static let cases: [BadFrames] = [
        BadFrames(name: "a binary frame", frames: [RawSocket.frame(opcode: 2, [1, 2, 3])], closeCode: 1003),
        BadFrames(
            name: "an unmasked frame", frames: [RawSocket.frame(opcode: 1, Array("{}".utf8), isMasked: false)], closeCode: 1002),
        BadFrames(name: "a reserved bit", frames: [RawSocket.frame(opcode: 1, Array("{}".utf8), reserved: 4)], closeCode: 1002),
        BadFrames(name: "an unknown opcode", frames: [RawSocket.frame(opcode: 3, [])], closeCode: 1002),
        BadFrames(name: "a continuation of nothing", frames: [RawSocket.frame(opcode: 0, [1])], closeCode: 1002),
        BadFrames(
            name: "a message inside a message",
            frames: [RawSocket.frame(opcode: 1, [123], isFinal: false), RawSocket.frame(opcode: 1, [125])], closeCode: 1002),
        BadFrames(name: "invalid UTF-8", frames: [RawSocket.frame(opcode: 1, [0x22, 0xff, 0xfe, 0x22])], closeCode: 1007),
        BadFrames(name: "a fragmented ping", frames: [RawSocket.frame(opcode: 9, [], isFinal: false)], closeCode: 1002),
        BadFrames(
            name: "a frame of 1 MiB and one byte",
            frames: [RawSocket.frame(opcode: 1, [UInt8](repeating: 32, count: Limits.messageSizeBytes + 1))],
            closeCode: 1009),
        BadFrames(
            name: "a length with the highest bit set",
            frames: [[0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4]], closeCode: 1009),
        BadFrames(
            name: "fragments of 1 MiB and one byte together",
            frames: fragments(16, of: Limits.messageSizeBytes / 16) + [RawSocket.frame(opcode: 0, [32])], closeCode: 1009),
        BadFrames(name: "1,025 fragments", frames: fragments(1024, of: 1) + [RawSocket.frame(opcode: 0, [32])], closeCode: 1009),
    ]

    private static func close(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
        RawSocket.frame(opcode: 8, [UInt8(code >> 8), UInt8(code & 255)] + reason)
    }

    static let badCloses: [BadFrames] = [
        BadFrames(name: "a close with half a code", frames: [RawSocket.frame(opcode: 8, [3])], closeCode: 1002),
        BadFrames(name: "a close whose reason isn't UTF-8", frames: [close(1000, [0xff, 0xfe])], closeCode: 1007),
        BadFrames(name: "a close whose reason breaks off in a letter", frames: [close(4000, [0xe2, 0x82])], closeCode: 1007),
    ]

    /// Codes that a close frame can't have: reserved, unassigned or out of range.
    static let badCloseCodes: [BadFrames] = ([0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] as [UInt16]).map { code in
        BadFrames(name: "a close with \(code)", frames: [close(code)], closeCode: 1002)
    }

    static let goodCloses: [[UInt8]] = ([1000, 1001, 1003, 1007, 1014, 3000, 4999] as [UInt16]).map {
        close($0, Array("done ✓".utf8))
    }

    @Test("I21 a frame that breaks the protocol closes the socket with its code", arguments: cases + badCloses + badCloseCodes)
    func closes(_ bad: BadFrames) async throws {
        let server = try await TestServer.shared()
        let socket = try await server.socket("ann")
        for frame in bad.frames { socket.connection.post(frame) }
        var incoming = await socket.next()
        while case .text = incoming { incoming = await socket.next() }
        guard case .close(let code, _) = incoming else { throw Missed("a close: \(incoming)") }
        #expect(code == bad.closeCode)
        // The server still works.
        let other = try await server.socket("bob")
        #expect(try await other.call(GetMe()).userId == "bob")
        await other.close()
    }

    @Test(
        "I21 a close frame that breaks no rule is answered with 1000, with or without a code and a reason",
        arguments: goodCloses + [RawSocket.frame(opcode: 8, [])])
    func closesInOrder(_ frame: [UInt8]) async throws {
        let server = try await TestServer.shared()
        let socket = try await server.socket("ann")
        try await socket.connection.send(frame)
        var incoming = await socket.next()
        while case .text = incoming { incoming = await socket.next() }
        #expect(incoming == .close(code: 1000, reason: ""))
    }

    @Test(
        "I21 a message of 1,048,576 bytes is accepted, in one frame and in sixteen, and one in 1,024 fragments",
        arguments: [(1, Limits.messageSizeBytes), (16, Limits.messageSizeBytes / 16), (1024, 1)])
    func largest(count: Int, sizeBytes: Int) async throws {
        let server = try await TestServer.shared()
        let socket = try await server.socket("ann")
        var text = Array(#"{"call":1,"operation":"user.me"}"#.utf8)
        text += [UInt8](repeating: 32, count: count * sizeBytes - text.count)
        for number in 0..<count {
            let part = text[number * sizeBytes..<(number + 1) * sizeBytes]
            socket.connection.post(
                RawSocket.frame(opcode: number == 0 ? 1 : 0, Array(part), isFinal: number == count - 1))
        }
        #expect(try await socket.reply(to: 1, as: User.self).userId == "ann")
        await socket.close()
    }

    @Test("I21 a message in fragments, with a ping between them, is one message")
    func fragments() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        let text = Array(#"{"call":1,"operation":"user.me","with":{}}"#.utf8)
        try await socket.connection.send(RawSocket.frame(opcode: 1, Array(text[..<9]), isFinal: false))
        try await socket.connection.send(RawSocket.frame(opcode: 9, [1]))
        try await socket.connection.send(RawSocket.frame(opcode: 0, Array(text[9...]), isFinal: true))
        #expect(try await socket.reply(to: 1, as: User.self).userId == "ann")
        try await server.stop()
    }
}
