import Foundation
import RoostAPI
import Synchronization

/// A server's frame as the load generator sees it: it counts and doesn't decode.
enum LoadFrame {
    /// The number of changes in it: more than one if a node replaces missed events with one.
    case event(count: Int)
    case welcome
    case reply(call: Int, isRefusal: Bool)
    case signal
    case ping
    case close(code: Int)
    /// An error or a farewell.
    case other

    /// Recognises a frame by its first bytes: `{"watching":…`, `{"welcome":…`, `{"reply":7,"error":…`.
    init(opcode: UInt8, payload: UnsafeRawBufferPointer) {
        switch opcode {
        case 1 where payload.count > 10:
            switch (payload[2], payload[3]) {
            case (UInt8(ascii: "w"), UInt8(ascii: "a")): self = .event(count: Self.changeCount(payload))
            case (UInt8(ascii: "w"), UInt8(ascii: "e")): self = .welcome
            case (UInt8(ascii: "r"), _):
                var index = 9
                let call = Self.number(at: &index, in: payload)
                self = .reply(call: call, isRefusal: index + 2 < payload.count && payload[index + 2] == UInt8(ascii: "e"))
            case (UInt8(ascii: "s"), _): self = .signal
            default: self = .other
            }
        case 8: self = .close(code: payload.count > 1 ? Int(payload[0]) << 8 | Int(payload[1]) : 0)
        case 9: self = .ping
        default: self = .other
        }
    }

    /// Whether an event is a new message: `{"watching":false,"message":…`, or in earlier versions
    /// `{"watching":false,"event":"message.new"…`.
    static func isNewMessage(_ payload: UnsafeRawBufferPointer) -> Bool {
        let key = payload[12] == UInt8(ascii: "t") ? 18 : 19
        guard payload.count > key + 17, payload[key] != UInt8(ascii: "m") else { return true }
        return payload[key + 8] == UInt8(ascii: "m") && payload[key + 9] == UInt8(ascii: "e")
            && payload[key + 16] == UInt8(ascii: "n")
    }

    private static func number(at index: inout Int, in payload: UnsafeRawBufferPointer) -> Int {
        var number = 0
        while index < payload.count, case let digit = payload[index], digit >= 48, digit <= 57 {
            number = number * 10 + Int(digit - 48)
            index += 1
        }
        return number
    }

    /// One, as two bytes show, for all but `{"watching":false,"event":"stream.changes","stream":…,"seq":9,"after":4,…`.
    private static func changeCount(_ payload: UnsafeRawBufferPointer) -> Int {
        let kind = payload[12] == UInt8(ascii: "t") ? 26 : 27
        guard payload.count > kind + 14, payload[kind] == UInt8(ascii: "s"), payload[kind + 7] == UInt8(ascii: "c") else {
            return 1
        }
        guard let seq = number(of: "\"seq\":", in: payload), let after = number(of: "\"after\":", in: payload) else { return 1 }
        return max(1, seq - after)
    }

    /// The number after the first occurrence of these words.
    private static func number(of words: StaticString, in payload: UnsafeRawBufferPointer) -> Int? {
        let words = UnsafeRawBufferPointer(start: words.utf8Start, count: words.utf8CodeUnitCount)
        guard payload.count > words.count else { return nil }
        for start in 0..<(payload.count - words.count) where payload[start..<(start + words.count)].elementsEqual(words) {
            var index = start + words.count
            return number(at: &index, in: payload)
        }
        return nil
    }
}

/// One connection of the load generator. It holds a descriptor, counts and, rarely, bytes of an incomplete frame.
final class LoadSocket {
    enum Stage { case upgrading, open, plain }

    let descriptor: Int32
    /// Its number among the benchmark's sockets.
    let number: Int
    /// Its number among all sockets of this process, which begins the ids of messages: a user who reconnects doesn't reuse earlier ids, which would
    /// be acknowledged without being stored.
    private let serial = LoadSocket.madeCount.wrappingAdd(1, ordering: .relaxed).oldValue
    private static let madeCount = Atomic(0)
    fileprivate(set) var stage: Stage
    /// The changes in events since the benchmark set it to 0.
    var eventCount = 0
    /// The signals, counted in the same way.
    var signalCount = 0
    /// The calls made, which is also the number of the newest.
    var callCount = 0
    fileprivate(set) var isWelcome = false
    fileprivate var rest: [UInt8] = []
    fileprivate(set) var unsent: [UInt8] = []

