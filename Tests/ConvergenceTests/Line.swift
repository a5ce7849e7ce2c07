import NIOCore
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostServer

/// The server's end of a client's connection: the gateway's own `SocketSession`, and for calls the engine's own `ReadBatch`.
///
/// It returns the bytes that are written to the client. Calls are answered one by one, when a test says so.
struct Line {
    private let connection: ConnectionID
    private let token: VerifiedToken
    private let now: Timestamp
    private var session: SocketSession
    /// Unanswered calls, in order of arrival.
    private var calls: [SocketSession.Call] = []
    private var outgoing: [ByteBuffer] = []

    private static let greeting = Greeting(
        server: "simulated", epoch: "first", version: "1", pingInterval: .seconds(30), drainWindow: .zero)

    init(_ connection: ConnectionID, of user: UserID, at now: Timestamp) {
        self.connection = connection
        self.now = now
        token = VerifiedToken(
            user: user, role: .user, displayName: nil, expiresAt: Timestamp(milliseconds: now.milliseconds + 86_400_000),
            identity: TokenIdentity(user: user, issuedAt: now))
        session = SocketSession(connection, limits: .init(), at: .uptimeNanoseconds(0))
    }

    var hasCalls: Bool { !calls.isEmpty }

    /// Authenticates a client without frames by its request's header.
    mutating func authenticate() -> [ByteBuffer] {
        perform(session.authenticate("token"))
        return handOver()
    }

    /// A text frame of the client's.
    mutating func receive(_ frame: [UInt8]) -> [ByteBuffer] {
        let bytes = ByteBuffer(bytes: RawSocket.frame(opcode: 1, frame))
        perform(session.receive(bytes, at: .uptimeNanoseconds(0), .init()))
        return handOver()
    }

    mutating func send(event: ByteBuffer) -> [ByteBuffer] {
        session.send(event: event)
        return handOver()
    }

    /// Answers the oldest call.
    mutating func answer(in world: CoreWorld) throws -> [ByteBuffer] {
        guard !calls.isEmpty else { return [] }
        let call = calls.removeFirst()
        guard let caller = session.caller else { throw Missed("a caller") }
        let reply = try world.reply(to: call, job(for: call.operation, call.number, by: caller))
        session.send(reply: reply)
        return handOver()
    }

    private func job(for operation: some Handled, _ call: Int64, by caller: Caller) throws -> Job {
        guard type(of: operation).isReadOnly else { throw Missed("a read-only call: \(type(of: operation).name)") }
        return Job(operation, call: call, by: caller, at: SocketID(shard: 0, connection: connection))
    }

    private mutating func perform(_ actions: [SocketSession.Action]) {
        var actions = actions
        while !actions.isEmpty {
            var next: [SocketSession.Action] = []
            var hasFlushed = false
            for action in actions {
                switch action {
                case .flush(let bytes):
                    outgoing += bytes.pieces
                    hasFlushed = true
                case .verify: next += session.verified(token)
                case .connect(let token): welcome(token)
                case .call(let call): calls.append(call)
                case .setReading, .hold: break
                case .refused, .read, .overloaded, .restart, .close, .lost: Issue.record("The session asks for \(action).")
                }
            }
            if hasFlushed { next += session.flushed(.init()) }
            actions = next
        }
    }

    /// The room adds the connection to the hub at the same moment.
    private mutating func welcome(_ token: VerifiedToken) {
        guard let caller = session.caller else { return }
        let welcome = Self.greeting.welcome(caller, connection, expiresAt: token.expiresAt, now: now)
        do {
            session.send(reply: try JSONWriter.bytes(of: welcome))
        } catch {
            Issue.record("The welcome can't be written: \(error)")
        }
    }

    private mutating func handOver() -> [ByteBuffer] {
        if let bytes = session.takeUnflushed() {
            outgoing += bytes.pieces
            perform(session.flushed(.init()))
        }
        defer { outgoing = [] }
        return outgoing
    }
}

extension CoreWorld {
    /// Reads for a call, and answers as a socket does.
    fileprivate func reply(to call: SocketSession.Call, _ job: Job) throws -> [UInt8] {
        let settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard(), options: options)
        var reply: [UInt8]?
        ReadBatch.run([job], in: OnClock(base: database, time: now), settings) { action in
            switch action {
            case .answered(_, let outcome): reply = outcome.result.payload(call: call.number)
            case .failed(_, let error), .lost(_, let error, _): Issue.record("\(job.operation) failed: \(error)")
            default: break
            }
        }
        guard let reply else { throw Missed("an answer to \(job.operation)") }
        return reply
    }
}

/// A database with a test's clock.
private struct OnClock: RoostDatabase.Database {
    let base: any RoostDatabase.Database
    let time: Timestamp

    var laneCount: Int { base.laneCount }
    var readerCount: Int { base.readerCount }
    func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T { try base.write(lane: lane, body) }
    func read<T>(_ body: (any Transaction) throws -> T) throws -> T { try base.read(body) }
    func now() -> Timestamp { time }
}
