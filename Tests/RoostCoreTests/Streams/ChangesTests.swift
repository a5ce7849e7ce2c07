import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Changes")
struct ChangesTests {
    /// What a client holds of a channel after it has applied rows.
    private struct Held: Equatable {
        var channel: Channel?
        var counters: ChannelCounters?
        var members: [UserID: Member] = [:]
        var messages: [Seq: Message] = [:]
        var membership: Membership?

        mutating func apply(_ rows: Rows) {
            if let row = rows.channel { channel = row }
            if let row = rows.counters { counters = row }
            // A channel's row brings counters too, and may be older than they are by then.
            if let counters { channel?.counters = counters }
            for member in rows.members ?? [] where member.changeSeq >= members[member.userId]?.changeSeq ?? 0 {
                members[member.userId] = member
            }
            for message in rows.messages ?? [] where message.changeSeq >= messages[message.seq]?.changeSeq ?? 0 {
                messages[message.seq] = message
            }
            if let row = rows.memberships?.last { membership = row }
        }
    }

    private func held(_ channel: ChannelID, after: Seq, limit: Int, in world: CoreWorld) throws -> (held: Held, pages: Int) {
        var held = Held()
        var place = after
        for page in 1...5000 {
            let changes = try world.perform(GetChannelChanges(channel: channel, after: place, limit: limit), as: "ann")
            held.apply(changes.rows)
            #expect((changes.rows.messages ?? []).count <= 2 * limit)
            if !changes.hasMore { return (held, page) }
            guard changes.seq > place else {
                Issue.record("a page after \(place) brings nobody further")
                return (held, page)
            }
            place = changes.seq
        }
        return (held, 0)
    }

    @Test("I5 many small pages bring the same as one large one", arguments: Seeds.first(5))
    func smallPages(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        for _ in 0..<120 { try history.step(in: world) }
        let channel = history.channels[0]
        try world.perform(JoinChannel(channel: channel), as: "ann")
        let head = try world.perform(GetChannel(channel: channel), as: "ann").channel.counters.seq
        for after in [0, 1, head / 3, head - 3, head - 1, head] {
            let whole = try held(channel, after: after, limit: 1000, in: world)
            for limit in [1, 2, 3, 7] {
                let pieces = try held(channel, after: after, limit: limit, in: world)
                guard pieces.held == whole.held, whole.pages == 1 else {
                    #expect(pieces.held == whole.held, "seed \(seed), after \(after), pages of \(limit)")
                    return
                }
            }
        }
    }

    @Test("AM-24 small pages bring all of a channel's first members, who have one seq", arguments: [1, 2, 5])
    func firstMembers(limit: Int) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid", "dan"])
        try world.send("x", to: "general", as: "ann")
        let found = try held("general", after: 0, limit: limit, in: world).held.members.keys.sorted()
        #expect(found == ["ann", "bob", "cid", "dan"])
    }

    @Test("I20 a place beyond the stream's end is one of another history")
    func beyondTheEnd() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let codes = try [
            world.code(GetChannelChanges(channel: "general", after: 1), as: "ann"),
            world.code(GetChannelChanges(channel: "general", after: 2), as: "ann"),
            world.code(GetChannelChanges(channel: "general", after: Limits.seqMax), as: "ann"),
            world.code(GetMyChanges(after: Limits.seqMax), as: "ann"),
            world.code(Resume(after: Limits.seqMax, channels: [:]), as: "ann"),
        ]
        #expect(codes == [nil, .resyncRequired, .resyncRequired, .resyncRequired, .resyncRequired])
    }

    @Test("I5 the caller's own changes come in pages too", arguments: [1, 2, 3, 100])
    func ownChanges(limit: Int) throws {
        let world = try CoreWorld()
        try world.user("ann")
        for number in 0..<6 { try world.channel(ChannelID("c\(number)"), owner: "ann") }
        try world.perform(MarkRead(channel: "c2"), as: "ann")
        try world.perform(LeaveChannel(channel: "c4"), as: "ann")
        try world.perform(DeleteChannel(channel: "c5"), as: "ann")
        try world.perform(UpdateMe(displayName: "Ann"), as: "ann")
        var memberships: [ChannelID: Membership] = [:]
        var users: [User] = []
        var place: Seq = 0
        var hasMore = true
        while hasMore {
            let changes = try world.perform(GetMyChanges(after: place, limit: limit), as: "ann")
            for membership in changes.rows.memberships ?? [] { memberships[membership.channelId] = membership }
            users = changes.rows.users ?? users
            #expect((changes.rows.memberships ?? []).count <= limit)
            hasMore = changes.hasMore && changes.seq > place
            place = changes.seq
        }
        let states = (0..<6).map { memberships[ChannelID("c\($0)")]?.state }
        #expect(states == [.member, .member, .member, .member, MembershipState.none, MembershipState.none])
        #expect(users.last?.displayName == "Ann")
    }
}
