/// A JSON number, and whether its stored form is exact.
///
/// A whole number is stored as 64 bits, any other as the nearest double. A fraction must have at most 17 digits, so none are lost; a whole
/// number must not lose anything.
struct JSONNumber {
    /// The index after the number.
    let end: Int
    private let text: String
    private let isWhole: Bool

    /// Reads the longest number that begins at an index; nil if none does.
    init?(_ bytes: [UInt8], from start: Int) {
        var index = start
        func digits() -> Int {
            var count = 0
            while index < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[index]) {
                index += 1
                count += 1
            }
            return count
        }
        func skip(_ choices: String) -> Bool {
            guard index < bytes.count, choices.utf8.contains(bytes[index]) else { return false }
            index += 1
            return true
        }
        _ = skip("-")
        if !skip("0"), digits() == 0 { return nil }
        var isWhole = true
        if skip(".") {
            isWhole = false
            if digits() == 0 { return nil }
        }
        if skip("eE") {
            isWhole = false
            _ = skip("+-")
            if digits() == 0 { return nil }
        }
        end = index
        self.isWhole = isWhole
        text = String(decoding: bytes[start..<index], as: UTF8.self)
    }

    var isExact: Bool {
        if isWhole { return text.utf8.count <= 18 || Int64(text) != nil }
        let written = Self.significand(text)
        // Up to 15 digits are stored exactly, in the range of doubles.
        guard let value = Double(text), value.isFinite, value != 0 || written.isEmpty else { return false }
        if written.count <= 15 { return true }
        return written == Self.significand("\(value)") || written.count <= 17 && value.magnitude < 9_007_199_254_740_992
    }

    /// The digits of a number without its sign, point, exponent and outer zeroes.
    private static func significand(_ text: String) -> [UInt8] {
        let digits = text.utf8.prefix { $0 != UInt8(ascii: "e") && $0 != UInt8(ascii: "E") }
            .filter { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let zero = UInt8(ascii: "0")
        guard let last = digits.lastIndex(where: { $0 != zero }) else { return [] }
        return Array(digits[...last].drop { $0 == zero })
    }
}
