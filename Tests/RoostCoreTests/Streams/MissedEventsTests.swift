import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// A node's replacement for events that it missed.
@Suite("Missed events")
struct MissedEventsTests {
    private func missed(
        _ stream: StreamID, after: Seq, in world: CoreWorld, limit: Int = 100, reporting leavers: MissedEvents.Leavers = .all
    ) throws -> MissedEvents {
        try world.database.read {
            try $0.missedEvents(of: stream, after: after, now: world.now, limit: limit, reporting: leavers)
        }
    }

    private func left(_ missed: MissedEvents) -> [UserID] {
        missed.notices.compactMap { if case .left(let user, _, _, _) = $0 { user } else { nil } }.sorted()
    }

    private func lastSeqs(_ missed: MissedEvents) -> [UserID: Seq] {
        missed.notices.reduce(into: [:]) { if case .left(let user, _, let seq, _) = $1 { $0[user] = seq } }
    }

    /// Those of them who are members from there on.
    private func back(_ missed: MissedEvents) -> [UserID] {
        missed.notices.compactMap { if case .left(let user, _, _, true) = $0 { user } else { nil } }.sorted()
    }

    @Test("I6 a channel's missed events are one event a page, which follows the position it is asked for")
    func pages() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        for number in 1...5 { try world.send("\(number)", to: "general", as: "ann") }
        var position: Seq = 1
        var pages: [String] = []
        var hasMore = true
        while hasMore {
            let page = try missed(.channel("general"), after: position, in: world, limit: 2)
            for case .event(let event, let audience) in page.notices {
                let texts = (event.rows.messages ?? []).map(\.text).joined()
                pages.append("\(event.kind.rawValue) \(event.after ?? 0)-\(event.seq) \(texts) \(audience == .channel("general"))")
                #expect(event.rows.memberships == nil)
            }
            position = page.seq
            hasMore = page.hasMore
        }
        #expect(pages == ["stream.changes 1-3 12 true", "stream.changes 3-5 34 true", "stream.changes 5-6 5 true"])
        #expect(try missed(.channel("general"), after: 6, in: world).notices == [])
        #expect(try missed(.channel("nowhere"), after: 0, in: world).notices == [])
    }

    @Test("I9 former members, and those who rejoined later, are reported as gone before the event; members who stayed aren't")
    func gone() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid", "dan"])
        try world.perform(LeaveChannel(channel: "general"), as: "bob")  // 2
        try world.send("a", to: "general", as: "ann")  // 3
        try world.perform(LeaveChannel(channel: "general"), as: "cid")  // 4
        try world.perform(JoinChannel(channel: "general"), as: "cid")  // 5
        try world.send("b", to: "general", as: "ann")  // 6
        try world.perform(LeaveChannel(channel: "general"), as: "dan")  // 7
        let places: [Seq] = [1, 2, 3, 4, 5, 6]
        let whole = try places.map { left(try missed(.channel("general"), after: $0, in: world)) }
        #expect(whole == [["bob", "cid", "dan"], ["cid", "dan"], ["cid", "dan"], ["cid", "dan"], ["dan"], ["dan"]])
        // A page that ends before dan leaves, and before cid's new membership begins.
        let page = try missed(.channel("general"), after: 2, in: world, limit: 1)
        #expect(page.seq == 3)
        #expect(left(page) == ["cid"])
        // The latest possible seq: that of the leaving, or of the new membership, which may be beyond the page.
        #expect(lastSeqs(try missed(.channel("general"), after: 1, in: world)) == ["bob": 2, "cid": 5, "dan": 7])
        #expect(lastSeqs(page) == ["cid": 5])
        // Only cid is a member again.
        #expect(back(page) == ["cid"])
        #expect(back(try missed(.channel("general"), after: 1, in: world)) == ["cid"])
    }

    @Test("I9 I18 later joins are reported by the first page, not by each page until the one with the join")
    func laterJoiners() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        for number in 1...60 {
            let user = try world.user(UserID("user-\(number)"))
            try world.perform(JoinChannel(channel: "general"), as: user)
        }
        var (position, leavers, hasMore) = (Seq(1), MissedEvents.Leavers.all, true)
        var reported: [Int] = []
        while hasMore {
            let page = try missed(.channel("general"), after: position, in: world, limit: 10, reporting: leavers)
            reported.append(left(page).count)
            (position, leavers, hasMore) = (page.seq, .joinedAfter(page.head), page.hasMore)
        }
        #expect(position == 61)
        #expect(reported == [60, 10, 10, 10, 10, 10])
    }

    @Test("I9 I18 if one user rejoins and another leaves between two pages, the next page reports it")
    func leftBetweenPages() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid", "dan"])
        for number in 1...5 { try world.send("\(number)", to: "general", as: "ann") }  // 2 to 6
        let first = try missed(.channel("general"), after: 1, in: world, limit: 2)
        #expect(first.seq == 3 && first.head == 6 && left(first) == [])
        try world.perform(LeaveChannel(channel: "general"), as: "bob")  // 7
        try world.perform(JoinChannel(channel: "general"), as: "bob")  // 8
        try world.perform(LeaveChannel(channel: "general"), as: "cid")  // 9

        let second = try missed(.channel("general"), after: 3, in: world, limit: 2, reporting: .joinedAfter(first.head))
        #expect(second.seq == 5 && lastSeqs(second) == ["bob": 8])
        let third = try missed(.channel("general"), after: 5, in: world, reporting: .joinedAfter(second.head))
        #expect(third.seq == 9 && lastSeqs(third) == ["bob": 8, "cid": 9])
        // A user who catches up alone gets nobody else's changes.
        let alone = try (["bob", "cid", "dan"] as [UserID]).map {
            lastSeqs(try missed(.channel("general"), after: 3, in: world, reporting: .user($0)))
        }
        #expect(alone == [["bob": 8], ["cid": 9], [:]])
    }

    @Test("I9 nobody gets anything after a channel's end")
    func deleted() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        #expect(try missed(.channel("general"), after: 1, in: world).notices.last == .channelDeleted("general"))
    }

    @Test("I9 a deletion is reported with the last page, not before the contents of the pages after the first")
    func deletedBehindPages() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        for number in 1...5 { try world.send("\(number)", to: "general", as: "ann") }
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        var position: Seq = 1
        var ends: [Bool] = []
        var deletions: [Bool] = []
        repeat {
            let page = try missed(.channel("general"), after: position, in: world, limit: 2)
            ends.append(page.notices.contains(.channelDeleted("general")))
            for case .event(let event, _) in page.notices { deletions.append(event.rows.channel?.deletedAt != nil) }
            position = page.seq
            if !page.hasMore { break }
        } while ends.count < 10
        #expect(ends == [false, false, true])
        #expect(deletions == ends)
    }

    @Test("I5 a user's missed events are one for each row, in order; only memberships that began are joins")
    func ofUser() throws {
        let world = try CoreWorld()
        try world.channel("old", owner: "ann", members: ["bob"])
        try world.channel("left", owner: "ann", members: ["bob"])
        let before = try world.database.read { try $0.streams(of: "bob").user }
        try world.send("a", to: "old", as: "ann")
        try world.perform(MarkRead(channel: "old"), as: "bob")
        try world.perform(UpdateMe(displayName: "Bob"), as: "bob")
        try world.perform(LeaveChannel(channel: "left"), as: "bob")
        try world.channel("new", owner: "ann", members: ["bob"])
        try world.send("b", to: "new", as: "ann")
        try world.perform(MarkRead(channel: "new"), as: "bob")
        let missed = try missed(.user("bob"), after: before, in: world)
        var notices: [String] = []
        for notice in missed.notices {
            switch notice {
            case .joined(let user, let channel, let seq, _): notices.append("joined \(user) \(channel) \(seq)")
            case .presenceShared(let user, let isShared): notices.append("\(user) is \(isShared ? "visible" : "invisible")")
            case .event(let event, _):
                let row =
                    event.rows.users?.first?.displayName
                    ?? event.rows.memberships?.first.map { "\($0.channelId) \($0.state.rawValue)" } ?? ""
                notices.append("\((event.after ?? 0) - before)-\(event.seq - before) \(row) \(event.rows.channel != nil)")
            default: notices.append("?")
            }
        }
        // Joining took 4, which reading replaced with 5.
        #expect(
            notices == [
                "0-1 old member false", "bob is visible", "1-2 Bob false", "2-3 left none false", "joined bob new 1",
                "3-5 new member true",
            ])
        #expect(missed.seq - before == 5)
        #expect(!missed.hasMore)
    }

    @Test("I5 heads are those of all streams, 0 where there is none")
    func heads() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try world.send("a", to: "general", as: "ann")
        let many = (0..<1200).map { StreamID.channel(ChannelID("none-\($0)")) }
        let heads = try world.database.read { try $0.heads(of: many + [.channel("general"), .user("ann"), .user("nobody")]) }
        #expect(heads.count == 1203)
        let own = try #require(heads[.user("ann")])
        #expect(heads.filter { $0.value > 0 } == [.channel("general"): 2, .user("ann"): own])
        let streams = try world.database.read { try $0.streams(of: "ann") }
        #expect(streams == UserStreams(user: own, channels: ["general": 2], roles: ["general": .owner]))
    }

    /// Returns a user's missed events: one line for each, with its rows.
    private func lines(of missed: MissedEvents) -> [String] {
        missed.notices.compactMap { notice in
            guard case .event(let event, _) = notice else { return nil }
            let rows = event.rows
            var parts = (rows.memberships ?? []).map { "\($0.channelId) \($0.state.rawValue)" }
            parts += (rows.invitations ?? []).map { "\($0.userId) by \($0.inviter) \($0.state.rawValue)" }
            if let channel = rows.channel { parts.append("channel \(channel.channelId)") }
            if rows.users != nil { parts.append("profile") }
            if let preferences = rows.preferences { parts.append("\(preferences.autoAcceptInvitations)") }
            return parts.joined(separator: ", ")
        }
    }

    private func invitingWorld() throws -> CoreWorld {
        let world = try CoreWorld()
        for user in ["dan", "eve"] as [UserID] {
            try world.user(user)
            try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: user)
        }
        try world.channel("team", type: .group, owner: "ann", members: ["bob"])
        return world
    }

    @Test("I5 SB-13 the invitations of one call are one event to their inviter, and one to each invited user")
    func invitations() throws {
        let world = try invitingWorld()
        let before = try world.database.read { try $0.heads(of: ["ann", "dan"].map { .user($0) }) }
        try world.perform(InviteMembers(channel: "team", users: ["dan", "eve"]), as: "ann")
        let ofAnn = try missed(.user("ann"), after: before[.user("ann")] ?? 0, in: world)
        #expect(lines(of: ofAnn).map { $0.split(separator: ", ").sorted() } == [["dan by ann pending", "eve by ann pending"]])
        let ofDan = try missed(.user("dan"), after: before[.user("dan")] ?? 0, in: world)
        #expect(lines(of: ofDan) == ["dan by ann pending, channel team"])
        // Once one of them is answered, it has its own place.
        try world.perform(DeclineInvitation(channel: "team"), as: "dan")
        let later = try missed(.user("ann"), after: before[.user("ann")] ?? 0, in: world)
        #expect(lines(of: later) == ["eve by ann pending", "dan by ann declined"])
        #expect(later.seq == (before[.user("ann")] ?? 0) + 2)
    }

    @Test("I5 SB-15 a membership and the invitation that it accepts are one event, which begins the channel")
    func acceptance() throws {
        let world = try invitingWorld()
        let before = try world.database.read { try $0.streams(of: "dan").user }
        try world.perform(InviteMembers(channel: "team", users: ["dan"]), as: "ann")
        try world.perform(AcceptInvitation(channel: "team"), as: "dan")
        let missed = try missed(.user("dan"), after: before, in: world)
        #expect(lines(of: missed) == ["team member, dan by ann accepted, channel team"])
        let joined = try world.database.read { try $0.streams(of: "dan").channels["team"] }
        #expect(missed.notices.first == .joined("dan", "team", at: joined ?? 0))
    }

    @Test("I5 SB-18 the profile and the preferences are one row, and come together")
    func preferences() throws {
        let world = try invitingWorld()
        let before = try world.database.read { try $0.streams(of: "dan").user }
        try world.perform(UpdateMe(displayName: "Dan"), as: "dan")
        try world.perform(UpdatePreferences(autoAcceptInvitations: true), as: "dan")
        let missed = try missed(.user("dan"), after: before, in: world)
        #expect(lines(of: missed) == ["profile, true"])
        #expect(missed.seq == before + 2)
    }

    @Test("I5 SB-59 a user's stream ends at its head, even if the row of the newest change is gone with a message")
    func withoutRow() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.user("root")
        let sent = try world.send("gone", to: "general", as: "ann")
        let before = try world.database.read { try $0.streams(of: "bob").user }
        try world.perform(DeleteMessagesForMe(channel: "general", messages: [sent.messageId]), as: "bob")
        try world.perform(PurgeMessage(channel: "general", message: sent.messageId), as: "root", role: .admin)
        let head = try world.database.read { try $0.streams(of: "bob").user }
        #expect(head > before)
        let missed = try missed(.user("bob"), after: before, in: world)
        #expect(missed.seq == head)
        let positions = missed.notices.compactMap { if case .event(let event, _) = $0 { event } else { nil } }
        #expect(positions.first?.after == before && positions.last?.seq == head)
        #expect(try self.missed(.user("bob"), after: head, in: world).notices == [])
    }

    @Test("I10 SB-26 a floor outlives the membership, for nodes that lag behind in the stream")
    func floorsOfFormerMembers() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.send("hidden", to: "general", as: "ann")
        let before = try world.database.read { try $0.streams(of: "bob") }
        #expect(before == UserStreams(user: before.user, channels: ["general": 2]))
        try world.perform(HideChannel(channel: "general", hidePreviousMessages: true), as: "bob")
        try world.perform(LeaveChannel(channel: "general"), as: "bob")
        let after = try world.database.read { try $0.streams(of: "bob") }
        #expect(after == UserStreams(user: before.user + 2, floors: ["general": 2]))
        let missed = try world.database.read { try $0.missedEvents(of: .user("bob"), after: before.user, now: world.now) }
        #expect(missed.notices.first == .floor("bob", "general", 2))
    }

    @Test("I18 a connection holds the floors of the most recently left channels, however many were left")
    func formerFloors() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        for number in 1...1005 {
            let channel = ChannelID("left\(number)")
            try world.channel(channel, owner: "bob")
            try world.perform(ResetHistory(channel: channel), as: "bob")
            try world.perform(LeaveChannel(channel: channel), as: "bob")
        }
        let streams = try world.database.read { try $0.streams(of: "bob") }
        #expect(streams.channels == ["general": 1])
        #expect(streams.floors.count < 1000)
        #expect(streams.floors["left1005"] == 1 && streams.floors["left1"] == nil)
    }

    @Test("I9 SB-26 a member's history floor is sent before anything of the channel")
    func floors() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.send("x", to: "general", as: "ann")
        let before = try world.database.read { try $0.streams(of: "bob").user }
        try world.perform(HideChannel(channel: "general", hidePreviousMessages: true), as: "bob")
        let notices = try missed(.user("bob"), after: before, in: world).notices
        #expect(notices.count == 2)
        #expect(notices.first == .floor("bob", "general", 2))
    }

    @Test("I5 SB-21 a channel's attributes come with its members' permissions by role, not with anyone's own")
    func capabilities() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.perform(FreezeChannel(channel: "general"), as: "ann")
        let live = world.events(to: .channel("general")).last?.rows.capabilities
        let missed = try missed(.channel("general"), after: 1, in: world)
        guard case .event(let event, _) = missed.notices.last else { throw Missed("an event") }
        #expect(event.rows.capabilities == live)
        #expect(live?["member"]?.contains(.messageSend) == false)
        #expect(event.rows.ownCapabilities == nil)
    }
}
