import RoostAPI
import RoostCore

/// What connections are given while their users read (AM-45).
extension Subscriptions {
    /// The number of the session in which a connection reads a channel; nil if it doesn't.
    func readingSession(of channel: ChannelID, _ connection: ConnectionID) -> Int64? {
        subscribers[connection]?.read[channel]?.number
    }

    /// Begins a session, in place of the one that goes on if there is one.
    ///
    /// - Parameters:
    ///   - joinedSeq: Where the membership began in which the user reads. The end of a former one doesn't end the session.
    ///   - userSeq: Where the membership had changed last in the user's own stream. A mark as unread from before doesn't end the session.
    mutating func startReading(_ channel: ChannelID, _ connection: ConnectionID, since joinedSeq: Seq, at userSeq: Seq) {
        guard subscribers[connection] != nil else { return }
        lastReadingSession += 1
        let session = ReadingSession(number: lastReadingSession, since: joinedSeq, userSeq: userSeq)
        let former = subscribers[connection]?.read.updateValue(session, forKey: channel)
        guard former == nil, channels[channel]?.byConnection[connection] != nil else { return }
        // Whoever begins may read: the last event's readers are out of date if they say otherwise.
        subscribe(connection, to: channel)
    }

    /// Learns that a member may read. If the last event's readers say otherwise they are out of date, and the next event checks everybody: until then the
    /// member gets the signals of readers, and a signal says itself who these are.
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

    /// Ends a connection's reading of a channel that its user doesn't go on with, because they may no longer read it or have marked messages as unread, and
    /// tells the connection. What it was given before stays to be confirmed.
    mutating func endReading(of channel: ChannelID, _ connection: ConnectionID, _ perform: (Action) -> Void) {
        guard let subscriber = subscribers[connection], subscriber.read[channel] != nil else { return }
        stopReading(channel, connection)
        send(ReadingEndedFrame(readingEnded: .init(channel: channel)), to: subscriber, perform)
    }

    /// A user has marked messages of a channel as unread: none of their connections reads it any more, but for those where they have begun since. Another
    /// node may have stored the mark, and news of it come late: beginning has moved the position, and the user's own stream with it.
    ///
    /// - Parameter userSeq: Where the membership had changed last in that stream when it was marked. A mark that moves nothing ends also what began at that
    ///   very place: which was first can't be told.
    mutating func endReading(of channel: ChannelID, by user: UserID, at userSeq: Seq, _ perform: (Action) -> Void) {
        for connection in connections(of: user) {
            if let session = subscribers[connection]?.read[channel], session.userSeq > userSeq { continue }
            // They are told also where the position stays, and no event says so.
            endReading(of: channel, connection, perform)
            subscribers[connection]?.readable[channel] = nil
            // What it confirms from now on was given to it before.
            if let socket = sockets[connection] { perform(.forgetReading(channel, of: socket)) }
        }
    }

    /// Ends a connection's session, since a mark that was made in it was refused for good. One that has begun since stands: its user could begin it after
    /// what was refused.
    ///
    /// - Parameter session: Its number when the mark was made; nil if there was none.
    mutating func endReading(
        of channel: ChannelID, _ connection: ConnectionID, inSession session: Int64?, _ perform: (Action) -> Void
    ) {
        guard let session, readingSession(of: channel, connection) == session else { return }
        endReading(of: channel, connection, perform)
    }

    /// Notes what the connections whose users read a channel have been given. Those of members who may not read it have been given nothing to read.
    mutating func noteReadable(upTo seq: Seq, in channel: ChannelID) {
        guard let receivers = channels[channel], !receivers.reading.isEmpty else { return }
        for connection in receivers.reading where (receivers.byConnection[connection]?.floor ?? .max) != .max {
            noteReadable([channel: seq], of: connection)
        }
    }

    /// Notes what a connection has been given of the past of a channel, if its user reads that. It may have begun to before the connection gets the channel
    /// live, where that takes a subscription first.
    mutating func noteReadable(upTo seq: Seq, in channel: ChannelID, _ readers: Readers, ofNewcomer connection: ConnectionID) {
        guard let subscriber = subscribers[connection], subscriber.read[channel] != nil,
            subscriber.isReader(of: channel, readers, isMember: true), subscriber.floor(in: channel, isMember: true) < seq
        else { return }
        noteReadable([channel: seq], of: connection)
    }

    /// Notes what a connection has been given of channels that its user reads.
    mutating func noteReadable(_ seqs: [ChannelID: Seq], of connection: ConnectionID) {
        guard subscribers[connection] != nil else { return }
        subscribers[connection]?.readable.merge(seqs) { max($0, $1) }
        unconfirmed.insert(connection)
    }

    /// Takes what connections have been given while their users read: the position moves once they say that they have it. Of a channel with
    /// more than ``Limits/manyReaders`` here, on one event loop, that is every tenth time: with each message they would all write.
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
