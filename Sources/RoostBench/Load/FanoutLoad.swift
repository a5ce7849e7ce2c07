import Foundation

/// One channel whose members are all the sockets of the loop: the first of them sends.
struct FanoutLoad {
    let channel: String

    struct Measurement {
        var deliveriesPerSecond: Double
        var cpuMicroseconds: Double
        var messagesPerWrite: Double
        var bytesPerDelivery: Double
        /// From the sending of a message to its arrival at one socket.
        var deliveries: Histogram
    }

    /// Sends for some seconds, with as many messages under way as the window allows: with one, a message is sent when the previous one has arrived
    /// everywhere.
    ///
    /// - Parameter slackSeconds: How long the last deliveries may take after these seconds. With more than one under way there is no earlier moment
    ///   at which everything is delivered.
    func run(
        _ loop: LoadLoop, _ server: BenchServer, window: Int, seconds: Double, slackSeconds: Double = 30
    ) throws -> Measurement {
        let sender = loop.sockets[0]
        let text = SampleText.message
        var sentAt: [UInt64] = []
        var answered = 0
        var delivered = 0
        var times = Histogram()
        for socket in loop.sockets { socket.eventCount = 0 }
        loop.receivedBytes = 0
        let end = Clock.now() + UInt64(seconds * 1e9)

        func send() {
            sentAt.append(Clock.now())
            _ = sender.sendMessage(to: channel, text: text)
        }
        loop.onFrame = { socket, frame, _ in
            switch frame {
            case .event(let count):
                delivered += count
                times.record(loop.now - sentAt[socket.eventCount - 1])
            case .reply:
                answered += 1
                if window > 1, Clock.now() < end { send() }
            default: break
            }
        }
        defer { loop.onFrame = { _, _, _ in } }

        // The kernel doesn't count a server's writes that bypass its channels among a process's writes.
        func writes() -> Double { server.metric("roost_socket_writes_total") ?? 0 }
        let (writesBefore, before) = (writes(), server.usage)
        let start = Clock.now()
        for _ in 0..<window { send() }
        while Clock.now() < end || answered < sentAt.count || delivered < sentAt.count * loop.sockets.count {
            try loop.run(timeout: seconds + slackSeconds) {
                answered == sentAt.count && delivered == sentAt.count * loop.sockets.count
            }
            if Clock.now() < end { send() }
        }
        let elapsed = Double(Clock.now() - start) / 1e9
        let (after, writesAfter) = (server.usage, writes())
        let count = Double(delivered)
        return Measurement(
            deliveriesPerSecond: count / elapsed, cpuMicroseconds: after.cpuMicroseconds(since: before) / count,
            messagesPerWrite: count / max(1, writesAfter - writesBefore),
            bytesPerDelivery: Double(loop.receivedBytes) / count, deliveries: times)
    }
}
