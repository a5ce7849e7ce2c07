import NIOCore
import NIOWebSocket
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// The logic of a socket, as the value that its handler drives: no network, no clock.
@Suite("Socket session")
struct SocketSessionTests {
    typealias Action = SocketSession.Action

    static let connection = ConnectionID(rawValue: 7)
    static let token = VerifiedToken(
        user: "ann", role: .user, displayName: nil, expiresAt: Timestamp(milliseconds: 1_000_000),
        identity: TokenIdentity(user: "ann"))
    static let started = time(0)

    static func time(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(1) + .seconds(seconds) }

    static func frame(_ text: String) -> ByteBuffer {
        var bytes = ByteBuffer()
        bytes.writeTextFrame("", Array(text.utf8))
        return bytes
    }

    static func client(_ texts: String...) -> ByteBuffer {
        ByteBuffer(bytes: texts.flatMap { RawSocket.frame(opcode: 1, Array($0.utf8)) })
    }

    static func closing(_ code: UInt16, _ reason: String) -> [Action] {
        var payload = ByteBuffer()
        payload.writeInteger(code)
        payload.writeString(reason)
        var frame = ByteBuffer()
        frame.writeControlFrame(opcode: 8, payload.readableBytesView)
        return [.flush([frame]), .close(WebSocketErrorCode(codeNumber: Int(code)))]
    }

    static func refused(_ error: RoostError) throws -> Action {
        .flush([try refusal(error)])
    }

    static func refusal(_ error: RoostError) throws -> ByteBuffer {
        frame(String(decoding: try JSONWriter.bytes(of: ["error": error]), as: UTF8.self))
    }

    func session() -> SocketSession { SocketSession(Self.connection, limits: .init(), at: Self.started) }

    /// A session that has been welcomed.
    func opened() -> SocketSession {
        var session = session()
        _ = session.authenticate("t")
        _ = session.verified(Self.token)
        session.send(reply: Array("welcome".utf8))
        _ = session.takeUnflushed()
        return session
    }

    func receive(
        _ bytes: ByteBuffer, _ pressure: SocketSession.Pressure = .init(), in session: inout SocketSession
    ) -> [Action] { session.receive(bytes, at: Self.started, pressure).filter { if case .hold = $0 { false } else { true } } }

    func flushed(_ session: inout SocketSession) -> [Action] {
        session.flushed(.init()).filter { if case .hold = $0 { false } else { true } }
    }

    // MARK: Authentication

    @Test("a token is checked, the connection takes its place, and its welcome precedes events that arrived meanwhile")
    func welcome() {
        var session = session()
        #expect(receive(Self.client(#"{"authenticate":{"token":"t"}}"#), in: &session) == [.verify(token: "t")])
        session.send(event: Self.frame("too early"))
        #expect(session.verified(Self.token) == [.connect(Self.token)])
        session.send(event: Self.frame("event"))
        #expect(session.takeUnflushed() == nil)
        session.send(reply: Array("welcome".utf8))
        #expect(session.takeUnflushed() == [Self.frame("welcome"), Self.frame("event")])
    }

