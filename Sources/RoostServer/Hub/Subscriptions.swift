import NIOCore
import RoostAPI
import RoostCore

/// The connections of one event loop, and what each of them receives. A value without I/O.
///
/// It takes connections and the steps of deliveries in order, and passes each action to a closure immediately and in order: one call for each
/// receiver, without an array. Its rules:
/// 1. A connection gets its user's events, those of the channels that the user is a member of, and those of channels that it watches.
/// 2. An event says who may read it. If that differs from what the last event of the channel said, every receiver is checked again before
///    the event: members who aren't readers get it without messages, and watchers who may not watch stop watching, except those who began to
///    watch after it.
/// 3. An event with messages from before a receiver's history floor is sent without them.
/// 4. A signal goes to the receivers of its audience that may read according to both the last event and the signal. One that says nothing
///    about messages also goes to watchers who may not read. Signals change nothing. Watchers get them from the answer on, even while events
///    still need a subscription or a catch-up first: signals sent meanwhile would otherwise be lost.
///
/// The hub has one for each event loop, and simulations drive the same one.
///
/// - Parameter Socket: The driver's own handle of a connection. It is only stored and passed back.
struct Subscriptions<Socket> {
    /// An action for the driver.
    enum Action {
        /// Write events that are already framed.
        case send(ByteBuffer, eventCount: Int, to: Socket)
        /// Write a signal, unless the connection is behind.
        case signal(SignalFrame, to: Socket)
        /// Write a reply.
        case reply([UInt8], to: Socket)
        /// Forget what the connection was sent of a channel and hasn't confirmed.
        case forgetReading(ChannelID, of: Socket)
        /// End the connection if these changes shut its caller out.
        case checkAccess([AccessSubject: AccessChange], of: Socket)
        /// A user has one connection more or fewer.
        case connected(UserID)
        case disconnected(UserID)
        /// One connection more or fewer shows that its user is online: it has begun or ended, or the user now shares their presence or no longer does.
        case appeared(UserID)
        case disappeared(UserID)
        /// One connection more or fewer shows that its user is online in channels that they are a member of.
        case cameOnline(UserID, Set<ChannelID>)
        case wentOffline(UserID, Set<ChannelID>)
        /// One connection more or fewer watches channels, and whether its user shares that.
        case startedWatching(UserID, ChannelID, isShown: Bool)
        case stoppedWatching(UserID, Set<ChannelID>, isShown: Bool)
        /// Notify the watchers how many members are online, if that differs from what one of them was answered.
        case answeredOnline(Int, ChannelID)
        /// No connection needs the stream any longer.
        case emptied(StreamID)
        /// End the connection: its user's connections together would get too many channels.
        case turnAway(Socket)
    }

    /// Learns which streams have receivers among the connections. Nil if that isn't needed.
    var interest: StreamInterest?
    /// All connections, including those before their welcome.
    private(set) var sockets: [ConnectionID: Socket] = [:]
    var subscribers: [ConnectionID: Subscriber] = [:]
    private var connectionsOfUser: [UserID: [(connection: ConnectionID, socket: Socket)]] = [:]
    var channels: [ChannelID: Receivers] = [:]
    /// Connections that watch a channel and don't get its events yet.
    var unattached: [ChannelID: Set<ConnectionID>] = [:]
    /// How many channels each user's connections get in total.
    var received: [UserID: Int] = [:]
    /// How many of them a user with more than one connection may have.
    var receivedMax = Limits.connectionsWithAllChannels * Limits.watchedChannels
    /// Connections with something readable that they haven't been asked about.
    var unconfirmed: Set<ConnectionID> = []
    /// The number of the latest reading session.
    var lastReadingSession: Int64 = 0

    /// Connections that are authenticated.
    var subscriberCount: Int { subscribers.count }

    // MARK: Connections

    mutating func add(_ socket: Socket, as connection: ConnectionID) { sockets[connection] = socket }

