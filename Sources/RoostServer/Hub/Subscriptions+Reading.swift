import RoostAPI
import RoostCore

/// What connections are sent while their users are reading (AM-45).
extension Subscriptions {
    /// The number of the session in which a connection reads a channel; nil if it doesn't.
    func readingSession(of channel: ChannelID, _ connection: ConnectionID) -> Int64? {
        subscribers[connection]?.read[channel]?.number
    }

    /// Begins a session, which replaces the current one if there is one.
    ///
    /// - Parameters:
    ///   - joinedSeq: The seq at which the reader's membership began. The end of a former one doesn't end the session.
    ///   - userSeq: The seq of the membership's last change in the user's own stream. An earlier mark as unread doesn't end the session.
    ///   - channelSeq: The channel's seq. An event up to there doesn't end the session, whoever may read it.
    mutating func startReading(
        _ channel: ChannelID, _ connection: ConnectionID, since joinedSeq: Seq, at userSeq: Seq, channelSeq: Seq
    ) {
        guard subscribers[connection] != nil else { return }
        lastReadingSession += 1
        let session = ReadingSession(
            number: lastReadingSession, since: joinedSeq, userSeq: userSeq, channelSeq: channelSeq)
        let former = subscribers[connection]?.read.updateValue(session, forKey: channel)
        guard former == nil, channels[channel]?.byConnection[connection] != nil else { return }
        // A user who begins may read: if the last event's readers say otherwise, they are out of date.
        subscribe(connection, to: channel)
    }

    /// Learns that a member may read. If the last event's readers say otherwise, they are out of date, and the next event checks everyone.
    /// Until then the member gets signals for readers; each signal itself says who these are.
    mutating func learnReader(_ connection: ConnectionID, of channel: ChannelID) {
        guard channels[channel]?.byConnection[connection]?.floor == .max else { return }
        channels[channel]?.readers = nil
        subscribe(connection, to: channel)
    }

    mutating func stopReading(_ channel: ChannelID, _ connection: ConnectionID) {
        guard subscribers[connection]?.read.removeValue(forKey: channel) != nil,
            channels[channel]?.byConnection[connection] != nil
        else { return }
        subscribe(connection, to: channel)
    }

    /// Ends a connection's reading of a channel because its user may no longer read it or has marked messages as unread, and notifies the
    /// connection. What it was sent before remains to be confirmed.
    mutating func endReading(of channel: ChannelID, _ connection: ConnectionID, _ perform: (Action) -> Void) {
        guard let subscriber = subscribers[connection], subscriber.read[channel] != nil else { return }
        stopReading(channel, connection)
        send(ReadingEndedFrame(readingEnded: .init(channel: channel)), to: subscriber, perform)
    }

    /// Ends a user's reading of a channel because they have marked messages as unread, except on connections where they have begun since.
    /// Another node may have stored the mark, and its news may arrive late: beginning has moved the position, and with it the user's own
    /// stream.
    ///
    /// - Parameter userSeq: The seq of the membership's last change in that stream when the mark was made. A mark that moves nothing also
    ///   ends a session that began at this very seq, because it is unknown which was first.
    mutating func endReading(of channel: ChannelID, by user: UserID, at userSeq: Seq, _ perform: (Action) -> Void) {
        for connection in connections(of: user) {
            if let session = subscribers[connection]?.read[channel], session.userSeq > userSeq { continue }
            // They are notified even if the position stays and no event says so.
            endReading(of: channel, connection, perform)
            subscribers[connection]?.readable[channel] = nil
            // What it confirms from now on was sent to it before.
            if let socket = sockets[connection] { perform(.forgetReading(channel, of: socket)) }
        }
    }

    /// Ends a connection's session because a mark made in it was refused for good. A session that has begun since stays: its user was able to
    /// begin it after the refused mark.
    ///
    /// - Parameter session: Its number when the mark was made; nil if there was none.
    mutating func endReading(
        of channel: ChannelID, _ connection: ConnectionID, inSession session: Int64?, _ perform: (Action) -> Void
    ) {
        guard let session, readingSession(of: channel, connection) == session else { return }
        endReading(of: channel, connection, perform)
    }

    /// Notes what was sent to the connections whose users are reading a channel. Those of members who may not read it were sent nothing to read.
    mutating func noteReadable(upTo seq: Seq, in channel: ChannelID) {
        guard let receivers = channels[channel], !receivers.reading.isEmpty else { return }
        for connection in receivers.reading where (receivers.byConnection[connection]?.floor ?? .max) != .max {
            noteReadable([channel: seq], of: connection)
        }
    }

    /// Notes what a connection was sent of a channel's past, if its user is reading it. The reading may have begun before the connection gets
    /// the channel live, if that needs a subscription first.
    mutating func noteReadable(upTo seq: Seq, in channel: ChannelID, _ readers: Readers, ofNewcomer connection: ConnectionID) {
        guard let subscriber = subscribers[connection], subscriber.read[channel] != nil,
            subscriber.isReader(of: channel, readers, isMember: true), subscriber.floor(in: channel, isMember: true) < seq
        else { return }
        noteReadable([channel: seq], of: connection)
    }

    /// Notes what a connection was sent of channels that its user is reading.
    mutating func noteReadable(_ seqs: [ChannelID: Seq], of connection: ConnectionID) {
        guard subscribers[connection] != nil else { return }
        subscribers[connection]?.readable.merge(seqs) { max($0, $1) }
        unconfirmed.insert(connection)
    }

    /// Takes what connections were sent while their users were reading: the position moves once they confirm receipt. For a channel with more
    /// than ``Limits/manyReaders`` on this event loop, this happens only every tenth time: otherwise they would all write with each message.
    ///
    /// - Parameter turn: Counts the calls of this function, one a second.
    mutating func takeReadable(_ turn: Int) -> [(Socket, [ChannelID: Seq])] {
        var taken: [(Socket, [ChannelID: Seq])] = []
        for connection in unconfirmed {
            guard let readable = subscribers[connection]?.readable, let socket = sockets[connection] else { continue }
            let isTurn = (turn &+ Int(truncatingIfNeeded: connection.rawValue)) % 10 == 0
            let due = isTurn ? readable : readable.filter { (channels[$0.key]?.reading.count ?? 0) <= Limits.manyReaders }
            guard !due.isEmpty else { continue }
            taken.append((socket, due))
            for channel in due.keys { subscribers[connection]?.readable[channel] = nil }
        }
        unconfirmed = unconfirmed.filter { subscribers[$0]?.readable.isEmpty == false }
        return taken
    }
}
