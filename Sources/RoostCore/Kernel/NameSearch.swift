import RoostAPI

/// Finds names by a part of them, ignoring case and diacritics (MN-14, X-21).
///
/// A name is folded into a key. The key's grams, all runs of three letters and the first one and two of every word, are rows of
/// an index: a search looks up the names with the part's rarest gram, and compares their keys. A part of one or two letters
/// matches the beginning of a word, a longer one any place. A letter is a Unicode scalar, since the database compares keys by
/// these: with grams of characters, which can have several scalars, a search would miss names that it matches.
struct NameSearch {
    /// The kind of thing a name belongs to.
    enum Kind: String, CaseIterable, WireEnumeration { case user, channel }

    /// The search text, folded.
    private let part: String

    /// Nil for a text that folds to nothing.
    init?(_ part: String) {
        self.part = Self.key(of: part)
        if self.part.isEmpty { return nil }
    }

    /// Returns the form in which a name is compared.
    static func key(of name: String?) -> String { NameKey.of(name) }

    /// Returns the condition for a matching name.
    ///
    /// - Parameters:
    ///   - id: The column with the id of the name's owner.
    ///   - key: The column with the name's key.
    func condition(_ kind: Kind, id: SQL, key: SQL) -> SQL {
        guard !NameKey.isShort(part) else {
            return "EXISTS (SELECT 1 FROM name_grams g WHERE g.kind = \(kind) AND g.gram = \("^" + part) AND g.id = \(id))"
        }
        var pattern = "%"
        for scalar in part.unicodeScalars {
            if scalar == "%" || scalar == "_" || scalar == "!" { pattern += "!" }
            pattern.unicodeScalars.append(scalar)
        }
        return "\(key) LIKE \(pattern + "%") ESCAPE '!'"
    }

    /// Returns the ids whose names contain the rarest of the grams: all that can match; nil if there are too many to check each.
    func candidates(_ kind: Kind, max: Int, in transaction: any Transaction) throws -> [String]? {
        var rarest: (gram: String, count: Int)?
        for gram in grams.prefix(Self.gramsTried) {
            let sql: SQL = """
                SELECT COUNT(*) FROM (SELECT 1 FROM name_grams g WHERE g.kind = \(kind) AND g.gram = \(gram) LIMIT \(max + 1)) AS counted
                """
            let count = try transaction.first(sql) { $0.int() } ?? 0
            if count < rarest?.count ?? .max { rarest = (gram, count) }
            // Finding a rarer one would cost more than it saves.
            if count <= Self.fewCandidates { break }
        }
        guard let rarest, rarest.count <= max else { return nil }
        return try transaction.rows("SELECT g.id FROM name_grams g WHERE g.kind = \(kind) AND g.gram = \(rarest.gram)") {
            $0.string()
        }
    }

    private static let gramsTried = 16
    private static let fewCandidates = 100

    /// The grams that every matching name has.
    private var grams: [String] {
        NameKey.isShort(part) ? ["^" + part] : Self.runs(of: part)
    }

    /// The grams of a name's key, compared by their bytes as the table compares them.
    static func grams(of key: String) -> Set<SortKey> {
        var grams = Set(runs(of: key).map(SortKey.text))
        for word in NameKey.words(of: key) {
            let letters = word.unicodeScalars
            for count in 1...2 where letters.count >= count { grams.insert(.text("^" + String(letters.prefix(count)))) }
        }
        return grams
    }

    private static func runs(of key: String) -> [String] {
        let letters = Array(key.unicodeScalars)
        guard letters.count > 2 else { return [] }
        return (0...(letters.count - 3)).map { String(String.UnicodeScalarView(letters[$0..<($0 + 3)])) }
    }
}

extension Transaction {
    /// Indexes a name by its parts, replacing the former one.
    func indexName(_ kind: NameSearch.Kind, id: String, before: String?, after: String?) throws {
        try indexKey(kind, id: id, before: NameSearch.key(of: before), after: NameSearch.key(of: after))
    }

    /// The same, given the keys of the names.
    func indexKey(_ kind: NameSearch.Kind, id: String, before: String, after: String) throws {
        try indexGrams(kind, id: id, before: NameSearch.grams(of: before), after: NameSearch.grams(of: after))
    }

    /// The same, given the grams of the names.
    func indexGrams(_ kind: NameSearch.Kind, id: String, before old: Set<SortKey>, after new: Set<SortKey>) throws {
        for gram in old.subtracting(new).sorted() {
            try perform("DELETE FROM name_grams WHERE kind = \(kind) AND gram = \(gram.sql) AND id = \(id)")
        }
        for gram in new.subtracting(old).sorted() {
            try perform(
                "INSERT INTO name_grams (kind, gram, id) VALUES (\(kind), \(gram.sql), \(id)) ON CONFLICT (kind, gram, id) DO NOTHING"
            )
        }
    }
}
