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
        var roles: [ChannelID: ChannelRole] = [:]

        func isReader(of channel: ChannelID, _ readers: Readers) -> Bool {
            readers.contain(.user, as: joined.contains(channel) ? roles[channel] ?? .member : nil)
        }
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
            case .send(.channel(let channel, let readers), let frames):
                endWatches(of: channel, readers)
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
            case .catchUp, .catchUpOld, .attach, .watches: break
            case .change(let notice): change(notice)
            case .reply(let address, let payload): sockets[address.connection]?.write(bytes: payload)
            }
        }
    }

    private func deliver(_ event: OldEvent, to audience: Audience) {
        if case .channel(let channel, let readers) = audience { endWatches(of: channel, readers) }
        var forms = OldEventForms(of: event)
        for (connection, subscriber) in subscribers {
            let isWatching = subscriber.watched.contains(event.channel)
            let gets =
                switch audience {
                case .channel(let channel, _): isWatching || subscriber.joined.contains(channel)
                case .user(let user): subscriber.user == user
                }
            let isReader = subscriber.isReader(of: event.channel, event.readers)
            let floor = isReader ? subscriber.floors[event.channel] ?? 0 : .max
            guard gets, let frames = forms.frames(above: floor) else { continue }
            sockets[connection]?.send(event: frames.bytes(isWatching: isWatching))
        }
    }

    /// Who may not read any more stops watching.
    private func endWatches(of channel: ChannelID, _ readers: Readers) {
        for (connection, subscriber) in subscribers where !subscriber.isReader(of: channel, readers) {
            if subscribers[connection]?.watched.remove(channel) != nil { presence.stoppedWatching(subscriber.user, [channel]) }
        }
    }

    private func change(_ notice: Notice) {
        switch notice {
        case .event: break
        case .connected(let connection, let user, let streams):
            let joined = Set(streams.channels.keys)
            guard sockets[connection] != nil else { return }
            subscribers[connection] = Subscriber(user: user, joined: joined, floors: streams.floors, roles: streams.roles)
            presence.cameOnline(user, in: joined)
        case .role(let user, let channel, let role, _):
            for (connection, subscriber) in subscribers where subscriber.user == user {
                subscribers[connection]?.roles[channel] = role
            }
        case .joined(let user, let channel, _, let role):
            for (connection, subscriber) in subscribers where subscriber.user == user {
                subscribers[connection]?.roles[channel] = role
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
