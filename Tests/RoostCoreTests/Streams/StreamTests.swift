import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Streams")
struct StreamTests {
    @Test("I3 every stream is sent without a gap, and each event's rows carry its seq", arguments: Seeds.first(10))
    func hasNoHoles(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        for _ in 0..<250 { try history.step(in: world) }

        var heads: [StreamID: Seq] = [:]
        for event in world.events() {
            // A channel's stream begins with the channel itself, which its members learn of from their own streams.
            let last = heads[event.stream] ?? (event.stream.isChannel ? 1 : 0)
            guard event.seq == last + 1, event.isStamped else {
                Issue.record("seed \(seed): after \(last) of \(event.stream) comes \(event)")
                return
            }
            heads[event.stream] = event.seq
        }
        let channels = try world.rows("SELECT channel_id, seq FROM channel_heads") {
            (StreamID.channel($0.identifier()), $0.int64())
        }
        let users = try world.rows("SELECT user_id, seq FROM user_heads") { (StreamID.user($0.identifier()), $0.int64()) }
        var expected = Dictionary(uniqueKeysWithValues: channels + users)
        for (stream, seq) in expected where stream.isChannel && seq == 1 { expected[stream] = nil }
        #expect(heads == expected, "seed \(seed)")
    }

    @Test("I15 SB-04 the counters equal a recount, and nothing of an ephemeral channel is stored", arguments: Seeds.first(10))
    func counts(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        for _ in 0..<250 { try history.step(in: world) }
        let sent: SQL = """
            SELECT channel_id, ordinal, counts, change_seq FROM messages
            UNION ALL SELECT channel_id, ordinal, counts, change_seq FROM purged_messages
            """
        let wrong = try world.rows(
            """
            SELECT h.channel_id FROM channel_heads h JOIN channels c ON c.channel_id = h.channel_id
            WHERE member_count <> (SELECT COUNT(*) FROM members m
                                   WHERE m.channel_id = h.channel_id AND m.state = 'member' AND h.is_deleted = 0)
                OR c.is_ephemeral = 0 AND (message_count <> (SELECT COUNT(*) FROM messages s WHERE s.channel_id = h.channel_id)
                OR ordinal <> (SELECT COALESCE(MAX(ordinal), 0) FROM (\(sent)) AS s WHERE s.channel_id = h.channel_id)
                OR (SELECT COUNT(DISTINCT ordinal) FROM (\(sent)) AS s WHERE s.channel_id = h.channel_id AND counts = 1) <> ordinal
                OR purged_seq <> (SELECT COALESCE(MAX(seq), 0) FROM purged_messages p WHERE p.channel_id = h.channel_id)
                OR seq < (SELECT COALESCE(MAX(change_seq), 0) FROM (\(sent)) AS s WHERE s.channel_id = h.channel_id))
                OR c.is_ephemeral = 1 AND EXISTS (SELECT 1 FROM messages s WHERE s.channel_id = h.channel_id)
                OR (row_kinds & 1) = 0 AND EXISTS (SELECT 1 FROM invitations i WHERE i.channel_id = h.channel_id AND i.channel_seq > 0)
            """
        ) { $0.string() }
        #expect(wrong == [], "seed \(seed)")
    }

    @Test("I5 the random histories have every kind of event in them")
    func historiesHaveEverything() throws {
        var kinds: Set<Event.Kind> = []
        for seed in 1...30 as ClosedRange<UInt64> {
            let world = try CoreWorld()
            var history = try RandomHistory(seed: seed, in: world)
            for _ in 0..<250 { try history.step(in: world) }
            kinds.formUnion(world.events().map(\.kind))
        }
        // No operation sends several changes at once, only nodes do.
        #expect(kinds == Set(Event.Kind.allCases).subtracting([.changes]))
    }

    @Test("I22 a refused operation changes nothing and sends nothing", arguments: Seeds.first(3))
    func refusalsChangeNothing(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        for _ in 0..<60 {
            let before = try world.dump()
            let noticeCount = world.notices.count
            guard try history.step(in: world) == "a refusal" else { continue }
            guard try world.dump() == before, world.notices.count == noticeCount else {
                Issue.record("seed \(seed): a refusal changed something")
                return
            }
        }
    }
}

extension StreamID {
    fileprivate var isChannel: Bool {
        if case .channel = self { true } else { false }
    }
}

extension Event {
    /// Whether the rows carry the event's own seq wherever they carry one of its stream.
    fileprivate var isStamped: Bool {
        guard stream.isChannel else { return true }
        var stamps = (rows.messages ?? []).map(\.changeSeq) + (rows.members ?? []).map(\.changeSeq)
        if let counters = rows.counters { stamps.append(counters.seq) }
        if let channel = rows.channel { stamps.append(channel.counters.seq) }
        return !stamps.isEmpty && stamps.allSatisfy { $0 == seq } && rows.memberships == nil
    }
}
