import Foundation
import RoostAPI

/// Members of many channels, all connected, who send, mark as read and open channels at a steady pace.
///
/// For each message two members of its channel mark it as read, and for every tenth one member opens the channel: a page of 50. Members take turns.
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

    /// Each channel's id and the sockets of its members, as many in each channel.
    let channels: [(id: ChannelID, members: [Int])]
    let messagesPerSecond: Int
    private static let marksPerMessage = 2
    private static let messagesPerPage = 10
    private let pageSize = 50

    /// The members who act when a message is due.
    struct Step: Hashable {
        /// The channel's place among the channels.
        let channel: Int
        /// Places among the members of the channel.
        let sender: Int
        let markers: [Int]
        /// Nil if no member opens the channel.
        let opener: Int?
    }

    /// Returns the members who act when the message of a number is due. Consecutive messages are in different channels.
    ///
    /// Each pass over all channels has other members in each of them, and opens other channels. By the message's number alone each channel would
    /// always have the same ones, since 200 channels are a multiple of 50 members and of 10 messages per page.
    static func step(_ number: Int, channelCount: Int, memberCount: Int) -> Step {
        let turn = number / channelCount
        func member(_ offset: Int) -> Int { (turn * (marksPerMessage + 1) + offset) % memberCount }
        return Step(
            channel: number * 7 % channelCount, sender: member(0), markers: (1...marksPerMessage).map(member),
            opener: (number + turn) % messagesPerPage == 0 ? member(marksPerMessage + 1) : nil)
    }

    /// Runs for some seconds, and then until every call is answered and every message has reached all members of its channel.
    func run(_ loop: LoadLoop, _ server: BenchServer, seconds: Double) throws -> Result {
        var inFlight: [[Int: (start: UInt64, call: Call)]] = Array(repeating: [:], count: loop.sockets.count)
        var result = Result()
        var (asked, answered, expected) = (0, 0, 0)
        loop.onFrame = { socket, frame, payload in
            switch frame {
            case .event where LoadFrame.isNewMessage(payload): result.deliveries += 1
            case .reply(let number, _):
                guard let begun = inFlight[socket.number].removeValue(forKey: number) else { return }
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
            inFlight[member][try call(loop.sockets[member])] = (due, kind)
            asked += 1
        }

        let end = start + UInt64(seconds * 1e9)
        let memberCount = channels[0].members.count
        while Clock.now() < end {
            let step = Self.step(result.messages, channelCount: channels.count, memberCount: memberCount)
            let channel = channels[step.channel]
            ask(channel.members[step.sender], .send) { $0.sendMessage(to: channel.id.rawValue, text: SampleText.message) }
            for marker in step.markers { try ask(channel.members[marker], .mark) { try $0.call(MarkRead(channel: channel.id)) } }
            if let opener = step.opener {
                try ask(channel.members[opener], .page) { try $0.call(ListMessages(channel: channel.id, limit: pageSize)) }
            }
            expected += channel.members.count
            result.messages += 1
            // A delay of this program counts as the server's: users wait just the same.
            due = start + UInt64(result.messages) * 1_000_000_000 / UInt64(messagesPerSecond)
            try loop.run(until: due)
        }
        try loop.run(timeout: 60) { answered == asked && result.deliveries >= expected }
        result.cpuMicroseconds = server.usage.cpuMicroseconds(since: before)
        return result
    }
}
