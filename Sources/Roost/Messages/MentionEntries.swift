import RoostAPI

/// The list of mentions in metadata, as it was written. Its mentions can be replaced by others. Entries that this version doesn't know, of a newer
/// client's types or an app's own, stay as they are (MN-06).
struct MentionEntries: Hashable, Sendable {
    private enum Entry: Hashable, Sendable {
        case mention
        /// One that isn't known, and its part of the text in UTF-16 code units; nil if it names none, or the text isn't known.
        case unknown(JSONValue, part: Range<Int>?)
    }

    private var entries: [Entry] = []

    /// Reads the list; without one it is empty.
    init(in metadata: JSONValue?) {
        guard case .object(let members) = metadata, case .array(let values) = members[MentionMapper.key] else { return }
        entries = values.map { value in
            if TextMention(json: value) == nil { Entry.unknown(value, part: nil) } else { Entry.mention }
        }
    }

    /// The parts of the text that unknown entries name.
    var parts: [Range<Int>] {
        entries.compactMap { (entry: Entry) -> Range<Int>? in
            guard case .unknown(_, let part) = entry else { return nil }
            return part
        }
    }

    /// Notes which parts of a text of so many UTF-16 code units unknown entries name. What such an entry says may mean something else than a place in the text: one
    /// outside of it stays as it is.
    mutating func place(inTextOf count: Int) {
        entries = entries.map { (entry: Entry) -> Entry in
            guard case .unknown(let json, _) = entry, case .object(let members) = json,
                let placed = TextMention(placeIn: members)?.placed(inTextOf: count)
            else { return entry }
            return Entry.unknown(json, part: placed.part)
        }
    }

    /// Moves unknown entries with their parts of the text, as mentions move; leaves out those whose part changed.
    mutating func move(by change: TextChange) {
        entries = entries.compactMap { (entry: Entry) -> Entry? in
            guard case .unknown(let json, let part?) = entry, case .object(var members) = json else { return entry }
            guard let distance = change.distance(of: part) else { return nil }
            guard distance != 0 else { return entry }
            members["index"] = .integer(Int64(part.lowerBound + distance))
            return Entry.unknown(.object(members), part: part.lowerBound + distance..<part.upperBound + distance)
        }
    }

    /// The list with other mentions: each in the place of a former one, in their order, and those that are more at the end.
    func list(with mentions: [TextMention]) -> [JSONValue] {
        var left = mentions[...]
        var list: [JSONValue] = []
        for entry in entries {
            switch entry {
            case .mention:
                if let mention = left.popFirst() { list.append(mention.json) }
            case .unknown(let json, _): list.append(json)
            }
        }
        return list + left.map(\.json)
    }
}

/// A change of a text: what stands before and behind it stays. All is counted in UTF-16 code units.
struct TextChange {
    /// The units before it.
    private let start: Int
    /// The end of what was replaced, in the former text.
    private let end: Int
    /// By how much what stands behind it moves.
    private let difference: Int

    /// Compares two texts.
    ///
    /// A change may have been made in more than one place: a second "@" before the one of a mention, or behind it. Then it was made where the most
    /// parts stay.
    init(from old: String, to new: String, keeping parts: [Range<Int>]) {
        let (old, new) = (Array(old.utf16), Array(new.utf16))
        let shorter = min(old.count, new.count)
        var start = 0
        while start < shorter, old[start] == new[start] { start += 1 }
        var end = 0
        while end < shorter, old[old.count - 1 - end] == new[new.count - 1 - end] { end += 1 }
        // What lies between the two was replaced; or text was put in or taken out anywhere from one place to the other.
        let places = start + end < shorter ? [(start, end)] : [(start, shorter - start), (shorter - end, end)]
        let changes = places.map { start, end in
            TextChange(start: start, end: old.count - end, difference: new.count - old.count)
        }
        let kept = changes.map { change in parts.count { change.distance(of: $0) != nil } }
        self = changes[kept.count == 2 && kept[1] > kept[0] ? 1 : 0]
    }

    private init(start: Int, end: Int, difference: Int) {
        (self.start, self.end, self.difference) = (start, end, difference)
    }

    /// By how much a part of the former text moves; nil if it isn't all before or all behind the change.
    func distance(of part: Range<Int>) -> Int? {
        if part.upperBound <= start { return 0 }
        return part.lowerBound >= end ? difference : nil
    }
}
