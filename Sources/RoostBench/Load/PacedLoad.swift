import Foundation
import RoostAPI

/// Users who send and read at a steady pace, independently of the server's other load: the delay of their answers is what they notice of that load.
struct PacedLoad {
    struct Result {
        var sends = Histogram()
        var pages = Histogram()
        var refused = 0
    }

    /// One channel per socket of the loop, to which it sends and whose newest page it reads.
    let channels: [String]
    var sendsPerSecond: Int
    let pagesPerSecond: Int
    /// Whether calls may be refused, and are counted. Otherwise a refusal ends the benchmark: a server that refuses has less to do, and answers the
    /// rest sooner.
    var takesRefusals = false
    private let pageSize = 50

    /// Runs until the condition holds, and then waits for the answers.
    func run(_ loop: LoadLoop, into result: inout Result, until isDone: () -> Bool) throws {
        /// For each socket its calls under way, by their numbers.
        var inFlight: [[Int: (start: UInt64, isPage: Bool)]] = Array(repeating: [:], count: loop.sockets.count)
        var asked = 0
        var answered = 0
        var now = Result()
        loop.takesRefusals = takesRefusals
        loop.onFrame = { socket, frame, _ in
            guard case .reply(let call, let isRefusal) = frame, let begun = inFlight[socket.number].removeValue(forKey: call) else {
                return
            }
            answered += 1
            if isRefusal {
                now.refused += 1
            } else if begun.isPage {
                now.pages.record(loop.now - begun.start)
            } else {
                now.sends.record(loop.now - begun.start)
            }
        }
        defer {
            loop.takesRefusals = false
            loop.onFrame = { _, _, _ in }
        }

        let start = Clock.now()
        var calls = 0
        while !isDone() {
            // The callback and this loop never run at the same time, and share the counts.
            let socket = loop.sockets[calls % channels.count]
            let isPage = calls * pagesPerSecond % (sendsPerSecond + pagesPerSecond) < pagesPerSecond
            // Timed from when it was due, not from when this program sent it: what kept the machine busy until then keeps users waiting too.
            let begun = start + UInt64(calls) * 1_000_000_000 / UInt64(sendsPerSecond + pagesPerSecond)
            let call: Int
            if isPage {
                call = try socket.call(ListMessages(channel: ChannelID(channels[socket.number]), limit: pageSize))
            } else {
                call = socket.sendMessage(to: channels[socket.number], text: SampleText.message)
            }
            inFlight[socket.number][call] = (begun, isPage)
            asked += 1
            calls += 1
            try loop.run(until: start + UInt64(calls) * 1_000_000_000 / UInt64(sendsPerSecond + pagesPerSecond))
        }
        try loop.run(timeout: 30) { answered == asked }
        result.add(now)
    }

    func run(_ loop: LoadLoop, into result: inout Result, seconds: Double) throws {
        let end = Clock.now() + UInt64(seconds * 1e9)
        try run(loop, into: &result) { Clock.now() >= end }
    }
}

extension PacedLoad.Result {
    mutating func add(_ other: Self) {
        sends.add(other.sends)
        pages.add(other.pages)
        refused += other.refused
    }
}
