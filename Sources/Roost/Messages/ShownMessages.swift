import NIOConcurrencyHelpers
import RoostAPI

/// The messages that the lists of a chat show: they stay in the cache when it is trimmed.
final class ShownMessages: Sendable {
    private struct Shown {
        var channel: ChannelID
        var first: Seq = .max
        /// How many pages are on their way into the list.
        var moveCount = 0
    }

    /// By the lists' numbers.
    private let lists = NIOLockedValueBox<(last: Int, shown: [Int: Shown])>((0, [:]))

    /// The first message of each channel that is shown; 0 while a list may come to show any.
    var firsts: [ChannelID: Seq] {
        lists.withLockedValue { lists in
            lists.shown.values.reduce(into: [:]) { firsts, shown in
                firsts[shown.channel] = min(firsts[shown.channel] ?? .max, shown.moveCount > 0 ? 0 : shown.first)
            }
        }
    }

    /// Adds a list of a channel.
    func add(_ channel: ChannelID) -> List {
        let number = lists.withLockedValue { lists in
            lists.last += 1
            lists.shown[lists.last] = Shown(channel: channel)
            return lists.last
        }
        return List(number: number, all: self)
    }

    /// One list, until it is released.
    final class List: Sendable {
        private let number: Int
        private let all: ShownMessages

        fileprivate init(number: Int, all: ShownMessages) { (self.number, self.all) = (number, all) }

        deinit { _ = all.lists.withLockedValue { $0.shown.removeValue(forKey: number) } }

        /// Notes the first message that the list shows: ``Seq/max`` for none, 0 if it is about to show others.
        func shows(from first: Seq) { all.lists.withLockedValue { $0.shown[number]?.first = first } }

        /// Keeps all messages of the channel while a page is on its way into the list.
        func beginMove() { all.lists.withLockedValue { $0.shown[number]?.moveCount += 1 } }

        func endMove() { all.lists.withLockedValue { $0.shown[number]?.moveCount -= 1 } }
    }
}