    mutating func remove(_ connection: ConnectionID, _ perform: (Action) -> Void) {
        sockets[connection] = nil
        unconfirmed.remove(connection)
        guard let subscriber = subscribers.removeValue(forKey: connection) else { return }
        let user = subscriber.user
        connectionsOfUser[user]?.removeAll { $0.connection == connection }
        if connectionsOfUser[user]?.isEmpty == true {
            connectionsOfUser[user] = nil
            interest?.remove(.user(user))
            perform(.emptied(.user(user)))
        }
        for channel in subscriber.joined.union(subscriber.watched.keys) {
            unsubscribe(connection, of: user, from: channel, perform)
        }
        hidePresence(of: subscriber, perform)
        endWatches(of: subscriber, perform)
        perform(.disconnected(user))
    }

    /// Returns the streams that a connection needs.
    func used(among streams: [StreamID]) -> [StreamID] {
        streams.filter { stream in
            switch stream {
            case .channel(let channel): channels[channel] != nil
            case .user(let user): connectionsOfUser[user] != nil
            }
        }
    }

    // MARK: Delivery

    /// Takes one step of a delivery: events, a change of who gets what, or a reply.
    mutating func deliver(_ step: EventFrames.Step, _ perform: (Action) -> Void) {
        switch step {
        case .send(.channel(let channel, let readers), let frames):
            guard let receivers = receivers(of: channel, readers, at: frames.newestSeq, perform) else { return }
            for receiver in receivers.values {
                perform(
                    .send(frames.bytes(isWatching: receiver.isWatching), eventCount: frames.eventCount, to: receiver.socket))
            }
            if let seq = frames.readableSeq { noteReadable(upTo: seq, in: channel) }
        case .send(.user(let user), let frames):
            guard let connections = connectionsOfUser[user] else { return }
            for (_, socket) in connections { perform(.send(frames.notification, eventCount: frames.eventCount, to: socket)) }
        case .sendToUser(let user, let event):
            guard let connections = connectionsOfUser[user] else { return }
            let bytes = event.notification
            for (_, socket) in connections { perform(.send(bytes, eventCount: 1, to: socket)) }
        case .send(let audience, let frames):
            for (_, receiver) in receivers(of: audience) {
                let bytes = frames.bytes(isWatching: receiver.isWatching)
                perform(.send(bytes, eventCount: frames.eventCount, to: receiver.socket))
            }
        case .sendConcealable(let audience, let event):
            send(event, to: audience, perform)
        case .signal(let frame, .user(let user)):
            for (_, socket) in connectionsOfUser[user] ?? [] { perform(.signal(frame, to: socket)) }
        case .signal(let frame, let audience):
            send(frame, to: audience, perform)
        case .catchUp(let newcomers, let channel, let readers, let frames):
            for (connection, receiver) in self.newcomers(newcomers, to: channel, readers, at: frames.newestSeq, perform) {
                let bytes = frames.bytes(isWatching: receiver.watched[channel] != nil)
                perform(.send(bytes, eventCount: frames.eventCount, to: receiver.socket))
                if let seq = frames.readableSeq { noteReadable(upTo: seq, in: channel, readers, ofNewcomer: connection) }
            }
        case .catchUpConcealable(let newcomers, let event):
            var forms = ConcealableEventForms(of: event)
            for (connection, receiver) in self.newcomers(newcomers, to: event.channel, event.readers, at: event.seq, perform) {
                send(event, &forms, to: receiver, isByMembership: newcomers.isByMembership, perform)
                guard !event.isPartial else { continue }
                noteReadable(upTo: event.seq, in: event.channel, event.readers, ofNewcomer: connection)
            }
        case .watches(let connection, let user, let channel, let seq, let online):
            _ = watch(channel, user, connection, at: seq, online, perform)
        case .change(let notice): change(notice, perform)
        case .attach(let connection, let channel): join(channel, connection, perform)
        case .attachWatcher(let connection, let channel):
            // The watch may have ended with an event of its catch-up, and others may have taken the room meanwhile.
            guard isWatched(channel, on: connection) else { return }
            guard mayReceive(channel, connection) else { return endWatch(of: channel, connection, perform) }
            subscribe(connection, to: channel)
        case .reply(let id, let payload):
            if let socket = sockets[id.connection] { perform(.reply(payload, to: socket)) }
        }
    }