    @Test("while a token is checked nothing is read, and frames received after it are handled after the welcome")
    func pipelined() {
        var session = session()
        let call = #"{"call":1,"operation":"user.me"}"#
        #expect(
            receive(Self.client(#"{"authenticate":{"token":"t"}}"#, call), in: &session)
                == [.verify(token: "t"), .setReading(false)])
        _ = session.verified(Self.token)
        session.send(reply: Array("welcome".utf8))
        _ = session.takeUnflushed()
        #expect(flushed(&session) == [.call(.init(number: 1, operation: GetMe())), .setReading(true)])
    }

    @Test(
        "a client is refused and closed if its first frame has no token, its token is invalid, or its user has too many connections"
    )
    func refusals() throws {
        var early = session()
        #expect(
            try receive(Self.client(#"{"call":1,"operation":"user.me"}"#), in: &early)
                == [Self.refused(RoostError(.unauthenticated, "The first frame must be an authenticate frame."))]
                + Self.closing(4001, "authenticate first"))
        #expect(receive(Self.client("{}"), in: &early) == [])

        let expired = RoostError(.tokenExpired, "over")
        var late = session()
        _ = late.authenticate("t")
        #expect(try late.refuseToken(expired) == [Self.refused(expired)] + Self.closing(4002, "token_expired"))
        #expect(late.refuseToken(expired) == [], "twice")
        #expect(late.verified(Self.token) == [], "after the end")

        var many = session()
        _ = many.authenticate("t")
        let overloaded = RoostError(.overloaded, "many")
        #expect(try many.turnAway(overloaded) == [Self.refused(overloaded)] + Self.closing(4029, "too many connections"))
    }

    @Test("I21 I18 before authentication each ping counts, and none is handled while the client doesn't read")
    func earlyPings() {
        let ping = ByteBuffer(bytes: RawSocket.frame(opcode: 9, []))
        var (counting, slow) = (session(), session())
        for _ in 0..<(16_384 / 6) { _ = receive(ping, in: &counting) + flushed(&counting) }
        #expect(receive(ping, in: &counting) == Self.closing(1009, "a socket may send at most 16384 bytes before authentication"))
        slow.becameUnwritable(10, at: Self.time(1))
        #expect(receive(ping, in: &slow).allSatisfy { if case .flush = $0 { false } else { true } })
        #expect(slow.becameWritable(isHanding: false, .init()).contains { if case .flush = $0 { true } else { false } })
    }

    // MARK: Calls

    @Test("a call goes to the engine; an unreadable one is answered, and a frame that isn't a call is refused")
    func calls() throws {
        var session = opened()
        let call = #"{"call":3,"operation":"message.send","with":{"channel":"general","clientId":"1","text":"hi"}}"#
        #expect(
            receive(Self.client(call), in: &session)
                == [.call(.init(number: 3, operation: SendMessage(channel: "general", clientId: "1", text: "hi")))])
        let unknown = receive(Self.client(#"{"call":4,"operation":"channels.frobnicate"}"#), in: &session)
        guard case .refused(let error) = unknown.first else {
            Issue.record("\(unknown)")
            return
        }
        #expect(unknown.count == 2)
        #expect(unknown.last == .flush([Self.frame(String(decoding: ReplyFrame.refusal(error, call: 4), as: UTF8.self))]))
        let again = receive(Self.client(#"{"authenticate":{"token":"t"}}"#), in: &session)
        #expect(
            try again == [
                Self.refused(RoostError(.invalidArgument, "This socket is already authenticated.", field: "authenticate"))
            ])
    }

    @Test("while the user's budget is used up, no call is read; the next look finds room")
    func userIsFull() {
        var session = opened()
        let call = #"{"call":1,"operation":"user.me"}"#
        #expect(receive(Self.client(call), .init(isUserFull: true), in: &session) == [.setReading(false)])
        let ticked = session.tick(Self.time(1), Timestamp(milliseconds: 0), .init())
        #expect(ticked.contains(.call(.init(number: 1, operation: GetMe()))))
        #expect(ticked.contains(.setReading(true)))
    }

    @Test("I18 while the server's budget is used up, a partial frame beyond 16 KiB isn't waited for; a smaller one is")
    func noRoomForTheRest() {
        let frame = RawSocket.frame(opcode: 1, [UInt8](repeating: 97, count: 20_000))
        var patient = opened()
        #expect(receive(ByteBuffer(bytes: frame.dropLast()), in: &patient) == [])
        var small = opened()
        #expect(receive(ByteBuffer(bytes: frame.prefix(16_384)), .init(isServerFull: true), in: &small) == [])
        #expect(
            receive(ByteBuffer(bytes: frame[16_384..<16_385]), .init(isServerFull: true), in: &small)
                == [.overloaded] + Self.closing(4029, "try again later"))
    }

    @Test("urgent output goes out before the next frame is handled")
    func answersGoFirst() {
        var session = opened()
        let ping = RawSocket.frame(opcode: 9, [1])
        var pong = ByteBuffer()
        pong.writeControlFrame(opcode: 10, [1])
        #expect(receive(ByteBuffer(bytes: ping + ping), in: &session) == [.flush([pong])])
        #expect(flushed(&session) == [.flush([pong])])
        #expect(flushed(&session) == [])
    }

    // MARK: Sending

    @Test("output of one turn goes out together, in order")
    func oneWrite() {
        var session = opened()
        session.send(event: Self.frame("a"))
        session.send(reply: Array("b".utf8))
        session.send(event: Self.frame("c"))
        #expect(!session.mustFlush)
        #expect(session.takeUnflushed() == [Self.frame("a"), Self.frame("b"), Self.frame("c")])
        #expect(session.takeUnflushed() == nil)
    }

    @Test("output of one turn isn't held beyond 64 KiB: a client that reads gets it meanwhile")
    func oneLargeWrite() {
        var session = opened()
        let event = Self.frame(String(repeating: "x", count: 30_000))
        for _ in 0..<2 {
            session.send(event: event)
            #expect(!session.mustFlush)
        }
        session.send(event: event)
        #expect(session.mustFlush)
        #expect(session.takeUnflushed() == [event, event, event])
        #expect(flushed(&session) == [])
        #expect(!session.mustFlush)
    }

    @Test("events that a client doesn't read are bounded: beyond that it is closed, to resume")
    func unread() {
        var session = opened()
        session.becameUnwritable(10, at: Self.time(1))
        let event = Self.frame(String(repeating: "x", count: 300_000))
        for _ in 0..<3 {
            session.send(event: event)
            #expect(session.takeUnflushed() == [event])
            #expect(!session.mustFlush && flushed(&session) == [])
        }
        session.send(event: event)
        #expect(session.mustFlush)
        _ = session.takeUnflushed()
        #expect(flushed(&session) == Self.closing(4008, "read faster, then resume"))
        session.send(event: event)
        #expect(session.takeUnflushed() == nil)
    }

    @Test(
        "I18 a client that reads again isn't closed for its former backlog; that is given back at once, whether it sends more or not"
    )
    func readAgain() {
        var session = opened()
        session.send(reply: [UInt8](repeating: 32, count: 1_000_000))
        session.becameUnwritable(session.takeUnflushed()?.pieces.reduce(0) { $0 + $1.readableBytes } ?? 0, at: Self.time(1))
        let sum = held(session.flushed(.init()))
        #expect(sum > 1_000_000)
        #expect(held(session.becameWritable(isHanding: false, .init())) == -sum)
        let ticked = session.tick(Self.time(40), Timestamp(milliseconds: 0), .init())
        #expect(!session.isClosing, "\(ticked)")
    }

    @Test("a client that is shut out gets the replies to its earlier calls, and then the reason, but no events")
    func shutOut() throws {
        var session = opened()
        let change = AccessChange.user("ann", isDeactivated: true, validFrom: nil)
        let others = AccessChange.user("bob", isDeactivated: true, validFrom: nil)
        let concernsOthers = session.endIfRefused(by: [others.subject: others])
        #expect(session.closeEnded() == [])
        let isRefused = session.endIfRefused(by: [change.subject: change])
        let isRefusedAgain = session.endIfRefused(by: [change.subject: change])
        #expect([concernsOthers, isRefused, isRefusedAgain] == [false, true, false])
        session.send(event: Self.frame("event"))
        session.send(reply: Array("reply".utf8))
        let ended = session.closeEnded()
        let refusal = try #require(change.refusal(of: Caller(user: "ann")))
        #expect(
            try ended == [.flush([Self.frame("reply"), Self.refusal(refusal)])] + Self.closing(4005, "user_deactivated"))
    }

    @Test("a device that was signed out before its welcome is welcomed and shut out; one that signs in after that stays")
    func signedOutWhileConnecting() throws {
        for (signIn, isOut) in [(1, true), (2, false)] as [(Int64, Bool)] {
            var session = session()
            let frame = #"{"authenticate":{"token":"t","device":{"deviceId":"phone"}}}"#
            #expect(receive(Self.client(frame), in: &session) == [.verify(token: "t")])
            _ = session.verified(Self.token)
            let change = AccessChange.signedOut("ann", device: "phone", upTo: 1)
            let other = AccessChange.signedOut("ann", device: "laptop", upTo: 9)
            let isEnded = [other, change].map { news in session.endIfRefused(by: [news.subject: news]) }
            #expect(isEnded == [false, false])
            let device = DeviceIdentity(id: "phone", signIn: signIn)
            let isSignedOut = session.registered(device)
            #expect(isSignedOut == isOut)
            session.send(reply: Array("welcome".utf8))
            #expect(session.isOpen && session.caller?.device == device)
            let ended = session.closeEnded()
            guard isOut else {
                #expect(ended == [])
                continue
            }
            let refusal = try #require(change.refusal(of: Caller(user: "ann", device: device)))
            #expect(
                try ended == [.flush([Self.frame("welcome"), Self.refusal(refusal)])] + Self.closing(4004, "token_revoked"))
        }
    }

    @Test("an invalid device is refused with its field before the token is checked")
    func badDevice() throws {
        var session = session()
        let frame = #"{"authenticate":{"token":"t","device":{"deviceId":"a/b"}}}"#
        let refusal = RoostError.invalidArgument("device.deviceId", "must not contain control characters, '/' or ','")
        let actions = receive(Self.client(frame), in: &session)
        #expect(try actions == [Self.refused(refusal)] + Self.closing(4001, "the device is invalid"))
    }

    // MARK: Time

    @Test(
        "a client without a token, one whose token isn't answered, a silent one, one that doesn't read and one whose token has expired are closed, each with its code"
    )
    func timeouts() {
        let never = Timestamp(milliseconds: 0)
        var silent = session()
        #expect(silent.tick(Self.time(10), never, .init()) == [])
        #expect(silent.tick(Self.time(11), never, .init()) == Self.closing(4003, "no token arrived"))

        // The token did arrive, and the server is late.
        for isVerified in [false, true] {
            var waiting = session()
            _ = waiting.authenticate("t")
            if isVerified { _ = waiting.verified(Self.token) }
            #expect(waiting.tick(Self.time(10), never, .init()) == [])
            #expect(waiting.tick(Self.time(11), never, .init()) == Self.closing(4029, "try again later"))
        }

        var idle = opened()
        #expect(idle.tick(Self.time(61), never, .init()) == Self.closing(1001, "nothing received"))

        var over = opened()
        #expect(over.tick(Self.time(1), Timestamp(milliseconds: 999_999), .init()) == [])
        #expect(over.tick(Self.time(2), Timestamp(milliseconds: 1_000_000), .init()).last == .close(.init(codeNumber: 4002)))

        for (isHalfFull, seconds) in [(false, Int64(31)), (true, 2)] {
            var slow = opened()
            slow.becameUnwritable(0, at: Self.time(0))
            let pressure = SocketSession.Pressure(isServerHalfFull: isHalfFull)
            _ = slow.tick(Self.time(seconds - 1), never, pressure)
            #expect(!slow.isClosing)
            #expect(slow.tick(Self.time(seconds), never, pressure) == Self.closing(4008, "read faster, then resume"))
        }
    }

    @Test("a ping is sent each interval")
    func pings() {
        var session = opened()
        var ping = ByteBuffer()
        ping.writeControlFrame(opcode: 9, [])
        #expect(session.tick(Self.time(24), Timestamp(milliseconds: 0), .init()) == [])
        #expect(session.tick(Self.time(25), Timestamp(milliseconds: 0), .init()) == [.flush([ping])])
        #expect(session.tick(Self.time(26), Timestamp(milliseconds: 0), .init()) == [])
    }

    @Test("AM-45 a client that answers only its newest ping, as it may, still has its reads counted")
    func newestPingAlone() {
        var session = opened()
        _ = session.confirm(["general": 5])
        var ping = ByteBuffer()
        ping.writeControlFrame(opcode: 9, Array("read 1".utf8))
        #expect(session.tick(Self.time(25), Timestamp(milliseconds: 0), .init()) == [.flush([ping])])
        let pong = ByteBuffer(bytes: RawSocket.frame(opcode: 10, Array("read 1".utf8)))
        #expect(receive(pong, in: &session) == [.read(["general": 5])])
        #expect(receive(pong, in: &session) == [])
    }

    @Test("AM-45 AM-46 events given to a reader count once the ping sent after them is answered; one ping is under way at a time")
    func readConfirmation() {
        func ping(_ number: Int) -> ByteBuffer {
            var buffer = ByteBuffer()
            buffer.writeControlFrame(opcode: 9, Array("read \(number)".utf8))
            return buffer
        }
        func pong(_ payload: String, in session: inout SocketSession) -> [SocketSession.Action] {
            receive(ByteBuffer(bytes: RawSocket.frame(opcode: 10, Array(payload.utf8))), in: &session)
        }
        var session = opened()
        #expect(session.confirm(["general": 3]) == [.flush([ping(1)])])
        #expect(session.confirm(["general": 4, "other": 2]) == [])
        #expect(session.confirm(["general": 5]) == [])
        for wrong in ["", "read 2", "read 10", "read"] { #expect(pong(wrong, in: &session) == []) }
        #expect(pong("read 1", in: &session) == [.read(["general": 3]), .flush([ping(2)])])
        #expect(pong("read 1", in: &session) == [])
        #expect(pong("read 2", in: &session) == [.read(["general": 5, "other": 2])])
        #expect(pong("read 2", in: &session) == [])
        // Messages marked as unread meanwhile aren't read by the answer to an earlier ping.
        #expect(session.confirm(["general": 6]) == [.flush([ping(3)])])
        #expect(session.confirm(["general": 7, "other": 4]) == [])
        session.readConfirmation.forget("general")
        #expect(pong("read 3", in: &session) == [.read([:]), .flush([ping(4)])])
        #expect(pong("read 4", in: &session) == [.read(["other": 4])])
        // A connection that ends confirms nothing more, and one without a welcome is sent no ping.
        _ = session.confirm(["general": 6])
        _ = session.ended()
        #expect(session.confirm(["general": 7]) == [] && pong("read 5", in: &session) == [])
        var early = self.session()
        _ = early.authenticate("t")
        #expect(early.confirm(["general": 3]) == [])
    }

    @Test("a server that shuts down says so once, and closes the socket when its turn has come")
    func draining() {
        var session = opened()
        let actions = session.drain(after: .seconds(2))
        #expect(
            actions == [
                .restart(after: .seconds(2)),
                .flush([Self.frame(#"{"closing":{"reason":"restart","retryAfterMilliseconds":2500}}"#)]),
            ])
        #expect(session.drain(after: .seconds(2)) == [])
        #expect(session.restart() == Self.closing(1012, "the server restarts"))
        #expect(session.restart() == [])
    }

    func held(_ actions: [Action]) -> Int {
        actions.reduce(0) { if case .hold(let change) = $1 { $0 + change } else { $0 } }
    }

    @Test("the bytes held for a socket are given back when it ends, for whatever reason")
    func givesBack() {
        var session = opened()
        let list = #"{"call":1,"operation":"message.list","with":{"channel":"general"}}"#
        let waiting =
            #"{"call":2,"operation":"message.send","with":{"channel":"general","clientId":"1","text":""#
            + String(repeating: "x", count: 6000) + #""}}"#
        let sum = held(session.receive(Self.client(list, waiting), at: Self.started, .init()))
        #expect(sum > 6000)
        let ended = session.ended()
        #expect(held(ended) == -sum)
        #expect(ended.contains(.lost))
        #expect(session.ended() == [])
    }

    // MARK: Signals

    func signal(_ kind: String, by sender: UserID = "bob", _ content: Double = 0) -> SignalFrame {
        SignalFrame(
            Signal(
                kind: .init(rawValue: kind), channel: "general", sender: sender,
                custom: .init(type: "test", metadata: .number(content))
            ))
    }

    @Test("a signal goes out with its turn's output; before the welcome and after the end none does")
    func signals() {
        var early = session()
        _ = early.authenticate("t")
        _ = early.verified(Self.token)
        early.send(signal: signal("typing"))
        early.send(reply: Array("welcome".utf8))
        #expect(early.takeUnflushed() == [Self.frame("welcome")])

        var session = opened()
        session.send(event: Self.frame("event"))
        session.send(signal: signal("typing"))
        #expect(session.takeUnflushed() == [Self.frame("event"), signal("typing").bytes])
        _ = session.ended()
        session.send(signal: signal("typing"))
        #expect(session.takeUnflushed() == nil)
    }

    @Test(
        "signals for a client that doesn't read are merged by kind and sender, and dropped beyond a few; they close no connection")
    func signalsUnderLoad() {
        var session = opened()
        session.becameUnwritable(10, at: Self.time(1))
        for number in 0..<1000 {
            session.send(signal: signal("typing", Double(number)))
            session.send(signal: signal("typing", by: "cid", Double(number)))
        }
        for number in 0..<SignalQueue.countMax - 1 { session.send(signal: signal("other\(number)")) }
        #expect(!session.mustFlush)
        #expect(session.takeUnflushed() == nil)
        let actions = session.becameWritable(isHanding: false, .init())
        // The oldest one beyond the limit is dropped: bob's, which was sent before cid's.
        var expected: [ByteBuffer] = [signal("typing", by: "cid", 999).bytes]
        expected += (0..<SignalQueue.countMax - 1).map { signal("other\($0)").bytes }
        let sent = actions.flatMap { action -> [ByteBuffer] in if case .flush(let bytes) = action { bytes.pieces } else { [] } }
        #expect(sent == expected)
        #expect(session.takeUnflushed() == nil)
    }

    @Test("a client that reads nothing, and can no longer be notified of its losses, is closed with the code to resume")
    func lostSignals() {
        var session = opened()
        session.becameUnwritable(10, at: Self.time(1))
        func send(_ channel: Int) {
            let change = PresenceChange(onlineCount: 1, online: ["bob"], offline: [], isWhole: true)
            let signal = Signal(kind: .presenceChanged, channel: ChannelID("channel-\(channel)"), presence: change)
            session.send(signal: SignalFrame(signal))
        }
        for channel in 0..<100 { send(channel) }
        #expect(session.tick(Self.time(2), Timestamp(milliseconds: 0), .init()) == [])
        for channel in 100..<5000 { send(channel) }
        #expect(session.tick(Self.time(3), Timestamp(milliseconds: 0), .init()) == Self.closing(4008, "read faster, then resume"))
    }
}
