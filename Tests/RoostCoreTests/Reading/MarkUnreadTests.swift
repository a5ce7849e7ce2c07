import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Marking as unread")
struct MarkUnreadTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        for text in ["a", "b", "c"] { try world.send(text, to: "general", as: "ann") }
        try world.send("mine", to: "general", as: "bob")
        try world.perform(MarkRead(channel: "general"), as: "bob")
        return world
    }

    @Test("R25 X-34 a user's own messages from before they joined stay read when they mark as unread from before them")
    func sentBeforeJoining() throws {
        let world = try CoreWorld()
        try world.channel("stage", type: .livestream, owner: "ann")
        try world.user("zoe")
        for text in ["a", "b"] { try world.send(text, to: "stage", as: "ann") }
        try world.send("mine", to: "stage", as: "zoe")
        try world.perform(JoinChannel(channel: "stage"), as: "zoe")
        try world.send("c", to: "stage", as: "ann")
        #expect(try world.perform(MarkUnread(channel: "stage", seq: 2), as: "zoe").unreadCount == 3)
    }

    @Test("R25 messages from a seq on are unread again, except the reader's own; only the reader is notified, others see no less")
    func marks() throws {
        let world = try world()
        let readAt = world.now
        world.advance(milliseconds: 5)
        var answer: UnreadCount?
        let notices = try world.notices { answer = try world.perform(MarkUnread(channel: "general", seq: 3), as: "bob") }
        #expect(answer == UnreadCount(channelId: "general", unreadCount: 2, readSeq: 2))
        guard case .event(let event, .user("bob"))? = notices.first else { throw Missed("\(notices)") }
        #expect(notices.dropFirst() == [.markedUnread("bob", "general", at: event.seq)])
        let row = event.rows.memberships?.first
        #expect(event.kind == .readingUnmarked && row?.readSeq == 2 && row?.lastReadAt == readAt)
        #expect(try world.perform(GetTotalUnread(), as: "bob") == TotalUnread(unreadCount: 2, unreadChannelCount: 1))
        // Unread messages stay unread, now and later: reading ends.
        let again = try world.notices { try world.perform(MarkUnread(channel: "general", seq: 4), as: "bob") }
        #expect(again == [.markedUnread("bob", "general", at: event.seq)])
        #expect(try world.perform(MarkUnread(channel: "general", seq: 0), as: "bob").unreadCount == 3)
        #expect(
            try world.perform(MarkRead(channel: "general", seq: 3), as: "bob")
                == UnreadCount(channelId: "general", unreadCount: 1, readSeq: 3))
    }

    @Test("R25 R27 reading again after a mark as unread is sent to others only beyond the former position")
    func readsAgain() throws {
        let world = try world()
        func reported(_ seq: Seq?) throws -> [Seq] {
            try world.notices { try world.perform(MarkRead(channel: "general", seq: seq), as: "bob") }.compactMap { notice in
                if case .read(let position, _) = notice { position.readSeq } else { nil }
            }
        }
        let head = try world.perform(GetUnread(channel: "general"), as: "bob").readSeq
        try world.perform(MarkUnread(channel: "general", seq: 2), as: "bob")
        #expect(try reported(3) == [] && reported(nil) == [])
        try world.send("new", to: "general", as: "ann")
        #expect(try reported(nil) == [head + 1])
    }

    @Test("R25 MN-16 a mention is unread again with its message, and messages hidden from the caller stay read")
    func edges() throws {
        let world = try world()
        let mention = SendMessage(channel: "general", clientId: "m", text: "@bob", mentionees: [.users(["bob"])])
        let sent = try world.perform(mention, as: "ann")
        #expect(try world.perform(MarkRead(channel: "general"), as: "bob").hasMention == false)
        #expect(try world.perform(MarkUnread(channel: "general", seq: sent.seq), as: "bob").hasMention)
        try world.perform(ResetHistory(channel: "general"), as: "bob")
        #expect(try world.perform(MarkUnread(channel: "general", seq: 1), as: "bob").unreadCount == 0)
        try world.send("later", to: "general", as: "ann")
        try world.perform(MarkRead(channel: "general"), as: "bob")
        #expect(try world.perform(MarkUnread(channel: "general", seq: 1), as: "bob").unreadCount == 1)
        // Messages deleted for good don't count.
        try world.perform(PurgeMessage(channel: "general", message: sent.messageId), as: "ann")
        #expect(try world.perform(MarkUnread(channel: "general", seq: 1), as: "bob").unreadCount == 1)
    }

    @Test("R25 R34 a mark far back counts the caller's own messages after it, found by their sender, like one that is near")
    func farBack() throws {
        let world = try world()
        let before = try world.perform(GetUnread(channel: "general"), as: "bob").readSeq
        var others = 0
        for number in 0..<1100 {
            let isOwn = number.isMultiple(of: 100)
            let sent = try world.send("\(number)", to: "general", as: isOwn ? "bob" : "ann")
            if !isOwn { others += 1 }
            if number == 500 { try world.perform(PurgeMessage(channel: "general", message: sent.messageId), as: "bob") }
            if number == 501 { try world.perform(PurgeMessage(channel: "general", message: sent.messageId), as: "ann") }
        }
        try world.perform(MarkRead(channel: "general"), as: "bob")
        #expect(try world.perform(MarkUnread(channel: "general", seq: before + 1), as: "bob").unreadCount == others - 1)
    }

    @Test("R25 R34 X-34 a user's many messages after places far back are counted once: later marks don't read them again")
    func countedOnce() throws {
        let world = try world()
        var others: [Seq] = []
        try world.batch {
            others = []
            for number in 0..<5000 {
                let sent = try world.send("\(number)", to: "general", as: number.isMultiple(of: 10) ? "ann" : "bob")
                if sent.sender == "ann" { others.append(sent.seq) }
            }
        }
        func unread(from seq: Seq) throws -> Int {
            try world.perform(MarkRead(channel: "general"), as: "bob")
            return try world.perform(MarkUnread(channel: "general", seq: seq), as: "bob").unreadCount
        }
        func expected(from seq: Seq) -> Int { others.count { $0 >= seq } }
        let oldest = try #require(others.first)
        #expect(try unread(from: oldest) == expected(from: oldest))
        // What the rows say no longer matters if they aren't read.
        try world.execute(
            """
            UPDATE messages SET counts = 0
            WHERE channel_id = 'general' AND sender_id = 'bob' AND seq >= 2048 AND seq < 4096
            """)
        for seq in [oldest, 1000, 1500, 2040] as [Seq] { #expect(try unread(from: seq) == expected(from: seq), "\(seq)") }
        // Newer ones are counted too, in blocks that are complete by now.
        try world.batch { for number in 0..<1500 { try world.send("\(number)", to: "general", as: "bob") } }
        for seq in [oldest, 2040] { #expect(try unread(from: seq) == expected(from: seq), "\(seq)") }
    }

    @Test("R25 R34 a user's messages are counted alike among many of others and among few")
    func amongOthers() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        var others = 0
        for step in [100, 10, 1] {
            try BulkRows.messages(20_000, to: "general", every: step, by: "bob", others: "ann", in: world)
            others += 20_000 - 20_000 / step
            try world.perform(MarkRead(channel: "general"), as: "bob")
            #expect(try world.perform(MarkUnread(channel: "general", seq: 1), as: "bob").unreadCount == others, "\(step)")
        }
    }

    @Test(
        "R25 R34 AM-43 wherever a user with many messages marks, the unread ones are others' messages that count and still exist",
        arguments: Seeds.first(3))
    func recount(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let world = try CoreWorld()
        // Of a type in which users send without being members.
        try world.channel("stage", type: .livestream, owner: "ann")
        try world.user("bob")
        try world.perform(JoinChannel(channel: "stage"), as: "bob")
        var sent: [Message] = []
        var purged: Set<Seq> = []
        var isMember = true
        for round in 0..<16 {
            let kinds = (0..<220).map { _ in (isOwn: !random.once(in: 3), isSilent: random.once(in: 10)) }
            var new: [Message] = []
            try world.batch {
                new = []
                for (number, kind) in kinds.enumerated() {
                    let send = SendMessage(
                        channel: "stage", clientId: ClientID("\(round)-\(number)"), text: "x", isSilent: kind.isSilent)
                    new.append(try world.perform(send, as: kind.isOwn ? "bob" : "ann"))
                }
            }
            sent += new
            for _ in 0..<5 {
                let message = random.pick(sent)
                guard purged.insert(message.seq).inserted else { continue }
                try world.perform(PurgeMessage(channel: "stage", message: message.messageId), as: "root", role: .admin)
            }
            if random.once(in: 3) {
                if isMember {
                    try world.perform(LeaveChannel(channel: "stage"), as: "bob")
                } else {
                    try world.perform(JoinChannel(channel: "stage"), as: "bob")
                }
                isMember.toggle()
            }
            guard isMember else { continue }
            for _ in 0..<4 {
                let place = Seq(random.number(0...Int(sent.last?.seq ?? 0)))
                let expected = sent.count { message in
                    message.seq > place && message.sender == "ann" && !message.isSilent && !purged.contains(message.seq)
                }
                try world.perform(MarkRead(channel: "stage"), as: "bob")
                let found = try world.perform(MarkUnread(channel: "stage", seq: place + 1), as: "bob").unreadCount
                #expect(found == expected, "after \(place) in round \(round)")
            }
        }
    }

    @Test("R25 bad seqs, strangers, and channels that keep nothing are refused")
    func refusals() throws {
        let world = try world()
        try world.user("zoe")
        try world.perform(CreateChannel(channel: "talk", type: .group, users: ["bob"], isEphemeral: true), as: "ann")
        #expect(try world.code(MarkUnread(channel: "general", seq: -1), as: "bob") == .invalidArgument)
        #expect(try world.code(MarkUnread(channel: "general", seq: 1), as: "zoe") == .notMember)
        #expect(try world.code(MarkUnread(channel: "nowhere", seq: 1), as: "bob") == .notFound)
        #expect(try world.code(MarkUnread(channel: "talk", seq: 1), as: "bob") == .featureDisabled)
    }
}
