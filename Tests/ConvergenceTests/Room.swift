import Foundation
import NIOCore
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostServer

/// A world with clients in it. The hub's `Subscriptions` decide what each of them receives, as bytes, which go through the gateway's `SocketSession` of
/// its connection; the clients catch up through the server.
final class Room {
    /// How a client catches up.
    enum CatchUp: Equatable, Sendable, CustomTestStringConvertible {
        /// Everything in one call.
        case resume
        /// Stream by stream, in pages of this many rows.
        case pages(Int)
        /// By a node's replacement for events that it missed, in pages of this many rows.
        case missedEvents(Int)

        var testDescription: String {
            switch self {
            case .resume: "resume"
            case .pages(let limit): "pages of \(limit)"
            case .missedEvents(let limit): "missed events in pages of \(limit)"
            }
        }
    }

    /// Events of one kind of stream can arrive later than those of the other: two streams have no common order.
    enum Late: Sendable, CaseIterable {
        case ownStream, channelStreams
    }

    /// An event as received by a connection.
    struct Arrival {
        let event: Event
        let text: [UInt8]
    }

    /// A client and its connection.
    struct Seat {
        var client: ReferenceClient
        /// The SDK's client in the same place, if any: it gets the same bytes, and catches up by itself.
        var device: Device?
        /// The hub's id for it. It stays for a while after the client stops listening.
        var connection: ConnectionID?
        /// The server's end of it.
        var line: Line?
        var isConnected = false
        /// Others' read positions, for a client that follows them.
        var readers: FollowedReaders?
        /// Events received on this connection.
        var received: [Arrival] = []
        /// Events that arrived while the client was catching up.
        var held: [Event]?
        /// Which events are late, and those of them that haven't arrived yet.
        var late: Late?
        var onTheirWay: [Arrival] = []

        /// Delivers an event to both.
        mutating func receive(_ arrival: Arrival) {
            client.receive(arrival.event)
            device?.receive(arrival.text)
        }
    }

    let world: CoreWorld
    var seats: [Seat] = []
    private var delivered = 0
    private var subscriptions = Subscriptions<Int>()
    private let interest = StreamInterest()
    private var lastConnection: Int64 = 1000
    /// Events decoded from bytes that several clients received.
    private var decoded: [ByteBuffer: [Arrival]] = [:]

    init(_ world: CoreWorld) {
        self.world = world
        subscriptions.interest = interest
    }

    /// Adds a client without state that isn't connected.
    func seat(_ user: UserID, withDevice: Bool = true) -> Int {
        seats.append(Seat(client: ReferenceClient(user: user), device: withDevice ? Device(user: user) : nil))
        return seats.count - 1
    }

    /// Adds a client with another one's state that isn't connected.
    func seat(like index: Int, withDevice: Bool = true) -> Int {
        seats.append(Seat(client: seats[index].client, device: withDevice ? seats[index].device : nil))
        seats[seats.count - 1].device?.disconnect()
        return seats.count - 1
    }

    // MARK: The hub

    /// Delivers the notices since the last time to connected clients.
    func deliver() throws {
        let notices = Array(world.notices.dropFirst(delivered))
        delivered = world.notices.count
        decoded = [:]
        send(notices)
        for index in seats.indices where seats[index].isConnected && seats[index].held == nil { try settle(index) }
        try sendReaders(of: notices)
    }

    func send(_ notices: [Notice]) {
        let committed = Committed(notices: notices, answer: .waiting {})
        for step in EventFrames.steps(for: [committed]) {
            let mayHaveReceivers = interest.mayConcern([step], shard: 0)
            subscriptions.deliver(step) { action in
                #expect(mayHaveReceivers, "a loop would have missed a step with receivers")
                perform(action)
            }
        }
    }

    private func perform(_ action: Subscriptions<Int>.Action) {
        switch action {
        case .send(let bytes, _, let index) where seats[index].isConnected:
            for written in seats[index].line?.send(event: bytes) ?? [] {
                for arrival in arrivals(in: written) { bring(arrival, to: &seats[index]) }
            }
        case .signal(let signal, let index) where seats[index].isConnected: seats[index].readers?.take(signal)
        default: break
        }
    }

