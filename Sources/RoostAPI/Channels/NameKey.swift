import Foundation

/// How names are found by a part of them and put in order, the same in the server's queries and in the lists of the SDK (MN-14,
///
package enum NameKey {
    /// A name as it is compared, without regard to case, diacritics and width: each letter written in one way, since a database
    /// compares bytes; and short enough to stand in a cursor.
    package static func of(_ name: String?) -> String {
        guard let name else { return "" }
        let folded = name.folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
            .precomposedStringWithCanonicalMapping
        var key = ""
        var bytes = 0
        for letter in folded.prefix(Limits.displayNameLength) {
            let isControl = letter.unicodeScalars.contains { $0.properties.generalCategory == .control }
            let letter = isControl ? " " : letter
            bytes += letter.utf8.count
            if bytes > sizeBytes { break }
            key.append(letter)
        }
        return key.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Bytes of a key: four for each character of the longest name.
    private static let sizeBytes = Limits.displayNameLength * 4

    /// Whether a name's key holds a part's key: one of one or two letters at the beginning of a word, a longer one in any place.
    package static func holds(_ part: String, in key: String) -> Bool {
        part.count > 2 ? key.range(of: part, options: .literal) != nil : words(of: key).contains { $0.hasPrefix(part) }
    }

    package static func words(of key: String) -> [Substring] { key.split { !($0.isLetter || $0.isNumber) } }
}
