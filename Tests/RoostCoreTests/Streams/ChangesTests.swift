import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@Suite("Changes")
struct ChangesTests {
    /// A client's state of a channel after it has applied rows.
    private struct Held: Equatable {
        var channel: Channel?
        var counters: ChannelCounters?
        var members: [UserID: Member] = [:]
        var messages: [Seq: Message] = [:]
        var membership: Membership?

        mutating func apply(_ rows: Rows) {
            if let row = rows.channel { channel = row }
            if let row = rows.counters { counters = row }
            // A channel's row brings counters too, and may be older than the held ones.
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
                Issue.record("a page after \(place) doesn't advance the position")
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
        // Whatever happened to the channel, its reader is a member of it.
        var update = UpdateChannel(channel: channel)
        update.policy = PolicyChanges(maxMembers: 100)
        try world.perform(update, as: "root", role: .admin)
        try world.perform(AddMembers(channel: channel, users: ["ann"]), as: "root", role: .admin)
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

    @Test("I20 a place beyond the stream's end belongs to another history")
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

    @Test(
        "SB-07 SB-13 small pages bring all invitations of one call, which have one seq in the inviter's stream",
        arguments: [1, 2, 500])
    func invitationsOfOneCall(limit: Int) throws {
        let world = try CoreWorld()
        try world.user("ann")
        let users = (0..<200).map { UserID("user-\(1000 + $0)") }
        for user in users {
            try world.user(user)
            try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: user)
        }
        // The most that one call invites: users, and also operators.
        var create = CreateChannel(channel: "team", type: .group, users: Array(users.prefix(100)))
        create.operators = Array(users.suffix(100))
        try world.perform(create, as: "ann")
        var found: Set<UserID> = []
        var place: Seq = 0
        for _ in 0..<10 {
            let changes = try world.perform(GetMyChanges(after: place, limit: limit), as: "ann")
            found.formUnion((changes.rows.invitations ?? []).map(\.userId))
            place = changes.seq
            guard changes.hasMore else { break }
        }
        #expect(found == Set(users))
        // A member who was offline gets as many of the channel's own invitations.
        let ofChannel = try world.perform(GetChannelChanges(channel: "team", after: 1, limit: limit), as: "ann")
        #expect(ofChannel.rows.invitations?.count == 200)
        #expect(!ofChannel.hasMore)
    }

    @Test("SB-04 changes of an ephemeral channel say that messages may be missing; those of others don't")
    func incomplete() throws {
        let world = try CoreWorld()
        try world.user("ann")
        var create = CreateChannel(channel: "echo", type: .group)
        create.isEphemeral = true
        try world.perform(create, as: "ann")
        try world.channel("general", owner: "ann")
        for channel in ["echo", "general"] as [ChannelID] { try world.send("x", to: channel, as: "ann") }
        let found = try (["echo", "general"] as [ChannelID]).map { channel in
            let changes = try world.perform(GetChannelChanges(channel: channel, after: 1), as: "ann")
            return [changes.isIncomplete == true, changes.rows.messages == nil, changes.rows.counters?.messageCount == 1]
        }
        #expect(found == [[true, true, true], [false, false, true]])
        // A client at the end has missed nothing.
        #expect(try world.perform(GetChannelChanges(channel: "echo", after: 2), as: "ann").isIncomplete == nil)
    }

