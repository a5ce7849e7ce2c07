import RoostAPI
import RoostCore

extension Subscriptions {
    /// One authenticated connection.
    struct Subscriber {
        let socket: Socket
        let user: UserID
        var joined: Set<ChannelID>
        /// The channels that the connection watches, each with the channel's seq at which it last asked to.
        var watched: [ChannelID: Seq] = [:]
        /// The channels that the user is currently reading on this connection (AM-45).
        var read: [ChannelID: ReadingSession] = [:]
        /// What the connection was sent of them, up to a seq each, without what it was already asked about.
        var readable: [ChannelID: Seq] = [:]
        /// The seq up to which a channel's messages are hidden from the user; channels without a floor aren't listed.
        ///
        /// A floor is never lowered, and outlives the membership: a new membership has it too, and may begin before the end of the last one
        /// is delivered. Long after that it is forgotten, because joining reports it again.
        private(set) var floors: [ChannelID: Seq]
        /// The most recently learned of ``floors``.
        private var newFloors: Set<ChannelID> = []
        private static var newFloorsMax: Int { 4096 }
        let appRole: AppRole
        /// Whether others see that the user is online and what they watch.
        var sharesPresence: Bool
        /// The user's role in a channel, and the seq since which it is known; channels in which they are an ordinary member may be missing.
        private(set) var roles: [ChannelID: (role: ChannelRole, since: Seq)]

        init(socket: Socket, user: UserID, streams: UserStreams) {
            self.socket = socket
            self.user = user
            joined = Set(streams.channels.keys)
            floors = streams.floors
            appRole = streams.appRole
            sharesPresence = streams.sharesPresence
            roles = streams.roles.reduce(into: [:]) { $0[$1.key] = ($1.value, streams.channels[$1.key] ?? 0) }
        }

        /// Records a floor.
        mutating func learn(floor: Seq, in channel: ChannelID) {
            floors[channel] = floor
            newFloors.insert(channel)
            guard newFloors.count > Self.newFloorsMax else { return }
            floors = floors.filter { joined.contains($0.key) || newFloors.contains($0.key) }
            newFloors = []
        }

        /// Forgets a channel that is gone for good.
        mutating func forget(deleted channel: ChannelID) {
            (floors[channel], roles[channel], read[channel]) = (nil, nil, nil)
            newFloors.remove(channel)
        }

        /// Records a role. Two streams carry roles, in no particular order: one that is older than the known role is dropped.
        mutating func learn(_ role: ChannelRole, in channel: ChannelID, at seq: Seq) {
            if let known = roles[channel] {
                if seq >= known.since { roles[channel] = (role, seq) }
            } else if role != .member {
                roles[channel] = (role, seq)
            }
        }

        /// Forgets the role and the reading of a membership that has ended at a seq. A later membership has its own: its user may begin to
        /// read on this node before the end of the former one, stored by another node, is delivered here.
        mutating func unlearn(_ channel: ChannelID, at seq: Seq) {
            if let known = roles[channel], known.since <= seq { roles[channel] = nil }
            if let session = read[channel], session.since < seq { read[channel] = nil }
        }

        /// The user's role in a channel.
        private func role(in channel: ChannelID) -> ChannelRole { roles[channel]?.role ?? .member }

        /// The seq up to which a channel's messages are hidden from the connection; 0 for none. As in its requests, the floor of a former
        /// membership hides nothing from a non-member who may read.
        func floor(in channel: ChannelID, isMember: Bool) -> Seq { isMember ? floors[channel] ?? 0 : 0 }

        /// Returns whether the connection may read a channel's messages.
        func isReader(of channel: ChannelID, _ readers: Readers, isMember: Bool) -> Bool {
            readers.contain(appRole, as: isMember ? role(in: channel) : nil)
        }

        /// Returns whether the connection may watch a channel.
        func mayWatch(_ channel: ChannelID, _ readers: Readers, isMember: Bool) -> Bool {
            readers.letWatch(appRole, as: isMember ? role(in: channel) : nil)
        }
    }

    /// A connection's reading of a channel.
    struct ReadingSession {
        /// Unique among all sessions.
        let number: Int64
        /// The channel's seq at which the reader's membership began.
        let since: Seq
        /// The seq of the membership's last change by then, in the user's own stream.
        let userSeq: Seq
        /// The channel's seq by then.
        let channelSeq: Seq
    }

    /// A connection that gets a channel's events: everything that a delivery needs, in one place.
    struct Receiver {
        let socket: Socket
        var isWatching: Bool
        /// The member's floor in the channel; 0 for none, and the highest possible seq for a member who may not read.
        var floor: Seq
    }

