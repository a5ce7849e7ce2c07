import Foundation

/// How names are found by a part of them and put in order, the same in the server's queries and in the lists of the SDK (MN-14, X-21).
package enum NameKey {
    /// A name as it is compared: without regard to case, diacritics and width.
    package static func of(_ name: String?) -> String {
        guard let name else { return "" }
        let folded = name.folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
        return String(folded.prefix(Limits.displayNameLength)).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Whether a name's key holds a part's key: one of one or two letters at the beginning of a word, a longer one in any place.
    package static func holds(_ part: String, in key: String) -> Bool {
        part.count > 2 ? key.contains(part) : words(of: key).contains { $0.hasPrefix(part) }
    }

    package static func words(of key: String) -> [Substring] { key.split { !($0.isLetter || $0.isNumber) } }
}
