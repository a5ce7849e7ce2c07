/// Reads JSON in its usual plain form. Anything not written plainly reads as nil and is left to Foundation.
///
/// The values are the same as Foundation's, in a tenth of the time. It doesn't check that the rest of the text is JSON.
package struct PlainJSON {
    package let bytes: [UInt8]
    private var index = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Begins at an index.
    package init(_ bytes: [UInt8], at index: Int) {
        self.bytes = bytes
        self.index = index
    }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    }

    package var isAtEnd: Bool {
        mutating get {
            skipSpace()
            return next == nil
        }
    }

    package mutating func take(_ character: Unicode.Scalar) -> Bool {
        skipSpace()
        guard next == UInt8(ascii: character) else { return false }
        index += 1
        return true
    }

    /// Takes a word such as `null`, if it is next.
    package mutating func take(word: StaticString) -> Bool {
        skipSpace()
        let isNext = word.withUTF8Buffer { bytes.count - index >= $0.count && bytes[index..<index + $0.count].elementsEqual($0) }
        if isNext { index += word.utf8CodeUnitCount }
        return isNext
    }

    /// Takes `null`, if it is next.
    package mutating func takeNull() -> Bool { take(word: "null") }

    /// Returns the value that a body reads. If it is nil, the reader goes back to where it was.
    package mutating func attempt<Value>(_ body: (inout PlainJSON) -> Value?) -> Value? {
        let start = index
        let value = body(&self)
        if value == nil { index = start }
        return value
    }

    // MARK: Structure

    /// Reads the members of an object.
    ///
    /// - Parameter read: Reads the value of a key. Returns whether it could.
    /// - Returns: Whether all could be read.
    package mutating func members(_ read: (_ key: String, inout PlainJSON) -> Bool) -> Bool {
        guard take("{") else { return false }
        if take("}") { return true }
        repeat {
            guard let key = string(), take(":"), read(key, &self) else { return false }
        } while take(",")
        return take("}")
    }

    /// Reads the values of an array.
    ///
    /// - Parameter read: Reads a value. Returns whether it could.
    /// - Returns: Whether all could be read.
    package mutating func elements(_ read: (inout PlainJSON) -> Bool) -> Bool {
        guard take("[") else { return false }
        if take("]") { return true }
        repeat {
            guard read(&self) else { return false }
        } while take(",")
        return take("]")
    }

    /// Skips a value. Returns its range; nil if it doesn't end.
    package mutating func pass() -> Range<Int>? {
        skipSpace()
        let start = index
        var depth = 0
        repeat {
            skipSpace()
            guard let byte = next else { return nil }
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                index += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                index += 1
            case UInt8(ascii: "\""): guard passString() else { return nil }
            case UInt8(ascii: ","), UInt8(ascii: ":"):
                guard depth > 0 else { return nil }
                index += 1
            default: passWord()
            }
        } while depth > 0
        return depth == 0 && index > start ? start..<index : nil
    }

    private mutating func passString() -> Bool {
        index += 1
        while let byte = next {
            index += byte == UInt8(ascii: "\\") ? 2 : 1
            if byte == UInt8(ascii: "\"") { return true }
        }
        return false
    }

    /// Skips a number, or a word without quotation marks.
    private mutating func passWord() {
        let ends: (UInt8) -> Bool = { $0 <= 0x20 || [0x22, 0x2C, 0x3A, 0x5B, 0x5D, 0x7B, 0x7D].contains($0) }
        index += 1
        while let byte = next, !ends(byte) { index += 1 }
    }

    /// The range of an object.
    package mutating func object(depthMax: Int) -> Range<Int>? {
        skipSpace()
        guard next == UInt8(ascii: "{") else { return nil }
        let start = index
        var (depth, isInString) = (0, false)
        while let byte = next {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): isInString.toggle()
            case UInt8(ascii: "\\"): index += 1
            case UInt8(ascii: "{") where !isInString, UInt8(ascii: "[") where !isInString:
                depth += 1
                if depth > depthMax { return nil }
            case UInt8(ascii: "}") where !isInString, UInt8(ascii: "]") where !isInString:
                depth -= 1
                if depth == 0 { return start..<index }
            default: break
            }
        }
        return nil
    }

    // MARK: Values

    /// A text.
    package mutating func string() -> String? {
        guard take("\"") else { return nil }
        let start = index
        var isPlain = true
        while let byte = next, byte != UInt8(ascii: "\"") {
            if byte == UInt8(ascii: "\\") { return unescaped(from: start) }
            guard byte >= 0x20 else { return nil }
            if byte >= 0x80 { isPlain = false }
            index += 1
        }
        guard index < bytes.count else { return nil }
        defer { index += 1 }
        let text = bytes[start..<index]
        return isPlain ? String(decoding: text, as: UTF8.self) : Self.valid(text)
    }

    /// A text whose part before the first escape has already been read.
    private mutating func unescaped(from start: Int) -> String? {
        var text = Array(bytes[start..<index])
        while let byte = next, byte != UInt8(ascii: "\"") {
            index += 1
            guard byte >= 0x20 else { return nil }
            guard byte == UInt8(ascii: "\\") else {
                text.append(byte)
                continue
            }
            guard let character = next else { return nil }
            index += 1
            switch character {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(character)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "u"):
                guard let scalar = scalar() else { return nil }
                text.append(contentsOf: scalar.utf8)
            default: return nil
            }
        }
        guard index < bytes.count else { return nil }
        index += 1
        return Self.valid(text[...])
    }

    /// The character whose digits follow `\u`, including both halves of a surrogate pair.
    private mutating func scalar() -> Unicode.Scalar? {
        guard let first = hexDigits() else { return nil }
        guard UTF16.isLeadSurrogate(first) else { return Unicode.Scalar(first) }
        guard index + 1 < bytes.count, bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u") else { return nil }
        index += 2
        guard let second = hexDigits(), UTF16.isTrailSurrogate(second) else { return nil }
        return Unicode.Scalar(0x10000 + UInt32(first & 0x3FF) << 10 + UInt32(second & 0x3FF))
    }

    private mutating func hexDigits() -> UInt16? {
        guard bytes.count - index >= 4 else { return nil }
        var value: UInt16 = 0
        for _ in 0..<4 {
            let digit: UInt8
            switch bytes[index] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = bytes[index] - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = bytes[index] - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = bytes[index] - UInt8(ascii: "A") + 10
            default: return nil
            }
            value = value << 4 | UInt16(digit)
            index += 1
        }
        return value
    }

    /// The text of bytes in UTF-8; nil for invalid ones, which decoding would replace.
    private static func valid(_ bytes: ArraySlice<UInt8>) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        return text.utf8.elementsEqual(bytes) ? text : nil
    }

    /// A non-negative whole number, without a fraction or an exponent.
    package mutating func number() -> Int64? {
        skipSpace()
        let start = index
        var value: Int64 = 0
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), index < start + 18 {
            value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            index += 1
        }
        guard index > start, index == start + 1 || bytes[start] != UInt8(ascii: "0") else { return nil }
        skipSpace()
        // Another value follows, or the end; not the rest of a number.
        return next == UInt8(ascii: ",") || next == UInt8(ascii: "}") || next == UInt8(ascii: "]") ? value : nil
    }

    /// Reads `true` or `false`.
    package mutating func boolean() -> Bool? {
        if take(word: "true") { return true }
        return take(word: "false") ? false : nil
    }

    /// A message's id.
    package mutating func messageID() -> MessageID? {
        string().flatMap { MessageID($0) }
    }

    /// Values of one kind.
    package mutating func list<Value>(_ value: (inout PlainJSON) -> Value?) -> [Value]? {
        var values: [Value] = []
        let isPlain = elements { json in
            guard let value = value(&json) else { return false }
            values.append(value)
            return true
        }
        return isPlain ? values : nil
    }

    /// Lists of texts by their names.
    package mutating func lists() -> [String: [String]]? {
        var lists: [String: [String]] = [:]
        let isPlain = members { name, json in
            guard lists[name] == nil, let list = json.list({ $0.string() }) else { return false }
            lists[name] = list
            return true
        }
        return isPlain ? lists : nil
    }

    /// Whole numbers by their names.
    package mutating func numbers() -> [String: Int64]? {
        var numbers: [String: Int64] = [:]
        let isPlain = members { name, json in
            guard let number = json.number() else { return false }
            return numbers.updateValue(number, forKey: name) == nil
        }
        return isPlain ? numbers : nil
    }

    /// Any value nested no deeper than the given number of levels.
    package mutating func value(depthMax: Int) -> JSONValue? {
        guard depthMax > 0 else { return nil }
        skipSpace()
        switch next {
        case UInt8(ascii: "\""): return string().map(JSONValue.string)
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return boolean().map(JSONValue.boolean)
        case UInt8(ascii: "{"):
            var values: [String: JSONValue] = [:]
            let isPlain = members { key, json in
                guard values[key] == nil else { return false }
                values[key] = json.value(depthMax: depthMax - 1)
                return values[key] != nil
            }
            return isPlain ? .object(values) : nil
        case UInt8(ascii: "["): return list { $0.value(depthMax: depthMax - 1) }.map(JSONValue.array)
        case UInt8(ascii: "n"): return takeNull() ? .null : nil
        default: return attempt { $0.number() }.map(JSONValue.integer) ?? anyNumber()
        }
    }

    /// A number of any kind. A whole number written otherwise, such as `1.0`, is left to Foundation.
    private mutating func anyNumber() -> JSONValue? {
        let start = index
        if next == UInt8(ascii: "-") { index += 1 }
        let first = next
        guard let digitCount = passDigits(), digitCount == 1 || first != UInt8(ascii: "0") else { return nil }
        if next == UInt8(ascii: ".") {
            index += 1
            guard passDigits() != nil else { return nil }
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            index += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { index += 1 }
            guard passDigits() != nil else { return nil }
        }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        skipSpace()
        guard next == nil || next == UInt8(ascii: ",") || next == UInt8(ascii: "}") || next == UInt8(ascii: "]"), text != "-0"
        else {
            return nil
        }
        if let value = Int64(text) { return .integer(value) }
        guard let value = Double(text), value.isFinite, Int64(exactly: value) == nil else { return nil }
        return .number(value)
    }

    /// Skips digits and returns their number; nil for none.
    private mutating func passDigits() -> Int? {
        let start = index
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
        return index > start ? index - start : nil
    }

    // MARK: Members

    /// Reads the value of a key, or skips `null`. Returns whether it could; false for a repeated key.
    ///
    /// For a key given first with `null` and then with a value, the value counts, while Foundation takes the first. No input has such a
    /// key: the server refuses it from clients, and never writes it.
    package mutating func read<Value>(into place: inout Value?, _ value: (inout PlainJSON) -> Value?) -> Bool {
        guard case .none = place else { return false }
        if takeNull() { return true }
        place = value(&self)
        if case .none = place { return false }
        return true
    }

    package mutating func read(into place: inout String?) -> Bool { read(into: &place) { $0.string() } }
    package mutating func read(into place: inout Int64?) -> Bool { read(into: &place) { $0.number() } }
    package mutating func read(into place: inout Int?) -> Bool { read(into: &place) { $0.number().flatMap(Int.init(exactly:)) } }
    package mutating func read(into place: inout Bool?) -> Bool { read(into: &place) { $0.boolean() } }
    package mutating func read(into place: inout MessageID?) -> Bool { read(into: &place) { $0.messageID() } }
    package mutating func read(into place: inout Timestamp?) -> Bool {
        read(into: &place) { $0.string().flatMap { Timestamp($0) } }
    }
    package mutating func read(into place: inout JSONValue?) -> Bool {
        read(into: &place) { $0.value(depthMax: Limits.metadataDepth) }
    }
    package mutating func read(into place: inout [String: [String]]?) -> Bool { read(into: &place) { $0.lists() } }
    package mutating func read(into place: inout [String: Int64]?) -> Bool { read(into: &place) { $0.numbers() } }
    package mutating func read(into place: inout [String]?) -> Bool { read(into: &place) { $0.list { $0.string() } } }

    package mutating func read<Name: WireString>(into place: inout Name?) -> Bool {
        read(into: &place) { $0.string().map(Name.init(rawValue:)) }
    }
    package mutating func read<Name: WireString>(into place: inout [Name]?) -> Bool {
        read(into: &place) { $0.list { $0.string().map(Name.init(rawValue:)) } }
    }
    package mutating func read<Case: WireEnumeration>(into place: inout Case?) -> Bool {
        read(into: &place) { $0.string().flatMap(Case.init(rawValue:)) }
    }
    package mutating func read<Case: WireEnumeration>(into place: inout [Case]?) -> Bool {
        read(into: &place) { $0.list { $0.string().flatMap(Case.init(rawValue:)) } }
    }
    package mutating func read<Model: PlainReadable>(into place: inout Model?) -> Bool {
        read(into: &place) { Model(plainly: &$0) }
    }
    package mutating func read<Model: PlainReadable>(into place: inout [Model]?) -> Bool {
        read(into: &place) { $0.list { Model(plainly: &$0) } }
    }
}

/// A model that reads itself if it is written plainly, with the same result as its `Decodable` conformance: a test compares the two.
package protocol PlainReadable: Decodable {
    /// Reads the next object; nil if Foundation has to. Unknown members are skipped.
    init?(plainly json: inout PlainJSON)
}
