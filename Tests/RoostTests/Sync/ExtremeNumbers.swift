import Foundation
import GRDB
import RoostAPI
import Testing

@testable import Roost

/// Numbers that our servers never send and that the types allow.
enum ExtremeNumbers {
    static let all: [Int64] = [.min, -1, 0, .max - 1, .max]

    /// A value with each of its numbers in turn replaced by the lowest and the highest one, then all of them at once by each of these, then
    /// each by any.
    static func variants(of value: some Encodable) throws -> [JSONValue] {
        let json = try JSONDecoder().decode(JSONValue.self, from: Data(JSONWriter.bytes(of: value)))
        var variants: [JSONValue] = []
        for place in 0..<json.replacingNumbers({ _ in nil }).count {
            variants += [.min, .max].map { number in json.replacingNumbers { $0 == place ? number : nil }.value }
        }
        variants += all.map { number in json.replacingNumbers { _ in number }.value }
        for seed in 0..<5 as Range<UInt64> {
            var chance = SeededChance(seed: seed)
            variants.append(json.replacingNumbers { _ in all.randomElement(using: &chance) }.value)
        }
        return variants
    }
}

extension JSONValue {
    /// The value with other numbers, and their count. The ids of messages are numbers too, in texts.
    fileprivate func replacingNumbers(_ number: (Int) -> Int64?) -> (value: JSONValue, count: Int) {
        var count = 0
        func replaced(_ value: JSONValue, _ key: String) -> JSONValue {
            switch value {
            case .integer(let old):
                defer { count += 1 }
                return .integer(number(count) ?? old)
            case .string(let old) where key == "messageId":
                defer { count += 1 }
                return .string(number(count).map(String.init) ?? old)
            case .array(let values): return .array(values.map { replaced($0, key) })
            case .object(let values):
                var all: [String: JSONValue] = [:]
                for (key, value) in values.sorted(by: { $0.key < $1.key }) { all[key] = replaced(value, key) }
                return .object(all)
            default: return value
            }
        }
        let value = replaced(self, "")
        return (value, count)
    }
}

extension Database {
    /// Reads all that live objects show, as they do. Damaged rows are refused; nothing worse may happen.
    func lookAtEverything() throws {
        try lookAtLists()
        try lookAtMessages()
    }

    /// The same without the lists of messages.
    func lookAtLists() throws {
        let now = Timestamp(milliseconds: 1)
        for sort in ChannelSort.allCases {
            var list = ListedChannels(ChannelQuery(hidden: .all, sort: sort), pageSize: 1)
            try list.apply(.everything, in: self, now: now)
            try list.extend(in: self, now: now)
            var change = StoreChange()
            change.channels = [Harness.channel, "other"]
            try list.apply(change, in: self, now: now)
            #expect(list.shown.unreadCount >= 0)
        }
        var totals = UnreadTotals()
        try totals.apply(.everything, in: self)
        var change = StoreChange()
        change.channels = [Harness.channel]
        try totals.apply(change, in: self)
        #expect(totals.total.unreadCount >= 0)
        _ = try (channelRow(Harness.channel, now: now)?.view.unreadCount, drafts(), waitingInvitations(), preferences(), overlays())
        _ = try (members(of: Harness.channel, changedAfter: .min), savedState())
    }

    private func lookAtMessages() throws {
        let seqs: [Seq] = [.min, 2, .max]
        for move in [.stay, .older, .newer, .newest] + seqs.map(MessageWindow.Move.open) {
            var window = MessageWindow(pageSize: 2, rowsMax: 3)
            for move in [move, .older, .newer, .stay] { try window.read(move, of: Harness.channel, in: self) }
            #expect(window.rows.count <= 3)
        }
        var mark = UnreadMark()
        try mark.read(in: Harness.channel, isOnline: true, self)
        let openings =
            [.newest, .firstUnread, .message(MessageID(rawValue: 2))]
            + seqs.map { MessageOpening.time(Timestamp(milliseconds: $0)) }
            + seqs.map(MessageOpening.seq)
        for opening in openings {
            let step = try opening.step(in: Harness.channel, mark, isOnline: true, self)
            guard case .read(let move) = step else { continue }
            var window = MessageWindow(pageSize: 2)
            try window.read(move, of: Harness.channel, in: self)
        }
    }
}
