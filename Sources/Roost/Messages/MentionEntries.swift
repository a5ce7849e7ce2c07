import RoostAPI

/// The list of mentions in metadata, as written. Its mentions can be replaced. Entries that this version doesn't know, such as a newer client's types
/// or an app's own, stay as they are (MN-06).
struct MentionEntries: Hashable, Sendable {
    private enum Entry: Hashable, Sendable {
        case mention
        /// An unknown entry and its part of the text in UTF-16 code units; nil if it names none, or if the text isn't known.
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

    /// Determines which parts of a text of the given number of UTF-16 code units unknown entries name. The numbers in such an entry may mean
    /// something other than a place in the text: an entry outside the text stays as it is.
    mutating func place(inTextOf count: Int) {
        entries = entries.map { (entry: Entry) -> Entry in
            guard case .unknown(let json, _) = entry, case .object(let members) = json,
                let placed = TextMention(placeIn: members)?.placed(inTextOf: count)
            else { return entry }
            return Entry.unknown(json, part: placed.part)
        }
    }

    /// Moves unknown entries with their parts of the text, as mentions move; removes entries whose part changed.
    mutating func move(by change: TextChange) {
        entries = entries.compactMap { (entry: Entry) -> Entry? in
            guard case .unknown(let json, let part?) = entry, case .object(var members) = json else { return entry }
            guard let distance = change.distance(of: part) else { return nil }
            guard distance != 0 else { return entry }
            members["index"] = .integer(Int64(part.lowerBound + distance))
            return Entry.unknown(.object(members), part: part.lowerBound + distance..<part.upperBound + distance)
        }
    }

    /// The list with other mentions: each in the place of a former one, in order, and any more at the end.
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

/// A change of a text: the text before and after it stays. All positions are in UTF-16 code units.
struct TextChange {
    /// The number of units before it.
    private let start: Int
    /// The end of the replaced part, in the former text.
    private let end: Int
    /// How far the text after it moves.
    private let difference: Int

    /// Compares two texts.
    ///
    /// The place of a change can be ambiguous: a second "@" may have been inserted before or after the one of a mention. It is then assumed to be
    /// where most parts stay.
    init(from old: String, to new: String, keeping parts: [Range<Int>]) {
        let (old, new) = (Array(old.utf16), Array(new.utf16))
        let shorter = min(old.count, new.count)
        var start = 0
        while start < shorter, old[start] == new[start] { start += 1 }
        var end = 0
        while end < shorter, old[old.count - 1 - end] == new[new.count - 1 - end] { end += 1 }
        // The text between the two was replaced, or text was inserted or removed anywhere between the two places.
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

    /// How far a part of the former text moves; nil if it isn't entirely before or entirely after the change.
    func distance(of part: Range<Int>) -> Int? {
        if part.upperBound <= start { return 0 }
        return part.lowerBound >= end ? difference : nil
    }
}