    /// Sends each receiver the event without the messages that are hidden from them.
    private mutating func send(_ event: ConcealableEvent, to audience: Audience, _ perform: (Action) -> Void) {
        var forms = ConcealableEventForms(of: event)
        switch audience {
        case .channel(let channel, let readers):
            guard let receivers = receivers(of: channel, readers, at: event.seq, perform) else { return }
            let reading: Set<ConnectionID> = event.isPartial ? [] : channels[channel]?.reading ?? []
            for connection in reading where (receivers[connection]?.floor ?? .max) < event.seq {
                noteReadable([channel: event.seq], of: connection)
            }
            for receiver in receivers.values {
                guard let frames = forms.frames(above: receiver.floor) else { continue }
                let bytes = frames.bytes(isWatching: receiver.isWatching)
                perform(.send(bytes, eventCount: frames.eventCount, to: receiver.socket))
            }
        case .user(let user):
            for (connection, _) in connectionsOfUser[user] ?? [] {
                guard let subscriber = subscribers[connection] else { continue }
                send(event, &forms, to: subscriber, isByMembership: true, perform)
            }
        case .watchers:
            for (_, receiver) in receivers(of: audience) {
                guard let frames = forms.frames(above: receiver.floor) else { continue }
                let bytes = frames.bytes(isWatching: receiver.isWatching)
                perform(.send(bytes, eventCount: frames.eventCount, to: receiver.socket))
            }
        }
    }

    private func send(
        _ event: ConcealableEvent, _ forms: inout ConcealableEventForms, to subscriber: Subscriber, isByMembership: Bool,
        _ perform: (Action) -> Void
    ) {
        let channel = event.channel
        let isMember = isByMembership || subscriber.joined.contains(channel)
        let isReader = subscriber.isReader(of: channel, event.readers, isMember: isMember)
        guard let frames = forms.frames(above: isReader ? subscriber.floor(in: channel, isMember: isMember) : .max) else { return }
        let bytes = frames.bytes(isWatching: subscriber.watched[channel] != nil)
        perform(.send(bytes, eventCount: frames.eventCount, to: subscriber.socket))
    }

    /// Returns the subscribers that don't get the channel's events yet and may get its past: members, and non-members who may read it.
    /// Non-members who no longer may stop watching, as they do when they get the event live, unless they began to watch after it.
    private mutating func newcomers(
        _ newcomers: EventFrames.Newcomers, to channel: ChannelID, _ readers: Readers, at seq: Seq, _ perform: (Action) -> Void
    ) -> [(ConnectionID, Subscriber)] {
        switch newcomers {
        case .connection(let connection), .watcher(let connection):
            guard channels[channel]?.byConnection[connection] == nil, let subscriber = subscribers[connection] else { return [] }
            if newcomers.isByMembership || subscriber.joined.contains(channel) { return [(connection, subscriber)] }
            guard let watchedSeq = subscriber.watched[channel] else { return [] }
            if subscriber.isReader(of: channel, readers, isMember: false) { return [(connection, subscriber)] }
            if watchedSeq < seq { endWatch(of: channel, connection, perform) }
            return []
        case .member(let user):
            // A watcher may already have received some of these events, before learning of the membership. The membership still begins at the joining.
            return connections(of: user).compactMap { connection in subscribers[connection].map { (connection, $0) } }
                .filter { !$0.1.joined.contains(channel) }
        }
    }
}

// MARK: - Who gets what

