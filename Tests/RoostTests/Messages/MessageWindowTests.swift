import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// The part of the cache that a list of messages holds.
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

    /// A list view that applies the difference between two states of a list gets from the former rows to the new ones.
    private static func compareLists(_ before: MessageWindow, _ after: MessageWindow, _ what: String) {
        let (old, new) = (before.shownRows.map(\.item), after.shownRows.map(\.item))
        let update = ListUpdate(from: old, to: new)
        #expect(update.applied(to: old) == new, "\(what)")
        #expect(update.isEmpty == (old == new), "\(what)")
        // Messages have one order, so none of them moves.
        #expect(update.moved.isEmpty, "\(what)")
    }

    @Test(
        "AM-30 R08 I6 read on from any earlier state, a window anywhere is a current, bounded part without a hole; a difference leads from each to the next",
        arguments: 0..<8 as Range<UInt64>)
    func random(seed: UInt64) async throws {
        let store = try store()
        var channel = RandomMessages(seed: seed)
        var chance = SeededChance(seed: seed &+ 1000)
        try await store.write(channel.begin())
        var window = MessageWindow(pageSize: 4, rowsMax: 12)
        var (apart, lost, joined) = (0, 0, 0)
        for step in 0..<250 {
            // Now and then very much happens between two reads.
            let count = Int.random(in: 0..<40, using: &chance) == 0 ? 30 : Int.random(in: 0...4, using: &chance)
            for _ in 0..<count { try await store.write(channel.change()) }
            if window.isLost { try await store.write(channel.page(around: window.place)) }
            let place = Seq.random(in: 1...channel.seq, using: &chance)
            let moves: [MessageWindow.Move] = [.stay, .stay, .stay, .older, .older, .newer, .newer, .newest, .open(place)]
            let move = window.isLost ? .open(window.place) : moves[Int.random(in: 0..<moves.count, using: &chance)]
            let before = window
            window = try await read(window, move, in: store)
            Self.compareLists(before, window, "seed \(seed), step \(step), \(move)")
            if window.isLost {
                lost += 1
                #expect(window.rows.isEmpty && !channel.position.holds(window.place), "seed \(seed), step \(step), \(move)")
                continue
            }

            let all = channel.visible
            let shown = window.rows.compactMap(\.item.message)
            let range = (shown.first?.seq ?? 0)...(shown.last?.seq ?? 0)
            #expect(shown == all.filter { range.contains($0.seq) }, "a hole or an old row, seed \(seed), step \(step), \(move)")
            let part = try #require(channel.position.part(holding: shown.isEmpty ? .max : range.lowerBound))
            let available = all.filter { part.contains($0.seq) }
            #expect(shown.count <= 12 && shown.count >= min(4, available.count), "seed \(seed), step \(step), \(move)")
            let isEnd = part.isNewest
            #expect(
                window.hasNewerCached == (available.last.map { $0.seq > range.upperBound } ?? false), "seed \(seed), step \(step)")
            #expect(window.hasNewer == (window.hasNewerCached || !isEnd), "seed \(seed), step \(step), \(move)")
            #expect(
                window.newerCount == (isEnd ? available.filter { $0.seq > range.upperBound }.count : nil),
                "seed \(seed), step \(step)")
            #expect(
                window.hasOlderCached == (available.first.map { $0.seq < range.lowerBound } ?? false), "seed \(seed), step \(step)")
            if !window.hasOlder { #expect(!all.contains { $0.seq < range.lowerBound }, "seed \(seed), step \(step)") }
            if move == .newest { #expect(!window.hasNewer, "seed \(seed), step \(step)") }
            apart += isEnd ? 0 : 1
            joined += isEnd && before.place != .max && !before.isLost && range.contains(before.place) ? 1 : 0
            // Unchanged rows aren't decoded again.
            let known = Dictionary(uniqueKeysWithValues: before.rows.map { ($0.seq, $0) })
            let again = window.rows.filter { row in
                known[row.seq].map { $0.item.message == row.item.message && $0.item.row !== row.item.row } ?? false
            }
            let continues = [.stay, .older, .newer].contains(move)
            if count < 12, continues, !channel.beganAfresh { #expect(again.isEmpty, "seed \(seed), step \(step), \(move)") }
            channel.beganAfresh = false
        }
        #expect(apart > 10 && lost > 3 && joined > 0, "seed \(seed): \(apart) \(lost) \(joined)")
    }

    @Test("AM-30 however much arrives, a list that follows the newest messages stays full, and misses none")
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

    @Test("AM-30 a list that was scrolled back stays in place while messages arrive, and returns page by page without a hole")
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

extension MessageWindowTests {
    @Test("a channel whose messages the user may never see has an empty window")
    func concealed() async throws {
        let store = try store()
        try await store.write([
            .messages([message(1, "1")], of: Harness.channel),
            .position(Harness.channel, Position(cursor: 1, windowStart: 0, messageCount: nil)),
            .membership(membershipRow(floor: .max, channelSeq: 1, userSeq: 1)),
        ])
        let window = try await read(MessageWindow(pageSize: 10), .stay, in: store)
        #expect(window.rows.isEmpty && !window.isLost)
    }
}

/// Messages of one channel that change at random, as the writes that a store gets for them.
private struct RandomMessages {
    private var chance: SeededChance
    /// The channel as the server has it.
    private var messages: [Seq: Message] = [:]
    private(set) var seq: Seq = 0
    private(set) var position = Position(cursor: 0, windowStart: 0)
    private var floor: Seq = 0
    private var userSeq: Seq = 0
    var beganAfresh = false
    private static let id = Harness.channel

    init(seed: UInt64) {
        chance = SeededChance(seed: seed)
        for _ in 0..<60 { _ = send() }
    }

    /// The messages that the user may see.
    var visible: [Message] { messages.values.filter { $0.seq > floor }.sorted { $0.seq < $1.seq } }

    private mutating func number(_ range: ClosedRange<Seq>) -> Seq { Seq.random(in: range, using: &chance) }

    private mutating func moved(_ rows: Rows = Rows()) -> [StoreWrite] {
        position.cursor = seq
        let position = position
        let kept = rows.withoutRows(aboutMessagesExcept: position.holds)
        return [.rows(kept, of: .channel(Self.id)), .position(Self.id, position)]
    }

    private mutating func membership() -> StoreWrite {
        userSeq += 1
        return .membership(membershipRow(floor: floor, channelSeq: seq, userSeq: userSeq))
    }

    /// The channel as a fresh client gets it.
    mutating func begin() -> [StoreWrite] {
        position = Position(cursor: seq, windowStart: max(floor + 1, seq - 19))
        beganAfresh = true
        return [.forget(Self.id)] + moved(Rows(visible))
    }

    mutating func send() -> [StoreWrite] {
        seq += 1
        let sent = message(seq, "\(seq)", by: seq.isMultiple(of: 3) ? "ann" : "bob")
        messages[seq] = sent
        return moved(Rows([sent]))
    }

    /// A page of messages.
    mutating func page(around place: Seq) -> [StoreWrite] {
        let range = max(0, place - 3)...min(seq, max(0, place + 3))
        let forgotten = position.insert(range)
        return moved(Rows(visible.filter { range.contains($0.seq) })) + forgotten.map { .forgetMessages(Self.id, $0) }
    }

    mutating func change() -> [StoreWrite] {
        switch number(0...29) {
        case 0...9: return send()
        case 10...15:
            guard let old = messages[number(1...seq)] else { return send() }
            seq += 1
            let edited = message(old.seq, "edited at \(seq)", by: old.sender, changedAt: seq)
            messages[old.seq] = edited
            return moved(Rows([edited]))
        case 16...18:
            guard let purged = messages.removeValue(forKey: number(1...seq)) else { return send() }
            seq += 1
            return moved(Rows([PurgedMessage(seq: purged.seq, changeSeq: seq, counts: true)]))
        case 19:
            floor = max(floor, number(1...seq) - 40)
            return [membership()]
        case 20:
            for _ in 0..<25 { _ = send() }
            return begin()
        case 21...23:
            // A page before the window.
            return page(around: max(1, position.windowStart - 3))
        default: return page(around: number(1...seq))
        }
    }
}

private func membershipRow(floor: Seq, channelSeq: Seq, userSeq: Seq) -> Membership {
    membership(readSeq: 0, readCount: 0, floor: floor, channelSeq: channelSeq, userSeq: userSeq)
}
