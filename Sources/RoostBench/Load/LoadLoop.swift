import Foundation

/// Drives all sockets of the load generator on the calling thread, with poll(2).
///
/// One thread without locks or tasks: so that it takes as little as possible of the machine that it shares with the server, and so that a
/// benchmark reads from top to bottom.
final class LoadLoop {
    private(set) var sockets: [LoadSocket] = []
    private var polled: [pollfd] = []
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)

    /// Called with every frame that came. ``now`` is the time at which it was read.
    var onFrame: (LoadSocket, LoadFrame, UnsafeRawBufferPointer) throws -> Void = { _, _, _ in }
    private(set) var now = Clock.now()
    /// Whether a refused call is passed to ``onFrame`` too, instead of ending the benchmark.
    var takesRefusals = false
    /// Bytes that came since the benchmark set it to 0.
    var receivedBytes = 0

    init() { signal(SIGPIPE, SIG_IGN) }
    deinit { buffer.deallocate() }

    func add(_ socket: LoadSocket) {
        sockets.append(socket)
        polled.append(pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0))
    }

    /// Connects and authenticates one socket for each token, some at a time.
    func connect(port: UInt16, tokens: [String]) throws {
        for chunk in stride(from: 0, to: tokens.count, by: 100) {
            let first = sockets.count
            for token in tokens[chunk..<min(chunk + 100, tokens.count)] {
                add(try LoadSocket.webSocket(port: port, number: sockets.count, token: token))
            }
            try run(from: first, timeout: 30) { [self] in sockets[first...].allSatisfy(\.isWelcome) }
        }
    }

    func closeAll() {
        sockets = []
        polled = []
    }

    /// Serves the sockets until the condition holds. Throws when that takes too long, or a socket fails.
    ///
    /// - Parameter first: The first socket to look at; the ones before it must be silent.
    func run(from first: Int = 0, timeout seconds: Double, until isDone: () -> Bool) throws {
        let deadline = Clock.now() + UInt64(seconds * 1e9)
        while !isDone() {
            guard now < deadline else { throw BenchFailure("the server didn't answer within \(seconds) s") }
            try turn(from: first, waitMilliseconds: 20)
        }
    }

    /// Serves the sockets for a time.
    func run(for seconds: Double) throws { try run(until: Clock.now() + UInt64(seconds * 1e9)) }

    /// Serves the sockets up to a moment of the ``Clock``, which is missed by a millisecond at most when all is quiet.
    func run(until end: UInt64) throws {
        while true {
            let now = Clock.now()
            guard now < end else { return }
            try turn(from: 0, waitMilliseconds: Int32(clamping: min(20, (end - now) / 1_000_000 + 1)))
        }
    }

    private func turn(from first: Int, waitMilliseconds: Int32) throws {
        for index in first..<sockets.count where !sockets[index].unsent.isEmpty { polled[index].events |= Int16(POLLOUT) }
        let ready = polled.withUnsafeMutableBufferPointer { all in
            all.baseAddress.map { poll($0 + first, nfds_t(all.count - first), waitMilliseconds) } ?? 0
        }
        now = Clock.now()
        guard ready > 0 else { return }
        for index in first..<polled.count where polled[index].revents != 0 {
            let socket = sockets[index]
            if polled[index].revents & Int16(POLLOUT) != 0 { socket.flush() }
            if polled[index].revents & ~Int16(POLLOUT) != 0 { try receive(socket) }
            polled[index].events = Int16(POLLIN)
        }
    }

    private func receive(_ socket: LoadSocket) throws {
        let count = read(socket.descriptor, buffer.baseAddress, buffer.count)
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EINTR { return }
            throw BenchFailure("the server closed socket \(socket.number)")
        }
        now = Clock.now()
        receivedBytes += count
        try socket.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { frame, payload in
            if case .reply(_, isRefusal: true) = frame, !takesRefusals {
                throw BenchFailure("the server refused a call: \(String(decoding: payload, as: UTF8.self))")
            }
            try onFrame(socket, frame, payload)
        }
    }
}
