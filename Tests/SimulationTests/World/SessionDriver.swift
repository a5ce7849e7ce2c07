import NIOCore
import Roost
import RoostAPI
import RoostCore
import RoostTestSupport

@testable import RoostServer

/// The server's end of a simulated connection: drives the `SocketSession` there, as `SocketHandler` does on a real one.
final class SessionDriver: QueuedOutput {
    let connection: Connection
    let id: ConnectionID
    private var session: SocketSession
    private let scheduler: Scheduler
    /// Handed over, and not on the network yet. A turn's output goes together, in an order of connections that a seed repeats.
    private var outgoing: [ByteBuffer] = []
    /// Frames received while the session doesn't read.
    private var unread: [ByteBuffer] = []
    private var isReading = true
    /// The connection's device on its way to the rules, until the welcome.
    private var registration: DeviceRegistration?
    /// When the server flushes what was written.
    var outputState = OutputState()
    /// The bytes that the session reports as held.
    private(set) var heldBytes = 0
    /// Has the server do what the session asks of it.
    var ask: (SessionDriver, SocketSession.Action) -> Void = { _, _ in }
    /// Called for every event that is put on the network.
    var delivered: (StreamID, Seq, Caller) -> Void = { _, _, _ in }

    init(_ connection: Connection, scheduler: Scheduler) {
        self.connection = connection
        self.scheduler = scheduler
        id = ConnectionID(rawValue: connection.number)
        session = SocketSession(id, limits: .init(), at: Self.deadline(scheduler))
    }

    private static func deadline(_ scheduler: Scheduler, after milliseconds: Int64 = 0) -> NIODeadline {
        .uptimeNanoseconds(UInt64(scheduler.now + milliseconds) * 1_000_000)
    }

    private var now: NIODeadline { Self.deadline(scheduler) }

    var caller: Caller? { session.caller }
    var isOpen: Bool { session.isOpen }

    // MARK: In

    /// A frame of the client's, with its mask.
    func receive(opcode: UInt8, _ payload: [UInt8] = []) {
        let bytes = ByteBuffer(bytes: RawSocket.frame(opcode: opcode, payload))
        guard isReading else { return unread.append(bytes) }
        perform(session.receive(bytes, at: now, .init()))
    }

    func confirm(_ readable: [ChannelID: Seq]) { perform(session.confirm(readable)) }
    func forgetReading(of channel: ChannelID) { session.readConfirmation.forget(channel) }
    func tick(_ time: Timestamp) { perform(session.tick(now, time, .init())) }

    func end() {
        perform(session.ended())
        precondition(heldBytes == 0, "A session that has ended still holds \(heldBytes) bytes.")
    }

    // MARK: From the server

    func verified(_ token: VerifiedToken) { perform(session.verified(token)) }
    func refuseConnection(_ error: RoostError) { perform(session.refuseConnection(error)) }

    func send(event: ByteBuffer) { session.send(event: event) }
    func send(signal: SignalFrame) { session.send(signal: signal) }
    func send(reply: [UInt8]) {
        // The first reply is the welcome.
        let isSignedOut = (registration?.device).map { session.registered($0) } ?? false
        registration = nil
        session.send(reply: reply)
        if isSignedOut { perform(session.closeEnded()) }
    }

    /// Starts to take a place in the order of commits, as the device that the client has named.
    func register() -> DeviceRegistration? {
        registration = session.device.map { DeviceRegistration(of: $0.description) }
        return registration
    }

    /// Whether its caller is shut out by changes: then ``closeEnded()`` follows.
    func endIfRefused(by changes: [AccessSubject: AccessChange]) -> Bool { session.endIfRefused(by: changes) }
    func closeEnded() { perform(session.closeEnded()) }

    var mustFlush: Bool { session.mustFlush }

    func flush() {
        if let bytes = session.takeUnflushed() {
            outgoing += bytes.pieces
            perform(session.flushed(.init()))
        }
        transmit()
    }

    /// Has the session close for a reason of the server's, by what causes it.
    func close(_ code: CloseCode, _ time: Timestamp) {
        switch code {
        case .tokenExpired: perform(session.tick(now, .forever, .init()))
        case .resume:
            session.becameUnwritable(0, at: now)
            perform(session.tick(Self.deadline(scheduler, after: 31_000), time, .init()))
        case .tokenRevoked:
            guard let user = caller?.user else { return }
            let change = AccessChange.user(user, isDeactivated: false, validFrom: .forever)
            if session.endIfRefused(by: [change.subject: change]) { perform(session.closeEnded()) }
        default:
            perform(session.drain(after: .zero))
            perform(session.restart())
        }
    }

    // MARK: From the session

    private func perform(_ actions: [SocketSession.Action]) {
        var actions = actions
        while !actions.isEmpty {
            var hasFlushed = false
            for action in actions {
                switch action {
                case .flush(let bytes):
                    outgoing += bytes.pieces
                    hasFlushed = true
                case .setReading(let isReading): self.isReading = isReading
                case .hold(let changeBytes): heldBytes += changeBytes
                case .refused, .restart, .lost: break
                case .verify, .connect, .call, .read, .overloaded, .close: ask(self, action)
                }
            }
            actions = hasFlushed ? session.flushed(.init()) : []
            while actions.isEmpty, isReading, !unread.isEmpty {
                actions = session.receive(unread.removeFirst(), at: now, .init())
            }
        }
        transmit()
    }

    private func transmit() {
        let bytes = outgoing
        outgoing = []
        for frame in bytes.flatMap(ServerFrame.all) {
            switch frame {
            case .text(let payload):
                if let caller, let (stream, seq) = Self.position(of: payload) { delivered(stream, seq, caller) }
                connection.sendToClient(.message(payload))
            case .ping(let payload):
                connection.sendToClient(.heard)
                // The client's transport answers it by itself.
                connection.sendToServer(.pong(payload))
            case .pong: connection.sendToClient(.heard)
            case .close(let code, _): connection.closeByServer(code: code)
            }
        }
    }

    /// The stream and seq of an event, which stand near its beginning: its own, or those of the message that it is.
    private static func position(of frame: [UInt8]) -> (StreamID, Seq)? {
        guard frame.starts(with: #"{"watching""#.utf8) else { return nil }
        let head = String(decoding: frame.prefix(400), as: UTF8.self)
        if let match = head.firstMatch(of: #/"message":{"messageId":"\d+","channelId":"([^"]*)","seq":(\d+)/#),
            let seq = Seq(match.2)
        {
            return (.channel(ChannelID(String(match.1))), seq)
        }
        guard let match = head.firstMatch(of: #/"stream":"([^"]*)","seq":(\d+)/#), let stream = StreamID(String(match.1)),
            let seq = Seq(match.2)
        else { preconditionFailure("An event without a position: \(head)") }
        return (stream, seq)
    }
}