extension Subscriptions {
    private mutating func change(_ notice: Notice, _ perform: (Action) -> Void) {
        switch notice {
        case .event, .signal, .typing, .stoppedTyping, .read, .profileChanged, .profileShown, .rulesChanged: break
        // They are as of now, so every watch is older.
        case .readers(let channel, let readers): _ = receivers(of: channel, readers, at: .max, perform)
        case .connected(let connection, let user, let streams): connect(connection, user, streams, perform)
        case .joined(let user, let channel, let seq, let role):
            for connection in connections(of: user) {
                subscribers[connection]?.learn(role, in: channel, at: seq)
                join(channel, connection, perform)
            }
        case .role(let user, let channel, let role, let seq):
            for connection in connections(of: user) {
                subscribers[connection]?.learn(role, in: channel, at: seq)
                // What the role may do can have changed since the last event: this change's event says so.
                if channels[channel]?.byConnection[connection] != nil { subscribe(connection, to: channel) }
            }
        case .floor(let user, let channel, let floor):
            for connection in connections(of: user) where floor > subscribers[connection]?.floors[channel] ?? 0 {
                subscribers[connection]?.learn(floor: floor, in: channel)
                if channels[channel]?.byConnection[connection] != nil { subscribe(connection, to: channel) }
            }
        case .left(let user, let channel, let seq, let isBack):
            // Leaving also ends the watch: nothing newer than the leaving reaches the user.
            for connection in connections(of: user) {
                if isBack, subscribers[connection]?.joined.contains(channel) == false, isWatched(channel, on: connection) {
                    // A non-member's watch continues, without events until the membership is attached: it may hide some of them.
                    unsubscribe(connection, of: user, from: channel, perform)
                    setUnattached(true, connection, channel)
                } else {
                    forget(channel, of: connection, perform)
                }
                subscribers[connection]?.unlearn(channel, at: seq)
            }
        case .channelDeleted(let channel):
            // Those that watch and aren't attached yet too: their user's membership may be on its way.
            for connection in Set((channels[channel]?.byConnection ?? [:]).keys).union(unattached[channel] ?? []) {
                forget(channel, of: connection, perform)
                subscribers[connection]?.forget(deleted: channel)
            }
        case .watching(let connection, let user, let channel, let seq, let online):
            guard subscribers[connection] != nil, watch(channel, user, connection, at: seq, online, perform) else { return }
            subscribe(connection, to: channel)
        case .stoppedWatching(let connection, let user, let channel):
            guard subscribers[connection]?.watched.removeValue(forKey: channel) != nil, let subscriber = subscribers[connection]
            else { return }
            if subscriber.joined.contains(channel) {
                subscribe(connection, to: channel)
            } else {
                unsubscribe(connection, of: subscriber.user, from: channel, perform)
            }
            perform(.stoppedWatching(user, [channel], isShown: subscriber.sharesPresence))
        case .mayRead(let connection, let channel): learnReader(connection, of: channel)
        case .reading(let connection, let channel, let joinedSeq, let userSeq, let channelSeq):
            startReading(channel, connection, since: joinedSeq, at: userSeq, channelSeq: channelSeq)
        case .stoppedReading(let connection, let channel): stopReading(channel, connection)
        case .markedUnread(let user, let channel, let userSeq): endReading(of: channel, by: user, at: userSeq, perform)
        case .presenceShared(let user, let isShared): sharePresence(of: user, isShared, perform)
        case .accessChanged(let changes):
            // Callers who are shut out get replies to their earlier calls, and nothing else. Connections before their welcome are checked
            // too.
            let bySubject = Dictionary(changes.map { ($0.subject, $0) }, uniquingKeysWith: { _, last in last })
            for socket in sockets.values { perform(.checkAccess(bySubject, of: socket)) }
        }
    }

    private mutating func connect(
        _ connection: ConnectionID, _ user: UserID, _ streams: UserStreams, _ perform: (Action) -> Void
    ) {
        guard let socket = sockets[connection] else { return }
        let subscriber = Subscriber(socket: socket, user: user, streams: streams)
        guard hasRoom(for: subscriber.joined.count, of: user, subscriber.appRole) else {
            for channel in subscriber.joined where channels[channel] == nil { perform(.emptied(.channel(channel))) }
            return perform(.turnAway(socket))
        }
        subscribers[connection] = subscriber
        if connectionsOfUser[user] == nil { interest?.add(.user(user)) }
        connectionsOfUser[user, default: []].append((connection, socket))
        for channel in subscriber.joined { subscribe(subscriber, connection, to: channel) }
        perform(.connected(user))
        showPresence(of: subscriber, perform)
    }

    func connections(of user: UserID) -> [ConnectionID] { (connectionsOfUser[user] ?? []).map(\.connection) }

    private mutating func join(_ channel: ChannelID, _ connection: ConnectionID, _ perform: (Action) -> Void) {
        guard subscribers[connection]?.joined.contains(channel) == false, let user = subscribers[connection]?.user else { return }
        guard mayReceive(channel, connection) else { return turnAway(connection, perform) }
        subscribers[connection]?.joined.insert(channel)
        subscribe(connection, to: channel)
        if subscribers[connection]?.sharesPresence == true { perform(.cameOnline(user, [channel])) }
    }

