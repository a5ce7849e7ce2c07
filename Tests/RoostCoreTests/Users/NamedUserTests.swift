import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostAPI
@testable import RoostCore

/// The users whom the rows of an answer name.
@Suite("Users that accompany rows")
struct NamedUserTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.user("ann", displayName: "Ann")
        _ = try world.perform(
            UpsertUser(user: "bob", displayName: "Bob", avatarFileId: "bob.png", metadata: ["a": .integer(1)]), as: "root",
            role: .admin)
        try world.user("cat")
        try world.channel("general", owner: "ann", members: ["bob", "cat"])
        return world
    }

    private let ann = UserSummary(userId: "ann", displayName: "Ann", version: 1)
    private let bob = UserSummary(userId: "bob", displayName: "Bob", avatarFileId: "bob.png", version: 1)
    private let cat = UserSummary(userId: "cat", version: 1)

    @Test(
        "a page of messages brings its senders, each once, with name, picture and version; one without messages brings nobody")
    func history() throws {
        let world = try world()
        #expect(try world.perform(ListMessages(channel: "general"), as: "ann").users == nil)
        for sender in ["bob", "ann", "bob", "bob"] as [UserID] { try world.send("hi", to: "general", as: sender) }
        let page = try world.perform(ListMessages(channel: "general"), as: "cat")
        #expect(page.users == [ann, bob])
        #expect(try world.perform(ListMessages(channel: "general", limit: 1), as: "cat").users == [bob])
        let around = ListMessages(channel: "general", around: page.messages[1].seq, limit: 1)
        #expect(try world.perform(around, as: "cat").users == [ann])
        _ = try world.perform(UpdateMe(displayName: "Robert"), as: "bob")
        let renamed = try world.perform(ListMessages(channel: "general"), as: "cat").users?.last
        #expect(renamed == UserSummary(userId: "bob", displayName: "Robert", avatarFileId: "bob.png", version: 2))
    }

    @Test("the users of a page have neither metadata nor times, and a deactivated user looks the same as before")
    func small() throws {
        let world = try world()
        try world.send("hi", to: "general", as: "bob")
        _ = try world.perform(DeactivateUser(user: "bob"), as: "root", role: .admin)
        let page = try world.perform(ListMessages(channel: "general"), as: "ann")
        let text = String(decoding: try JSONWriter.bytes(of: page.users), as: UTF8.self)
        #expect(text == #"[{"userId":"bob","displayName":"Bob","avatarFileId":"bob.png","version":1}]"#)
    }

    @Test("SB-25 pages of channels and of invitations bring the senders of the last messages, inviters and invited users")
    func lists() throws {
        let world = try world()
        try world.send("hi", to: "general", as: "bob")
        for user in ["dan", "eve"] as [UserID] { try world.user(user) }
        _ = try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "dan")
        _ = try world.perform(CreateChannel(channel: "team", type: .group), as: "cat")
        _ = try world.perform(InviteMembers(channel: "team", users: ["dan"]), as: "cat")
        let dan = UserSummary(userId: "dan", version: 1)
        #expect(try world.perform(QueryChannels(), as: "ann").users == [bob])
        #expect(try world.perform(QueryChannels(), as: "cat").users == [bob])
        #expect(try world.perform(QueryChannels(), as: "eve").users == nil)
        #expect(try world.perform(ListInvitations(channel: "team"), as: "cat").users == [cat, dan])
        #expect(try world.perform(ListMyInvitations(), as: "dan").users == [cat, dan])
    }

    @Test("R06 a single channel brings the sender of its last message and the inviter, to users who join, ask or accept")
    func views() throws {
        let world = try world()
        for user in ["dan", "eve"] as [UserID] { try world.user(user) }
        let created = try world.perform(CreateChannel(channel: "team", type: .community), as: "cat")
        #expect(created.users == nil)
        #expect(try world.perform(GetChannel(channel: "general"), as: "ann").users == nil)
        try world.send("hi", to: "team", as: "cat")
        #expect(try world.perform(JoinChannel(channel: "team"), as: "bob").users == [cat])
        #expect(try world.perform(GetChannel(channel: "team"), as: "bob").users == [cat])
        _ = try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "dan")
        _ = try world.perform(InviteMembers(channel: "team", users: ["dan"]), as: "bob")
        let view = try world.perform(GetChannel(channel: "team"), as: "dan")
        #expect(view.invitation?.inviter == "bob" && view.users?.contains(bob) == true)
        #expect(try world.perform(AcceptInvitation(channel: "team"), as: "dan").users == [cat])
        // Views of a page have them beside the items.
        let page = try world.perform(QueryChannels(), as: "bob")
        #expect(page.items.allSatisfy { $0.users == nil } && page.users == [cat])
    }

    @Test("a resume and pages of changes bring the users whom their rows name: messages' senders, members, inviters")
    func changes() throws {
        let world = try world()
        try world.send("hi", to: "general", as: "bob")
        let fresh = try world.perform(Resume(after: 0, channels: [:]), as: "ann")
        #expect(fresh.users == [bob] && fresh.channels.allSatisfy { $0.users == nil })
        let seq = try #require(fresh.channels.first?.seq)
        try world.user("dan")
        _ = try world.perform(AddMembers(channel: "general", users: ["dan"]), as: "ann")
        _ = try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "ann")
        let missed = try world.perform(Resume(after: fresh.user.seq, channels: ["general": seq]), as: "ann")
        #expect(missed.users == [UserSummary(userId: "dan", version: 1)])
        #expect(try world.perform(GetChannelChanges(channel: "general", after: seq), as: "ann").users == missed.users)
        _ = try world.perform(CreateChannel(channel: "team", type: .group), as: "cat")
        _ = try world.perform(InviteMembers(channel: "team", users: ["ann"]), as: "cat")
        #expect(try world.perform(GetMyChanges(after: missed.user.seq), as: "ann").users == [ann, cat])
        let nothing = try world.perform(GetMyChanges(after: try world.perform(GetMyChanges(after: 0), as: "ann").seq), as: "ann")
        #expect(nothing.users == nil)
    }

    @Test("a resume brings 200 users at most: first the senders of each channel's newest message")
    func bounded() throws {
        let world = try CoreWorld()
        try world.user("ann")
        let others = (0..<150).map { UserID("u\(1000 + $0)") }
        for user in others + ["last0", "last1"] { try world.user(user) }
        for (index, channel) in ["a", "b"].enumerated() {
            try world.channel(ChannelID(channel), type: .community, owner: "ann", members: Array(others.prefix(90)))
            _ = try world.perform(
                AddMembers(channel: ChannelID(channel), users: Array(others.dropFirst(90)) + ["last\(index)"].map { UserID($0) }),
                as: "ann")
        }
        let position = try world.perform(Resume(after: 0, channels: [:]), as: "ann")
        var positions: [String: Seq] = [:]
        for changes in position.channels {
            if case .channel(let channel) = changes.stream { positions[channel.rawValue] = changes.seq }
        }
        for user in others + ["last1"] { try world.send("hi", to: "b", as: user) }
        try world.send("hi", to: "a", as: "last0")
        let more = (0..<100).map { UserID("m\(1000 + $0)") }
        for user in more { try world.user(user) }
        _ = try world.perform(AddMembers(channel: "b", users: more), as: "ann")
        let missed = try world.perform(Resume(after: position.user.seq, channels: positions), as: "ann")
        let users = try #require(missed.users)
        #expect(
            users.count == Limits.usersPerChanges && users.contains { $0.userId == "last0" }
                && users.contains { $0.userId == "last1" })
        #expect(users.map(\.userId) == users.map(\.userId).sorted() && Set(users.map(\.userId)).count == users.count)
    }

    @Test("NF-04 however many users a page names, they cost one more statement; several users by their ids cost one")
    func statements() throws {
        let world = try world()
        let others = (0..<40).map { UserID("u\(100 + $0)") }
        for user in others { try world.user(user) }
        _ = try world.perform(AddMembers(channel: "general", users: others), as: "ann")
        func count(_ operation: some Handled) throws -> Int {
            try world.database.read { transaction in
                let counting = CountingTransaction(transaction)
                var context = Context(transaction: counting, caller: Caller(user: "ann"), now: world.now, ids: IDGenerator())
                _ = try operation.handle(in: &context)
                return counting.statementCount
            }
        }
        let empty = try count(ListMessages(channel: "general", limit: 100))
        try world.send("hi", to: "general", as: "bob")
        let one = try count(ListMessages(channel: "general", limit: 100))
        for user in others { try world.send("hi", to: "general", as: user) }
        #expect(try [one, count(ListMessages(channel: "general", limit: 100))] == [empty + 1, empty + 1])
        #expect(try count(GetUsers(users: others)) == 1)
    }

    @Test("several users are sent without their metadata if the caller leaves it out")
    func withoutMetadata() throws {
        let world = try world()
        let (whole, part) = (
            try world.perform(GetUsers(users: ["bob"]), as: "ann"),
            try world.perform(GetUsers(users: ["bob"], omitMetadata: true), as: "ann")
        )
        #expect(whole.map(\.metadata) == [["a": .integer(1)]] && part.map(\.metadata) == [nil])
        #expect(part.map(\.summary) == [bob] && whole.map(\.summary) == [bob])
    }

    @Test("SB-61 SB-62 the newer versions of 1000 users come in one answer, with one statement for a few hundred")
    func changed() throws {
        let world = try world()
        let others = (0..<998).map { UserID("u\(1000 + $0)") }
        for user in others { try world.user(user) }
        var versions = Dictionary(uniqueKeysWithValues: others.map { ($0.rawValue, Int64(1)) })
        versions["nobody"] = 0
        versions["bob"] = 0
        for user in others.prefix(500) { _ = try world.perform(UpdateMe(displayName: "New \(user)"), as: user) }
        let answer = try world.perform(ListChangedUsers(versions: versions), as: "ann")
        let found = answer.users
        #expect(!answer.hasMore)
        #expect(found.map(\.userId) == ["bob"] + others.prefix(500) && found[0] == bob)
        #expect(found.last == UserSummary(userId: others[499], displayName: "New \(others[499])", version: 2))
        for user in found { versions[user.userId.rawValue] = user.version }
        let nothing = ChangedUsers(users: [], hasMore: false)
        #expect(try world.perform(ListChangedUsers(versions: versions), as: "ann") == nothing)
        #expect(try world.perform(ListChangedUsers(versions: [:]), as: "ann") == nothing)
        #expect(try world.refusal(ListChangedUsers(versions: ["bob": -1]), as: "ann")?.field == "versions")
        #expect(try world.refusal(ListChangedUsers(versions: ["": 1]), as: "ann")?.field == "versions")
    }

    @Test("SB-61 I18 if more has changed than an answer holds, it ends early, and the next call brings the others")
    func changedInParts() throws {
        let world = try CoreWorld()
        let name = String(repeating: "👩‍👩‍👧‍👦", count: 40)
        let users = (0..<600).map { UserID("u\(1000 + $0)") }
        for user in users {
            _ = try world.perform(UpsertUser(user: user, displayName: name, status: name), as: "root", role: .admin)
        }
        var versions = Dictionary(uniqueKeysWithValues: users.map { ($0.rawValue, Int64(0)) })
        var found: [UserID] = []
        var hasMore = true
        var rounds = 0
        while hasMore {
            let answer = try world.perform(ListChangedUsers(versions: versions), as: "u1000")
            for user in answer.users { versions[user.userId.rawValue] = user.version }
            found += answer.users.map(\.userId)
            hasMore = answer.hasMore
            rounds += 1
        }
        #expect(found == users && rounds == 2)
    }

    @Test("SB-61 SB-62 a new name or picture is one row, sent in each of the user's channels; nothing else is sent to others")
    func told() throws {
        let world = try world()
        for number in 0..<50 { try world.channel(ChannelID("c\(number)"), owner: "ann", members: ["bob"]) }
        try world.send("hi", to: "c7", as: "bob")
        for channel in ["c7", "c8"] as [ChannelID] { try world.perform(LeaveChannel(channel: channel), as: "bob") }
        func heads() throws -> Int {
            try world.database.read { try $0.first("SELECT COALESCE(SUM(seq), 0) FROM channel_heads") { $0.int() } ?? 0 }
        }
        let before = try heads()
        let notices = try world.notices { try world.perform(UpdateMe(displayName: "Robert"), as: "bob") }
        #expect(notices.contains(.profileChanged("bob")) && notices.count == 2)
        #expect(try heads() == before)
        let shown = UserSummary(userId: "bob", displayName: "Robert", avatarFileId: bob.avatarFileId, version: bob.version + 1)
        let sent = try world.inContext { context in
            try context.reportProfile(of: "bob")
            return context.notices
        }
        let channels = Set(
            sent.compactMap { if case .profileShown(shown, let channel) = $0 { channel } else { nil } })
        // Former channels in which the user has sent something still show their messages.
        let expected = Set(["general"] + (0..<50).map { ChannelID("c\($0)") }).subtracting(["c8"])
        #expect(channels == expected && sent.count == 50)
        // Of left channels those that changed last for the user are considered: c8, c7, and one of the others.
        let few = try [1, 2, 3].map { formerMax in try world.inContext { try $0.reportProfile(of: "bob", formerMax: formerMax) } }
        #expect(few == [49, 50, 50])
        func changes(_ update: UpdateMe) throws -> Bool {
            try world.notices { try world.perform(update, as: "bob") }.contains(.profileChanged("bob"))
        }
        #expect(try changes(UpdateMe(avatarFileId: "b2.png")))
        #expect(try !changes(UpdateMe(displayName: "Robert", avatarFileId: "b2.png")))
        #expect(try changes(UpdateMe(status: "on holiday")))
        // The same word to Swift, in other bytes.
        for name in ["Caf\u{e9}", "Cafe\u{301}"] { #expect(try changes(UpdateMe(displayName: name))) }
        #expect(try !changes(UpdateMe(metadata: ["b": 2])))
        let nothing = try world.inContext { context in
            try context.reportProfile(of: "nobody")
            return context.notices
        }
        #expect(nothing.isEmpty)
    }
}
