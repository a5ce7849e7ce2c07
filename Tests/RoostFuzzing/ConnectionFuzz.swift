import NIOCore
import NIOEmbedded
import RoostServer

/// Bytes of one connection: requests, upgrades and frames in any order, slightly mutated and cut anywhere.
enum ConnectionFuzz {
    static let words = [
        "\r\n", "\r\n\r\n", "\n", " ", ":", "GET ", "POST ", "HEAD ", "OPTIONS * ", "CONNECT a:1 ", "PRI * HTTP/2.0", "HTTP/1.1",
        "HTTP/1.0", "HTTP/9.9",
        "Host: a\r\n", "Content-Length: 5\r\n", "Content-Length: 18446744073709551615\r\n", "Transfer-Encoding: chunked\r\n",
        "Connection: Upgrade\r\n",
        "Connection: close\r\n", "Upgrade: websocket\r\n", "Upgrade: h2c\r\n", "Expect: 100-continue\r\n", "0\r\n\r\n",
        "5\r\nhello\r\n", "ffffffffffffffff\r\n",
        "/v1/socket", "http://a/", "%2F", "?", "#", "Sec-WebSocket-Version: 13\r\n", "\u{0}", "\u{e9}", "\t", ",", ";",
        "Trailer: x\r\n",
    ]

    private static let upgrade =
        "GET /v1/socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    private static let requests = [
        "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /v1/channels HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
        "POST /v1/channels HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n",
        "POST /v1/channels HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        "GET /livez HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n",
        "GET /livez HTTP/1.0\r\n\r\n", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /v1/socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 3\r\n\r\nabc",
    ]

    static func frame(_ random: inout FuzzRandom) -> [UInt8] {
        let payload = random.chance(3) ? random.bytes(random.below(140)) : Array(MessageFuzz.call(&random).utf8)
        let opcode: UInt8 = random.chance(3) ? UInt8(random.below(16)) : random.pick([0, 1, 1, 1, 8, 9, 10])
        var bytes: [UInt8] = [(random.chance(3) ? 0 : 0x80) | (random.chance(12) ? 0x40 : 0) | opcode]
        let mark: UInt8 = random.chance(12) ? 0 : 0x80
        switch random.below(12) {
        case 0: bytes += [mark | 127] + random.bytes(8)
        case 1: bytes += [mark | 126] + random.bytes(2)
        case 2: bytes += [mark | 127, 0x80, 0, 0, 0, 0, 0, 0, UInt8(random.below(256))]
        default:
            if payload.count < 126 {
                bytes.append(mark | UInt8(payload.count))
            } else {
                bytes += [mark | 126, UInt8(payload.count >> 8 & 255), UInt8(payload.count & 255)]
            }
        }
        guard mark != 0 else { return bytes + payload }
        let mask = random.bytes(4)
        return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
    }

    static func input(_ random: inout FuzzRandom) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<random.below(3) { bytes += Array(random.pick(requests).utf8) }
        if !random.chance(4) { bytes += Array(upgrade.utf8) }
        for _ in 0..<random.below(4) { bytes += frame(&random) }
        if random.chance(8) { bytes += Array(random.pick(requests).utf8) }
        return random.chance(2) ? bytes : Mutation.of(bytes, words: words, &random)
    }

    /// Reads bytes like a connection of the server, in random pieces.
    static func check(_ bytes: [UInt8], _ random: inout FuzzRandom) throws {
        let channel = EmbeddedChannel()
        channel.allowRemoteHalfClosure = true
        try UntrustedBytes.install(on: channel)
        try channel.connect(to: .init(ipAddress: "127.0.0.1", port: 1)).wait()
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = random.chance(2) ? rest.count : 1 + random.below(rest.count)
            // A closed connection accepts no more; that is an answer as well.
            guard channel.isActive else { break }
            _ = try? channel.writeInbound(ByteBuffer(bytes: rest.prefix(count)))
            channel.embeddedEventLoop.run()
            rest = rest.dropFirst(count)
        }
        if random.chance(2), channel.isActive { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        channel.embeddedEventLoop.run()
        _ = try? channel.finish(acceptAlreadyClosed: true)
    }
}