    /// Ends a connection for which there is no room. Its subscriptions end immediately, which leaves their room to its user's other connections.
    private mutating func turnAway(_ connection: ConnectionID, _ perform: (Action) -> Void) {
        guard let socket = sockets[connection] else { return }
        perform(.turnAway(socket))
        remove(connection, perform)
        sockets[connection] = socket  // It still gets the replies to its earlier calls.
    }

    /// Marks a connection as watching a channel. Whether it gets the channel's events yet is decided elsewhere.
    ///
    /// - Parameters:
    ///   - seq: The channel's seq in its answer.
    ///   - online: How many members were online according to that, if it said so. The connection wasn't notified of changes since then.
    /// - Returns: Whether the connection now watches the channel.
    private mutating func watch(
        _ channel: ChannelID, _ user: UserID, _ connection: ConnectionID, at seq: Seq, _ online: Int?, _ perform: (Action) -> Void
    ) -> Bool {
        guard let subscriber = subscribers[connection] else { return false }
        // Calls are refused before that, and a socket has only one watching call under way. The check relies on neither.
        let mayWatchMore = subscriber.watched.count < Limits.watchedChannels && mayReceive(channel, connection)
        let former = subscriber.watched[channel]
        guard mayWatchMore || former != nil else {
            send(UnwatchedFrame(unwatched: .init(channel: channel)), to: subscriber, perform)
            return false
        }
        let isShown = subscriber.sharesPresence
        subscribers[connection]?.watched[channel] = max(former ?? 0, seq)
        if former == nil {
            let isAttached = channels[channel]?.byConnection[connection] != nil
            if isAttached { subscribe(connection, to: channel) } else { setUnattached(true, connection, channel) }
            perform(.startedWatching(user, channel, isShown: isShown))
        }
        if let online { perform(.answeredOnline(online, channel)) }
        return true
    }

    private mutating func forget(_ channel: ChannelID, of connection: ConnectionID, _ perform: (Action) -> Void) {
        guard let user = subscribers[connection]?.user else { return }
        let isShown = subscribers[connection]?.sharesPresence == true
        if subscribers[connection]?.joined.remove(channel) != nil, isShown { perform(.wentOffline(user, [channel])) }
        if subscribers[connection]?.watched.removeValue(forKey: channel) != nil {
            perform(.stoppedWatching(user, [channel], isShown: isShown))
        }
        subscribers[connection]?.readable[channel] = nil
        unsubscribe(connection, of: user, from: channel, perform)
    }

    mutating func subscribe(_ connection: ConnectionID, to channel: ChannelID) {
        if let subscriber = subscribers[connection] { subscribe(subscriber, connection, to: channel) }
    }

    private mutating func subscribe(_ subscriber: Subscriber, _ connection: ConnectionID, to channel: ChannelID) {
        setUnattached(false, connection, channel)
        let isMember = subscriber.joined.contains(channel)
        var receiver = Receiver(
            socket: subscriber.socket, isWatching: subscriber.watched[channel] != nil,
            floor: subscriber.floor(in: channel, isMember: isMember))
        if let readers = channels[channel]?.readers {
            let isReader = subscriber.isReader(of: channel, readers, isMember: isMember)
            if !isReader, isMember { receiver.floor = .max }
            // Users who begin to watch or read may do so, and a role arrives with its event: either the last event's readers are out of date,
            // or the right has ended since. The next event checks everyone.
            let mayWatch = isMember ? subscriber.mayWatch(channel, readers, isMember: true) : isReader
            let isWatchInDoubt = !mayWatch && (receiver.isWatching || !isMember)
            let isReadingInDoubt = !isReader && subscriber.read[channel] != nil
            if isWatchInDoubt || isReadingInDoubt { channels[channel]?.readers = nil }
        }
        if channels[channel] == nil { interest?.add(.channel(channel)) }
        let isNew = channels[channel, default: Receivers()].put(
            receiver, as: connection, isReading: subscriber.read[channel] != nil)
        if isNew { received[subscriber.user, default: 0] += 1 }
    }

