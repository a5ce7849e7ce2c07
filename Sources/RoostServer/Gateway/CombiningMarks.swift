import RoostAPI

/// Counts consecutive combining marks, such as accents above one letter.
///
/// Swift compares and hashes text by its canonical form, which puts consecutive marks in order with an insertion sort. With a run as long as
/// a message, one comparison would take minutes. Real text has only a few in a row; Unicode's stream-safe format allows 30 (UAX #15).
struct CombiningMarks {
    private var count = 0

    /// Takes the next scalar of a text.
    ///
    /// - Returns: Whether the current run of marks is within the limit.
    mutating func take(_ scalar: UInt32) -> Bool {
        count = Self.isMark(scalar) ? count + 1 : 0
        return count <= Limits.combiningMarks
    }

    /// Resets the count: a text begins, or continues with something other than a mark.
    mutating func begin() { count = 0 }

    /// Throws if a text has more consecutive marks than allowed.
    static func requireWithinLimit(in text: String, field: String) throws(RoostError) {
        guard text.utf8.contains(where: { $0 >= firstLeadingByte }) else { return }
        var marks = CombiningMarks()
        for scalar in text.unicodeScalars where !marks.take(scalar.value) { throw tooMany(field) }
    }

    static func tooMany(_ field: String) -> RoostError {
        .limitExceeded(field, limit: Limits.combiningMarks, unit: "combining marks in a row")
    }

    /// The lowest first byte of a mark in UTF-8: scalars with a lower one aren't marks.
    static let firstLeadingByte: UInt8 = 0xCC

    private static func isMark(_ value: UInt32) -> Bool {
        // Spares most ideographs and Hangul the lookup.
        guard value >= 0x300, !(0x3400...0xA48F).contains(value), !(0xAC00...0xD7A3).contains(value) else { return false }
        guard let scalar = Unicode.Scalar(value) else { return false }
        // Three Tibetan vowel signs aren't marks in this sense, but each decomposes into two.
        return scalar.properties.canonicalCombiningClass != .notReordered || value == 0x0F73 || value == 0x0F75 || value == 0x0F81
    }
}
