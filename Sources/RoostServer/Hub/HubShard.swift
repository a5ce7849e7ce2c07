import NIOCore
import RoostAPI
import RoostCore

/// What the hub knows of the sockets of one event loop. Used on that loop only, so that a delivery takes no lock and no hop.
final class HubShard {
    /// What the hub keeps of one authenticated socket.
    private final class Subscriber {
        let socket: SocketHandler
        let user: UserID
        var joined: Set<ChannelID>
        var watched: Set<ChannelID> = []
        /// Up to which seq a channel's messages aren't for the user; channels of which all are stand not in it.
        ///
        /// A floor is never lowered, and outlives the membership: a new stay has it too, and may begin before the end of the last is delivered.
        var floors: [ChannelID: Seq]
        let appRole: AppRole
        /// What the user is in a channel, and since which seq that is known; channels in which they are an ordinary member may not stand in it.
        private var roles: [ChannelID: (role: ChannelRole, since: Seq)]

        init(socket: SocketHandler, user: UserID, streams: UserStreams) {
            self.socket = socket
            self.user = user
            joined = Set(streams.channels.keys)
            floors = streams.floors
            appRole = streams.appRole
            roles = streams.roles.reduce(into: [:]) { $0[$1.key] = ($1.value, streams.channels[$1.key] ?? 0) }
        }

        /// Two streams tell of roles, in no order: what is older than what is known is dropped.
        func learn(_ role: ChannelRole, in channel: ChannelID, at seq: Seq) {
            if let known = roles[channel] {
                if seq >= known.since { roles[channel] = (role, seq) }
            } else if role != .member {
                roles[channel] = (role, seq)
            }
        }

        /// Whether the socket may have what messages of a channel say.
        func isReader(of channel: ChannelID, _ readers: Readers, isMember: Bool) -> Bool {
            readers.contain(appRole, as: isMember ? roles[channel]?.role ?? .member : nil)
        }
    }

    /// A socket among those that get a channel's events: all that a delivery needs, in one place.
    private struct Receiver {
        let socket: SocketHandler
        var isWatching: Bool
        /// The subscriber's floor in the channel; 0 for none, and the highest seq there is for a member who may not read.
        var floor: Seq
    }

    /// The sockets that get a channel's events.
    private struct Receivers {
        var byConnection: [ConnectionID: Receiver] = [:]
        /// Who may read as of the last event: their floors are by it. Nil where that is to be asked anew.
        var readers: Readers?
    }

    /// The shard's place among the hub's.
    private let number: Int
    private let eventLoop: any EventLoop
    private let presence: PresenceBoard
    private var sockets: [ConnectionID: SocketHandler] = [:]
    private var subscribers: [ConnectionID: Subscriber] = [:]
    private var connectionsOfUser: [UserID: [ConnectionID]] = [:]
    /// For each channel the sockets that get its events.
    private var channels: [ChannelID: Receivers] = [:]
    /// Sockets with something written since the last flush.
    private var unflushed: [SocketHandler] = []
    /// Sockets that end when what was delivered together has reached them.
    private var ending: [SocketHandler] = []
    private(set) var deliveryCount: Int64 = 0
    /// Bytes of events and replies that were given to sockets.
    private(set) var sentByteCount: Int64 = 0
    /// Told when the last socket of a stream is gone.
    var emptied: (@Sendable (StreamID) -> Void)?

    init(number: Int, eventLoop: any EventLoop, presence: PresenceBoard) {
        self.number = number
        self.eventLoop = eventLoop
        self.presence = presence
    }

    var socketCount: Int { sockets.count }
    var authenticatedCount: Int { subscribers.count }

    // MARK: Sockets

    func add(_ socket: SocketHandler, as connection: ConnectionID) { sockets[connection] = socket }

    func remove(_ connection: ConnectionID) {
        sockets[connection] = nil
        guard let subscriber = subscribers.removeValue(forKey: connection) else { return }
        connectionsOfUser[subscriber.user]?.removeAll { $0 == connection }
        if connectionsOfUser[subscriber.user]?.isEmpty == true {
            connectionsOfUser[subscriber.user] = nil
            emptied?(.user(subscriber.user))
        }
        for channel in subscriber.joined.union(subscriber.watched) { unsubscribe(connection, from: channel) }
        presence.wentOffline(subscriber.user, in: subscriber.joined)
        presence.stoppedWatching(subscriber.user, subscriber.watched)
    }