    /// Returns the connections that get an event of a channel. If the readers have changed, each connection is checked again before the
    /// event, so nobody gets it by a right that has ended.
    ///
    /// - Parameter seq: The event's.
    private mutating func receivers(
        of channel: ChannelID, _ readers: Readers, at seq: Seq, _ perform: (Action) -> Void
    ) -> [ConnectionID: Receiver]? {
        guard let receivers = channels[channel] else { return nil }
        if receivers.readers == readers { return receivers.byConnection }
        channels[channel]?.readers = readers
        var isOlder = false
        for connection in receivers.byConnection.keys {
            guard let subscriber = subscribers[connection] else { continue }
            if endWithoutRight(subscriber, connection, of: channel, readers, at: seq, perform) { isOlder = true }
            // The end of a non-member's session has put the readers in doubt, and so has what is newer than the event. Everyone is still
            // checked by them.
            if isOlder || !subscriber.read.isEmpty { channels[channel]?.readers = readers }
            let isMember = subscriber.joined.contains(channel)
            if isMember || subscriber.isReader(of: channel, readers, isMember: isMember) {
                subscribe(connection, to: channel)
            } else {
                unsubscribe(connection, of: subscriber.user, from: channel, perform)
                // A watch that is newer than the event is attached at its own position.
                if isWatched(channel, on: connection) { setUnattached(true, connection, channel) }
            }
        }
        // The next event checks everyone again.
        if isOlder { channels[channel]?.readers = nil }
        return channels[channel]?.byConnection
    }

    /// Ends the watch of a connection whose user may not watch, and the reading of one whose user may not read.
    ///
    /// In a cluster an event can arrive after a user has begun either by a newer right: then it ends neither.
    ///
    /// - Returns: Whether one of them is newer than the event, and continues.
    private mutating func endWithoutRight(
        _ subscriber: Subscriber, _ connection: ConnectionID, of channel: ChannelID, _ readers: Readers, at seq: Seq,
        _ perform: (Action) -> Void
    ) -> Bool {
        let isMember = subscriber.joined.contains(channel)
        var keepsNewer = false
        if !subscriber.mayWatch(channel, readers, isMember: isMember) {
            let isNewer = subscriber.watched[channel].map { $0 >= seq } == true
            if isNewer { keepsNewer = true } else { endWatch(of: channel, connection, perform) }
        }
        if !subscriber.isReader(of: channel, readers, isMember: isMember) {
            let isNewer = subscriber.read[channel].map { $0.channelSeq >= seq } == true
            if isNewer { keepsNewer = true } else { endReading(of: channel, connection, perform) }
        }
        return keepsNewer
    }

    /// Ends the watch of a user who may no longer watch, and notifies them.
    private mutating func endWatch(of channel: ChannelID, _ connection: ConnectionID, _ perform: (Action) -> Void) {
        guard subscribers[connection]?.watched.removeValue(forKey: channel) != nil, let subscriber = subscribers[connection] else {
            return
        }
        setUnattached(false, connection, channel)
        perform(.stoppedWatching(subscriber.user, [channel], isShown: subscriber.sharesPresence))
        send(UnwatchedFrame(unwatched: .init(channel: channel)), to: subscriber, perform)
    }

    /// Sends one connection a frame that isn't an event.
    func send(_ content: some WireWritable, to subscriber: Subscriber, _ perform: (Action) -> Void) {
        var json = JSONBytes(capacity: 64)
        content.write(to: &json)
        var frame = ByteBuffer()
        frame.writeTextFrame("", json.bytes)
        perform(.send(frame, eventCount: 0, to: subscriber.socket))
    }

    private mutating func unsubscribe(
        _ connection: ConnectionID, of user: UserID, from channel: ChannelID, _ perform: (Action) -> Void
    ) {
        setUnattached(false, connection, channel)
        if channels[channel]?.remove(connection) == true { noteLess(receivedBy: user) }
        if channels[channel]?.byConnection.isEmpty == true {
            channels[channel] = nil
            interest?.remove(.channel(channel))
            perform(.emptied(.channel(channel)))
        }
    }
}

extension Subscriptions.Action: Sendable where Socket: Sendable {}
extension Subscriptions.Action: Equatable where Socket: Equatable {}
