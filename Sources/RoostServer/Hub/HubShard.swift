import NIOCore
import RoostAPI
import RoostCore

/// What the hub knows of the sockets of one event loop. Used on that loop only, so that a delivery takes no lock and no hop.
final class HubShard {
    /// A socket, as the hub sees it.
    protocol Socket: AnyObject {
        /// Puts an event's bytes behind what waits already. ``flush()`` follows at the end of the loop's turn.
        func send(event: ByteBuffer)
        /// Puts a reply behind what waits already; `toRead` tells that it answers an operation that only read.
        func send(reply: [UInt8], toRead: Bool)
        func flush()
        /// Called from time to time: for pings and for what has taken too long.
        func tick(_ now: NIODeadline)
    }

    /// What the hub keeps of one authenticated socket.
    private final class Subscriber {
        let socket: any Socket
        let user: UserID
        var joined: Set<ChannelID>
        var watched: Set<ChannelID> = []

        init(socket: any Socket, user: UserID, joined: Set<ChannelID>) {
            self.socket = socket
            self.user = user
            self.joined = joined
        }

        func gets(_ channel: ChannelID) -> Bool { joined.contains(channel) || watched.contains(channel) }
    }

    private let eventLoop: any EventLoop
    private let presence: PresenceBoard
    private var sockets: [ConnectionID: any Socket] = [:]
    private var subscribers: [ConnectionID: Subscriber] = [:]
    private var connectionsOfUser: [UserID: Set<ConnectionID>] = [:]
    /// For each channel the sockets that get its events.
    private var channels: [ChannelID: [ConnectionID: Subscriber]] = [:]
    /// Sockets with something written since the last flush.
    private var unflushed: [any Socket] = []
    private(set) var deliveryCount: Int64 = 0

    init(eventLoop: any EventLoop, presence: PresenceBoard) {
        self.eventLoop = eventLoop
        self.presence = presence
    }

    var socketCount: Int { sockets.count }

    // MARK: Sockets

    func add(_ socket: any Socket, as connection: ConnectionID) { sockets[connection] = socket }

    func remove(_ connection: ConnectionID) {
        sockets[connection] = nil
        guard let subscriber = subscribers.removeValue(forKey: connection) else { return }
        connectionsOfUser[subscriber.user]?.remove(connection)
        if connectionsOfUser[subscriber.user]?.isEmpty == true { connectionsOfUser[subscriber.user] = nil }
        for channel in subscriber.joined.union(subscriber.watched) { unsubscribe(connection, from: channel) }
        presence.wentOffline(subscriber.user, in: subscriber.joined)
        presence.stoppedWatching(subscriber.user, subscriber.watched)
    }

    func tick(_ now: NIODeadline) { for socket in sockets.values { socket.tick(now) } }

    // MARK: Delivery

    /// Delivers a batch: events and changes of audiences in their order, then the replies.
    func deliver(_ steps: [EventFrames.Step], replies: [(ConnectionID, [UInt8])], toReads: Bool = false) {
        for step in steps {
            switch step {
            case .send(.channel(let channel), let frames):
                guard let receivers = channels[channel] else { continue }
                for receiver in receivers.values {
                    let isWatching = !receiver.watched.isEmpty && receiver.watched.contains(channel)
                    send(isWatching ? frames.watching : frames.notification, to: receiver.socket)
                }
                deliveryCount += Int64(receivers.count * frames.eventCount)
            case .send(.user(let user), let frames):
                for connection in connectionsOfUser[user] ?? [] {
                    guard let receiver = subscribers[connection] else { continue }
                    send(frames.notification, to: receiver.socket)
                    deliveryCount += Int64(frames.eventCount)
                }
            case .change(let notice):
                change(notice)
            }
        }
        for (connection, reply) in replies {
            guard let socket = sockets[connection] else { continue }
            socket.send(reply: reply, toRead: toReads)
            noteUnflushed(socket)
        }
    }

    private func send(_ bytes: ByteBuffer, to socket: any Socket) {
        socket.send(event: bytes)
        noteUnflushed(socket)
    }

    /// Sockets are flushed once, behind everything that already waits for this loop: several batches then share one write.
    private func noteUnflushed(_ socket: any Socket) {
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
        case .connected(let connection, let user, let joined):
            guard let socket = sockets[connection] else { return }
            let subscriber = Subscriber(socket: socket, user: user, joined: Set(joined))
            subscribers[connection] = subscriber
            connectionsOfUser[user, default: []].insert(connection)
            for channel in subscriber.joined { channels[channel, default: [:]][connection] = subscriber }
            presence.cameOnline(user, in: subscriber.joined)
        case .joined(let user, let channel):
            for (connection, subscriber) in connections(of: user) where subscriber.joined.insert(channel).inserted {
                channels[channel, default: [:]][connection] = subscriber
                presence.cameOnline(user, in: [channel])
            }
        case .left(let user, let channel):
            // Who leaves stops watching as well: nothing newer than the leaving reaches them.
            for (connection, subscriber) in connections(of: user) { forget(channel, of: subscriber, connection) }
        case .destroyed(let channel):
            for (connection, subscriber) in channels[channel] ?? [:] { forget(channel, of: subscriber, connection) }
        case .watching(let connection, let user, let channel):
            guard let subscriber = subscribers[connection], subscriber.watched.insert(channel).inserted else { return }
            channels[channel, default: [:]][connection] = subscriber
            presence.startedWatching(user, channel)
        case .stoppedWatching(let connection, let user, let channel):
            guard let subscriber = subscribers[connection], subscriber.watched.remove(channel) != nil else { return }
            if !subscriber.gets(channel) { unsubscribe(connection, from: channel) }
            presence.stoppedWatching(user, [channel])
        }
    }

    private func connections(of user: UserID) -> [(ConnectionID, Subscriber)] {
        (connectionsOfUser[user] ?? []).compactMap { connection in subscribers[connection].map { (connection, $0) } }
    }

    private func forget(_ channel: ChannelID, of subscriber: Subscriber, _ connection: ConnectionID) {
        if subscriber.joined.remove(channel) != nil { presence.wentOffline(subscriber.user, in: [channel]) }
        if subscriber.watched.remove(channel) != nil { presence.stoppedWatching(subscriber.user, [channel]) }
        unsubscribe(connection, from: channel)
    }

    private func unsubscribe(_ connection: ConnectionID, from channel: ChannelID) {
        channels[channel]?[connection] = nil
        if channels[channel]?.isEmpty == true { channels[channel] = nil }
    }
}
