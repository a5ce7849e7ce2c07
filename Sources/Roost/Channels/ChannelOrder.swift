import RoostAPI

/// A channel's place in a list.
///
/// A class, so moving one within a list of thousands moves only eight bytes for each place in between.
final class ChannelPlace: Sendable {
    let id: ChannelID
    /// 0 comes before 1.
    let group: Int
    /// Higher values come first.
    let time: Int64
    /// Lower values come first. Nil for orders by time, where the highest id comes first.
    let name: String?
    let unreadCount: Int
    /// Whether totals leave the channel out.
    let isMuted: Bool

    /// What it adds to a total. A total has room for all channels, whatever a broken server sends for one.
    var countedUnread: Int { isMuted ? 0 : min(unreadCount, Int(Int32.max)) }

    init(id: ChannelID, group: Int = 0, time: Int64 = 0, name: String? = nil, unreadCount: Int, isMuted: Bool = false) {
        self.id = id
        self.group = group
        self.time = time
        self.name = name
        self.unreadCount = unreadCount
        self.isMuted = isMuted
    }

    func isBefore(_ other: ChannelPlace) -> Bool {
        if group != other.group { return group < other.group }
        if time != other.time { return time > other.time }
        guard let name, let otherName = other.name else { return id > other.id }
        return (name, id) < (otherName, other.id)
    }
}

/// The channels of a list in order: all of them, even those whose rows aren't loaded yet.
///
/// It moves single channels, so a change costs a look-up and no query, however long the list is.
struct ChannelOrder {
    private(set) var places: [ChannelPlace]
    private var byID: [ChannelID: ChannelPlace]
    /// The total over all channels.
    var unreadCount: Int { Int(clamping: countedUnread) }
    private var countedUnread: Int64

    /// Whether the list is in the reverse of its sort's usual direction.
    private let isReversed: Bool

    init(_ places: [ChannelPlace] = [], isReversed: Bool = false) {
        self.isReversed = isReversed
        self.places = places.sorted { isReversed ? $1.isBefore($0) : $0.isBefore($1) }
        byID = Dictionary(places.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        countedUnread = places.reduce(0) { $0 + Int64($1.countedUnread) }
    }

    func holds(_ id: ChannelID) -> Bool { byID[id] != nil }

    /// A channel's index; nil if it isn't in the list.
    func index(of id: ChannelID) -> Int? { byID[id].map { index(of: $0) } }

    /// Moves a channel to its current place; nil removes it. Returns its index before and after.
    @discardableResult
    mutating func set(_ place: ChannelPlace?, for id: ChannelID) -> (from: Int?, to: Int?) {
        let old = byID.updateOrRemove(place, for: id)
        countedUnread += Int64(place?.countedUnread ?? 0) - Int64(old?.countedUnread ?? 0)
        let from = old.map { index(of: $0) }
        guard let place else {
            if let from { places.remove(at: from) }
            return (from, nil)
        }
        guard let from else {
            let to = index(of: place)
            places.insert(place, at: to)
            return (nil, to)
        }
        let to = index(of: place)
        // The insertion index shifts by one once the old place is removed.
        let target = to <= from ? to : to - 1
        move(from: from, to: target, place)
        return (from, target)
    }

    /// Inserts a place at one index and removes the one at another.
    ///
    /// Only the places between the two move, by one. They move as one block of memory: moved one by one, the thousands between the middle of a long
    /// list and its beginning took a twentieth of the cost of a message.
    private mutating func move(from: Int, to: Int, _ place: ChannelPlace) {
        places.withUnsafeMutableBufferPointer { places in
            _ = places.moveElement(from: from)
            if to < from {
                _ = places[(to + 1)...from].moveInitialize(fromContentsOf: places[to..<from])
            } else {
                _ = places[from..<to].moveInitialize(fromContentsOf: places[(from + 1)..<(to + 1)])
            }
            places.initializeElement(at: to, to: place)
        }
    }

    /// The index of a channel's place, or the index at which it would be inserted.
    private func index(of place: ChannelPlace) -> Int {
        places.partitioningIndex { isReversed ? !place.isBefore($0) : !$0.isBefore(place) }
    }
}

extension Dictionary {
    /// Sets or removes a value, and returns the previous one.
    fileprivate mutating func updateOrRemove(_ value: Value?, for key: Key) -> Value? {
        if let value { updateValue(value, forKey: key) } else { removeValue(forKey: key) }
    }
}
