import RoostAPI

/// Reads valid JSON as clients usually write it. Everything that isn't written plainly is nil, and left to Foundation.
struct PlainJSON {
    let bytes: [UInt8]
    private var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Begins at a place.
    init(_ bytes: [UInt8], at index: Int) {
        self.bytes = bytes
        self.index = index
    }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || (0x09...0x0D).contains(byte) { index += 1 }
    }

    var isAtEnd: Bool {
        mutating get {
            skipSpace()
            return next == nil
        }
    }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        skipSpace()
        guard next == UInt8(ascii: character) else { return false }
        index += 1
        return true
    }

    /// A text without escapes.
    mutating func string() -> String? {
        guard take("\"") else { return nil }
        let start = index
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte != UInt8(ascii: "\\") else { return nil }
            index += 1
        }
        defer { index += 1 }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    /// Reads a text. Returns whether it is written plainly.
    mutating func read(into text: inout String?) -> Bool {
        text = string()
        return text != nil
    }

    /// Reads a number. Returns whether it is written plainly.
    mutating func read(into number: inout Int64?) -> Bool {
        number = self.number()
        return number != nil
    }

    /// Reads another value. Returns whether it could be read.
    mutating func read<Value>(into place: inout Value?, _ value: (inout PlainJSON) -> Value?) -> Bool {
        place = value(&self)
        return place != nil
    }

    /// Reads the members of an object.
    ///
    /// - Parameter read: Reads the value of a key. Returns whether it could.
    /// - Returns: Whether all could be read.
    mutating func members(_ read: (_ key: String, inout PlainJSON) -> Bool) -> Bool {
        guard take("{") else { return false }
        if take("}") { return true }
        repeat {
            guard let key = string(), take(":"), read(key, &self) else { return false }
        } while take(",")
        return take("}")
    }

    /// A whole number that isn't negative, without a fraction or an exponent.
    mutating func number() -> Int64? {
        skipSpace()
        let start = index
        var value: Int64 = 0
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), index < start + 18 {
            value = value * 10 + Int64(byte - UInt8(ascii: "0"))
            index += 1
        }
        guard index > start else { return nil }
        skipSpace()
        // Another value follows, or the end; not the rest of a number.
        return next == UInt8(ascii: ",") || next == UInt8(ascii: "}") || next == UInt8(ascii: "]") ? value : nil
    }

    /// Reads the values of an array.
    ///
    /// - Parameter read: Reads a value. Returns whether it could.
    /// - Returns: Whether all could be read.
    mutating func elements(_ read: (inout PlainJSON) -> Bool) -> Bool {
        guard take("[") else { return false }
        if take("]") { return true }
        repeat {
            guard read(&self) else { return false }
        } while take(",")
        return take("]")
    }

    /// Reads texts. Returns whether they are written plainly.
    mutating func read(into texts: inout [String]?) -> Bool {
        var found: [String] = []
        defer { texts = found }
        return elements { json in
            guard let text = json.string() else { return false }
            found.append(text)
            return true
        }
    }

    /// Reads `true` or `false`.
    mutating func boolean() -> Bool? {
        skipSpace()
        guard next != nil else { return nil }
        for (text, value) in [("true", true), ("false", false)] where bytes[index...].starts(with: text.utf8) {
            index += text.utf8.count
            return value
        }
        return nil
    }

    /// Any value that isn't nested deeper than so many levels.
    mutating func value(depthMax: Int) -> JSONValue? {
        guard depthMax > 0 else { return nil }
        skipSpace()
        switch next {
        case UInt8(ascii: "\""): return string().map(JSONValue.string)
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return boolean().map(JSONValue.boolean)
        case UInt8(ascii: "{"):
            var values: [String: JSONValue] = [:]
            let isPlain = members { key, json in
                values[key] = json.value(depthMax: depthMax - 1)
                return values[key] != nil
            }
            return isPlain ? .object(values) : nil
        case UInt8(ascii: "["):
            var values: [JSONValue] = []
            let isPlain = elements { json in
                guard let value = json.value(depthMax: depthMax - 1) else { return false }
                values.append(value)
                return true
            }
            return isPlain ? .array(values) : nil
        default: return number().map(JSONValue.integer)
        }
    }

    /// The place of an object.
    mutating func object(depthMax: Int) -> Range<Int>? {
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
}
