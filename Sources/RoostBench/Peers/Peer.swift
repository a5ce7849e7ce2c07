import Foundation

/// Another server that delivers messages of a topic to all its subscribers and stores none of them: Roost's deliveries are compared with it.
struct Peer: Sendable {
    let name: String
    /// Debian's package.
    let package: String
    let program: String
    /// The arguments with which it listens on a port of 127.0.0.1, stores nothing and needs no configuration except a file that may be written
    /// first.
    let arguments: @Sendable (_ port: UInt16, _ directory: URL) throws -> [String]
    /// The bytes that a subscriber sends, each with the end of the answer to them.
    let subscription: [(says: [UInt8], answerEnds: [UInt8])]
    /// The bytes that a publisher sends before the first message.
    let introduction: [(says: [UInt8], answerEnds: [UInt8])]
    /// The bytes that a publisher sends for a message.
    let publication: @Sendable (_ payload: [UInt8]) -> [UInt8]
    /// How many bytes each subscriber gets for a message in addition to its payload.
    let overhead: @Sendable (_ payloadCount: Int) -> Int

    static let all = [redis, nats, mosquitto]

    private static let topic = "fanout"

    static let redis = Peer(
        name: "Redis", package: "redis-server", program: "redis-server",
        arguments: { port, directory in
            ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", directory.path]
        },
        subscription: [(Array("*2\r\n$9\r\nSUBSCRIBE\r\n$6\r\n\(topic)\r\n".utf8), Array(":1\r\n".utf8))],
        introduction: [],
        publication: { payload in
            Array("*3\r\n$7\r\nPUBLISH\r\n$6\r\n\(topic)\r\n$\(payload.count)\r\n".utf8) + payload + Array("\r\n".utf8)
        },
        overhead: { "*3\r\n$7\r\nmessage\r\n$6\r\n\(topic)\r\n$\($0)\r\n\r\n".utf8.count })

    static let nats = Peer(
        name: "NATS", package: "nats-server", program: "nats-server",
        arguments: { port, _ in ["--addr", "127.0.0.1", "--port", "\(port)"] },
        subscription: [
            ([], Array("\r\n".utf8)),
            (Array("CONNECT {\"verbose\":false}\r\nSUB \(topic) 1\r\nPING\r\n".utf8), Array("PONG\r\n".utf8)),
        ],
        introduction: [
            ([], Array("\r\n".utf8)),
            (Array("CONNECT {\"verbose\":false}\r\nPING\r\n".utf8), Array("PONG\r\n".utf8)),
        ],
        publication: { payload in Array("PUB \(topic) \(payload.count)\r\n".utf8) + payload + Array("\r\n".utf8) },
        overhead: { "MSG \(topic) 1 \($0)\r\n\r\n".utf8.count })

    static let mosquitto = Peer(
        name: "mosquitto", package: "mosquitto", program: "mosquitto",
        arguments: { port, directory in
            let configuration = directory.appending(path: "mosquitto.conf")
            try "listener \(port) 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 0\n"
                .write(to: configuration, atomically: true, encoding: .utf8)
            return ["-c", configuration.path]
        },
        // MQTT 3.1.1: CONNECT without a client id, CONNACK; SUBSCRIBE with packet id 1 and QoS 0, SUBACK.
        subscription: [
            (connect, [0x20, 2, 0, 0]),
            ([0x82, UInt8(5 + topic.utf8.count), 0, 1, 0, UInt8(topic.utf8.count)] + Array(topic.utf8) + [0], [0x90, 3, 0, 1, 0]),
        ],
        introduction: [(connect, [0x20, 2, 0, 0])],
        publication: { payload in
            [0x30] + length(2 + topic.utf8.count + payload.count) + [0, UInt8(topic.utf8.count)] + Array(topic.utf8) + payload
        },
        overhead: { 1 + length(2 + topic.utf8.count + $0).count + 2 + topic.utf8.count })

    private static let connect: [UInt8] = [0x10, 12, 0, 4] + Array("MQTT".utf8) + [4, 2, 0, 0, 0, 0]

    /// A length in MQTT's encoding: seven bits per byte.
    private static func length(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = count
        repeat {
            bytes.append(UInt8(rest % 128) | (rest >= 128 ? 128 : 0))
            rest /= 128
        } while rest > 0
        return bytes
    }
}
