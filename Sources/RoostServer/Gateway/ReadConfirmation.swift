import NIOCore
import RoostAPI

/// What a client was given of channels that its user reads, until it shows that it has received it. A value without I/O.
///
/// A position moves only by what has arrived: a message that was written to a line that is cut stays unread. The sign for that is the answer
/// to a ping that was sent after it, which every client gives by itself (RFC 6455 §5.5.3). One ping is under way at a time, whatever comes meanwhile.
struct ReadConfirmation {
    private var asked: [ChannelID: Seq] = [:]
    private var next: [ChannelID: Seq] = [:]
    private var isUnderWay = false
    /// Names the ping that is under way, or was last.
    private var number: UInt32 = 0

    /// Takes in up to where the client was given channels.
    mutating func add(_ seqs: [ChannelID: Seq]) { next.merge(seqs) { max($0, $1) } }

    /// Forgets what the client was given of a channel: its user has marked that as unread.
    mutating func forget(_ channel: ChannelID) {
        asked[channel] = nil
        next[channel] = nil
    }

    /// Returns the payload of the ping to send now; nil if there is nothing to ask for, or one is under way.
    mutating func nextPing() -> ArraySlice<UInt8>? {
        guard !isUnderWay, !next.isEmpty else { return nil }
        (asked, next, isUnderWay) = (next, [:], true)
        number &+= 1
        return payload
    }

    /// The payload of a ping that is sent meanwhile for another reason. A client may answer the newest ping alone, and so it says by that what it would
    /// have said by the other; empty if none is under way.
    var underWay: ArraySlice<UInt8> { isUnderWay ? payload : [] }

    /// Returns what has arrived by the answer to a ping; nil if it is the answer to another.
    mutating func receive(pong: ByteBuffer) -> [ChannelID: Seq]? {
        guard isUnderWay, pong.readableBytesView.elementsEqual(payload) else { return nil }
        defer { (asked, isUnderWay) = ([:], false) }
        return asked
    }

    private var payload: ArraySlice<UInt8> { ArraySlice("read \(number)".utf8) }
}