    func tick(_ now: NIODeadline) { for socket in sockets.values { socket.tick(now) } }

    // MARK: Delivery

    /// Delivers a batch: events, changes of audiences and replies in their order.
    func deliver(_ steps: [EventFrames.Step]) {
        for step in steps {
            switch step {
            case .send(.channel(let channel, let readers), let frames):
                guard let receivers = receivers(of: channel, readers) else { continue }
                for receiver in receivers.values {
                    send(frames.bytes(isWatching: receiver.isWatching), to: receiver.socket)
                }
                deliveryCount += Int64(receivers.count * frames.eventCount)
            case .send(.user(let user), let frames):
                for connection in connectionsOfUser[user] ?? [] {
                    guard let receiver = subscribers[connection] else { continue }
                    send(frames.notification, to: receiver.socket)
                    deliveryCount += Int64(frames.eventCount)
                }
            case .sendOld(let audience, let event):
                send(event, to: audience)
            case .catchUp(let newcomers, let channel, let readers, let frames):
                for receiver in self.newcomers(newcomers, to: channel, readers) {
                    send(frames.bytes(isWatching: receiver.watched.contains(channel)), to: receiver.socket)
                    deliveryCount += Int64(frames.eventCount)
                }
            case .catchUpOld(let newcomers, let event):
                var forms = OldEventForms(of: event)
                for receiver in self.newcomers(newcomers, to: event.channel, event.readers) {
                    send(event, &forms, to: receiver, isByMembership: newcomers.isByMembership)
                }
            case .watches(let connection, let user, let channel):
                if let subscriber = subscribers[connection] { watch(channel, user, subscriber, connection) }
            case .change(let notice):
                change(notice)
            case .attach(let connection, let channel):
                if let subscriber = subscribers[connection] { join(channel, subscriber, connection) }
            case .reply(let address, let payload):
                if address.shard == number { send(payload, to: address.connection) }
            }
        }
    }

    /// Each receiver gets the event without the messages that are hidden from them.
    private func send(_ event: OldEvent, to audience: Audience) {
        var forms = OldEventForms(of: event)
        switch audience {
        case .channel(let channel, let readers):
            for receiver in (receivers(of: channel, readers) ?? [:]).values {
                send(&forms, above: receiver.floor, to: receiver.socket, isWatching: receiver.isWatching)
            }
        case .user(let user):
            for (_, subscriber) in connections(of: user) { send(event, &forms, to: subscriber, isByMembership: true) }
        }
    }

    private func send(_ event: OldEvent, _ forms: inout OldEventForms, to subscriber: Subscriber, isByMembership: Bool) {
        let channel = event.channel
        let isMember = isByMembership || subscriber.joined.contains(channel)
        let isReader = subscriber.isReader(of: channel, event.readers, isMember: isMember)
        send(
            &forms, above: isReader ? subscriber.floors[channel] ?? 0 : .max, to: subscriber.socket,
            isWatching: subscriber.watched.contains(channel))
    }

    /// Those who don't get the channel's events yet, and may be told of its past: members, and others who may read it.
    private func newcomers(_ newcomers: EventFrames.Newcomers, to channel: ChannelID, _ readers: Readers) -> [Subscriber] {
        switch newcomers {
        case .connection(let connection), .watcher(let connection):
            guard channels[channel]?.byConnection[connection] == nil, let subscriber = subscribers[connection] else { return [] }
            let isKnown =
                newcomers.isByMembership || subscriber.joined.contains(channel)
                || subscriber.isReader(of: channel, readers, isMember: false)
            return isKnown ? [subscriber] : []
        case .member(let user):
            // Who has only watched so far may have had some of it, before they were told that they are a member: they begin at the joining.
            return connections(of: user).map(\.1).filter { !$0.joined.contains(channel) }
        }
    }

    private func send(_ forms: inout OldEventForms, above floor: Seq, to socket: SocketHandler, isWatching: Bool) {
        guard let frames = forms.frames(above: floor) else { return }
        send(frames.bytes(isWatching: isWatching), to: socket)
        deliveryCount += Int64(frames.eventCount)
    }

