import Roost
import RoostAPI
import RoostTestSupport

/// One TCP connection: in order in each direction, randomly late, and cut with everything in flight.
final class Connection {
    /// The events of the server's end.
    enum AtServer {
        case message([UInt8])
        case ping
        /// The answer that a transport gives to a ping by itself.
        case pong([UInt8])
        case closed
    }

    /// How well a network does its work.
    struct Quality {
        /// One frame in this many is delayed by seconds.
        var clog = 40
        /// One frame in this many from the server is dropped, and as many are duplicated. TCP doesn't do that; a faulty proxy or an unreadable
        /// frame does. Zero for never.
        var mischief = 0
    }

    private enum State {
        case flowing
        /// Everything vanishes without notice.
        case silent
        case dead
    }

    let number: Int64
    private let scheduler: Scheduler
    private let quality: () -> Quality
    private var state = State.flowing
    private var lastAtClient: Int64 = 0
    private var lastAtServer: Int64 = 0
    var client: ((TransportEvent) throws -> Void)?
    var server: ((AtServer) throws -> Void)?

    init(number: Int64, scheduler: Scheduler, quality: @escaping () -> Quality) {
        self.number = number
        self.scheduler = scheduler
        self.quality = quality
    }

    var isFlowing: Bool { state == .flowing }
    var isDead: Bool { state == .dead }

    // MARK: Sending

    func sendToServer(_ message: AtServer) {
        guard state == .flowing else { return }
        lastAtServer = arrival(after: lastAtServer)
        schedule(lastAtServer) { connection in try connection.server?(message) }
    }

    func sendToClient(_ event: TransportEvent) {
        guard state == .flowing else { return }
        var copies = 1
        let mischief = quality().mischief
        if mischief > 0, case .message = event {
            if scheduler.random.once(in: mischief) { copies = 0 } else if scheduler.random.once(in: mischief) { copies = 2 }
            if copies != 1 { scheduler.note("connection \(number): a frame comes \(copies) times") }
        }
        for _ in 0..<copies {
            lastAtClient = arrival(after: lastAtClient)
            schedule(lastAtClient) { connection in try connection.client?(event) }
        }
    }

    private func arrival(after last: Int64) -> Int64 {
        let delay =
            scheduler.random.once(in: quality().clog) ? scheduler.random.number(500...4000) : scheduler.random.number(0...40)
        return max(last, scheduler.now + Int64(delay))
    }

    /// Delivers at a time, unless the connection has been cut by then.
    private func schedule(_ time: Int64, _ deliver: @escaping (Connection) throws -> Void) {
        scheduler.after(Int(time - scheduler.now)) { [self] in
            guard state == .flowing else { return }
            try deliver(self)
        }
    }

    // MARK: Ending

    /// Everything in flight is lost; both ends learn it a little later.
    func cut() {
        guard state != .dead else { return }
        state = .dead
        let (client, server) = (client, server)
        scheduler.after(scheduler.random.number(0...200)) { try client?(.closed(code: nil, reason: "reset")) }
        scheduler.after(scheduler.random.number(0...200)) { try server?(.closed) }
    }

    /// From here on everything is lost. The client notices the silence by itself, the server after a minute.
    func vanish() {
        guard state == .flowing else { return }
        state = .silent
        let server = server
        scheduler.after(60_000) { try server?(.closed) }
    }

    /// The server closes, after what it has sent.
    func closeByServer(code: UInt16?) { sendToClient(.closed(code: code, reason: "the server closes")) }

    /// The client closes, after what it has sent.
    func closeByClient() { sendToServer(.closed) }
}