    fileprivate init(descriptor: Int32, number: Int, stage: Stage) {
        self.descriptor = descriptor
        self.number = number
        self.stage = stage
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    deinit { close(descriptor) }

    /// Plain TCP: received bytes are counted and discarded.
    static func plain(port: UInt16, number: Int) throws -> LoadSocket { plain(try connected(port), number: number) }

    static func plain(_ descriptor: Int32, number: Int) -> LoadSocket {
        LoadSocket(descriptor: descriptor, number: number, stage: .plain)
    }

    /// Asks for a WebSocket, with the token in the header.
    static func webSocket(port: UInt16, number: Int, token: String) throws -> LoadSocket {
        let socket = try LoadSocket(descriptor: connected(port), number: number, stage: .upgrading)
        socket.send(upgradeRequest(token: token))
        return socket
    }

    /// - Parameter token: Nil for a socket without authentication so far.
    static func upgradeRequest(token: String?) -> [UInt8] {
        let authorization = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        let request = """
            GET /v1/socket HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Key: cm9vc3QtYmVuY2gtLS0tLQ==\r\n\(authorization)\r\n
            """
        return Array(request.utf8)
    }

    private static func connected(_ port: UInt16) throws -> Int32 {
        let descriptor = LoopbackSocket.connect(port: port)
        guard descriptor >= 0 else { throw BenchFailure("can't connect: \(String(cString: strerror(errno)))") }
        return descriptor
    }

    // MARK: Out

    /// Calls an operation, and returns the number of the call.
    @discardableResult
    func call(_ operation: some RoostAPI.Operation) throws -> Int {
        callCount += 1
        send(frame: try JSONWriter.bytes(of: CallFrame(call: Int64(callCount), with: operation)))
        return callCount
    }

    /// Sends a message. Built by hand, since most of the load consists of it.
    func sendMessage(to channel: String, text: String) -> Int {
        callCount += 1
        send(
            frame: Array(
                """
                {"call":\(callCount),"operation":"message.send","with":{"channel":"\(channel)","clientId":"\(serial)-\(callCount)",\
                "text":"\(text)"}}
                """.utf8))
        return callCount
    }

    private func send(frame payload: [UInt8], opcode: UInt8 = 1) { send(Self.frame(payload, opcode: opcode)) }

    /// A frame whose mask is zero: valid, and the payload is in it unchanged.
    static func frame(_ payload: [UInt8], opcode: UInt8 = 1, isFinal: Bool = true) -> [UInt8] {
        var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
        bytes.reserveCapacity(payload.count + 14)
        if payload.count < 126 {
            bytes.append(0x80 | UInt8(payload.count))
        } else if payload.count <= UInt16.max {
            bytes += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        } else {
            bytes.append(0x80 | 127)
            for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(payload.count >> shift & 255)) }
        }
        bytes += [0, 0, 0, 0]
        bytes += payload
        return bytes
    }

    fileprivate func pong() { send(frame: [], opcode: 10) }

    private func send(_ bytes: [UInt8]) {
        unsent += bytes
        flush()
    }

    func flush() {
        let count = write(descriptor, unsent, unsent.count)
        if count > 0 { unsent.removeFirst(count) }
    }
}

extension LoadSocket {
    /// Takes received bytes, and passes on the complete frames.
    func receive(_ bytes: UnsafeRawBufferPointer, _ body: (LoadFrame, UnsafeRawBufferPointer) throws -> Void) throws {
        if stage == .plain { return }
        if rest.isEmpty {
            let used = try consume(bytes, body)
            if used < bytes.count { rest = Array(bytes[used...]) }
        } else {
            rest += bytes
            let whole = rest
            let used = try whole.withUnsafeBytes { try consume($0, body) }
            rest.removeFirst(used)
        }
    }

    private func consume(_ bytes: UnsafeRawBufferPointer, _ body: (LoadFrame, UnsafeRawBufferPointer) throws -> Void) throws -> Int
    {
        var start = 0
        if stage == .upgrading {
            guard let end = bytes.indices.dropFirst(3).first(where: { bytes[$0] == 10 && bytes[$0 - 2] == 10 }) else { return 0 }
            let head = String(decoding: bytes[...end], as: UTF8.self)
            guard head.hasPrefix("HTTP/1.1 101") else { throw BenchFailure("the server refused a socket: \(head)") }
            stage = .open
            start = end + 1
        }
        while bytes.count - start >= 2 {
            var header = 2
            var length = Int(bytes[start + 1] & 127)
            if length == 126 {
                guard bytes.count - start >= 4 else { break }
                length = Int(bytes[start + 2]) << 8 | Int(bytes[start + 3])
                header = 4
            } else if length == 127 {
                guard bytes.count - start >= 10 else { break }
                length = (0..<8).reduce(0) { $0 << 8 | Int(bytes[start + 2 + $1]) }
                header = 10
            }
            guard bytes.count - start >= header + length else { break }
            let payload = UnsafeRawBufferPointer(rebasing: bytes[(start + header)..<(start + header + length)])
            let frame = LoadFrame(opcode: bytes[start] & 15, payload: payload)
            switch frame {
            case .event(let count): eventCount += count
            case .signal: signalCount += 1
            case .welcome: isWelcome = true
            case .ping: pong()
            case .close(let code): throw BenchFailure("the server closed socket \(number) with \(code)")
            default: break
            }
            try body(frame, payload)
            start += header + length
        }
        return start
    }
}