    /// Delivers the answer of an operation that only read.
    func deliver(_ reply: [UInt8], toReadOf connection: ConnectionID) { send(reply, to: connection) }

    private func send(_ reply: [UInt8], to connection: ConnectionID) {
        guard let socket = sockets[connection] else { return }
        sentByteCount += Int64(reply.count)
        socket.send(reply: reply)
        noteUnflushed(socket)
    }

    private func send(_ bytes: ByteBuffer, to socket: SocketHandler) {
        sentByteCount += Int64(bytes.readableBytes)
        socket.send(event: bytes)
        noteUnflushed(socket)
    }

    /// Sockets are flushed once, behind everything that already waits for this loop: several batches then share one write.
    private func noteUnflushed(_ socket: SocketHandler) {
        if unflushed.isEmpty {
            let box = NIOLoopBound(self, eventLoop: eventLoop)
            eventLoop.execute { box.value.flush() }
        }
        unflushed.append(socket)
    }

    private func flush() {
        let written = unflushed
        unflushed.removeAll(keepingCapacity: true)
        // A socket may stand in the list several times; it flushes only what it still holds.
        for socket in written { socket.flush() }
    }

    // MARK: Audiences

    private func change(_ notice: Notice) {
        switch notice {
        case .event: break
        case .connected(let connection, let user, let streams):
            guard let socket = sockets[connection] else { return }
            let subscriber = Subscriber(socket: socket, user: user, streams: streams)
            subscribers[connection] = subscriber
            connectionsOfUser[user, default: []].append(connection)
            for channel in subscriber.joined { subscribe(subscriber, connection, to: channel) }
            presence.cameOnline(user, in: subscriber.joined)
        case .joined(let user, let channel, let seq, let role):
            for (connection, subscriber) in connections(of: user) {
                subscriber.learn(role, in: channel, at: seq)
                join(channel, subscriber, connection)
            }
        case .role(let user, let channel, let role, let seq):
            for (connection, subscriber) in connections(of: user) {
                subscriber.learn(role, in: channel, at: seq)
                guard let receivers = channels[channel], receivers.byConnection[connection] != nil else { continue }
                let isMember = subscriber.joined.contains(channel)
                if let readers = receivers.readers, !subscriber.isReader(of: channel, readers, isMember: isMember) {
                    endWatch(of: channel, subscriber)
                }
                subscribe(subscriber, connection, to: channel)
            }
        case .floor(let user, let channel, let floor):
            for (connection, subscriber) in connections(of: user) { raise(to: floor, channel, subscriber, connection) }
        case .left(let user, let channel):
            // Who leaves stops watching as well: nothing newer than the leaving reaches them.
            for (connection, subscriber) in connections(of: user) { forget(channel, of: subscriber, connection) }
        case .destroyed(let channel):
            for connection in (channels[channel]?.byConnection ?? [:]).keys {
                if let subscriber = subscribers[connection] { forget(channel, of: subscriber, connection) }
            }
        case .watching(let connection, let user, let channel, _):
            guard let subscriber = subscribers[connection] else { return }
            watch(channel, user, subscriber, connection)
            subscribe(subscriber, connection, to: channel)
        case .stoppedWatching(let connection, let user, let channel):
            guard let subscriber = subscribers[connection], subscriber.watched.remove(channel) != nil else { return }
            if subscriber.joined.contains(channel) {
                subscribe(subscriber, connection, to: channel)
            } else {
                unsubscribe(connection, from: channel)
            }
            presence.stoppedWatching(user, [channel])
        case .accessChanged(let changes): endAccess(changes)
        }
    }

    /// Those who are shut out get replies to what they did before, and nothing else. The sockets that aren't subscribed yet are looked at as well.
    private func endAccess(_ changes: [AccessChange]) {
        let bySubject = Dictionary(changes.map { ($0.subject, $0) }, uniquingKeysWith: { _, last in last })
        for socket in sockets.values where socket.endIfRefused(by: bySubject) {
            if ending.isEmpty {
                let box = NIOLoopBound(self, eventLoop: eventLoop)
                eventLoop.execute { box.value.closeEnded() }
            }
            ending.append(socket)
        }
    }

    private func closeEnded() {
        let ended = ending
        ending = []
        for socket in ended { socket.closeEnded() }
    }

