import Foundation

/// The load of ``FanoutLoad`` on a peer: the same numbers of subscribers, of messages under way, and of bytes per delivery.
enum PeerFanout {
    struct Measurement {
        var cpuMicroseconds: Double
        /// Nil if the kernel counts only some of the peer's writes.
        var messagesPerWrite: Double?
    }

    /// The kernel's counts while some messages went to all subscribers.
    private struct Counts {
        var window: Int
        var deliveries: Double
        var cpuMicroseconds: Double
        /// Calls of write(2) and writev(2). Those of send(2) and sendmsg(2) aren't among them.
        var writes: Double

        /// Whether some writes may not be counted. A single message is written to each subscriber separately, so fewer writes than that aren't all
        /// of them. The last one may be counted after its bytes have arrived.
        var missesWrites: Bool { window == 1 && writes < deliveries * 0.99 }
    }

    /// - Parameter bytes: The size of one delivery, including the peer's framing.
    static func measure(
        _ peer: Peer, in directory: URL, sockets count: Int, bytes: Int, windows: [Int], seconds: Double
    ) throws -> [Measurement]? {
        guard let server = try PeerServer(peer, in: directory) else { return nil }
        defer { server.end() }
        let loop = LoadLoop()
        defer { loop.closeAll() }
        for number in 0..<count { try loop.add(try server.subscriber(number: number)) }
        let publisher = try server.publisher()
        defer { close(publisher) }
        let payloadCount = bytes - peer.overhead(bytes - peer.overhead(bytes))
        let publication = peer.publication([UInt8](repeating: 97, count: max(1, payloadCount)))
        let delivery = max(1, payloadCount) + peer.overhead(max(1, payloadCount))
        var answers = [UInt8](repeating: 0, count: 4096)

        let counts = try windows.map { window in
            loop.receivedBytes = 0
            var published = 0
            var delivered: Int { loop.receivedBytes / (count * delivery) }
            let before = server.usage
            let end = Clock.now() + UInt64(seconds * 1e9)
            while Clock.now() < end {
                while published - delivered < window {
                    guard write(publisher, publication, publication.count) == publication.count else {
                        throw BenchFailure("\(peer.name) accepts no messages")
                    }
                    published += 1
                }
                // A peer may answer a publisher; the answers are ignored.
                _ = recv(publisher, &answers, answers.count, Int32(MSG_DONTWAIT))
                let least = delivered + 1
                try loop.run(timeout: 30) { delivered >= least }
            }
            try loop.run(timeout: 30) { delivered == published }
            let after = server.usage
            return Counts(
                window: window, deliveries: Double(published * count), cpuMicroseconds: after.cpuMicroseconds(since: before),
                writes: after.writeCalls - before.writeCalls)
        }
        let areWritesCounted = windows.contains(1) && !counts.contains(where: \.missesWrites)
        return counts.map { counts in
            Measurement(
                cpuMicroseconds: counts.cpuMicroseconds / counts.deliveries,
                messagesPerWrite: areWritesCounted ? counts.deliveries / max(1, counts.writes) : nil)
        }
    }
}