    /// Returns the events in a connection's output. Other frames, like the end of a watch, change no state.
    private func arrivals(in bytes: ByteBuffer) -> [Arrival] {
        if let known = decoded[bytes] { return known }
        let texts = ServerFrame.texts(in: bytes).filter { $0.starts(with: #"{"watching":"#.utf8) }
        let events = texts.compactMap { text -> Arrival? in
            do {
                return Arrival(event: try JSONDecoder().decode(EventFrame.self, from: Data(text)).event, text: text)
            } catch {
                Issue.record("An event that can't be read: \(error) in \(String(decoding: text, as: UTF8.self))")
                return nil
            }
        }
        decoded[bytes] = events
        return events
    }

    /// The actions of a client after it has applied events.
    private func settle(_ index: Int) throws {
        if seats[index].client.hasGap { try catchUp(index, by: .resume) }
        try answerCalls(index)
        try fetchLists(index)
    }

    /// Answers the device's calls until there are none.
    private func answerCalls(_ index: Int, between: () throws -> Void = {}) throws {
        var count = 0
        sendCalls(of: index)
        while seats[index].line?.hasCalls == true {
            let written = try seats[index].line?.answer(in: world) ?? []
            receive(written, by: index)
            sendCalls(of: index)
            count += 1
            guard count < 100 else { throw Missed("an end of the calls of \(seats[index].client.user)'s device") }
            if seats[index].line?.hasCalls == true { try between() }
        }
    }

    /// Delivers the device's frames to the server. Immediate answers are sent back.
    private func sendCalls(of index: Int) {
        while let frames = seats[index].device?.takeSent(), !frames.isEmpty {
            for frame in frames {
                let written = seats[index].line?.receive(frame) ?? []
                receive(written, by: index)
            }
        }
    }

    private func receive(_ written: [ByteBuffer], by index: Int) {
        for text in written.flatMap(ServerFrame.texts) { seats[index].device?.receive(text) }
    }

    private func bring(_ arrival: Arrival, to seat: inout Seat) {
        seat.received.append(arrival)
        seat.readers?.take(arrival.event)
        if seat.held != nil {
            seat.held?.append(arrival.event)
            // It holds events itself while it catches up.
            seat.device?.receive(arrival.text)
        } else if seat.late == arrival.event.lateness {
            seat.onTheirWay.append(arrival)
        } else {
            seat.receive(arrival)
        }
    }

    /// Delivers late events.
    func arrive(_ index: Int) throws {
        let arrivals = seats[index].onTheirWay
        seats[index].onTheirWay = []
        for arrival in arrivals { seats[index].receive(arrival) }
        if seats[index].late == .ownStream { attach(index) }
        try settle(index)
    }

    /// For a channel that a client learns of only now, a node brings the events since the client's user joined it.
    private func attach(_ index: Int) {
        for channel in seats[index].client.channels.keys.sorted() {
            let arrivals = seats[index].received.filter { $0.event.stream == .channel(channel) }
            for arrival in arrivals { seats[index].receive(arrival) }
        }
    }

    // MARK: Connecting

    /// Connects a client; events that arrive before it has caught up are held.
    func connect(_ index: Int) throws {
        try deliver()
        disconnectFromHub(index)
        let user = seats[index].client.user
        let streams = try world.database.read { try $0.streams(of: user) }
        lastConnection += 1
        let connection = ConnectionID(rawValue: lastConnection)
        subscriptions.add(index, as: connection)
        subscriptions.deliver(.change(.connected(connection, user, streams))) { _ in }
        seats[index].connection = connection
        seats[index].line = Line(connection, of: user, at: world.now)
        seats[index].isConnected = true
        seats[index].received = []
        seats[index].held = []
        if seats[index].readers != nil { seats[index].readers = FollowedReaders() }
        guard seats[index].device != nil else {
            _ = seats[index].line?.authenticate()
            return
        }
        seats[index].device?.connect()
        sendCalls(of: index)
    }

    func disconnect(_ index: Int) throws {
        try deliver()
        disconnectFromHub(index)
        seats[index].device?.disconnect()
        seats[index].isConnected = false
        seats[index].held = nil
        seats[index].onTheirWay = []
    }

    private func disconnectFromHub(_ index: Int) {
        seats[index].line = nil
        guard let connection = seats[index].connection else { return }
        seats[index].connection = nil
        subscriptions.remove(connection) { _ in }
    }

    /// Catches up, and then applies the held events. `between` runs after each answer but the last.
    func catchUp(_ index: Int, by way: CatchUp, between: () throws -> Void = {}) throws {
        seats[index].client.hasGap = false
        switch way {
        case .resume: try resume(index, between: between)
        case .pages(let limit): try catchUpInPages(index, limit: limit, between: between)
        case .missedEvents(let limit): try bringMissedEvents(to: index, limit: limit)
        }
        try answerCalls(index, between: between)
        try fetchLists(index)
    }

    private func resume(_ index: Int, between: () throws -> Void) throws {
        var hasMore = true
        while hasMore {
            let answer = try world.perform(
                Resume(after: seats[index].client.seq, channels: seats[index].client.positions), as: seats[index].client.user)
            seats[index].client.apply(answer)
            hasMore = answer.hasMore
            if hasMore { try between() }
        }
    }

    /// Does the same as a node that has missed everything since the client's positions.
    private func bringMissedEvents(to index: Int, limit: Int) throws {
        let user = seats[index].client.user
        let own = try missed(.user(user), after: seats[index].client.seq, limit: limit)
        for case .event(let event, _) in own.notices { seats[index].client.receive(event) }
        let streams = try world.database.read { try $0.streams(of: user) }
        for id in seats[index].client.channels.keys.sorted() {
            var hub = hub(for: index, streams, without: id)
            while let place = seats[index].client.channels[id]?.seq {
                let missed = try missed(.channel(id), after: place, limit: limit)
                // Users who are no longer members at that place get nothing of the channel.
                let hasLeft = missed.notices.contains { if case .left(user, id, _, _) = $0 { true } else { false } }
                if hasLeft { break }
                for case .event(let event, .channel(_, let readers)) in missed.notices {
                    bringPast(event, of: id, readers, by: &hub, to: index)
                }
                guard missed.hasMore, !seats[index].client.hasGap else { break }
            }
        }
    }

    /// A hub with one connection of a user, which isn't attached to one of the user's channels yet.
    private func hub(for index: Int, _ streams: UserStreams, without channel: ChannelID) -> Subscriptions<Int> {
        var streams = streams
        streams.channels[channel] = nil
        var hub = Subscriptions<Int>()
        hub.add(index, as: Self.catchingUp)
        hub.deliver(.change(.connected(Self.catchingUp, seats[index].client.user, streams))) { _ in }
        return hub
    }

    private static let catchingUp = ConnectionID(rawValue: 1)

    /// Delivers a past event to a connection that isn't attached to the channel yet, like a node that catches up for it.
    private func bringPast(
        _ event: Event, of channel: ChannelID, _ readers: Readers, by hub: inout Subscriptions<Int>, to index: Int
    ) {
        var frames = EventFrames()
        let oldestMessage = event.oldestMessage(to: readers)
        frames.add(
            event.members(isConcealable: oldestMessage != nil), of: channel, at: event.seq, oldestMessage: oldestMessage,
            readers: readers,
            toNewcomers: .connection(Self.catchingUp))
        for step in frames.steps {
            hub.deliver(step) { action in
                guard case .send(let bytes, _, _) = action else { return }
                for arrival in arrivals(in: bytes) { seats[index].client.receive(arrival.event) }
            }
        }
    }

    private func missed(_ stream: StreamID, after: Seq, limit: Int) throws -> MissedEvents {
        try world.database.read { try $0.missedEvents(of: stream, after: after, now: world.now, limit: limit) }
    }

    private func catchUpInPages(_ index: Int, limit: Int, between: () throws -> Void) throws {
        let user = seats[index].client.user
        var hasMore = true
        while hasMore {
            let place = seats[index].client.seq
            let changes = try world.perform(GetMyChanges(after: place, limit: limit), as: user)
            guard changes.seq > place || !changes.hasMore else { throw Missed("a page of \(user) doesn't advance the position") }
            seats[index].client.apply(own: changes)
            hasMore = changes.hasMore
            try between()
        }
        for id in seats[index].client.channels.keys.sorted() {
            while let place = seats[index].client.channels[id]?.seq {
                // A user removed meanwhile learns it from their own stream.
                let changes: Changes
                do {
                    changes = try world.perform(GetChannelChanges(channel: id, after: place, limit: limit), as: user)
                } catch is RoostError {
                    break
                }
                guard changes.seq > place || !changes.hasMore else { throw Missed("a page of \(id) doesn't advance the position") }
                seats[index].client.apply(channel: changes)
                try between()
                guard changes.hasMore else { break }
            }
        }
        // Channels that the client doesn't hold yet are fresh to it.
        try resume(index, between: {})
    }

    /// Ends catching up: held events are applied in order.
    func goOn(_ index: Int) throws {
        let events = seats[index].held ?? []
        seats[index].held = nil
        for event in events { seats[index].client.receive(event) }
        try deliver()
    }

    func reconnect(_ index: Int, by way: CatchUp) throws {
        try connect(index)
        try catchUp(index, by: way)
        try goOn(index)
    }

    /// The beginning of a stream doesn't bring members and invitations: a client that begins a channel fetches them.
    private func fetchLists(_ index: Int) throws {
        for (id, held) in seats[index].client.channels where held.members == nil {
            let user = seats[index].client.user
            guard let members = try? allMembers(of: id, as: user), let pending = try? allPending(into: id, as: user) else {
                continue
            }
            seats[index].client.channels[id]?.members = [:]
            seats[index].client.channels[id]?.apply(members: members)
            if held.channel.invitationAudience == .members { seats[index].client.take(pending) }
        }
    }
}

extension Event {
    fileprivate var lateness: Room.Late {
        switch stream {
        case .user: .ownStream
        case .channel: .channelStreams
        }
    }
}
