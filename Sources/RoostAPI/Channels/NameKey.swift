import Foundation

/// The keys by which names are searched and sorted, the same in the server's queries and in the SDK's lists (MN-14, X-21).
package enum NameKey {
    /// Changes whenever a name can get another key than before. The SDK's cache is fetched again then; the server needs a step in its migrations.
    package static let version = 2

    /// Returns a name's key, which ignores case, diacritics and width. Each letter has one form, since a database compares bytes, and the
    /// key is short enough for a cursor.
    package static func of(_ name: String?) -> String {
        guard let name else { return "" }
        if let key = ofLetters(name) { return key }
        let folded = name.folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
            .inFormC
        var key = ""
        var bytes = 0
        for letter in folded.plainLetters.prefix(Limits.displayNameLength) {
            let isControl = letter.unicodeScalars.contains { $0.properties.generalCategory == .control }
            let letter = isControl ? " " : letter
            bytes += letter.utf8.count
            if bytes > sizeBytes { break }
            key.append(letter)
        }
        return key.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// The fast path for names of basic letters, digits and single spaces, as most are; nil for others. A list of thousands of channels
    /// computes as many keys.
    private static func ofLetters(_ name: String) -> String? {
        guard name.utf8.count <= Limits.displayNameLength else { return nil }
        var key: [UInt8] = []
        key.reserveCapacity(name.utf8.count)
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): key.append(byte)
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): key.append(byte | 0x20)
            case UInt8(ascii: " "): if key.last != nil { key.append(byte) } else { return nil }
            default: return nil
            }
        }
        guard key.last != UInt8(ascii: " ") else { return nil }
        return String(decoding: key, as: UTF8.self)
    }

    /// The maximum size of a key: four bytes for each character of the longest name.
    private static let sizeBytes = Limits.displayNameLength * 4

    /// Returns whether a name's key contains a part's key: a part of one or two letters at the beginning of a word, a longer one anywhere.
    package static func holds(_ part: String, in key: String) -> Bool {
        guard isShort(part) else { return key.range(of: part, options: .literal) != nil }
        return words(of: key).contains { $0.unicodeScalars.starts(with: part.unicodeScalars) }
    }

    /// Returns whether a part's key has one or two letters. A letter is a Unicode scalar here, because databases compare scalars; a
    /// character can have several, as in Devanagari.
    package static func isShort(_ part: String) -> Bool { part.unicodeScalars.count <= 2 }

    package static func words(of key: String) -> [Substring] { key.split { !($0.isLetter || $0.isNumber) } }
}

extension String {
    /// The text with basic letters in place of those that Unicode doesn't decompose, such as `ø`.
    fileprivate var plainLetters: String {
        guard unicodeScalars.contains(where: { Self.plain[$0] != nil }) else { return self }
        var result = ""
        for scalar in unicodeScalars {
            if let letters = Self.plain[scalar] { result += letters } else { result.unicodeScalars.append(scalar) }
        }
        return result
    }

    /// Lowercase letters with a stroke, a hook or a bar, and letters that combine two.
    private static let plain: [Unicode.Scalar: String] = [
        "\u{DF}": "ss", "\u{1E9E}": "ss", "æ": "ae", "œ": "oe", "ĳ": "ij", "þ": "th", "ŋ": "ng", "ð": "d", "ĸ": "k", "ə": "e",
        "ı": "i",
        "ȷ": "j", "ø": "o", "ɵ": "o", "ł": "l", "ƚ": "l", "ɫ": "l", "ⱡ": "l", "đ": "d", "ɖ": "d", "ɗ": "d", "ħ": "h", "ⱨ": "h",
        "ŧ": "t",
        "ƭ": "t", "ʈ": "t", "ⱦ": "t", "ƀ": "b", "ɓ": "b", "ƃ": "b", "ƈ": "c", "ȼ": "c", "ɇ": "e", "ɛ": "e", "ƒ": "f", "ǥ": "g",
        "ɠ": "g", "ɨ": "i", "ɩ": "i", "ɉ": "j", "ƙ": "k", "ⱪ": "k", "ɲ": "n", "ƞ": "n", "ɔ": "o", "ƥ": "p", "ᵽ": "p", "ɍ": "r",
        "ɽ": "r",
        "ʂ": "s", "ȿ": "s", "ʉ": "u", "ʊ": "u", "ʋ": "v", "ⱳ": "w", "ɏ": "y", "ƴ": "y", "ƶ": "z", "ȥ": "z", "ɀ": "z", "ʒ": "z",
        "ⱥ": "a",
        "ς": "σ",
    ]
}