    /// The connections that get a channel's events.
    struct Receivers {
        private(set) var byConnection: [ConnectionID: Receiver] = [:]
        /// Those that watch the channel, and those that are reading it: few of many.
        private(set) var watching: Set<ConnectionID> = []
        private(set) var reading: Set<ConnectionID> = []
        /// The readers according to the last event, which the floors follow. Nil if the receivers have to be checked again.
        var readers: Readers?

        /// - Returns: Whether the connection is new here.
        mutating func put(_ receiver: Receiver, as connection: ConnectionID, isReading: Bool) -> Bool {
            let former = byConnection.updateValue(receiver, forKey: connection)
            if receiver.isWatching { watching.insert(connection) } else { watching.remove(connection) }
            if isReading { reading.insert(connection) } else { reading.remove(connection) }
            return former == nil
        }

        /// - Returns: Whether the connection was here.
        mutating func remove(_ connection: ConnectionID) -> Bool {
            watching.remove(connection)
            reading.remove(connection)
            return byConnection.removeValue(forKey: connection) != nil
        }
    }
}

// MARK: - The receivers of an audience

extension Subscriptions {
    /// Returns a channel's receivers in an audience, without checking them again. None for the audience of a user.
    ///
    /// - Parameter signal: The kind of the signal for them; nil for an event.
    func receivers(of audience: Audience, receiving signal: Signal.Kind? = nil) -> [(ConnectionID, Receiver)] {
        switch audience {
        case .user: return []
        case .channel(let channel, let readers):
            return (channels[channel]?.byConnection.keys).map { receivers(of: channel, $0, readers, signal) } ?? []
        case .watchers(let channel, let readers):
            return (channels[channel]?.watching).map { receivers(of: channel, $0, readers, signal) } ?? []
        }
    }

    /// Returns the receivers that may read, or watch if that is enough for the signal, according to the last event and to the readers given.
    private func receivers(
        of channel: ChannelID, _ connections: some Sequence<ConnectionID>, _ readers: Readers, _ signal: Signal.Kind?
    ) -> [(ConnectionID, Receiver)] {
        guard let receivers = channels[channel] else { return [] }
        return connections.compactMap { connection in
            guard let receiver = receivers.byConnection[connection] else { return nil }
            let (isReader, isWatcher) = (receiver.floor != .max, receiver.isWatching && signal?.isForWatchers == true)
            guard isReader || isWatcher else { return nil }
            if receivers.readers == readers { return (connection, receiver) }
            guard let subscriber = subscribers[connection] else { return nil }
            let isMember = subscriber.joined.contains(channel)
            if isReader, subscriber.isReader(of: channel, readers, isMember: isMember) { return (connection, receiver) }
            return isWatcher && subscriber.mayWatch(channel, readers, isMember: isMember) ? (connection, receiver) : nil
        }
    }
}

// MARK: - How many channels connections watch and get

extension Subscriptions {
    /// How many channels a connection watches.
    func watchedCount(of connection: ConnectionID) -> Int { subscribers[connection]?.watched.count ?? 0 }

    /// Whether a connection watches a channel.
    func isWatched(_ channel: ChannelID, on connection: ConnectionID) -> Bool {
        subscribers[connection]?.watched[channel] != nil
    }

    /// The channels that are watched or read.
    var followed: [ChannelID] { channels.filter { !$0.value.watching.isEmpty || !$0.value.reading.isEmpty }.map(\.key) }

    /// Returns whether a user's connection may get this many more channels. Each takes about 600 bytes on each connection. A user's only
    /// connection may get all that it is entitled to. Admins and services have no limit, as they have none on connections.
    func hasRoom(for count: Int, of user: UserID, _ role: AppRole) -> Bool {
        guard let held = received[user] else { return true }
        return held + count <= receivedMax || role == .admin || role == .service
    }

    /// Returns whether a connection gets a channel already, or may get one more.
    func mayReceive(_ channel: ChannelID, _ connection: ConnectionID) -> Bool {
        guard let user = subscribers[connection]?.user, let role = subscribers[connection]?.appRole else { return true }
        return channels[channel]?.byConnection[connection] != nil || hasRoom(for: 1, of: user, role)
    }

    /// Counts one channel fewer for a user.
    mutating func noteLess(receivedBy user: UserID) {
        let count = (received[user] ?? 1) - 1
        received[user] = count > 0 ? count : nil
    }
}