    private func connections(of user: UserID) -> [(ConnectionID, Subscriber)] {
        (connectionsOfUser[user] ?? []).compactMap { connection in subscribers[connection].map { (connection, $0) } }
    }

    private func join(_ channel: ChannelID, _ subscriber: Subscriber, _ connection: ConnectionID) {
        guard subscriber.joined.insert(channel).inserted else { return }
        subscribe(subscriber, connection, to: channel)
        presence.cameOnline(subscriber.user, in: [channel])
    }

    /// Marks what a connection gets of a channel. Whether it gets anything is another matter.
    private func watch(_ channel: ChannelID, _ user: UserID, _ subscriber: Subscriber, _ connection: ConnectionID) {
        guard subscriber.watched.insert(channel).inserted else { return }
        if channels[channel]?.byConnection[connection] != nil { subscribe(subscriber, connection, to: channel) }
        presence.startedWatching(user, channel)
    }

    private func raise(to floor: Seq, _ channel: ChannelID, _ subscriber: Subscriber, _ connection: ConnectionID) {
        guard floor > subscriber.floors[channel] ?? 0 else { return }
        subscriber.floors[channel] = floor
        if channels[channel]?.byConnection[connection] != nil { subscribe(subscriber, connection, to: channel) }
    }

    private func forget(_ channel: ChannelID, of subscriber: Subscriber, _ connection: ConnectionID) {
        if subscriber.joined.remove(channel) != nil { presence.wentOffline(subscriber.user, in: [channel]) }
        if subscriber.watched.remove(channel) != nil { presence.stoppedWatching(subscriber.user, [channel]) }
        unsubscribe(connection, from: channel)
    }

    private func subscribe(_ subscriber: Subscriber, _ connection: ConnectionID, to channel: ChannelID) {
        var receiver = Receiver(
            socket: subscriber.socket, isWatching: subscriber.watched.contains(channel), floor: subscriber.floors[channel] ?? 0)
        let isMember = subscriber.joined.contains(channel)
        if let readers = channels[channel]?.readers, !subscriber.isReader(of: channel, readers, isMember: isMember) {
            // Whoever begins to watch may read: then the last event was told to other readers than there are now.
            if isMember { receiver.floor = .max } else { channels[channel]?.readers = nil }
        }
        channels[channel, default: Receivers()].byConnection[connection] = receiver
    }

    /// The sockets that get an event of a channel. Where others may read than before, each is asked about anew: before the event, so that
    /// nobody gets it by a right that has ended.
    private func receivers(of channel: ChannelID, _ readers: Readers) -> [ConnectionID: Receiver]? {
        guard let receivers = channels[channel] else { return nil }
        if receivers.readers == readers { return receivers.byConnection }
        channels[channel]?.readers = readers
        for connection in receivers.byConnection.keys {
            guard let subscriber = subscribers[connection] else { continue }
            let isMember = subscriber.joined.contains(channel)
            let isReader = subscriber.isReader(of: channel, readers, isMember: isMember)
            if !isReader { endWatch(of: channel, subscriber) }
            if isMember || isReader {
                subscribe(subscriber, connection, to: channel)
            } else {
                unsubscribe(connection, from: channel)
            }
        }
        return channels[channel]?.byConnection
    }

    /// Ends a watch by whoever may not read any more, and tells them.
    private func endWatch(of channel: ChannelID, _ subscriber: Subscriber) {
        guard subscriber.watched.remove(channel) != nil else { return }
        presence.stoppedWatching(subscriber.user, [channel])
        var json = JSONBytes(capacity: 64)
        UnwatchedFrame(unwatched: .init(channel: channel)).write(to: &json)
        var frame = ByteBuffer()
        frame.writeTextFrame("", json.bytes)
        send(frame, to: subscriber.socket)
    }

    private func unsubscribe(_ connection: ConnectionID, from channel: ChannelID) {
        channels[channel]?.byConnection[connection] = nil
        if channels[channel]?.byConnection.isEmpty == true {
            channels[channel] = nil
            emptied?(.channel(channel))
        }
    }

    /// Which of some streams a socket of this shard needs.
    func used(among streams: [StreamID]) -> [StreamID] {
        streams.filter { stream in
            switch stream {
            case .channel(let channel): channels[channel] != nil
            case .user(let user): connectionsOfUser[user] != nil
            }
        }
    }
}
