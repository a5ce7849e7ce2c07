import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Reading")
struct UnreadTests {
    /// The definition: messages after a member's read position, except the member's own, silent ones and the server's.
    private struct Definition {
        struct Reader: Hashable {
            let user: UserID
            let channel: ChannelID
        }
        var readSeqs: [Reader: Seq] = [:]
        var muted: Set<Reader> = []
        var sent: [ChannelID: [(seq: Seq, sender: UserID)]] = [:]

        func unread(_ reader: Reader) -> Int? {
            guard let readSeq = readSeqs[reader] else { return nil }
            return (sent[reader.channel] ?? []).filter { $0.seq > readSeq && $0.sender != reader.user }.count
        }

        /// Learns from the notices, but takes no count from them.
        mutating func learn(_ notices: [Notice]) {
            for notice in notices {
                switch notice {
                case .channelDeleted(let channel): readSeqs = readSeqs.filter { $0.key.channel != channel }
                case .left(let user, let channel, _, _): readSeqs[Reader(user: user, channel: channel)] = nil
                case .event(let event, .channel(let channel, _)) where event.kind == .messageNew:
                    sent[channel, default: []] += (event.rows.messages ?? []).filter { !$0.isSilent && $0.kind != .system }
                        .map { ($0.seq, $0.sender) }
                case .event(let event, .channel(let channel, _)):
                    for place in event.rows.purged ?? [] { sent[channel]?.removeAll { $0.seq == place.seq } }
                case .event(let event, .user(let user)):
                    for membership in event.rows.memberships ?? [] where membership.state == .member {
                        // A new member has read everything up to the joining; a mark is where it was made.
                        let joinSeq = event.rows.channel?.counters.seq
                        let reader = Reader(user: user, channel: membership.channelId)
                        readSeqs[reader] = joinSeq ?? membership.readSeq
                        if membership.isNotificationsMuted { muted.insert(reader) } else { muted.remove(reader) }
                    }
                default: break
                }
            }
        }
    }

    @Test(
        "AM-43 D-29 I7 unread is exact after every step of any history, and the total is the sum without muted channels",
        arguments: Seeds.first(6))
    func isExact(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        var definition = Definition()
        definition.learn(world.notices)
        var learned = world.notices.count
        var steps: [String] = []
        var announcing: Set<ChannelID> = []
        for _ in 0..<150 {
            // In most channels the server announces who comes and goes, which counts for nobody.
            for channel in history.channels where announcing.insert(channel).inserted {
                let announces = PolicyChanges(announcesJoins: true, announcesLeaves: true, announcesNames: true)
                _ = try? world.perform(UpdateChannel(channel: channel, policy: announces), as: "root", role: .admin)
            }
            steps.append(try history.step(in: world))
            definition.learn(Array(world.notices.dropFirst(learned)))
            learned = world.notices.count
            for user in history.users {
                let found = history.channels.map { channel in
                    try? world.perform(GetUnread(channel: channel), as: user).unreadCount
                }
                let expected = history.channels.map { definition.unread(.init(user: user, channel: $0)) }
                let total = try world.perform(GetTotalUnread(), as: user)
                let counted = history.channels.filter { !definition.muted.contains(.init(user: user, channel: $0)) }
                    .compactMap { definition.unread(.init(user: user, channel: $0)) }
                let sum = TotalUnread(unreadCount: counted.reduce(0, +), unreadChannelCount: counted.count { $0 > 0 })
                guard found == expected, total == sum else {
                    Issue.record("seed \(seed), \(user): \(found), \(total) instead of \(expected) after \(steps.suffix(12))")
                    return
                }
            }
        }
        #expect(try world.rows("SELECT COUNT(*) FROM messages WHERE kind = 'system'") { $0.int() } != [0])
    }

    @Test("I8 a read position moves forward only, to the end at most", arguments: Seeds.first(4))
    func isMonotone(seed: UInt64) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        for number in 0..<20 { try world.send("\(number)", to: "general", as: number.isMultiple(of: 3) ? "bob" : "ann") }
        var random = SeededGenerator(seed: seed)
        var expected: Seq = 1
        for _ in 0..<40 {
            let seq: Seq? = random.once(in: 12) ? nil : random.once(in: 12) ? Limits.seqMax : Seq(random.number(0...25))
            expected = max(expected, min(seq ?? .max, 21))
            let answer = try world.perform(MarkRead(channel: "general", seq: seq), as: "bob")
            let unread = (2...21).filter { $0 > expected && !($0 - 2).isMultiple(of: 3) }.count
            #expect(answer == UnreadCount(channelId: "general", unreadCount: Int(unread), readSeq: expected), "seed \(seed)")
        }
    }

    @Test("AM-45 a mark is sent with the current membership, and only to the reader")
    func tellsReader() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        for text in ["a", "b", "c"] { try world.send(text, to: "general", as: "ann") }
        let joinedAt = world.now
        world.advance(milliseconds: 5)
        let notices = try world.notices { try world.perform(MarkRead(channel: "general", seq: 3), as: "bob") }
        let seq = try #require(try world.rows("SELECT seq FROM user_heads WHERE user_id = 'bob'") { $0.int64() }.first)
        let membership = Membership(
            channelId: "general", role: .member, state: .member, joinedAt: joinedAt, joinedSeq: 1, readSeq: 3, readCount: 2,
            lastReadAt: world.now, channelSeq: 4, userSeq: seq)
        let event = Event(kind: .readingMarked, stream: .user("bob"), seq: seq, actor: "bob", rows: Rows([membership]))
        // Others get his read position by a signal.
        let position = ReadPosition(userId: "bob", readSeq: 3, lastReadAt: world.now)
        #expect(notices == [.event(event, .user("bob")), .read(position, "general")])
    }

    @Test("AM-43 AM-45 a sender whose other devices may not read the channel is told that the message isn't unread")
    func tellsOtherDevices() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.perform(UpdateChannel(channel: "general", policy: PolicyChanges(read: .operators)), as: "root", role: .admin)
        // Bob's console has the token of an admin, who reads every channel, and his phone that of a user.
        try world.send("x", to: "general", as: "bob", role: .admin)
        let event = try #require(world.events(to: .user("bob")).last)
        #expect(event.kind == .readingMarked && event.rows.memberships?.map(\.readCount) == [1])
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 0)
    }

    @Test("AM-43 a deleted message counts until it is read")
    func deletedCounts() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let message = try world.send("x", to: "general", as: "ann").messageId
        try world.perform(DeleteMessage(channel: "general", message: message), as: "ann")
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 1)
        #expect(try world.perform(MarkRead(channel: "general"), as: "bob").unreadCount == 0)
    }

    @Test("a place impossible in a stream is refused")
    func refuses() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let codes = try [-1, .min, Limits.seqMax + 1, .max].map { try world.code(MarkRead(channel: "general", seq: $0), as: "ann") }
        #expect(codes == [.invalidArgument, .invalidArgument, .invalidArgument, .invalidArgument])
    }
}
