import Foundation

/// Drives all sockets of the load generator on the calling thread.
///
/// One thread without locks or tasks: it takes as little as possible of the machine that it shares with the server, and a benchmark reads from top
/// to bottom.
final class LoadLoop {
    private(set) var sockets: [LoadSocket] = []
    private var readiness = Readiness()
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)

    /// Called with every received frame. ``now`` is the time at which it was read.
    var onFrame: (LoadSocket, LoadFrame, UnsafeRawBufferPointer) throws -> Void = { _, _, _ in }
    private(set) var now = Clock.now()
    /// Whether a refused call is passed to ``onFrame`` too, instead of ending the benchmark.
    var takesRefusals = false
    /// The bytes received since the benchmark set it to 0.
    var receivedBytes = 0

    init() { signal(SIGPIPE, SIG_IGN) }
    deinit { buffer.deallocate() }

    func add(_ socket: LoadSocket) throws {
        try readiness.add(socket.descriptor, number: sockets.count)
        sockets.append(socket)
    }

    /// Connects and authenticates one socket for each token, some at a time.
    func connect(port: UInt16, tokens: [String], atOnce: Int = 100) throws {
        for chunk in stride(from: 0, to: tokens.count, by: atOnce) {
            let first = sockets.count
            for token in tokens[chunk..<min(chunk + atOnce, tokens.count)] {
                try add(try LoadSocket.webSocket(port: port, number: sockets.count, token: token))
            }
            try run(timeout: 30) { [self] in sockets[first...].allSatisfy(\.isWelcome) }
        }
    }

    func closeAll() {
        sockets = []
        readiness = Readiness()
    }

    /// Serves the sockets until the condition holds. Throws if that takes too long, or a socket fails.
    func run(timeout seconds: Double, until isDone: () -> Bool) throws {
        let deadline = Clock.now() + UInt64(seconds * 1e9)
        while !isDone() {
            guard now < deadline else { throw BenchFailure("the server didn't answer within \(seconds) s") }
            try turn(waitNanoseconds: Self.longestWait)
        }
    }

    /// Serves the sockets for a time.
    func run(for seconds: Double) throws { try run(until: Clock.now() + UInt64(seconds * 1e9)) }

    /// Serves the sockets until a time of the ``Clock``.
    func run(until end: UInt64) throws {
        while true {
            let now = Clock.now()
            guard now < end else { return }
            try turn(waitNanoseconds: min(Self.longestWait, end - now))
        }
    }

    private static let longestWait: UInt64 = 20_000_000

    private func turn(waitNanoseconds: UInt64) throws {
        let ready = readiness.wait(nanoseconds: waitNanoseconds)
        now = Clock.now()
        for number in ready where number < sockets.count {
            let socket = sockets[number]
            if !socket.unsent.isEmpty { socket.flush() }
            // Readiness is reported once, so everything available is read.
            while try receive(socket) == buffer.count {}
        }
    }

    /// Reads from a socket once. Returns the number of bytes received.
    private func receive(_ socket: LoadSocket) throws -> Int {
        let count = read(socket.descriptor, buffer.baseAddress, buffer.count)
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EINTR { return 0 }
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
        return count
    }
}
