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

    /// A client and its connection.
    struct Seat {
        var client: ReferenceClient
        var isConnected = false
        /// The channels whose events the connection gets.
        var joined: Set<ChannelID> = []
        /// Events that came while the client was catching up.
        var held: [Event]?
    }

    let world: CoreWorld
    var seats: [Seat] = []
    private var delivered = 0

    init(_ world: CoreWorld) { self.world = world }

    /// Adds a client that has nothing, connected or not.
    func seat(_ user: UserID) -> Int {
        seats.append(Seat(client: ReferenceClient(user: user)))
        return seats.count - 1
    }

    // MARK: The hub

    /// Brings what was told since the last time to those who are connected.
    func deliver() throws {
        for notice in world.notices.dropFirst(delivered) {
            for index in seats.indices where seats[index].isConnected { deliver(notice, to: &seats[index]) }
        }
        delivered = world.notices.count
        for index in seats.indices where seats[index].isConnected && seats[index].held == nil {
            if seats[index].client.hasGap { try catchUp(index, by: .resume) }
            try fetchMembers(index)
        }
    }

    private func deliver(_ notice: Notice, to seat: inout Seat) {
        switch notice {
        case .joined(seat.client.user, let channel, _): seat.joined.insert(channel)
        case .left(seat.client.user, let channel), .destroyed(let channel): seat.joined.remove(channel)
        case .event(let event, let audience):
            switch audience {
            case .channel(let channel): guard seat.joined.contains(channel) else { return }
            case .user(let user): guard seat.client.user == user else { return }
            }
            if seat.held == nil { seat.client.receive(event) } else { seat.held?.append(event) }
        default: break
        }
    }

    // MARK: Connecting

    /// Connects a client; events that come before it has caught up are held.
    func connect(_ index: Int) throws {
        try deliver()
        let user = seats[index].client.user
        try world.database.read { transaction in
            var context = Context(transaction: transaction, caller: Caller(user: user), now: world.now, ids: world.ids)
            try context.connect(ConnectionID(rawValue: Int64(index)))
            guard case .connected(_, _, _, let channels) = context.notices.first else { return }
            seats[index].joined = Set(channels.keys)
        }
        seats[index].isConnected = true
        seats[index].held = []
    }

    func disconnect(_ index: Int) throws {
        try deliver()
        seats[index].isConnected = false
        seats[index].held = nil
    }

    /// Catches up, and then applies what was held meanwhile. `between` runs after each answer but the last.
    func catchUp(_ index: Int, by way: CatchUp, between: () throws -> Void = {}) throws {
        seats[index].client.hasGap = false
        switch way {
        case .resume:
            var hasMore = true
            while hasMore {
                let answer = try world.perform(
                    Resume(after: seats[index].client.seq, channels: seats[index].client.positions), as: seats[index].client.user)
                seats[index].client.apply(answer)
                hasMore = answer.hasMore
                if hasMore { try between() }
            }
        case .pages(let limit): try catchUpInPages(index, limit: limit)
        case .missedEvents(let limit): try bringMissedEvents(to: index, limit: limit)
        }
        try fetchMembers(index)
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
                for case .event(let event, _) in missed.notices { seats[index].client.receive(event) }
                guard missed.hasMore else { break }
            }
        }
    }

    private func missed(_ stream: StreamID, after: Seq, limit: Int) throws -> MissedEvents {
        try world.database.read { try $0.missedEvents(of: stream, after: after, now: world.now, limit: limit) }
    }

    private func catchUpInPages(_ index: Int, limit: Int) throws {
        let user = seats[index].client.user
        var hasMore = true
        while hasMore {
            let changes = try world.perform(GetMyChanges(after: seats[index].client.seq, limit: limit), as: user)
            seats[index].client.apply(own: changes)
            hasMore = changes.hasMore
        }
        for id in seats[index].client.channels.keys.sorted() {
            while let place = seats[index].client.channels[id]?.seq {
                let changes = try world.perform(GetChannelChanges(channel: id, after: place, limit: limit), as: user)
                seats[index].client.apply(channel: changes)
                guard changes.hasMore else { break }
            }
        }
        // Channels that the client doesn't hold yet are fresh to it.
        let answer = try world.perform(Resume(after: seats[index].client.seq, channels: seats[index].client.positions), as: user)
        seats[index].client.apply(answer)
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

    /// Members come with no stream's beginning: a client that begins a channel fetches them.
    private func fetchMembers(_ index: Int) throws {
        for (id, held) in seats[index].client.channels where held.members == nil {
            guard let members = try? allMembers(of: id, as: seats[index].client.user) else { continue }
            seats[index].client.channels[id]?.members = [:]
            seats[index].client.channels[id]?.apply(members: members)
        }
    }

    // MARK: The truth

    private func allMembers(of channel: ChannelID, as user: UserID) throws -> [Member] {
        var members: [Member] = []
        var cursor: String?
        repeat {
            let page = try world.perform(ListMembers(channel: channel, limit: 100, cursor: cursor), as: user)
            members += page.items
            cursor = page.nextCursor
        } while cursor != nil
        return members
    }

    /// What a user sees who fetches everything now; of each channel the messages from where another one's window starts.
    func fetched(as user: UserID, like other: ReferenceClient) throws -> View {
        var parts: [ChannelID: View.ChannelPart] = [:]
        var cursor: String?
        repeat {
            let page = try world.perform(ListMyChannels(limit: 100, cursor: cursor), as: user)
            for view in page.items {
                guard let membership = view.membership else { continue }
                let id = view.channel.channelId
                let start = other.channels[id]?.windowStart ?? 0
                var messages: [Message] = []
                var place = start - 1
                var hasNewer = true
                while hasNewer {
                    let page = try world.perform(ListMessages(channel: id, after: max(0, place), limit: 100), as: user)
                    messages += page.messages
                    place = page.messages.last?.seq ?? place
                    hasNewer = page.hasNewer
                }
                let unread = try world.perform(GetUnread(channel: id), as: user).unreadCount
                let members = try allMembers(of: id, as: user).sorted { $0.userId < $1.userId }
                parts[id] = View.ChannelPart(
                    channel: view.channel, membership: membership.comparable, unread: unread, windowStart: start,
                    messages: messages,
                    members: members)
            }
            cursor = page.nextCursor
        } while cursor != nil
        let seq = try world.perform(GetMyChanges(after: 0, limit: 1000), as: user).seq
        return View(
            profile: try world.perform(GetMe(), as: user), seq: seq, total: try world.perform(GetTotalUnread(), as: user),
            channels: parts)
    }

    /// Where a client differs from what a fetch gives now.
    func differences(of index: Int) throws -> [String] {
        let client = seats[index].client
        return client.view.differences(from: try fetched(as: client.user, like: client))
    }
}
