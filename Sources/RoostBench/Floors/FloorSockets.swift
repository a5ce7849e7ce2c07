import Foundation

/// The floor of fan-out: writes the same bytes to plain sockets, with nothing else around it.
package enum FloorSockets {
    /// Runs the measured process: it prints its port, accepts the sockets, and then makes one round of writes for each byte of its standard input.
    ///
    /// - Parameter bytes: The size of one write.
    package static func serve(sockets: Int, bytes: Int) throws {
        signal(SIGPIPE, SIG_IGN)
        let (listener, port) = try LoopbackSocket.listen()
        FileHandle.standardOutput.write(Data("\(port)\n".utf8))
        let accepted = (0..<sockets).map { _ in accept(listener, nil, nil) }
        // As in the server: each write is sent at once, not combined with the next.
        var on: Int32 = 1
        for socket in accepted {
            setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        }
        let payload = [UInt8](repeating: 97, count: bytes)
        var step: UInt8 = 0
        while read(0, &step, 1) == 1 {
            for socket in accepted { _ = write(socket, payload, payload.count) }
        }
    }

    /// The CPU microseconds of one write to one socket.
    ///
    /// - Parameter roundsAhead: The most rounds under way: 1 waits for every byte of a round before the next begins.
    static func measure(sockets count: Int, bytes: Int, roundsAhead: Int, seconds: Double) throws -> Double {
        let process = try ChildProcess(
            ["bench", "floor-sockets", "--sockets", "\(count)", "--bytes", "\(bytes)"], errors: .standardError)
        defer { process.end(after: 0) }
        guard let port = UInt16(try process.firstLine()) else { throw BenchFailure("the floor reported no port") }
        let loop = LoadLoop()
        for number in 0..<count { try loop.add(try LoadSocket.plain(port: port, number: number)) }

        var rounds = 0
        let before = process.usage
        let end = Clock.now() + UInt64(seconds * 1e9)
        while Clock.now() < end {
            process.step()
            rounds += 1
            let least = (rounds - roundsAhead + 1) * count * bytes
            try loop.run(timeout: 30) { loop.receivedBytes >= least }
        }
        try loop.run(timeout: 30) { loop.receivedBytes >= rounds * count * bytes }
        return process.usage.cpuMicroseconds(since: before) / Double(rounds * count)
    }
}
