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

        init(socket: SocketHandler, user: UserID, streams: UserStreams) {
            self.socket = socket
            self.user = user
            joined = Set(streams.channels.keys)
            floors = streams.floors
        }
    }

    /// A socket among those that get a channel's events: all that a delivery needs, in one place.
    private struct Receiver {
        let socket: SocketHandler
        var isWatching: Bool
        /// The subscriber's floor in the channel; 0 for none.
        var floor: Seq
    }

    /// The shard's place among the hub's.
    private let number: Int
    private let eventLoop: any EventLoop
    private let presence: PresenceBoard
    private var sockets: [ConnectionID: SocketHandler] = [:]
    private var subscribers: [ConnectionID: Subscriber] = [:]
    private var connectionsOfUser: [UserID: [ConnectionID]] = [:]
    /// For each channel the sockets that get its events.
    private var channels: [ChannelID: [ConnectionID: Receiver]] = [:]
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
            case .send(.channel(let channel), let frames):
                guard let receivers = channels[channel] else { continue }
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
            case .catchUp(let connection, let frames, let isWatching):
                guard let receiver = subscribers[connection] else { continue }
                send(frames.bytes(isWatching: isWatching), to: receiver.socket)
                deliveryCount += Int64(frames.eventCount)
            case .catchUpOld(let connection, let event, let isWatching):
                var forms = OldEventForms(of: event)
                if let receiver = subscribers[connection] { send(event, &forms, to: receiver, isWatching: isWatching) }
            case .change(let notice):
                change(notice)
            case .attach(let connection, let channel):
                if let subscriber = subscribers[connection] { join(channel, subscriber, connection) }
            case .reply(let address, let payload):
                if address.shard == number { send(payload, to: address.connection, toRead: false) }
            }
        }
    }

    /// Each receiver gets the event without the messages that are hidden from them.
    private func send(_ event: OldEvent, to audience: Audience) {
        var forms = OldEventForms(of: event)
        switch audience {
        case .channel(let channel):
            for receiver in (channels[channel] ?? [:]).values {
                send(&forms, above: receiver.floor, to: receiver.socket, isWatching: receiver.isWatching)
            }
        case .user(let user):
            for (_, subscriber) in connections(of: user) { send(event, &forms, to: subscriber, isWatching: false) }
        }
    }

    private func send(_ event: OldEvent, _ forms: inout OldEventForms, to subscriber: Subscriber, isWatching: Bool) {
        send(&forms, above: subscriber.floors[event.channel] ?? 0, to: subscriber.socket, isWatching: isWatching)
    }

    private func send(_ forms: inout OldEventForms, above floor: Seq, to socket: SocketHandler, isWatching: Bool) {
        guard let frames = forms.frames(above: floor) else { return }
        send(frames.bytes(isWatching: isWatching), to: socket)
        deliveryCount += Int64(frames.eventCount)
    }

    /// Delivers the answer of an operation that only read.
    func deliver(_ reply: [UInt8], toReadOf connection: ConnectionID) { send(reply, to: connection, toRead: true) }

    private func send(_ reply: [UInt8], to connection: ConnectionID, toRead: Bool) {
        guard let socket = sockets[connection] else { return }
        sentByteCount += Int64(reply.count)
        socket.send(reply: reply, toRead: toRead)
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
        case .joined(let user, let channel, _):
            for (connection, subscriber) in connections(of: user) { join(channel, subscriber, connection) }
        case .floor(let user, let channel, let floor):
            for (connection, subscriber) in connections(of: user) { raise(to: floor, channel, subscriber, connection) }
        case .left(let user, let channel):
            // Who leaves stops watching as well: nothing newer than the leaving reaches them.
            for (connection, subscriber) in connections(of: user) { forget(channel, of: subscriber, connection) }
        case .destroyed(let channel):
            for connection in (channels[channel] ?? [:]).keys {
                if let subscriber = subscribers[connection] { forget(channel, of: subscriber, connection) }
            }
        case .watching(let connection, let user, let channel, _):
            guard let subscriber = subscribers[connection], subscriber.watched.insert(channel).inserted else { return }
            subscribe(subscriber, connection, to: channel)
            presence.startedWatching(user, channel)
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

    private func raise(to floor: Seq, _ channel: ChannelID, _ subscriber: Subscriber, _ connection: ConnectionID) {
        guard floor > subscriber.floors[channel] ?? 0 else { return }
        subscriber.floors[channel] = floor
        channels[channel]?[connection]?.floor = floor
    }

    private func forget(_ channel: ChannelID, of subscriber: Subscriber, _ connection: ConnectionID) {
        if subscriber.joined.remove(channel) != nil { presence.wentOffline(subscriber.user, in: [channel]) }
        if subscriber.watched.remove(channel) != nil { presence.stoppedWatching(subscriber.user, [channel]) }
        unsubscribe(connection, from: channel)
    }

    private func subscribe(_ subscriber: Subscriber, _ connection: ConnectionID, to channel: ChannelID) {
        channels[channel, default: [:]][connection] = Receiver(
            socket: subscriber.socket, isWatching: subscriber.watched.contains(channel), floor: subscriber.floors[channel] ?? 0)
    }

    private func unsubscribe(_ connection: ConnectionID, from channel: ChannelID) {
        channels[channel]?[connection] = nil
        if channels[channel]?.isEmpty == true {
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
