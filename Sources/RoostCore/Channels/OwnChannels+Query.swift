import RoostAPI

/// Pages of the channels kept between reads. A test compares them with the results of statements.
extension QueryChannels {
    /// Returns a source of the caller's own channels from the kept ones; nil if the query needs more than is kept of them, or none are kept.
    func cachedOwnChannels(of user: UserID, in transaction: any Transaction) throws -> Walk.Source<ChannelID>? {
        guard isServedByCache, let rows = try transaction.cachedOwnChannels(of: user) else { return nil }
        return { page in
            KeptPage(page, of: rows, by: self).places(among: rows, matching: self).map { place in
                let row = rows[place.index]
                let key =
                    effectiveSort == .unreadFirst
                    ? [SortKey.integer(row.isUnread ? 1 : 0), .integer(row.listAt)] : [.integer(place.second)]
                return Walk.Entry(place: key + [.text(row.channel.rawValue)], row: row.channel)
            }
        }
    }

    /// Whether it uses only the filters and orders that ``matches(_:)`` and ``keys(of:)`` support.
    private var isServedByCache: Bool {
        guard effectiveSort == .lastMessage || effectiveSort == .lastActivity || effectiveSort == .unreadFirst,
            includeDeleted != true
        else { return false }
        let known = QueryChannels(
            membership: membership, includeDeleted: includeDeleted, includeEmpty: includeEmpty, hidden: hidden,
            unreadOnly: unreadOnly,
            sort: sort, order: order, limit: limit, cursor: cursor)
        return self == known
    }

    fileprivate func matches(_ row: OwnChannel) -> Bool {
        if includeEmpty == false, row.states.contains(.empty) { return false }
        if unreadOnly == true, !row.isUnread { return false }
        switch hidden ?? .unhiddenOnly {
        case .unhiddenOnly: return row.states.isDisjoint(with: [.hiddenUntilNewMessage, .archived])
        case .hiddenOnly: return !row.states.isDisjoint(with: [.hiddenUntilNewMessage, .archived])
        case .hiddenAllowAutoUnhide: return row.states.contains(.hiddenUntilNewMessage)
        case .hiddenPreventAutoUnhide: return row.states.contains(.archived)
        case .all: return true
        }
    }

    /// The values that a row is sorted by, ahead of its id.
    fileprivate func keys(of row: OwnChannel) -> (Int64, Int64) {
        switch effectiveSort {
        case .unreadFirst: (row.isUnread ? 1 : 0, row.listAt)
        case .lastActivity: (0, row.lastActivity)
        default: (0, row.listAt)
        }
    }
}

/// The place of a row in a list: two values and the index, which follows the order of the ids.
private struct KeptPlace: Comparable {
    var first: Int64
    var second: Int64
    var index: Int

    static func < (left: KeptPlace, right: KeptPlace) -> Bool {
        if left.first != right.first { return left.first < right.first }
        if left.second != right.second { return left.second < right.second }
        return left.index < right.index
    }

    /// Its place in the opposite order. The complement reverses an order, and every number has one.
    var reversed: KeptPlace { KeptPlace(first: ~first, second: ~second, index: ~index) }
}

/// A ``KeysetPage`` of the kept channels.
private struct KeptPage {
    private let isDescending: Bool
    private let count: Int
    /// Its first place, in its own direction; nil for the beginning.
    private var start: KeptPlace?

    init(_ page: KeysetPage, of rows: [OwnChannel], by query: QueryChannels) {
        (isDescending, count) = (page.isDescending, page.count)
        guard let place = page.start, let channel = place.channel else { return }
        let numbers = place.compactMap { if case .integer(let number) = $0 { number } else { nil } }
        guard let second = numbers.last else { return }
        let (index, isFound) = rows.place(of: channel)
        var first = KeptPlace(first: numbers.count > 1 ? numbers[0] : 0, second: second, index: index)
        // The start itself may be excluded, and its row may be gone: then the next row in either direction is adjacent.
        if isDescending {
            if !isFound || !page.includesStart { first.index -= 1 }
            start = first.reversed
        } else {
            if isFound, !page.includesStart { first.index += 1 }
            start = first
        }
    }

    /// Returns the places of the page's rows, in its order.
    func places(among rows: [OwnChannel], matching query: QueryChannels) -> [KeptPlace] {
        var found: [KeptPlace] = []
        found.reserveCapacity(rows.count)
        for (index, row) in rows.enumerated() where query.matches(row) {
            let keys = query.keys(of: row)
            let place = KeptPlace(first: keys.0, second: keys.1, index: index)
            let own = isDescending ? place.reversed : place
            if let start, own < start { continue }
            found.append(own)
        }
        let page = found.sortedPrefix(count)
        return isDescending ? page.map(\.reversed) : page
    }
}

extension Array where Element: Comparable {
    /// Returns the first elements of the sorted array, without sorting the rest.
    func sortedPrefix(_ count: Int) -> [Element] {
        var all = self
        // The last element of the prefix is between `low` and `high`, and all elements before `low` belong to the prefix.
        var (low, high) = (0, all.count)
        all.withUnsafeMutableBufferPointer { buffer in
            var round = 0
            // With a bound on the rounds, an unlucky order costs no more than sorting.
            while high - count > 32, round < 48 {
                let pivot = buffer[low + (high - low) / (2 + round % 3)]
                var part = UnsafeMutableBufferPointer(rebasing: buffer[low..<high])
                let middle = low + part.partition { !($0 < pivot) }
                if middle >= count { high = middle } else { low = middle }
                round += 1
            }
        }
        return Array(all[..<high].sorted().prefix(count))
    }
}
