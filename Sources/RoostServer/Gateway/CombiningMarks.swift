import RoostAPI

/// Counts the combining marks that stand in a row, such as accents above one letter.
///
/// Swift compares and hashes text by its canonical form, for which a row of marks is sorted by insertion. Of a row as long as a message, one comparison would take
/// minutes. Text of every language has a few in a row, and Unicode's stream-safe format 30 (UAX #15).
struct CombiningMarks {
    private var count = 0

    /// Takes the next scalar of a text.
    ///
    /// - Returns: Whether so many marks may be in a row.
    mutating func take(_ scalar: UInt32) -> Bool {
        count = Self.isMark(scalar) ? count + 1 : 0
        return count <= Limits.combiningMarks
    }

    /// A text begins, or goes on with what isn't a mark.
    mutating func begin() { count = 0 }

    /// Throws if a text has more in a row than may be.
    static func requireFew(in text: String, field: String) throws(RoostError) {
        guard text.utf8.contains(where: { $0 >= firstLeadingByte }) else { return }
        var marks = CombiningMarks()
        for scalar in text.unicodeScalars where !marks.take(scalar.value) { throw tooMany(field) }
    }

    static func tooMany(_ field: String) -> RoostError {
        .limitExceeded(field, limit: Limits.combiningMarks, unit: "combining marks in a row")
    }

    /// The first byte of the marks in UTF-8: what begins with a lower one is none.
    static let firstLeadingByte: UInt8 = 0xCC

    private static func isMark(_ value: UInt32) -> Bool {
        // Most of what is written in ideographs and Hangul is looked up nowhere.
        guard value >= 0x300, !(0x3400...0xA48F).contains(value), !(0xAC00...0xD7A3).contains(value) else { return false }
        guard let scalar = Unicode.Scalar(value) else { return false }
        // Three vowel signs of Tibetan aren't marks themselves, and stand for two each.
        return scalar.properties.canonicalCombiningClass != .notReordered || value == 0x0F73 || value == 0x0F75 || value == 0x0F81
    }
}
