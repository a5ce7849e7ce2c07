import Foundation

/// Senders that always have some sends under way: each reply triggers the next one.
struct SendLoad {
    struct Sender {
        /// Its place among the loop's sockets.
        let socket: Int
        /// The channels to which it sends in turn.
        let channels: [String]
        /// The sockets that get an event of each of its sends. The load ends when they have all of them.
        let receivers: Int

        init(socket: Int, channels: [String], receivers: Int = 0) {
            self.socket = socket
            self.channels = channels
            self.receivers = receivers
        }

        init(socket: Int, channel: String, receivers: Int = 0) {
            self.init(socket: socket, channels: [channel], receivers: receivers)
        }
    }

    struct Result {
        let sent: Int
        let delivered: Int
        let seconds: Double
        let acknowledgements: Histogram

        var sendsPerSecond: Double { Double(sent) / seconds }
        var deliveriesPerSecond: Double { Double(delivered) / seconds }
    }

    let senders: [Sender]
    /// The sends that each sender has under way.
    let window: Int

    /// Sends for some seconds, and waits until everything is answered.
    func run(_ loop: LoadLoop, seconds: Double) throws -> Result {
        /// For each socket the times of its calls under way, by the number of the call.
        var sentAt: [[Int: UInt64]] = Array(repeating: [:], count: loop.sockets.count)
        var bySocket: [Sender?] = Array(repeating: nil, count: loop.sockets.count)
        var turns = Array(repeating: 0, count: loop.sockets.count)
        for sender in senders { bySocket[sender.socket] = sender }
        var sent = 0
        var answered = 0
        var delivered = 0
        var expected = 0
        var times = Histogram()
        let end = Clock.now() + UInt64(seconds * 1e9)

        func send(_ sender: Sender) {
            let start = Clock.now()
            let channel = sender.channels[turns[sender.socket] % sender.channels.count]
            turns[sender.socket] += 1
            let call = loop.sockets[sender.socket].sendMessage(to: channel, text: SampleText.message)
            sentAt[sender.socket][call] = start
            sent += 1
            expected += sender.receivers
        }
        loop.onFrame = { socket, frame, _ in
            switch frame {
            case .event(let count): delivered += count
            case .reply(let call, _):
                if let start = sentAt[socket.number].removeValue(forKey: call) { times.record(loop.now - start) }
                answered += 1
                if loop.now < end, let sender = bySocket[socket.number] { send(sender) }
            default: break
            }
        }
        defer { loop.onFrame = { _, _, _ in } }

        let start = Clock.now()
        for sender in senders {
            for _ in 0..<window { send(sender) }
        }
        do {
            try loop.run(timeout: seconds + 30) { answered == sent && delivered >= expected }
        } catch  where answered < sent || delivered < expected {
            throw BenchFailure(
                "\(answered) of \(sent) sends were answered, \(delivered) of \(expected) deliveries arrived: \(error)")
        }
        let elapsed = Double(Clock.now() - start) / 1e9
        return Result(sent: sent, delivered: delivered, seconds: elapsed, acknowledgements: times)
    }
}

/// How many operations a server committed at once, by its own counters.
struct BatchCounter {
    private let operations: Double
    private let batches: Double

    /// Nil if the server reports neither.
    init?(port: UInt16) {
        guard let operations = ServerMetrics.value(of: "roost_write_operations_total", port: port),
            let batches = ServerMetrics.value(of: "roost_write_batches_total", port: port)
        else { return nil }
        self.operations = operations
        self.batches = batches
    }

    func averageSize(since earlier: BatchCounter?) -> Double? {
        guard let earlier, batches > earlier.batches else { return nil }
        return (operations - earlier.operations) / (batches - earlier.batches)
    }
}
