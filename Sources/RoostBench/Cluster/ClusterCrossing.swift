#if Cluster
import Foundation

/// Delivery from node to node: how much later a message arrives on another node than on the sender's, and the work that NATS has with it.
extension ClusterRun {
    private static let messagesPerSecond = 100.0

    /// Three nodes: the sender and one receiver on the first, ten receivers on each of the others.
    func crossing() throws -> [Figure] {
        try withNodes(3) { meter in
            let loop = LoadLoop()
            defer { loop.closeAll() }
            let perNode = (world.timedMemberCount - 2) / 2
            try connect(loop, to: meter.nodes[0], users: 0..<2)
            try connect(loop, to: meter.nodes[1], users: 2..<(2 + perNode))
            try connect(loop, to: meter.nodes[2], users: (2 + perNode)..<world.timedMemberCount)
            _ = try send(loop, seconds: 1)
            let quietFrom = services.busMessages()
            let quietSeconds = 3.0
            try loop.run(for: quietSeconds)
            let quietTo = services.busMessages()
            let (arrivals, usage) = try meter.measure { try send(loop, seconds: seconds) }
            let after = services.busMessages()

            let near = arrivals.times(of: 1)
            let far = arrivals.times(of: 2)
            let title = "3 nodes, \(Int(Self.messagesPerSecond)) messages/s"
            var figures = [
                Figure("\(title): delivery on the sender's node, p50", near.median / 1000, "ms"),
                Figure("\(title): delivery on the sender's node, p99", near.p99 / 1000, "ms"),
                Figure("\(title): delivery on another node, p50", far.median / 1000, "ms"),
                Figure("\(title): delivery on another node, p99", far.p99 / 1000, "ms"),
                Figure(
                    "\(title): another node adds, p50 of the differences", arrivals.added.median / 1000, "ms", goals: [.atMost(2)]),
                Figure("\(title): another node adds, p99 of the differences", arrivals.added.p99 / 1000, "ms"),
            ]
            if let quietFrom, let quietTo, let after {
                // Other traffic between the nodes is subtracted, as measured in the quiet seconds.
                let share = arrivals.seconds / quietSeconds
                let count = Double(arrivals.count)
                let sent = (after.sent - quietTo.sent - (quietTo.sent - quietFrom.sent) * share) / count
                let received = (after.received - quietTo.received - (quietTo.received - quietFrom.received) * share) / count
                figures += [
                    Figure("\(title): packets to NATS per message", received, ""),
                    Figure(
                        "\(title): packets from NATS per message, \(perNode) sockets on each of 2 other nodes", sent, "",
                        goals: [.atMost(2.05)]),
                    Figure(
                        "\(title): packets from NATS per second when nothing is sent",
                        (quietTo.sent - quietFrom.sent) / quietSeconds, "1/s"),
                ]
            }
            return figures + usage.figures(title, per: "message", count: arrivals.count)
        }
    }

    /// When each message was sent, and when it arrived at each socket.
    private struct Arrivals {
        var sentAt: [UInt64] = []
        /// Per socket, the arrivals in the order of the messages.
        var arrivedAt: [[UInt64]]
        var seconds = 0.0

        var count: Int { sentAt.count }

        func times(of socket: Int) -> Histogram {
            var times = Histogram()
            for (sent, arrived) in zip(sentAt, arrivedAt[socket]) { times.record(arrived - sent) }
            return times
        }

        /// How much later the first receiver on the second node gets each message than the one on the sender's.
        var added: Histogram {
            var times = Histogram()
            for (near, far) in zip(arrivedAt[1], arrivedAt[2]) { times.record(far > near ? far - near : 0) }
            return times
        }
    }

    /// Sends at a steady, low rate, and waits until every message is everywhere.
    private func send(_ loop: LoadLoop, seconds: Double) throws -> Arrivals {
        var arrivals = Arrivals(arrivedAt: Array(repeating: [], count: loop.sockets.count))
        loop.onFrame = { socket, frame, _ in
            guard case .event(let count) = frame else { return }
            arrivals.arrivedAt[socket.number] += Array(repeating: loop.now, count: count)
        }
        defer { loop.onFrame = { _, _, _ in } }
        let start = Clock.now()
        let pause = UInt64(1e9 / Self.messagesPerSecond)
        while arrivals.count < Int(seconds * Self.messagesPerSecond) {
            arrivals.sentAt.append(Clock.now())
            _ = loop.sockets[0].sendMessage(to: world.timed, text: SampleText.message)
            try loop.run(until: start + UInt64(arrivals.count) * pause)
        }
        try loop.run(timeout: 10) { arrivals.arrivedAt.allSatisfy { $0.count >= arrivals.count } }
        arrivals.seconds = Double(Clock.now() - start) / 1e9
        return arrivals
    }
}
#endif
