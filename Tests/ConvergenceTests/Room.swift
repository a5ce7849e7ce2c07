import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// A world with clients in it. It brings them what the hub would, and lets them catch up as the server would.
final class Room {
    /// How a client catches up.
    enum CatchUp: Sendable, CustomTestStringConvertible {
        /// Everything in one call.
        case resume
        /// Stream by stream, in pages of so many rows.
        case pages(Int)
        /// By what a node tells in the place of events that it missed, in pages of so many rows.
        case missedEvents(Int)

        var testDescription: String {
            switch self {
            case .resume: "resume"
            case .pages(let limit): "pages of \(limit)"
            case .missedEvents(let limit): "missed events in pages of \(limit)"
            }
        }
    }

    /// Events of one kind of stream can come later than those of the other: between two streams there is no order.
    enum Late: Sendable, CaseIterable {
        case ownStream, channelStreams
    }

    /// A client and its connection.
    struct Seat {
        var client: ReferenceClient
        var isConnected = false
        /// The channels whose events the connection gets.
        var joined: Set<ChannelID> = []
        /// Up to which seq messages aren't for the user.
        var floors: [ChannelID: Seq] = [:]
        /// What the user is in a channel, where not an ordinary member.
        var roles: [ChannelID: ChannelRole] = [:]
        /// Events that came while the client was catching up.
        var held: [Event]?
        /// The events that are late, and those of them that are still on their way.
        var late: Late?
        var onTheirWay: [Event] = []
    }

    let world: CoreWorld
    var seats: [Seat] = []
    private var delivered = 0

    init(_ world: CoreWorld) { self.world = world }

    /// Adds a client that has nothing, and isn't connected.
    func seat(_ user: UserID) -> Int {
        seats.append(Seat(client: ReferenceClient(user: user)))
        return seats.count - 1
    }

    /// Adds a client that holds what another one does.
    func seat(like index: Int) -> Int {
        seats.append(seats[index])
        return seats.count - 1
    }

    // MARK: The hub

    /// Brings what was told since the last time to those who are connected.
    func deliver() throws {
        for notice in world.notices.dropFirst(delivered) {
            for index in seats.indices where seats[index].isConnected { deliver(notice, to: &seats[index]) }
        }
        delivered = world.notices.count
        for index in seats.indices where seats[index].isConnected && seats[index].held == nil { try settle(index) }
    }

    /// What a client does by itself once events are applied.
    private func settle(_ index: Int) throws {
        if seats[index].client.hasGap { try catchUp(index, by: .resume) }
        try fetchLists(index)
    }

    private func deliver(_ notice: Notice, to seat: inout Seat) {
        switch notice {
        case .joined(seat.client.user, let channel, _, let role):
            seat.joined.insert(channel)
            seat.roles[channel] = role
        case .role(seat.client.user, let channel, let role, _): seat.roles[channel] = role
        case .floor(seat.client.user, let channel, let floor): seat.floors[channel] = max(floor, seat.floors[channel] ?? 0)
        case .left(seat.client.user, let channel), .destroyed(let channel): seat.joined.remove(channel)
        case .event(let event, let audience):
            switch audience {
            case .channel(let channel, let readers):
                guard seat.joined.contains(channel) else { return }
                bring(event.told(to: seat, in: channel, readers), to: &seat)
            case .user(let user):
                guard seat.client.user == user else { return }
                bring(event, to: &seat)
            }
        default: break
        }
    }

    private func bring(_ event: Event, to seat: inout Seat) {
        if seat.held != nil {
            seat.held?.append(event)
        } else if seat.late == event.lateness {
            seat.onTheirWay.append(event)
        } else {
            seat.client.receive(event)
        }
    }

    /// Brings what was late.
    func arrive(_ index: Int) throws {
        let events = seats[index].onTheirWay
        seats[index].onTheirWay = []
        for event in events { seats[index].client.receive(event) }
        if seats[index].late == .ownStream { attach(index) }
        try settle(index)
    }

