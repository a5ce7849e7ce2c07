import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// From the commit that ends a right to read, nothing newer reaches the user on any path (promise 6).
@Suite("Reading rights")
struct ReadingRightTests {
    /// A way in which a user loses the right to read a channel.
    struct Way: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// The channel's type, and the channel's own policy before the change.
        var type: ChannelType = .community
        var before: PolicyChanges?
        /// `bob`'s role in the app; whether he is a member, and with which role.
        var appRole = AppRole.user
        var isMember = true
        var role: ChannelRole?
        /// Whether he stays a member, who still gets positions; otherwise he gets nothing.
        var remains: Bool
        /// Whether only the next event applies it: a type or role of the whole app changed.
        var isLazy = false
        let end: @Sendable (_ channel: ChannelID, _ ann: RawSocket, _ root: RawSocket, _ bob: RawSocket) async throws -> Void
    }

    private static func policy(_ channel: ChannelID, _ changes: PolicyChanges) -> UpdateChannel {
        var update = UpdateChannel(channel: channel)
        update.policy = changes
        return update
    }

    private static func publicity(_ channel: ChannelID, _ isPublic: Bool) -> UpdateChannel {
        var update = UpdateChannel(channel: channel)
        update.isPublic = isPublic
        return update
    }

    static let ways: [Way] = byPolicy + ofMembers + ofWatchers

    private static let audiences: [ChannelPolicy.Audience] = [.operators, .owners, .admins, .nobody]
    private static let byPolicy: [Way] = audiences.map { audience in
        Way(testDescription: "a member, by the policy \(audience.rawValue)", remains: true) { channel, _, root, _ in
            try await root.call(policy(channel, PolicyChanges(read: audience)))
        }
    }

    private static let ofMembers: [Way] = [
        Way(
            testDescription: "an operator, by the loss of the role", before: PolicyChanges(read: .operators), role: .operator,
            remains: true
        ) {
            channel, ann, _, _ in try await ann.call(SetMemberRole(channel: channel, users: ["bob"], role: .member))
        },
        Way(testDescription: "an owner, who hands over", before: PolicyChanges(read: .owners), role: .owner, remains: true) {
            channel, _, _, bob in try await bob.call(SetMemberRole(channel: channel, users: ["ann"], role: .owner))
        },
        Way(
            testDescription: "a member with a role of the app's own, by that role", before: PolicyChanges(read: .operators),
            role: "reader",
            remains: true, isLazy: true
        ) { _, _, root, _ in try await root.call(PutRole(role: "reader", rank: 1, permissions: [])) },
        Way(
            testDescription: "a member with a role of the app's own, by its deletion", before: PolicyChanges(read: .operators),
            role: "reader",
            remains: true, isLazy: true
        ) { _, _, root, _ in try await root.call(DeleteRole(role: "reader")) },
        Way(testDescription: "a member, by the type", type: "club", remains: true, isLazy: true) { _, _, root, _ in
            try await root.call(PutChannelType(type: "club", basedOn: .community, policy: PolicyChanges(read: .owners)))
        },
        Way(testDescription: "a member, by leaving", remains: false) { channel, _, _, bob in
            try await bob.call(LeaveChannel(channel: channel))
        },
        Way(testDescription: "a member, by removal", remains: false) { channel, ann, _, _ in
            try await ann.call(RemoveMembers(channel: channel, users: ["bob"]))
        },
        Way(testDescription: "a member, by removal and an invitation", remains: false) { channel, ann, _, bob in
            try await bob.call(UpdatePreferences(autoAcceptInvitations: false))
            try await ann.call(RemoveMembers(channel: channel, users: ["bob"]))
            try await ann.call(InviteMembers(channel: channel, users: ["bob"]))
        },
    ]

    private static let ofWatchers: [Way] = [
        Way(testDescription: "a watcher, by the policy", type: .livestream, isMember: false, remains: false) { channel, ann, _, _ in
            try await ann.call(policy(channel, PolicyChanges(read: .members)))
        },
        Way(testDescription: "a watcher, by the end of publicity", type: .livestream, isMember: false, remains: false) {
            channel, ann, _, _ in try await ann.call(publicity(channel, false))
        },
        Way(testDescription: "a watcher, by the type", type: "show", isMember: false, remains: false, isLazy: true) {
            _, _, root, _ in
            try await root.call(PutChannelType(type: "show", basedOn: .livestream, policy: PolicyChanges(read: .members)))
        },
        Way(testDescription: "a guest, by the policy", type: .livestream, appRole: .guest, isMember: false, remains: false) {
            channel, ann, _, _ in try await ann.call(policy(channel, PolicyChanges(read: .members)))
        },
        Way(testDescription: "a moderator who watches, by the policy", appRole: .moderator, isMember: false, remains: false) {
            channel, ann, _, _ in try await ann.call(policy(channel, PolicyChanges(read: .owners)))
        },
        Way(
            testDescription: "an admin who watches, by a channel for its members alone", appRole: .admin, isMember: false,
            remains: false
        ) {
            channel, _, root, _ in try await root.call(policy(channel, PolicyChanges(read: .membersOnly)))
        },
        Way(
            testDescription: "an admin who watches, by a channel that only members find", appRole: .admin, isMember: false,
            remains: false
        ) {
            channel, _, root, _ in try await root.call(policy(channel, PolicyChanges(discovery: .membersOnly)))
        },
    ]

    @Test("I9 I10 R23 ST-05 a user who loses the right to read gets no newer message on any path", arguments: ways)
    func ends(way: Way) async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let root = try await server.socket("root", role: .admin)
        let phone = try await server.socket("bob", role: way.appRole)
        let laptop = try await server.socket("bob", role: way.appRole)
        try await root.call(PutRole(role: "reader", rank: 1, permissions: [.historyRead, .channelWatch]))
        try await root.call(PutChannelType(type: "club", basedOn: .community))
        try await root.call(PutChannelType(type: "show", basedOn: .livestream))
        let room: ChannelID = "room"
        var create = CreateChannel(channel: room, type: way.type, users: way.isMember ? ["bob", "root"] : ["root"])
        create.policy = way.before
        try await ann.call(create)
        if let role = way.role {
            try await root.call(SetMemberRole(channel: room, users: ["bob"], role: role))
        }
        try await laptop.call(WatchChannel(channel: room))
        let first = try await ann.call(SendMessage(channel: room, clientId: "0", text: "before"))
        var own: Message?
        if way.isMember { own = try await phone.call(SendMessage(channel: room, clientId: "own", text: "mine")) }
        #expect(try await phone.call(ListMessages(channel: room)).messages.first == first)
        let laptopHeard = try await laptop.frames(until: "before")
        #expect(laptopHeard.contains(#""watching":true"#))
        let position = try await ann.call(GetChannel(channel: room)).channel.counters.seq

        try await way.end(room, ann, root, phone)
        _ = (try await phone.frames(), try await laptop.frames())
        // Every kind of event with a message. The last one is an event of ann's own.
        let secret = "secret of the room"
        let sender: RawSocket = way.testDescription == "an owner, who hands over" ? ann : root
        let sent = try await sender.call(SendMessage(channel: room, clientId: "1", text: secret))
        // A user who can't read can't edit either.
        _ = try? await sender.call(EditMessage(channel: room, message: sent.messageId, text: secret + "!"))
        if let own { _ = try? await root.call(EditMessage(channel: room, message: own.messageId, text: secret)) }
        let seq = try await ann.call(GetChannel(channel: room)).channel.counters.seq

        let heard = [try await phone.frames(), try await laptop.frames()]
        #expect(!heard.contains { $0.contains(secret) })
        #expect(!heard.contains { $0.contains(#""watching":true"#) })
        if way.remains {
            // The stream continues without a gap.
            for frames in heard { #expect(frames.contains(#""stream":"channel:room","seq":\#(seq)"#)) }
            #expect(!heard.contains { $0.contains(#""event":"message.new","stream":"channel:room","seq":\#(sent.seq),"actor""#) })
        } else {
            #expect(!heard.contains { $0.contains("channel:room") })
        }
        try await holdsBack(secret, from: phone, laptop, in: room, after: position, own: own, way)
        try await server.stop()
    }

    /// Checks every path that could return the message.
    private func holdsBack(
        _ secret: String, from phone: RawSocket, _ laptop: RawSocket, in room: ChannelID, after position: Seq, own: Message?,
        _ way: Way
    ) async throws {
        func text(_ operation: some RoostAPI.Operation) async throws -> String {
            let number = try await phone.post(operation)
            return try await phone.frames(until: #""reply":\#(number)"#)
        }
        var answers = [
            try await text(Resume(after: 0, channels: [:])), try await text(Resume(after: 0, channels: ["room": position])),
            try await text(GetChannelChanges(channel: room, after: position)),
            try await text(GetChannelChanges(channel: room, after: 0)),
            try await text(ListMessages(channel: room)), try await text(ListMessages(channel: room, after: position)),
            try await text(GetChannel(channel: room)), try await text(QueryChannels(membership: .all)),
            try await text(QueryChannels()),
            try await text(WatchChannel(channel: room)), try await text(GetUnread(channel: room)),
            try await text(SendMessage(channel: room, clientId: "own", text: "mine")),
        ]
        if let own {
            answers.append(try await text(EditMessage(channel: room, message: own.messageId, tags: ["x"])))
            answers.append(try await text(DeleteMessage(channel: room, message: own.messageId)))
        }
        #expect(!answers.contains { $0.contains(secret) })
        let listing = try #require(answers.dropFirst(4).first)
        #expect(listing.contains(#""error""#))
        #expect(answers[9].contains(#""error""#))
        if way.remains {
            #expect(answers[2].contains(#""result""#) && !answers[2].contains(#""messages""#))
            #expect(answers[7].contains(#""lastMessage""#) == false)
        }
        // A later connection gets nothing either.
        _ = laptop
    }

    @Test(
        "ST-05 AM-46 a definition that removes the right to read ends watching and reading by itself, without an event in the channel",
        arguments: ways.filter(\.isLazy))
    func endsByDefinition(way: Way) async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let root = try await server.socket("root", role: .admin)
        let bob = try await server.socket("bob", role: way.appRole)
        try await root.call(PutRole(role: "reader", rank: 1, permissions: [.historyRead, .channelWatch]))
        try await root.call(PutChannelType(type: "club", basedOn: .community))
        try await root.call(PutChannelType(type: "show", basedOn: .livestream))
        var create = CreateChannel(channel: "room", type: way.type, users: way.isMember ? ["bob"] : [])
        create.policy = way.before
        try await ann.call(create)
        try await ann.call(CreateChannel(channel: "other", users: ["bob"]))
        if let role = way.role { try await root.call(SetMemberRole(channel: "room", users: ["bob"], role: role)) }
        for channel in ["room", "other"] as [ChannelID] {
            try await bob.call(WatchChannel(channel: channel))
            if way.isMember { try await bob.call(StartReading(channel: channel)) }
        }
        let seq = try await root.call(GetChannel(channel: "room")).channel.counters.seq
        #expect(try await root.call(WatchChannel(channel: "room")).watcherCount == 2)
        _ = try await bob.frames()

        try await way.end("room", ann, root, bob)
        var heard = try await bob.frames(until: #""unwatched""#)
        if way.isMember, !heard.contains(#""readingEnded""#) { heard += try await bob.frames(until: #""readingEnded""#) }
        #expect(heard.contains(#"{"unwatched":{"channel":"room"}}"#))
        #expect(heard.contains(#"{"readingEnded":{"channel":"room"}}"#) == way.isMember)
        // Nothing ends for the other channel, and there was no event.
        #expect(!heard.contains("other") && !heard.contains(#""seq""#))
        #expect(try await root.call(WatchChannel(channel: "room")).watcherCount == 1)
        #expect(try await root.call(GetChannel(channel: "room")).channel.counters.seq == seq)
        #expect(try await root.call(WatchChannel(channel: "other")).watcherCount == 2)
        try await server.stop()
    }

    @Test("ST-05 ST-10 a watcher who loses the right to watch is notified, and no longer counts as a watcher")
    func unwatched() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let eve = try await server.socket("eve")
        try await ann.call(CreateChannel(channel: "show", type: .livestream))
        try await eve.call(WatchChannel(channel: "show"))
        #expect(try await ann.call(WatchChannel(channel: "show")).watcherCount == 2)
        try await ann.call(Self.publicity("show", false))
        let frame = try await eve.frames()
        #expect(frame == #"{"unwatched":{"channel":"show"}}"#)
        #expect(try await ann.call(WatchChannel(channel: "show")).watcherCount == 1)
        // Watching continues if the right comes back and the user watches again.
        try await ann.call(Self.publicity("show", true))
        try await ann.call(SendMessage(channel: "show", clientId: "1", text: "between"))
        #expect(try await eve.frames() == "")
        try await eve.call(WatchChannel(channel: "show"))
        try await ann.call(SendMessage(channel: "show", clientId: "2", text: "again"))
        #expect(try await eve.nextEvent().rows.messages?.map(\.text) == ["again"])
        try await server.stop()
    }

    @Test("ST-05 I9 a user who may watch but not read keeps watching, with signals and without messages, until they may not watch")
    func watchesWithoutReading() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let root = try await server.socket("root", role: .admin)
        let gus = try await server.socket("gus")
        try await root.call(PutRole(role: "guide", rank: 1, permissions: [.channelWatch]))
        var create = CreateChannel(channel: "room", users: ["gus", "root"])
        create.policy = PolicyChanges(read: .operators)
        try await ann.call(create)
        try await root.call(SetMemberRole(channel: "room", users: ["gus"], role: "guide"))
        try await gus.call(WatchChannel(channel: "room"))
        _ = try await gus.frames()
        // First the readers are the same, then they change.
        try await ann.call(SendMessage(channel: "room", clientId: "1", text: "secret of the room"))
        try await root.call(PutRole(role: "reader", rank: 1, permissions: [.historyRead]))
        try await ann.call(SendMessage(channel: "room", clientId: "2", text: "secret of the room"))
        var heard = try await gus.frames()
        #expect(heard.contains(#""watching":true"#) && !heard.contains("secret") && !heard.contains("unwatched"))
        try await ann.call(StartTyping(channel: "room"))
        heard = try await gus.frames(until: "typing.changed")
        #expect(!heard.contains("unwatched"))

        try await root.call(PutRole(role: "guide", rank: 1, permissions: []))
        heard = try await gus.frames(until: #""unwatched""#)
        #expect(heard.contains(#"{"unwatched":{"channel":"room"}}"#))
        try await server.stop()
    }

    @Test("R23 I1 a member who may read again gets later messages, after positions without a gap")
    func comesBack() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        try await ann.call(CreateChannel(channel: "room", users: ["bob"]))
        try await ann.call(Self.policy("room", PolicyChanges(read: .owners)))
        try await ann.call(SendMessage(channel: "room", clientId: "1", text: "hidden"))
        // Users who connect and join meanwhile get positions too.
        let tablet = try await server.socket("bob")
        let eve = try await server.socket("eve")
        try await eve.call(JoinChannel(channel: "room"))
        try await ann.call(SendMessage(channel: "room", clientId: "2", text: "hidden"))
        try await ann.call(Self.policy("room", PolicyChanges(read: .members)))
        try await ann.call(SendMessage(channel: "room", clientId: "3", text: "open"))
        for socket in [bob, tablet, eve] {
            var texts: [String] = []
            var last: Seq?
            while texts.last != "open" {
                let event = try await socket.nextEvent()
                guard event.stream == .channel("room") else { continue }
                if let last { #expect(event.seq == last + 1) }
                last = event.seq
                texts += event.rows.messages?.map(\.text) ?? []
            }
            #expect(texts == ["open"])
        }
        try await server.stop()
    }
}

extension RawSocket {
    /// The text of all frames received by now, or until one contains a text. The answer that ends them is left out.
    fileprivate func frames(until text: String? = nil) async throws -> String {
        let number = text == nil ? try await post(GetMe()) : 0
        var frames = events.map { event in
            var json = JSONBytes()
            EventFrame(watching: false, event: event).write(to: &json)
            return String(decoding: json.bytes, as: UTF8.self)
        }
        while !events.isEmpty { _ = try await nextEvent() }
        while let frame = await nextText() {
            if text == nil, frame.contains(#""reply":\#(number),"#) { break }
            frames.append(frame)
            if let text, frame.contains(text) { break }
        }
        return frames.joined(separator: "\n")
    }
}
