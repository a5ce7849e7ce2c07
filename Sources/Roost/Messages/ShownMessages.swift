import NIOConcurrencyHelpers
import RoostAPI

/// The messages that a chat's lists show: they stay in the cache when it is trimmed, and when pages at other places arrive.
///
/// Messages that are about to be deleted are noted under the same lock: either a list shows a message and it stays, or the list takes it for deleted.
final class ShownMessages: Sendable {
    private struct Shown {
        var channel: ChannelID
        /// A list that hasn't shown anything yet may open at any message.
        var first: Seq = 0
        /// A seq of the part of the channel's cached messages that the list shows; nil while it shows nothing.
        var place: Seq?
        /// The number of pages on their way into the list.
        var moveCount = 0
    }

    private struct State {
        var last = 0
        /// Keyed by the lists' numbers.
        var shown: [Int: Shown] = [:]
        /// The seqs from which channels keep their messages, while the earlier ones are being deleted.
        var starts: [ChannelID: Seq] = [:]
        /// How many times messages were deleted, and the last of them for each channel with a list.
        var trimCount = 0
        var trimmed: [ChannelID: (count: Int, start: Seq)] = [:]

        var firsts: [ChannelID: Seq] {
            shown.values.reduce(into: [:]) { firsts, shown in
                firsts[shown.channel] = min(firsts[shown.channel] ?? .max, shown.moveCount > 0 ? 0 : shown.first)
            }
        }
    }

    private let lists = NIOLockedValueBox(State())

    /// The first shown message of each channel; 0 while a list may move to any message.
    var firsts: [ChannelID: Seq] { lists.withLockedValue { $0.firsts } }

    /// Notes that messages are about to be deleted. From then on, lists don't show them.
    ///
    /// - Parameter starts: The seqs from which channels keep their messages.
    /// - Returns: False if a list shows some of the earlier ones, or may move to them. Nothing is noted then.
    func beginTrimming(_ starts: [ChannelID: Seq]) -> Bool {
        lists.withLockedValue { lists in
            let firsts = lists.firsts
            guard starts.allSatisfy({ $0.value <= firsts[$0.key] ?? .max }) else { return false }
            lists.starts = starts
            lists.trimCount += starts.isEmpty ? 0 : 1
            lists.trimmed = lists.trimmed.filter { firsts[$0.key] != nil }
            for (channel, start) in starts where firsts[channel] != nil { lists.trimmed[channel] = (lists.trimCount, start) }
            return true
        }
    }

    /// Records that what was noted is deleted, or couldn't be.
    func endTrimming() { lists.withLockedValue { $0.starts = [:] } }

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

        /// What is known of deletions when a read begins.
        struct Moment {
            /// The seq from which the channel keeps its messages, while the earlier ones are being deleted; nil while none are.
            var start: Seq?
            /// How many times messages were deleted until then.
            fileprivate var trimCount: Int
        }

        var now: Moment {
            all.lists.withLockedValue { lists in
                Moment(start: lists.shown[number].flatMap { lists.starts[$0.channel] }, trimCount: lists.trimCount)
            }
        }

        /// Records what the list shows.
        ///
        /// - Parameters:
        ///   - first: The first message that has to stay: ``Seq/max`` for none, 0 if the list is about to show others.
        ///   - place: The seq of the first message that it shows; nil for none.
        ///   - moment: When what it shows was read.
        /// - Returns: False if the deletion of that message has begun since. Nothing is recorded then, and the list has to read again.
        func shows(from first: Seq, at place: Seq?, readAt moment: Moment) -> Bool {
            all.lists.withLockedValue { lists in
                guard let channel = lists.shown[number]?.channel else { return true }
                if let place, let last = lists.trimmed[channel], last.count > moment.trimCount, place < last.start { return false }
                lists.shown[number]?.first = first
                lists.shown[number]?.place = place
                return true
            }
        }

        /// Keeps all messages of the channel while a page is on its way into the list.
        func beginMove() { all.lists.withLockedValue { $0.shown[number]?.moveCount += 1 } }

        func endMove() { all.lists.withLockedValue { $0.shown[number]?.moveCount -= 1 } }
    }
}