    /// Of a channel that a client learns of only now, a node brings what came since the client's user joined it.
    private func attach(_ index: Int) {
        for channel in seats[index].client.channels.keys.sorted() {
            for case .event(let event, .channel(channel, let readers)) in world.notices {
                seats[index].client.receive(event.told(to: seats[index], in: channel, readers))
            }
        }
    }

    // MARK: Connecting

    /// Connects a client; events that come before it has caught up are held.
    func connect(_ index: Int) throws {
        try deliver()
        let streams = try world.database.read { try $0.streams(of: seats[index].client.user) }
        seats[index].joined = Set(streams.channels.keys)
        seats[index].floors = streams.floors
        seats[index].isConnected = true
        seats[index].held = []
    }

    func disconnect(_ index: Int) throws {
        try deliver()
        seats[index].isConnected = false
        seats[index].held = nil
        seats[index].onTheirWay = []
    }

    /// Catches up, and then applies what was held meanwhile. `between` runs after each answer but the last.
    func catchUp(_ index: Int, by way: CatchUp, between: () throws -> Void = {}) throws {
        seats[index].client.hasGap = false
        switch way {
        case .resume: try resume(index, between: between)
        case .pages(let limit): try catchUpInPages(index, limit: limit, between: between)
        case .missedEvents(let limit): try bringMissedEvents(to: index, limit: limit)
        }
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

    /// As a node does that has missed everything since the client's positions.
    private func bringMissedEvents(to index: Int, limit: Int) throws {
        let user = seats[index].client.user
        let own = try missed(.user(user), after: seats[index].client.seq, limit: limit)
        for case .event(let event, _) in own.notices { seats[index].client.receive(event) }
        for id in seats[index].client.channels.keys.sorted() {
            while let place = seats[index].client.channels[id]?.seq {
                let missed = try missed(.channel(id), after: place, limit: limit)
                // Who isn't a member at the place any more gets nothing of the channel.
                if missed.notices.contains(.left(user, id)) { break }
                for case .event(let event, _) in missed.notices {
                    seats[index].client.receive(event.without(messagesUpTo: seats[index].floors))
                }
                guard missed.hasMore, !seats[index].client.hasGap else { break }
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
            guard changes.seq > place || !changes.hasMore else { throw Missed("a page of \(user) brings nobody further") }
            seats[index].client.apply(own: changes)
            hasMore = changes.hasMore
            try between()
        }
        for id in seats[index].client.channels.keys.sorted() {
            while let place = seats[index].client.channels[id]?.seq {
                // Who was removed meanwhile learns it from the own stream.
                let changes: Changes
                do {
                    changes = try world.perform(GetChannelChanges(channel: id, after: place, limit: limit), as: user)
                } catch is RoostError {
                    break
                }
                guard changes.seq > place || !changes.hasMore else { throw Missed("a page of \(id) brings nobody further") }
                seats[index].client.apply(channel: changes)
                try between()
                guard changes.hasMore else { break }
            }
        }
        // Channels that the client doesn't hold yet are fresh to it.
        try resume(index, between: {})
    }

    /// Ends catching up: what was held is applied in its order.
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

    /// Members and invitations come with no stream's beginning: a client that begins a channel fetches them.
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
    /// As the hub sends a channel's event to a member: without messages to who may not read them.
    fileprivate func told(to seat: Room.Seat, in channel: ChannelID, _ readers: Readers) -> Event {
        guard readers.contain(.user, as: seat.roles[channel] ?? .member) else { return concealing(messagesUpTo: .max) }
        return without(messagesUpTo: seat.floors)
    }

    /// As the hub sends it to who has a floor.
    fileprivate func without(messagesUpTo floors: [ChannelID: Seq]) -> Event {
        guard case .channel(let id) = stream, let floor = floors[id] else { return self }
        var event = self
        event.rows.messages = rows.messages?.filter { $0.seq > floor }
        return event
    }

    fileprivate var lateness: Room.Late {
        switch stream {
        case .user: .ownStream
        case .channel: .channelStreams
        }
    }
}
