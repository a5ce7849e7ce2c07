import Foundation
import NIOCore
public import RoostAPI

/// A WebSocket client for tests, which shares no code with the server or the SDK beyond the models, and can break every rule.
public actor RawSocket {
    /// A frame that the server sent.
    public enum Incoming: Equatable, Sendable {
        case text(String)
        case ping
        case close(code: UInt16, reason: String)
        /// The connection ended without a close frame.
        case end
    }

    public nonisolated let connection: RawConnection
    /// Whether pings are answered as they are read, as every client does by itself.
    private var answersPings = true
    private var pings: [[UInt8]] = []
    private var buffer = ByteBuffer()
    private var lastCall: Int64 = 0
    /// Events that arrived during the wait for a reply.
    public private(set) var events: [Event] = []
    /// Signals that arrived during another wait: they may arrive between any two frames.
    public private(set) var signals: [Signal] = []
    /// Frames that arrived during the wait for a signal.
    private var passed: [Incoming] = []

    private init(connection: RawConnection) { self.connection = connection }

    /// Connects and upgrades, without authenticating.
    public static func open(
        port: Int, path: String = "/v1/socket", headers: [String] = [], isHalfClosable: Bool = false
    ) async throws -> RawSocket {
        let connection = try await RawConnection.connect(port: port, isHalfClosable: isHalfClosable)
        let socket = RawSocket(connection: connection)
        let head = [
            "GET \(path) HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ]
        try await connection.send((head + headers).joined(separator: "\r\n") + "\r\n\r\n")
        try await socket.readUpgrade()
        return socket
    }

    /// Connects as a user and waits for the welcome.
    public static func connect(port: Int, token: String) async throws -> RawSocket {
        let socket = try await open(port: port)
        try await socket.authenticate(token)
        return socket
    }

    /// Connects as a user to a port that accepts frames from the first byte on, and waits for the welcome.
    public static func connectWithoutUpgrade(port: Int, token: String) async throws -> RawSocket {
        let socket = RawSocket(connection: try await RawConnection.connect(port: port))
        try await socket.authenticate(token)
        return socket
    }

    private func authenticate(_ token: String) async throws {
        try await send(json: AuthenticateFrame(token: token))
        let first = await next()
        guard case .text(let text) = first, text.hasPrefix(#"{"welcome""#) else {
            throw Missed("a welcome, not \(first)")
        }
    }

    private func readUpgrade() async throws {
        while true {
            guard var bytes = await connection.receive() else { throw Missed("the upgrade") }
            buffer.writeBuffer(&bytes)
            let text = String(buffer: buffer)
            guard let end = text.range(of: "\r\n\r\n") else { continue }
            guard text.hasPrefix("HTTP/1.1 101") else { throw Missed("a 101: \(text)") }
            buffer.moveReaderIndex(forwardBy: text[..<end.upperBound].utf8.count)
            return
        }
    }

    // MARK: Sending

    /// The bytes of a client's frame.
    public static func frame(
        opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, isMasked: Bool = true, reserved: UInt8 = 0
    ) -> [UInt8] {
        var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
        let mark: UInt8 = isMasked ? 0x80 : 0
        if payload.count < 126 {
            bytes.append(mark | UInt8(payload.count))
        } else if payload.count <= 65_535 {
            bytes += [mark | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        } else {
            bytes.append(mark | 127)
            for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: payload.count >> shift)) }
        }
        guard isMasked else { return bytes + payload }
        let mask: [UInt8] = [0x12, 0x34, 0x56, 0x78]
        return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
    }

    public func send(text: String) async throws { try await connection.send(Self.frame(opcode: 1, Array(text.utf8))) }
    public func send(json value: some Encodable & Sendable) async throws {
        try await connection.send(Self.frame(opcode: 1, try JSONWriter.bytes(of: value)))
    }

    // MARK: Receiving

    /// The next message of the server; pongs are skipped, and signals are kept for ``nextSignal(within:)``.
    public func next(within deadline: Duration = .seconds(20)) async -> Incoming {
        while true {
            if !passed.isEmpty { return passed.removeFirst() }
            if let incoming = parse() {
                await answerPings()
                return incoming
            }
            guard await receive(within: deadline) else { return .end }
        }
    }

    /// The text of the next message; nil if the connection ends before it.
    ///
    /// Pings are skipped: on a slow machine a test takes as long as the server waits before it pings the client.
    public func nextText(within deadline: Duration = .seconds(20)) async -> String? {
        while true {
            switch await next(within: deadline) {
            case .text(let text): return text
            case .ping: continue
            case .close, .end: return nil
            }
        }
    }

    /// The next signal.
    public func nextSignal(within deadline: Duration = .seconds(20)) async throws -> Signal {
        // The server's pings arrive meanwhile, and don't restart the wait.
        let end = ContinuousClock.now + deadline
        while true {
            while let incoming = parse() {
                if case .text(let text) = incoming, note(event: text) { continue }
                passed.append(incoming)
            }
            await answerPings()
            if !signals.isEmpty { return signals.removeFirst() }
            guard await receive(within: end - .now) else { throw Missed("a signal") }
        }
    }

    private func receive(within deadline: Duration) async -> Bool {
        guard var bytes = await connection.receive(within: deadline) else { return false }
        buffer.discardReadBytes()
        buffer.writeBuffer(&bytes)
        return true
    }

    private func parse() -> Incoming? {
        while let frame = ServerFrame.read(from: &buffer) {
            switch frame {
            case .text(let payload):
                guard let signal = Self.signal(payload) else { return .text(String(decoding: payload, as: UTF8.self)) }
                signals.append(signal)
            case .close(let code, let reason): return .close(code: code, reason: reason)
            case .ping(let payload):
                pings.append(payload)
                return .ping
            case .pong: continue
            }
        }
        return nil
    }

    private func answerPings() async {
        guard answersPings else { return }
        for payload in pings { try? await connection.send(Self.frame(opcode: 10, payload)) }
        pings = []
    }

    /// From now on pings aren't answered, as on a line that is cut in one direction.
    public func stopAnsweringPings() { answersPings = false }

    /// Answers the pings that have arrived meanwhile, as on a slow line, and all later ones.
    public func answerPingsAgain() async {
        answersPings = true
        await answerPings()
    }

    /// Waits for the server's ping for confirmation that earlier frames arrived. Those frames are skipped.
    public func waitForPing() async throws {
        while true {
            switch await next() {
            case .ping: return
            case .text: continue
            case let other: throw Missed("a ping: \(other)")
            }
        }
    }

    /// Waits until what the socket was sent of a channel that its user reads is read, after however many pings.
    ///
    /// - Parameter other: Another of the user's sockets, which asks the server for the read position.
    public func confirmReading(upTo seq: Seq, of channel: ChannelID = "general", asking other: RawSocket) async throws {
        try await eventually("\(channel) to be read up to \(seq)") {
            // With a reply this socket answers earlier pings.
            try await call(GetMe())
            return try await other.call(GetUnread(channel: channel)).readSeq >= seq
        }
    }

    private static func signal(_ payload: [UInt8]) -> Signal? {
        payload.starts(with: Array(#"{"signal""#.utf8)) ? try? JSONDecoder().decode(Signal.self, from: Data(payload)) : nil
    }

    // MARK: Calls

    /// Calls an operation and waits for its reply; events that arrive before it are kept in ``events``.
    @discardableResult
    public func call<Call: RoostAPI.Operation>(_ operation: Call) async throws -> Call.Response {
        let number = try await post(operation)
        return try await reply(to: number, as: Call.Response.self)
    }

    /// Sends a message, identified by its client id.
    @discardableResult
    public func send(_ channel: ChannelID, _ clientId: String) async throws -> Message {
        try await call(SendMessage(channel: channel, clientId: ClientID(clientId), text: "text of \(clientId)"))
    }

    /// Sends a call without waiting for the reply.
    public func post(_ operation: some RoostAPI.Operation) async throws -> Int64 {
        lastCall += 1
        try await send(json: CallFrame(call: lastCall, with: operation))
        return lastCall
    }

    /// Sends all calls together, to reach rate limits. Returns the refusal of each, and nil for one that was carried out.
    ///
    /// Calls that are refused at once are answered before the others.
    public func refusals(of operations: [some RoostAPI.Operation]) async throws -> [RoostError?] {
        let calls = operations.indices.map { lastCall + 1 + Int64($0) }
        lastCall += Int64(operations.count)
        var bytes: [UInt8] = []
        for (call, operation) in zip(calls, operations) {
            bytes += Self.frame(opcode: 1, try JSONWriter.bytes(of: CallFrame(call: call, with: operation)))
        }
        try await connection.send(bytes)
        var (missing, refusals) = (Set(calls), [Int64: RoostError]())
        while !missing.isEmpty {
            guard let text = await nextText() else { throw Missed("the replies to \(missing.sorted())") }
            if note(event: text) { continue }
            let reply = try JSONDecoder().decode(Reply<JSONValue>.self, from: Data(text.utf8))
            guard let call = reply.reply, missing.remove(call) != nil else { continue }
            refusals[call] = reply.error
        }
        return calls.map { refusals[$0] }
    }

    /// Waits for the reply to a call; throws it if it is a refusal.
    public func reply<T: Decodable>(to number: Int64, as type: T.Type) async throws -> T {
        while true {
            let incoming = await next()
            guard case .text(let text) = incoming else {
                if incoming == .ping { continue }
                throw Missed("the reply to \(number): \(incoming)")
            }
            if note(event: text) { continue }
            let reply = try JSONDecoder().decode(Reply<T>.self, from: Data(text.utf8))
            guard reply.reply == number else { continue }
            if let error = reply.error { throw error }
            guard let result = reply.result else { throw Missed("a result in \(text)") }
            return result
        }
    }

    private struct Reply<T: Decodable>: Decodable {
        let reply: Int64?
        let result: T?
        let error: RoostError?
    }

    /// Waits for the next event.
    public func nextEvent(within deadline: Duration = .seconds(20)) async throws -> Event {
        if !events.isEmpty { return events.removeFirst() }
        while let text = await nextText(within: deadline) {
            if note(event: text) { return events.removeFirst() }
        }
        throw Missed("an event")
    }

    private func note(event text: String) -> Bool {
        guard text.hasPrefix(#"{"watching""#), let frame = try? JSONDecoder().decode(EventFrame.self, from: Data(text.utf8)) else {
            return false
        }
        events.append(frame.event)
        return true
    }

    public func close() async { await connection.close() }
}
