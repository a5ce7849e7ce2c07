import Foundation
import RoostAPI

/// Checks a client's JSON before it is decoded: whether it is strictly JSON (RFC 8259), whether decoding it costs too much, whether an object
/// has a duplicate key, and whether each number can be stored exactly.
///
/// Foundation reads about one value per microsecond, and free-form JSON several times slower, since it tries each value as one type after
/// another. A megabyte of `[[],[],…` would block an event loop for seconds. Foundation also accepts commas before closing brackets,
/// byte-order marks and other encodings, and silently drops one value of a duplicate key and the last digits of a long number. Here nothing
/// is accepted and then dropped. UTF-8 is checked elsewhere. Text that costs too much to compare (``CombiningMarks``) is refused before it is
/// compared.
struct JSONScan {
    /// Valid JSON that can't be stored exactly.
    struct Problem: Equatable {
        enum Kind: Equatable {
            case duplicateKey
            case inexactNumber
            case tooDeep
        }

        let kind: Kind
        /// The keys that lead to it.
        let path: [String]

        /// - Parameter path: The keys that lead to it from the object that the client knows.
        func error(at path: [String]) -> RoostError {
            if kind == .tooDeep {
                return .limitExceeded(path.first ?? "body", limit: Limits.jsonDepth, unit: "levels of nesting")
            }
            let reason =
                switch kind {
                case .duplicateKey: "is given more than once"
                case .inexactNumber, .tooDeep:
                    "can't be kept exactly: a whole number has at most 64 bits, any other at most 17 digits and the range of a double"
                }
            return path.isEmpty
                ? RoostError(.invalidArgument, "A number \(reason).") : .invalidArgument(path.joined(separator: "."), reason)
        }
    }

    /// The keys that lead to the first duplicate in its object; nil if there is none.
    private(set) var duplicate: [String]?
    /// The keys that lead to the first number that can't be stored exactly.
    private var inexact: [String]?
    /// The keys that lead to the first value that is nested too deeply.
    private var deep: [String]?

    /// The first problem; nil if everything can be stored exactly.
    var problem: Problem? {
        if let deep { return Problem(kind: .tooDeep, path: deep) }
        if let duplicate { return Problem(kind: .duplicateKey, path: duplicate) }
        return inexact.map { Problem(kind: .inexactNumber, path: $0) }
    }

    private let bytes: [UInt8]
    private var expected = Expected.value
    private var valueCount = 0
    private var containers: [Container] = []
    /// The keys of the open objects, in order.
    private var keys: [Key] = []

    /// What may follow.
    private enum Expected {
        case value
        /// After an array's opening bracket.
        case valueOrEnd
        /// After an object's opening brace.
        case keyOrEnd
        case key
        case colon
        /// After a value in an array or object: a comma or the end.
        case separator
        /// After the outermost value.
        case nothing
    }

    /// An open object or array.
    private struct Container {
        let isObject: Bool
        /// Where its keys begin.
        let firstKey: Int
        /// Its keys as text, once there are many, or any that can be written in several ways.
        var names: Set<String>?
    }

    private struct Key {
        /// Between the quotes.
        let range: Range<Int>
        let hasEscapes: Bool
    }

    /// The most keys of an object that are compared one by one.
    private static let comparedKeysMax = 16
    /// The most characters of a key that are shown.
    private static let shownKeyCharactersMax = 64

