import RoostAPI
import RoostCore

@testable import RoostServer

/// What `HubShard` does, for sockets of a simulation: the same audiences from the same notices, the same order of delivery.
final class SimulatedHub {
    /// What the hub keeps of one authenticated socket.
    private struct Subscriber {
        let user: UserID
        var joined: Set<ChannelID>
        var watched: Set<ChannelID> = []
        var floors: [ChannelID: Seq]
    }

    let presence = PresenceBoard()
    private var sockets: [ConnectionID: ServerSocket] = [:]
    private var subscribers: [ConnectionID: Subscriber] = [:]

    /// In the order in which they were opened: a dictionary's order is one that no seed repeats.
    var inOrder: [ServerSocket] { sockets.values.sorted { $0.id.rawValue < $1.id.rawValue } }

    func holds(_ socket: ServerSocket) -> Bool { sockets[socket.id] != nil }

    func add(_ socket: ServerSocket) { sockets[socket.id] = socket }

    func remove(_ connection: ConnectionID) {
        sockets[connection] = nil
        guard let subscriber = subscribers.removeValue(forKey: connection) else { return }
        presence.wentOffline(subscriber.user, in: subscriber.joined)
        presence.stoppedWatching(subscriber.user, subscriber.watched)
    }

    /// Delivers a batch: events, changes of audiences and replies in their order.
    func deliver(_ committed: [Committed]) {
        for step in EventFrames.steps(for: committed) {
            switch step {
            case .send(.channel(let channel), let frames):
                for (connection, subscriber) in subscribers {
                    if subscriber.watched.contains(channel) {
                        sockets[connection]?.send(event: frames.watching)
                    } else if subscriber.joined.contains(channel) {
                        sockets[connection]?.send(event: frames.notification)
                    }
                }
            case .send(.user(let user), let frames):
                for (connection, subscriber) in subscribers where subscriber.user == user {
                    sockets[connection]?.send(event: frames.notification)
                }
            case .sendOld(let audience, let event): deliver(event, to: audience)
            // Only a cluster brings events of the past.
            case .catchUp, .catchUpOld, .attach: break
            case .change(let notice): change(notice)
            case .reply(let address, let payload): sockets[address.connection]?.write(bytes: payload)
            }
        }
    }

    private func deliver(_ event: OldEvent, to audience: Audience) {
        var forms = OldEventForms(of: event)
        for (connection, subscriber) in subscribers {
            let isWatching = subscriber.watched.contains(event.channel)
            let gets =
                switch audience {
                case .channel(let channel): isWatching || subscriber.joined.contains(channel)
                case .user(let user): subscriber.user == user
                }
            guard gets, let frames = forms.frames(above: subscriber.floors[event.channel] ?? 0) else { continue }
            sockets[connection]?.send(event: frames.bytes(isWatching: isWatching))
        }
    }

    private func change(_ notice: Notice) {
        switch notice {
        case .event: break
        case .connected(let connection, let user, let streams):
            let joined = Set(streams.channels.keys)
            guard sockets[connection] != nil else { return }
            subscribers[connection] = Subscriber(user: user, joined: joined, floors: streams.floors)
            presence.cameOnline(user, in: joined)
        case .joined(let user, let channel, _):
            for (connection, subscriber) in subscribers where subscriber.user == user {
                if subscribers[connection]?.joined.insert(channel).inserted == true { presence.cameOnline(user, in: [channel]) }
            }
        case .floor(let user, let channel, let floor):
            for (connection, subscriber) in subscribers where subscriber.user == user {
                subscribers[connection]?.floors[channel] = max(floor, subscriber.floors[channel] ?? 0)
            }
        case .left(let user, let channel):
            for (connection, subscriber) in subscribers where subscriber.user == user {
                forget(channel, of: subscriber, connection)
            }
        case .destroyed(let channel):
            for (connection, subscriber) in subscribers { forget(channel, of: subscriber, connection) }
        case .watching(let connection, let user, let channel, _):
            if subscribers[connection]?.watched.insert(channel).inserted == true { presence.startedWatching(user, channel) }
        case .stoppedWatching(let connection, let user, let channel):
            if subscribers[connection]?.watched.remove(channel) != nil { presence.stoppedWatching(user, [channel]) }
        case .accessChanged: break
        }
    }

    /// Who leaves stops watching as well: nothing newer than the leaving reaches them.
    private func forget(_ channel: ChannelID, of subscriber: Subscriber, _ connection: ConnectionID) {
        if subscribers[connection]?.joined.remove(channel) != nil { presence.wentOffline(subscriber.user, in: [channel]) }
        if subscribers[connection]?.watched.remove(channel) != nil { presence.stoppedWatching(subscriber.user, [channel]) }
    }
}
