import NIOConcurrencyHelpers
import RoostAPI

/// The messages that a chat's lists show: they stay in the cache when it is trimmed, and when pages at other places arrive.
final class ShownMessages: Sendable {
    private struct Shown {
        var channel: ChannelID
        var first: Seq = .max
        /// A seq of the part of the channel's cached messages that the list shows; nil while it shows nothing.
        var place: Seq?
        /// The number of pages on their way into the list.
        var moveCount = 0
    }

    /// Keyed by the lists' numbers.
    private let lists = NIOLockedValueBox<(last: Int, shown: [Int: Shown])>((0, [:]))

    /// The first shown message of each channel; 0 while a list may move to any message.
    var firsts: [ChannelID: Seq] {
        lists.withLockedValue { lists in
            lists.shown.values.reduce(into: [:]) { firsts, shown in
                firsts[shown.channel] = min(firsts[shown.channel] ?? .max, shown.moveCount > 0 ? 0 : shown.first)
            }
        }
    }

    /// A seq of each part of a channel's cached messages that a list shows.
    var places: [ChannelID: Set<Seq>] {
        lists.withLockedValue { lists in
            lists.shown.values.reduce(into: [:]) { places, shown in
                if let place = shown.place { places[shown.channel, default: []].insert(place) }
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

        /// Records what the list shows.
        ///
        /// - Parameters:
        ///   - first: The first message that has to stay: ``Seq/max`` for none, 0 if the list is about to show others.
        ///   - place: A seq of the part of the channel's cached messages that it shows; nil for none.
        func shows(from first: Seq, at place: Seq?) {
            all.lists.withLockedValue { lists in
                lists.shown[number]?.first = first
                lists.shown[number]?.place = place
            }
        }

        /// Keeps all messages of the channel while a page is on its way into the list.
        func beginMove() { all.lists.withLockedValue { $0.shown[number]?.moveCount += 1 } }

        func endMove() { all.lists.withLockedValue { $0.shown[number]?.moveCount -= 1 } }
    }
}
