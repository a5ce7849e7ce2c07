import NIOCore
import RoostAPI

/// What a client was sent of channels that its user is reading, until it confirms receipt. A value without I/O.
///
/// A read position moves only past what has arrived: a message written to a broken connection stays unread. The confirmation is the answer to
/// a ping sent after it, which every client sends automatically (RFC 6455 §5.5.3). Only one ping is under way at a time, whatever is sent
/// meanwhile.
struct ReadConfirmation {
    private var asked: [ChannelID: Seq] = [:]
    private var next: [ChannelID: Seq] = [:]
    private var isInFlight = false
    /// Identifies the current or last ping.
    private var number: UInt32 = 0

    /// Adds the seqs up to which the client was sent channels.
    mutating func add(_ seqs: [ChannelID: Seq]) { next.merge(seqs) { max($0, $1) } }

    /// Forgets what the client was sent of a channel, which its user has marked as unread.
    mutating func forget(_ channel: ChannelID) {
        asked[channel] = nil
        next[channel] = nil
    }

    /// Returns the payload of the ping to send now; nil if there is nothing to confirm or one is under way.
    mutating func nextPing() -> ArraySlice<UInt8>? {
        guard !isInFlight, !next.isEmpty else { return nil }
        (asked, next, isInFlight) = (next, [:], true)
        number &+= 1
        return payload
    }

    /// The payload for a ping that is sent meanwhile for another reason; empty if none is under way. A client may answer only the newest
    /// ping, and thereby confirms the same.
    var inFlight: ArraySlice<UInt8> { isInFlight ? payload : [] }

    /// Returns what the answer to a ping confirms; nil if it answers another ping.
    mutating func receive(pong: ByteBuffer) -> [ChannelID: Seq]? {
        guard isInFlight, pong.readableBytesView.elementsEqual(payload) else { return nil }
        defer { (asked, isInFlight) = ([:], false) }
        return asked
    }

    private var payload: ArraySlice<UInt8> { ArraySlice("read \(number)".utf8) }
}
