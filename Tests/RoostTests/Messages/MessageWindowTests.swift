import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// What a list of messages holds of the cache.
@Suite("Messages: the window of a list")
struct MessageWindowTests {
    private func store() throws -> Store {
        try Store(url: nil, user: "ann", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func read(_ window: MessageWindow, _ move: MessageWindow.Move, in store: Store) async throws -> MessageWindow {
        try await store.read { database in
            var window = window
            try window.read(move, of: Harness.channel, in: database)
            return window
        }
    }

    private func cached(in store: Store) async throws -> [Message] {
        try await store.read { database in
            try Data.fetchAll(database, sql: "SELECT json FROM messages WHERE channel_id = 'general' ORDER BY seq").map {
                try StoredJSON.decode(from: $0)
            }
        }
    }

    @Test(
        "AM-30 R08 Read on from any earlier state, a window is a part of the cache without a hole, as it is now, and no larger than it may be",
        arguments: 0..<8 as Range<UInt64>)
    func random(seed: UInt64) async throws {
        let store = try store()
        var channel = RandomMessages(seed: seed)
        var chance = SeededChance(seed: seed &+ 1000)
        try await store.write(channel.begin())
        var window = MessageWindow(pageSize: 4, rowsMax: 12)
        var most = 0
        for step in 0..<150 {
            // Now and then very much happens between two looks.
            let count = Int.random(in: 0..<40, using: &chance) == 0 ? 30 : Int.random(in: 0...4, using: &chance)
            for _ in 0..<count { try await store.write(channel.change()) }
            let moves: [MessageWindow.Move] = [.stay, .stay, .stay, .older, .older, .newer, .newest]
            let move = moves[Int.random(in: 0..<moves.count, using: &chance)]
            let before = window
            window = try await read(window, move, in: store)

            let all = try await cached(in: store)
            let shown = window.rows.compactMap(\.item.message)
            let range = (shown.first?.seq ?? 0)...(shown.last?.seq ?? 0)
            #expect(shown == all.filter { range.contains($0.seq) }, "a hole or an old row, seed \(seed), step \(step), \(move)")
            #expect(shown.count <= 12 && shown.count >= min(4, all.count), "seed \(seed), step \(step)")
            #expect(window.hasNewer == (all.last.map { $0.seq > range.upperBound } ?? false), "seed \(seed), step \(step)")
            #expect(window.hasOlderCached == (all.first.map { $0.seq < range.lowerBound } ?? false), "seed \(seed), step \(step)")
            if case .newest = move { #expect(!window.hasNewer, "seed \(seed), step \(step)") }
            // Of what was there and is unchanged, nothing is decoded again.
            let known = Dictionary(uniqueKeysWithValues: before.rows.map { ($0.seq, $0) })
            let again = window.rows.filter { row in
                known[row.seq].map { $0.item.message == row.item.message && !$0.item.isSameRow(as: row.item) } ?? false
            }
            if count < 12, !channel.beganAfresh { #expect(again.isEmpty, "seed \(seed), step \(step), \(move)") }
            channel.beganAfresh = false
            most = max(most, all.count)
        }
        #expect(most > 24, "the window was never too small")
    }

    @Test("AM-30 However much arrives, a list that follows the newest holds its most of them, and none is missed on the way")
    func follows() async throws {
        let store = try store()
        var channel = RandomMessages(seed: 1)
        try await store.write(channel.begin())
        var window = try await read(MessageWindow(pageSize: 4, rowsMax: 12), .stay, in: store)
        for _ in 0..<50 {
            try await store.write(channel.send())
            window = try await read(window, .stay, in: store)
            #expect(window.rows.last?.seq == channel.seq && !window.hasNewer)
        }
        #expect(window.rows.count == 12 && window.hasOlderCached)
    }

    @Test("AM-30 A list that was scrolled back stays where it is while messages arrive, and comes back page by page without a hole")
    func staysAndComesBack() async throws {
        let store = try store()
        var channel = RandomMessages(seed: 2)
        try await store.write(channel.begin())
        for _ in 0..<30 { try await store.write(channel.send()) }
        var window = try await read(MessageWindow(pageSize: 4, rowsMax: 12), .stay, in: store)
        for _ in 0..<3 { window = try await read(window, .older, in: store) }
        let oldest = window.rows.first?.seq
        for _ in 0..<30 {
            try await store.write(channel.send())
            window = try await read(window, .stay, in: store)
        }
        #expect(window.rows.first?.seq == oldest && window.rows.count == 12 && window.hasNewer)

        var seen = window.rows.map(\.seq)
        while window.hasNewer {
            window = try await read(window, .newer, in: store)
            seen += window.rows.map(\.seq).filter { $0 > seen.last ?? 0 }
        }
        #expect(seen == Array((oldest ?? 0)...channel.seq))
        // It follows the newest again.
        try await store.write(channel.send())
        #expect(try await read(window, .stay, in: store).rows.last?.seq == channel.seq)
    }
}

/// Messages of one channel that change by chance, as the writes that a store gets of it.
private struct RandomMessages {
    private var chance: SeededChance
    private(set) var seq: Seq = 60
    private var windowStart: Seq = 41
    private var floor: Seq = 0
    private var userSeq: Seq = 0
    var beganAfresh = false
    private static let id = Harness.channel

    init(seed: UInt64) { chance = SeededChance(seed: seed) }

    private mutating func number(_ range: ClosedRange<Seq>) -> Seq { Seq.random(in: range, using: &chance) }

    private var position: StoreWrite {
        .position(Self.id, Position(cursor: seq, windowStart: windowStart, messageCount: nil))
    }

    private func messages(_ seqs: ClosedRange<Seq>) -> StoreWrite {
        .messages(seqs.map { message($0, "\($0)") }, of: Self.id)
    }

    private mutating func membership() -> StoreWrite {
        userSeq += 1
        return .membership(membershipRow(floor: floor, channelSeq: seq, userSeq: userSeq))
    }

    /// The channel as a fresh client gets it.
    mutating func begin() -> [StoreWrite] {
        windowStart = max(floor + 1, seq - 19)
        beganAfresh = true
        return [.forget(Self.id), messages(windowStart...seq), position]
    }

    mutating func send() -> [StoreWrite] {
        seq += 1
        return [.messages([message(seq, "\(seq)", by: seq.isMultiple(of: 3) ? "ann" : "bob")], of: Self.id), position]
    }

    mutating func change() -> [StoreWrite] {
        switch number(0...19) {
        case 0...9: return send()
        case 10...13:
            // An edit. Those of messages before the window aren't stored.
            let edited = number(windowStart...seq)
            seq += 1
            return [.messages([message(edited, "edited at \(seq)", changedAt: seq)], of: Self.id), position]
        case 14...15:
            let purged = number(windowStart...seq)
            seq += 1
            return [.rows(Rows([PurgedMessage(seq: purged, changeSeq: seq, counts: true)]), of: .channel(Self.id)), position]
        case 16:
            floor = max(floor, number(windowStart...seq) - 5)
            return [membership()]
        case 17:
            seq += 25
            return begin()
        default:
            // A page of history. Its messages are older than the window, with stamps that are older still.
            guard windowStart > floor + 1 else { return send() }
            let older = max(floor + 1, windowStart - 6)...(windowStart - 1)
            windowStart = older.lowerBound
            return [messages(older), position]
        }
    }
}

private func membershipRow(floor: Seq, channelSeq: Seq, userSeq: Seq) -> Membership {
    membership(readSeq: 0, readCount: 0, floor: floor, channelSeq: channelSeq, userSeq: userSeq)
}
