import RoostAPI
import RoostCore

/// Gives a connection its place in the order of all streams that its user needs. Its answer, the welcome, is sent once all of them reach it:
/// between what a client reads after the welcome and the events that it then gets, nothing is missing.
extension Relay {
    struct Connect {
        let connection: ConnectionID
        let user: UserID
        /// The user's streams as they were at one moment.
        var streams: UserStreams
        let answer: Committed.Answer
        /// How many channels don't reach it yet.
        var pending = 0
        /// How many consecutive reads found no newer position of the user's stream.
        var emptyReads = 0
    }

    mutating func connect(_ connect: Connect) {
        let token = nextToken()
        connects[token] = connect
        proceed(token)
    }

    /// Continues when the user's stream has reached the position at which the memberships were read.
    mutating func proceed(_ token: ConnectToken) {
        guard let connect = connects[token] else { return }
        let stream = StreamID.user(connect.user)
        follow(stream)
        guard let feed = feeds[stream] else { return }
        if !feed.isLive || feed.isPartlyRead || feed.position < connect.streams.user {
            feeds[stream]?.parkedConnects.append(token)
            // Another node's commit may never be announced.
            if feed.position < connect.streams.user { noteGap(stream, head: connect.streams.user) }
        } else if feed.position > connect.streams.user, connect.emptyReads < settings.emptyFetchesMax {
            // The user joined or left something meanwhile. A database that went back doesn't have it, and may never: then what was read has to suffice.
            request(.readStreams(connect.user, token))
        } else {
            begin(token, connect)
        }
    }

    mutating func receive(_ streams: UserStreams?, for token: ConnectToken) {
        guard var connect = connects[token] else { return }
        guard var streams else { return request(.readStreams(connect.user, token)) }
        streams.appRole = connect.streams.appRole
        connect.emptyReads = streams.user > connect.streams.user ? 0 : connect.emptyReads + 1
        connect.streams = streams
        connects[token] = connect
        proceed(token)
    }

    /// Adds the connection to the hub immediately, with all floors and roles and the channels whose feeds are live; the other channels follow one by one.
    private mutating func begin(_ token: ConnectToken, _ connect: Connect) {
        var ready = connect.streams
        ready.channels = [:]
        var later: [Attachment] = []
        for (channel, seq) in connect.streams.channels {
            if isFollowed(channel, from: seq, by: connect.user) {
                ready.channels[channel] = seq
                feeds[.channel(channel)]?.touchedAt = now
            } else {
                later.append(
                    Attachment(
                        receiver: .connection(connect.connection, connect.user), channel: channel, seq: seq, catchesUpAlone: true,
                        connect: token))
            }
        }
        emit(.change(.connected(connect.connection, connect.user, ready)))
        connects[token]?.pending = later.count + 1
        for attachment in later { attach(attachment) }
        settle(token)
    }

    private func isFollowed(_ channel: ChannelID, from seq: Seq, by user: UserID) -> Bool {
        guard let feed = feeds[.channel(channel)], feed.isLive, feed.position >= seq else { return false }
        if let departed = feed.departed[user], departed.seq > seq { return false }
        return feed.position == seq || seq >= max(feed.knownSince, feed.lastRoleChange)
    }

    /// Counts off one of the attachments that a connection waits for.
    mutating func settle(_ token: ConnectToken?) {
        guard let token, let pending = connects[token]?.pending else { return }
        connects[token]?.pending = pending - 1
        if pending == 1, let connect = connects.removeValue(forKey: token) { emit(.answer(connect.answer)) }
    }
}
