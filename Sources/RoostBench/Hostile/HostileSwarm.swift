import Foundation
import Synchronization

/// Hostile sockets on a separate thread, until they are stopped. One that the server closes reconnects.
final class HostileSwarm: Sendable {
    struct Plan: Sendable {
        let port: UInt16
        /// The tokens of the users who own the sockets.
        let tokens: [String]
        let socketCount: Int
        /// Assigned to the sockets in turn.
        let scripts: [HostileScript]
        /// How long each socket runs a script before the next one. Nil if each has one script, and runs it once.
        var turnSeconds: Double?
    }

    struct Counts {
        var opened = 0
        /// The sockets closed by the server.
        var closed = 0
        var sentBytes = 0
    }

    private let isOver = Atomic<Bool>(false)
    private let state = Mutex(Counts())
    private let isReady = DispatchSemaphore(value: 0)
    private let begun = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    var counts: Counts { state.withLock { $0 } }

    /// Prepares the attack, which begins with ``begin()``.
    init(_ plan: Plan) {
        Thread.detachNewThread { [self] in
            let attack = Attack(plan)
            isReady.signal()
            begun.wait()
            while !isOver.load(ordering: .acquiring) {
                attack.turn()
                state.withLock { $0 = attack.counts }
            }
            attack.closeAll()
            ended.signal()
        }
        isReady.wait()
    }

    func begin() { begun.signal() }

    /// Closes all sockets.
    func end() {
        begin()
        guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
        ended.wait()
    }

}

/// The sockets of a swarm, owned by its thread.
private final class Attack {
    private struct Socket {
        let script: HostileScript
        let opening: [UInt8]
        let rest: [UInt8]
        var descriptor: Int32 = -1
        /// The bytes sent, of the opening and the rest together.
        var sent = 0
        var opensAt: UInt64 = 0
        var endsAt: UInt64?

        /// The bytes still to send: of the opening, and after it of the rest.
        var next: ArraySlice<UInt8> { sent < opening.count ? opening[sent...] : rest[(sent - opening.count)...] }
    }

    private let plan: HostileSwarm.Plan
    private var sockets: [Socket] = []
    private var polled: [pollfd] = []
    private var scripts: [Int]
    private var shared: [String: [UInt8]] = [:]
    private(set) var counts = HostileSwarm.Counts()
    private var trash = [UInt8](repeating: 0, count: 4096)

    /// The event of `poll` for a peer that has closed, whether or not there is something to read.
    #if os(Linux)
    private static let closed = Int16(0x2000)
    #else
    private static let closed = Int16(POLLHUP)
    #endif

    init(_ plan: HostileSwarm.Plan) {
        self.plan = plan
        signal(SIGPIPE, SIG_IGN)
        scripts = (0..<plan.socketCount).map { $0 % plan.scripts.count }
        for number in 0..<plan.socketCount { sockets.append(prepared(number)) }
        polled = Array(repeating: pollfd(fd: -1, events: 0, revents: 0), count: plan.socketCount)
    }

    private func prepared(_ number: Int) -> Socket {
        let script = plan.scripts[scripts[number]]
        // Each script has sockets of all users.
        let user = number / plan.scripts.count % plan.tokens.count
        let token = plan.tokens[user]
        // Sockets that send the same share the bytes: they are this process's memory, which isn't measured, but needn't be wasted.
        let key = "\(script) \(script == .requests ? user : 0)"
        let rest = shared[key] ?? script.rest(token: token)
        // Its messages have different ids, new ones each time.
        if script != .sends { shared[key] = rest }
        return Socket(script: script, opening: script.opening(token: token), rest: rest)
    }

    func turn() {
        let now = Clock.now()
        var opening = 0
        for number in sockets.indices {
            if let end = sockets[number].endsAt, now >= end { moveOn(number) }
            if opening < 200, sockets[number].descriptor < 0, sockets[number].opensAt <= now {
                opening += 1
                open(number)
            }
        }
        let ready = poll(&polled, nfds_t(polled.count), 10)
        for number in sockets.indices where sockets[number].descriptor >= 0 {
            if sockets[number].script.readsSlowly { _ = read(sockets[number].descriptor, &trash, trash.count) }
            guard ready > 0, polled[number].revents != 0 else { continue }
            if polled[number].revents & Int16(POLLOUT) != 0 { send(number) }
            let isClosed = polled[number].revents & (Self.closed | Int16(POLLHUP) | Int16(POLLERR)) != 0
            if isClosed, sockets[number].descriptor >= 0 {
                counts.closed += 1
                close(number)
            }
        }
        // Thousands need no shorter pause, and the other users share the processor.
        usleep(sockets.count > 1 ? 5000 : 500)
    }

    private func moveOn(_ number: Int) {
        close(number)
        scripts[number] = (scripts[number] + 1) % plan.scripts.count
        sockets[number] = prepared(number)
    }

    private func open(_ number: Int) {
        let descriptor = LoopbackSocket.connect(port: plan.port)
        guard descriptor >= 0 else {
            sockets[number].opensAt = Clock.now() + 200_000_000
            return
        }
        // Unread bytes must pile up in the server, not in the kernel.
        var size: Int32 = 4096
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        counts.opened += 1
        sockets[number].descriptor = descriptor
        sockets[number].sent = 0
        if let seconds = plan.turnSeconds, sockets[number].endsAt == nil {
            sockets[number].endsAt = Clock.now() + UInt64(seconds * 1e9)
        }
        polled[number] = pollfd(fd: descriptor, events: Self.closed | Int16(POLLOUT), revents: 0)
        send(number)
    }

    private func send(_ number: Int) {
        for _ in 0..<8 {
            let next = sockets[number].next
            guard !next.isEmpty else {
                if plan.turnSeconds != nil, sockets[number].script.isEndless {
                    if sockets[number].script == .sends { sockets[number] = renewed(sockets[number]) }
                    sockets[number].sent = sockets[number].opening.count
                    continue
                }
                polled[number].events = Self.closed
                return
            }
            let count = next.withUnsafeBytes { write(sockets[number].descriptor, $0.baseAddress, min($0.count, 1 << 17)) }
            guard count > 0 else { return }
            sockets[number].sent += count
            counts.sentBytes += count
        }
    }

    private func renewed(_ socket: Socket) -> Socket {
        var next = Socket(script: socket.script, opening: socket.opening, rest: socket.script.rest(token: ""))
        (next.descriptor, next.endsAt) = (socket.descriptor, socket.endsAt)
        return next
    }

    private func close(_ number: Int) {
        guard sockets[number].descriptor >= 0 else { return }
        Foundation.close(sockets[number].descriptor)
        sockets[number].descriptor = -1
        sockets[number].opensAt = Clock.now() + (plan.turnSeconds == nil ? 500_000_000 : 20_000_000)
        polled[number] = pollfd(fd: -1, events: 0, revents: 0)
    }

    func closeAll() { for number in sockets.indices { close(number) } }
}
