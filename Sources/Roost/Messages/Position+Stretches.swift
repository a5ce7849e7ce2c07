import Foundation
import RoostAPI

/// A channel's cached messages are the newest ones, from the start of the window, and *stretches* of older ones at which an app has opened a list.
/// Each has all messages from one seq to another.
///
/// Parts that touch are joined, so a list that stays within a part never meets a gap.
extension Position {
    /// The maximum number of stretches kept for a channel. Beyond that, the one extended longest ago is dropped, except those that a list shows.
    static let stretchesMax = 8

    /// Whether the message at a seq is cached, if there is one that the user may see.
    func holds(_ seq: Seq) -> Bool { seq >= windowStart || stretches.contains { $0.contains(seq) } }

    /// The part that contains a seq: the part with the newest messages has no upper end. Nil if none does.
    func part(holding seq: Seq) -> ClosedRange<Seq>? {
        seq >= windowStart ? windowStart...Seq.max : stretches.first { $0.contains(seq) }
    }

    /// The stretches as stored in the cache; nil if there are none.
    var storedStretches: String? {
        get throws { stretches.isEmpty ? nil : String(decoding: try StoredJSON.encode(stretches), as: UTF8.self) }
    }

    /// Decodes ``storedStretches``.
    static func stretches(_ stored: String?) throws -> [ClosedRange<Seq>] {
        try stored.map { try StoredJSON.decode(from: Data($0.utf8)) } ?? []
    }

    /// Adds a page, which has all messages of a range.
    ///
    /// - Parameter shown: A seq of each part that a list shows. These parts stay, however many they are.
    /// - Returns: The stretches dropped to make room: their messages must be deleted.
    mutating func insert(_ page: ClosedRange<Seq>, keeping shown: Set<Seq> = []) -> [ClosedRange<Seq>] {
        add(page)
        let surplusCount = max(0, stretches.count - Self.stretchesMax)
        // The last stretch was extended by the page, and a caller waits for it.
        let unshown = stretches.dropLast().filter { stretch in !shown.contains { stretch.contains($0) } }
        let surplus = Array(unshown.prefix(surplusCount))
        stretches.removeAll { surplus.contains($0) }
        return surplus
    }

    /// Adds a page without dropping stretches: the cache keeps the stretches of all chats that share it.
    mutating func add(_ page: ClosedRange<Seq>) {
        var joined = page
        for stretch in stretches where stretch.touches(page) {
            joined = min(joined.lowerBound, stretch.lowerBound)...max(joined.upperBound, stretch.upperBound)
        }
        stretches.removeAll { $0.touches(joined) }
        guard !joined.reaches(windowStart) else {
            windowStart = min(windowStart, joined.lowerBound)
            return
        }
        stretches.append(joined)
    }

    /// Drops the stretches, and the window's messages before a seq.
    mutating func trim(to start: Seq) {
        windowStart = max(windowStart, start)
        stretches = []
    }

    /// Drops the stretches that overlap a range.
    ///
    /// - Returns: The ranges whose messages must be deleted. The newest messages stay, even within the range.
    mutating func remove(_ range: ClosedRange<Seq>) -> [ClosedRange<Seq>] {
        var gone = stretches.filter(range.overlaps)
        stretches.removeAll(where: range.overlaps)
        if range.lowerBound < windowStart {
            gone.append(range.lowerBound...min(range.upperBound, windowStart.subtractingWithSaturation(1)))
        }
        return gone
    }
}

extension ClosedRange<Seq> {
    /// Whether there is no seq between the two.
    fileprivate func touches(_ other: ClosedRange<Seq>) -> Bool {
        reaches(other.lowerBound) && other.reaches(lowerBound)
    }

    /// Whether it extends at least to the seq before the given one.
    fileprivate func reaches(_ seq: Seq) -> Bool { upperBound >= seq.subtractingWithSaturation(1) }
}
