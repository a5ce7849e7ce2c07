#if Cluster
import RoostAPI
import RoostTestSupport

/// Compares the clients' states with the stored state once everything is quiet.
struct ChaosCheck {
    private(set) var problems: [String] = []
    private(set) var ackedCount = 0
    private(set) var storedCount = 0
    private(set) var lostCount = 0
    private(set) var twiceCount = 0

    /// The stored messages of each channel, read page by page as an admin.
    private var stored: [ChannelID: [Message]] = [:]

    init(_ channels: [ChannelID], _ clients: [ChaosClient], _ nodes: NodeProcesses) async throws {
        let admin = try await nodes.welcomedSocket("admin", role: .admin, at: 0)
        for channel in channels { stored[channel] = try await Self.messages(of: channel, by: admin) }
        await admin.close()
        storedCount = stored.values.reduce(0) { $0 + $1.count }
        try checkOrder(nodes)
        for client in clients {
            await checkAcked(by: client)
            await checkHeld(by: client)
            try await checkUnread(of: client, nodes)
        }
    }

    private static func messages(of channel: ChannelID, by admin: RawSocket) async throws -> [Message] {
        var messages: [Message] = []
        while true {
            let page = try await admin.call(ListMessages(channel: channel, after: messages.last?.seq ?? 0, limit: 100))
            messages += page.messages
            if !page.hasNewer { return messages }
        }
    }

    // MARK: The database

    private mutating func checkOrder(_ nodes: NodeProcesses) throws {
        for (channel, messages) in stored {
            let ids = messages.map { "\($0.sender)/\($0.clientId)" }
            twiceCount += ids.count - Set(ids).count
            if messages.map(\.seq) != messages.map(\.seq).sorted() { problems.append("\(channel): out of order in the database") }
        }
        let gaps = try nodes.rows(
            """
            SELECT count(*) FROM (SELECT ordinal, row_number() OVER (PARTITION BY channel_id ORDER BY seq) AS place FROM messages) AS m
            WHERE ordinal <> place
            """)
        if gaps != ["0"] { problems.append("messages whose ordinals aren't consecutive: \(gaps)") }
        let miscounted = try nodes.rows(
            """
            SELECT h.channel_id FROM channel_heads h
            WHERE h.message_count <> (SELECT count(*) FROM messages m WHERE m.channel_id = h.channel_id)
            """)
        if !miscounted.isEmpty { problems.append("wrong messageCount: \(miscounted)") }
    }

    // MARK: The clients

    private mutating func checkAcked(by client: ChaosClient) async {
        for (id, place) in await client.acked {
            ackedCount += 1
            let found = stored[place.channel, default: []].filter { $0.sender == client.user && $0.clientId == id }
            if found.map(\.seq) != [place.seq] {
                lostCount += 1
                problems.append("\(client.user): \(id) was acked at \(place), but is at \(found.map(\.seq))")
            }
        }
    }

    private mutating func checkHeld(by client: ChaosClient) async {
        for (channel, held) in await client.view.channels {
            let expected = stored[channel, default: []].filter { $0.seq >= held.windowStart }
            let got = held.messages.values.sorted { $0.seq < $1.seq }
            guard got != expected else { continue }
            let missing = Set(expected).subtracting(got).map { "\($0.seq)/\($0.changeSeq)" }.sorted()
            let other = Set(got).subtracting(expected).map { "\($0.seq)/\($0.changeSeq)" }.sorted()
            let what = "lacks \(missing.prefix(10)), has \(other.prefix(10)) instead, at \(held.position)"
            problems.append("\(client.user), \(channel): \(what)")
        }
    }

    /// A client that knew nothing before sees the same channels and the same numbers.
    private mutating func checkUnread(of client: ChaosClient, _ nodes: NodeProcesses) async throws {
        let view = await client.view
        let socket = try await nodes.welcomedSocket(client.user, at: 1)
        var fresh = StrictView(user: client.user)
        var answer = try await socket.call(Resume(after: 0, channels: [:]))
        fresh.apply(answer)
        while answer.hasMore {
            answer = try await socket.call(Resume(after: fresh.position, channels: fresh.positions))
            fresh.apply(answer)
        }
        if fresh.positions != view.positions { problems.append("\(client.user): \(view.positions) != \(fresh.positions)") }
        var total = 0
        for (channel, held) in view.channels {
            let own = Unread.count(in: held.counters, for: held.membership)
            total += own
            let answer = try await socket.call(GetUnread(channel: channel))
            if answer.unreadCount != own || answer.readSeq != held.membership.readSeq {
                problems.append("\(client.user), \(channel): \(own) unread, read to \(held.membership.readSeq) != \(answer)")
            }
        }
        let counted = try await socket.call(GetTotalUnread()).unreadCount
        if counted != total { problems.append("\(client.user): \(total) unread in total, but the server counts \(counted)") }
        await socket.close()
    }
}
#endif
