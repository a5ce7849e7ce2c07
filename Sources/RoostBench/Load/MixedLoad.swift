import Foundation
import RoostAPI

/// Members of many channels, all connected, who send, mark as read and open channels at a steady pace.
///
/// For each message two members of its channel mark it as read, and for each tenth one opens the channel: a page of 50.
struct MixedLoad {
    struct Result {
        var sends = Histogram()
        var marks = Histogram()
        var pages = Histogram()
        var messages = 0
        var deliveries = 0
        var cpuMicroseconds = 0.0
    }

    private enum Call { case send, mark, page }

    /// Each channel's id and the sockets of its members.
    let channels: [(id: ChannelID, members: [Int])]
    let messagesPerSecond: Int
    private let marksPerMessage = 2
    private let messagesPerPage = 10
    private let pageSize = 50

    /// Goes on for some seconds, and then until every call is answered and every message has reached all members of its channel.
    func run(_ loop: LoadLoop, _ server: BenchServer, seconds: Double) throws -> Result {
        var underWay: [[Int: (start: UInt64, call: Call)]] = Array(repeating: [:], count: loop.sockets.count)
        var result = Result()
        var (asked, answered, expected) = (0, 0, 0)
        loop.onFrame = { socket, frame, payload in
            switch frame {
            case .event where LoadFrame.isNewMessage(payload): result.deliveries += 1
            case .reply(let number, _):
                guard let begun = underWay[socket.number].removeValue(forKey: number) else { return }
                answered += 1
                let late = loop.now - begun.start
                switch begun.call {
                case .send: result.sends.record(late)
                case .mark: result.marks.record(late)
                case .page: result.pages.record(late)
                }
            default: break
            }
        }
        defer { loop.onFrame = { _, _, _ in } }
        let before = server.usage
        let start = Clock.now()
        var due = start
        func ask(_ member: Int, _ kind: Call, _ call: (LoadSocket) throws -> Int) rethrows {
            underWay[member][try call(loop.sockets[member])] = (due, kind)
            asked += 1
        }

        let end = start + UInt64(seconds * 1e9)
        while Clock.now() < end {
            // Neighbours in time are in other channels.
            let number = result.messages
            let channel = channels[number * 7 % channels.count]
            func member(_ offset: Int) -> Int { channel.members[(number + offset) % channel.members.count] }
            ask(member(0), .send) { $0.sendMessage(to: channel.id.rawValue, text: SampleText.message) }
            for offset in 1...marksPerMessage { try ask(member(offset), .mark) { try $0.call(MarkRead(channel: channel.id)) } }
            if number % messagesPerPage == 0 {
                try ask(member(3), .page) { try $0.call(ListMessages(channel: channel.id, limit: pageSize)) }
            }
            expected += channel.members.count
            result.messages += 1
            // What this program is late by counts as the server's: users don't wait for it any less.
            due = start + UInt64(result.messages) * 1_000_000_000 / UInt64(messagesPerSecond)
            try loop.run(until: due)
        }
        try loop.run(timeout: 60) { answered == asked && result.deliveries >= expected }
        result.cpuMicroseconds = server.usage.cpuMicroseconds(since: before)
        return result
    }
}