    @Test("EM-24 NF-04 a page of a user's own changes ends before invitations' texts make it too large, and all of them arrive")
    func longInvitations() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "ann")
        let welcome = String(repeating: "🇩🇪", count: Limits.welcomeLength)
        let channels = (0..<400).map { ChannelID("c\($0)") }
        try world.batch {
            for channel in channels {
                try world.perform(CreateChannel(channel: channel, type: .group), as: "bob")
                try world.perform(InviteMembers(channel: channel, users: ["ann"], welcome: welcome), as: "bob")
            }
        }
        // The inviter has them in their own stream, too.
        for user in ["ann", "bob"] as [UserID] {
            var (found, place, pages): (Set<ChannelID>, Seq, Int) = ([], 0, 0)
            var hasMore = true
            while hasMore, pages < 20 {
                let changes = try world.perform(GetMyChanges(after: place, limit: Limits.changesPage.max), as: user)
                let invitations = changes.rows.invitations ?? []
                #expect(try JSONWriter.bytes(of: invitations).count <= Limits.pageContentBytes)
                found.formUnion(invitations.map(\.channelId))
                (place, hasMore, pages) = (changes.seq, changes.hasMore, pages + 1)
            }
            #expect(found == Set(channels) && pages == 2)
            // A node that missed the events has all of them.
            let missed = try world.database.read { try Invitation.changed(for: user, after: 0, limit: Int(Int32.max), in: $0) }
            #expect(missed.upTo == nil)
        }
    }

    @Test("EM-24 NF-04 a page of a channel's changes ends before invitations' texts make it too large, and all of them arrive")
    func longInvitationsOfChannel() throws {
        let world = try CoreWorld()
        try world.channel("team", type: .group, owner: "ann")
        let users = (0..<300).map { UserID("user-\(1000 + $0)") }
        for user in users {
            try world.user(user)
            try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: user)
        }
        let welcome = String(repeating: "🇩🇪", count: Limits.welcomeLength)
        for start in stride(from: 0, to: 300, by: 100) {
            try world.perform(InviteMembers(channel: "team", users: Array(users[start..<start + 100]), welcome: welcome), as: "ann")
        }
        // The second limit also ends the page before its last stamp.
        for limit in [Limits.changesPage.max, 250] {
            var (found, place, pages): ([UserID], Seq, Int) = ([], 0, 0)
            var hasMore = true
            while hasMore, pages < 20 {
                let changes = try world.perform(GetChannelChanges(channel: "team", after: place, limit: limit), as: "ann")
                let invitations = changes.rows.invitations ?? []
                #expect(try JSONWriter.bytes(of: invitations).count <= Limits.pageContentBytes)
                found += invitations.map(\.userId)
                (place, hasMore, pages) = (changes.seq, changes.hasMore, pages + 1)
            }
            #expect(Set(found) == Set(users) && found.count == 300 && pages == 2)
        }
    }

    @Test("I5 SB-21 with a channel's changed attributes a non-member who watches it gets what they may do now")
    func capabilitiesOfNonMember() throws {
        let world = try CoreWorld()
        try world.channel("stage", type: .livestream, owner: "ann")
        try world.user("eve")
        func reported() throws -> [Permission]? {
            try world.perform(GetChannelChanges(channel: "stage", after: 1), as: "eve").rows.ownCapabilities?["stage"]
        }
        try world.send("hello", to: "stage", as: "ann")
        #expect(try reported() == nil)
        try world.perform(FreezeChannel(channel: "stage"), as: "ann")
        let capabilities = try world.perform(GetChannel(channel: "stage"), as: "eve").ownCapabilities
        #expect(try reported() == capabilities && !capabilities.contains(.messageSend) && capabilities.contains(.historyRead))
    }

    @Test("SB-14 SB-26 no page of changes brings messages hidden from the caller, even changed ones")
    func floors() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let hidden = try world.send("hidden", to: "general", as: "ann")
        try world.perform(HideChannel(channel: "general", hidePreviousMessages: true), as: "bob")
        try world.perform(EditMessage(channel: "general", message: hidden.messageId, text: "edited"), as: "ann")
        let shown = try world.send("shown", to: "general", as: "ann")
        let places: [Seq] = [0, 1, 2, 3]
        let found = try places.map { place in
            try world.perform(GetChannelChanges(channel: "general", after: place), as: "bob").rows.messages?.map(\.messageId)
        }
        #expect(found == Array(repeating: [shown.messageId], count: 4))
        let fresh = try world.perform(Resume(after: 0, channels: [:]), as: "bob").channels[0]
        #expect(fresh.rows.messages?.map(\.messageId) == [shown.messageId])
    }
}
