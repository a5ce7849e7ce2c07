import NIOCore
import RoostAPI
import RoostCore
import RoostTestSupport

@testable import RoostServer

/// An event as a connection of a relay's simulation gets it, read back from the bytes of the frame.
///
/// The simulation's events are as short as possible: thousands are parsed by searching for the few members that matter.
struct RelayFrame {
    let isWatching: Bool
    /// With the messages that the connection was given, of which the oldest is named.
    let item: StreamItem

    /// Returns the events in what was written to a connection. Other frames are skipped.
    static func all(in bytes: ByteBuffer) -> [RelayFrame] { ServerFrame.texts(in: bytes).compactMap(RelayFrame.init) }

    private init?(_ text: [UInt8]) {
        guard text.starts(with: #"{"watching":"#.utf8) else { return nil }
        var scan = Scan(bytes: text)
        isWatching = text.starts(with: #"{"watching":true"#.utf8)
        guard let stream = scan.text(after: #""stream":"#).flatMap(StreamID.init), let seq = scan.number(after: #""seq":"#),
            let after = scan.number(after: #""after":"#)
        else { preconditionFailure("An event without a position: \(String(decoding: text, as: UTF8.self))") }
        var json: [UInt8] = []
        if case .user = stream, let membership = scan.text(after: #""membership":"#) { json = Array(membership.utf8) }
        var messages: [Seq] = []
        while let message = scan.number(after: #""seq":"#) { messages.append(message) }
        item = StreamItem(stream: stream, after: after, seq: seq, oldestMessage: messages.min(), json: json)
    }

    /// The members of an event without rows.
    static func members(stream: StreamID, after: Seq, seq: Seq, membership: String? = nil) -> [UInt8] {
        let member = membership.map { #","membership":"\#($0)""# } ?? ""
        return Array(#""stream":"\#(stream)","seq":\#(seq),"after":\#(after)\#(member)"#.utf8)
    }

    /// The members of an event with messages, some of which may be hidden from some receivers.
    static func members(stream: StreamID, after: Seq, seq: Seq, messages: [Seq]) -> [UInt8] {
        guard case .channel(let channel) = stream else { return members(stream: stream, after: after, seq: seq) }
        let rows = messages.map { message in
            Message(
                messageId: MessageID(rawValue: message), channelId: channel, seq: message, changeSeq: seq, sender: "ann",
                clientId: "c", text: "", createdAt: Timestamp(milliseconds: 0))
        }
        return Event(kind: .changes, stream: stream, seq: seq, after: after, actor: nil, rows: Rows(rows)).members(
            isConcealable: true)
    }

    /// Searches for members one after another.
    private struct Scan {
        let bytes: [UInt8]
        var place = 0

        mutating func number(after key: StaticString) -> Seq? {
            guard skip(to: key) else { return nil }
            var value: Seq = 0
            while place < bytes.count, bytes[place] >= 48, bytes[place] <= 57 {
                value = value * 10 + Seq(bytes[place] - 48)
                place += 1
            }
            return value
        }

        mutating func text(after key: StaticString) -> String? {
            guard skip(to: key), place < bytes.count else { return nil }
            let start = place + 1
            guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "\"")) else { return nil }
            place = end + 1
            return String(decoding: bytes[start..<end], as: UTF8.self)
        }

        /// Moves past a key, if it is present.
        private mutating func skip(to key: StaticString) -> Bool {
            let length = key.utf8CodeUnitCount
            guard bytes.count >= length else { return false }
            return key.withUTF8Buffer { key in
                var start = place
                while start + length <= bytes.count {
                    if bytes[start] == key[0], (1..<length).allSatisfy({ bytes[start + $0] == key[$0] }) {
                        place = start + length
                        return true
                    }
                    start += 1
                }
                return false
            }
        }
    }
}