    /// - Throws: `invalid_argument` when the text isn't JSON, `limit_exceeded` when it has more than `Limits.jsonValues` values, or more than
    ///   `Limits.combiningMarks` combining marks in a row.
    init(_ bytes: [UInt8]) throws(RoostError) {
        self.bytes = bytes
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "\t"): index += 1
            case UInt8(ascii: "\""): index = try readString(from: index)
            case UInt8(ascii: "{"): index = try open(isObject: true, at: index)
            case UInt8(ascii: "["): index = try open(isObject: false, at: index)
            case UInt8(ascii: "}"): index = try close(isObject: true, at: index)
            case UInt8(ascii: "]"): index = try close(isObject: false, at: index)
            case UInt8(ascii: ","): index = try readComma(at: index)
            case UInt8(ascii: ":"):
                guard expected == .colon else { throw malformed(at: index) }
                expected = .value
                index += 1
            default: index = try readLiteral(from: index)
            }
            guard valueCount <= Limits.jsonValues else {
                throw .limitExceeded("body", limit: Limits.jsonValues, unit: "JSON values")
            }
        }
        guard expected == .nothing else { throw malformed(at: index, "unexpected end") }
    }

    /// Throws `invalid_argument` if something can't be stored exactly.
    func requireExact() throws(RoostError) {
        if let problem { throw problem.error(at: problem.path) }
    }

    /// The bytes are counted from 1.
    private func malformed(at index: Int, _ reason: String? = nil) -> RoostError {
        RoostError(.invalidArgument, "This is not JSON: \(reason ?? "unexpected input") at byte \(index + 1).")
    }

    // MARK: Structure

    private mutating func beginValue(at index: Int) throws(RoostError) {
        guard expected == .value || expected == .valueOrEnd else { throw malformed(at: index) }
    }

    private mutating func endValue() { expected = containers.isEmpty ? .nothing : .separator }

    private mutating func open(isObject: Bool, at index: Int) throws(RoostError) -> Int {
        try beginValue(at: index)
        valueCount += 1
        containers.append(Container(isObject: isObject, firstKey: keys.count))
        // The outermost keys say where it is.
        if containers.count > Limits.jsonDepth, deep == nil { deep = Array(path.prefix(2)) }
        expected = isObject ? .keyOrEnd : .valueOrEnd
        return index + 1
    }

    private mutating func close(isObject: Bool, at index: Int) throws(RoostError) -> Int {
        guard let last = containers.last, last.isObject == isObject,
            expected == .separator || expected == (isObject ? .keyOrEnd : .valueOrEnd)
        else { throw malformed(at: index) }
        containers.removeLast()
        keys.removeLast(keys.count - last.firstKey)
        endValue()
        return index + 1
    }

    private mutating func readComma(at index: Int) throws(RoostError) -> Int {
        guard expected == .separator, let last = containers.last else { throw malformed(at: index) }
        valueCount += 1
        expected = last.isObject ? .key : .value
        return index + 1
    }

    // MARK: Values

    private mutating func readLiteral(from start: Int) throws(RoostError) -> Int {
        try beginValue(at: start)
        for literal in ["true", "false", "null"] where bytes[start...].starts(with: literal.utf8) {
            endValue()
            return start + literal.utf8.count
        }
        guard let number = JSONNumber(bytes, from: start) else { throw malformed(at: start) }
        if inexact == nil, !number.isExact { inexact = path }
        endValue()
        return number.end
    }

    /// - Returns: The index after the string's closing quote.
    private mutating func readString(from start: Int) throws(RoostError) -> Int {
        let isKey = expected == .key || expected == .keyOrEnd
        if !isKey { try beginValue(at: start) }
        var index = start + 1
        var hasEscapes = false
        var isASCII = true
        var marks = CombiningMarks()
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            guard bytes[index] >= 0x20 else { throw malformed(at: index, "a control character in a string") }
            var mark: UInt32?
            if bytes[index] == UInt8(ascii: "\\") {
                hasEscapes = true
                (index, mark) = try readEscape(from: index)
            } else if bytes[index] < CombiningMarks.firstLeadingByte {
                // The other bytes of a longer scalar were skipped with its first.
                if bytes[index] >= 0x80 { isASCII = false }
                index += 1
            } else {
                isASCII = false
                (index, mark) = readScalar(from: index)
            }
            if let mark {
                guard marks.take(mark) else { throw CombiningMarks.tooMany("body") }
            } else {
                marks.begin()
            }
        }
        guard index < bytes.count else { throw malformed(at: index, "an unterminated string") }
        if isKey {
            add(Key(range: start + 1..<index, hasEscapes: hasEscapes), isPlain: isASCII && !hasEscapes)
            expected = .colon
        } else {
            endValue()
        }
        return index + 1
    }

    /// - Returns: The index after the scalar, and the scalar. Invalid UTF-8 is skipped byte by byte.
    private func readScalar(from start: Int) -> (end: Int, scalar: UInt32?) {
        let length = (~bytes[start]).leadingZeroBitCount
        guard (2...4).contains(length), start + length <= bytes.count else { return (start + 1, nil) }
        var scalar = UInt32(bytes[start]) & (0x7F >> UInt32(length))
        for byte in bytes[start + 1..<start + length] {
            guard byte & 0b1100_0000 == 0b1000_0000 else { return (start + 1, nil) }
            scalar = scalar << 6 | UInt32(byte & 0b0011_1111)
        }
        return (start + length, scalar)
    }

    /// - Returns: The index after the escape, and its scalar if it is written as a number.
    private func readEscape(from start: Int) throws(RoostError) -> (end: Int, scalar: UInt32?) {
        guard start + 1 < bytes.count else { throw malformed(at: start, "an incomplete escape") }
        guard bytes[start + 1] == UInt8(ascii: "u") else {
            guard "\"\\/bfnrt".utf8.contains(bytes[start + 1]) else { throw malformed(at: start, "an unknown escape") }
            return (start + 2, nil)
        }
        let unit = try readUnit(from: start)
        guard (0xd800...0xdfff).contains(unit) else { return (start + 6, unit) }
        // A high surrogate is half a character. The other half has to follow immediately.
        guard unit < 0xdc00 else { throw malformed(at: start, "half a surrogate pair") }
        let low = try readUnit(from: start + 6)
        guard (0xdc00...0xdfff).contains(low) else { throw malformed(at: start, "half a surrogate pair") }
        return (start + 12, 0x10000 + (unit - 0xd800) << 10 + (low - 0xdc00))
    }

    private func readUnit(from start: Int) throws(RoostError) -> UInt32 {
        guard start + 6 <= bytes.count, bytes[start] == UInt8(ascii: "\\"), bytes[start + 1] == UInt8(ascii: "u") else {
            throw malformed(at: start, "half a surrogate pair")
        }
        var unit: UInt32 = 0
        for byte in bytes[start + 2..<start + 6] {
            guard let digit = Character(UnicodeScalar(byte)).hexDigitValue else { throw malformed(at: start, "an unknown escape") }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    // MARK: Keys

    private mutating func add(_ key: Key, isPlain: Bool) {
        guard duplicate == nil, let last = containers.indices.last else { return }
        let isNew = isPlain && containers[last].names == nil ? isNewByBytes(key, in: last) : isNewByName(key, in: last)
        keys.append(key)
        if !isNew { duplicate = path }
    }

    private mutating func isNewByBytes(_ key: Key, in container: Int) -> Bool {
        let others = keys[containers[container].firstKey...]
        guard others.count < Self.comparedKeysMax else { return isNewByName(key, in: container) }
        return !others.contains { $0.range.count == key.range.count && bytes[$0.range] == bytes[key.range] }
    }

    /// Compares as a dictionary does: letters that look the same are the same.
    private mutating func isNewByName(_ key: Key, in container: Int) -> Bool {
        var names = containers[container].names ?? Set(keys[containers[container].firstKey...].map(text))
        // Leaves one reference to the set: otherwise it would be copied for each key.
        containers[container].names = nil
        let isNew = names.insert(text(key)).inserted
        containers[container].names = names
        return isNew
    }

    private func text(_ key: Key) -> String {
        let raw = String(decoding: bytes[key.range], as: UTF8.self)
        guard key.hasEscapes else { return raw }
        return (try? JSONDecoder().decode(String.self, from: Data("\"\(raw)\"".utf8))) ?? raw
    }

    /// The scan's current key in each open object.
    private var path: [String] {
        containers.indices.compactMap { index in
            let end = index + 1 < containers.count ? containers[index + 1].firstKey : keys.count
            guard end > containers[index].firstKey else { return nil }
            return String(text(keys[end - 1]).prefix(Self.shownKeyCharactersMax))
        }
    }
}
