import RoostAPI

/// The frame around an operation, `{"call":7,"operation":"user.me","with":{…}}`, as clients usually write it.
///
/// Finding its three members costs a tenth of having Foundation read the whole frame. A frame that is written in another way, or that
/// isn't a call, has none: Foundation reads it.
struct CallEnvelope {
    private(set) var call: Int64 = 0
    private(set) var operation = ""
    /// The place of the operation's fields; nil if there are none.
    private(set) var fields: Range<Int>?

    /// The most bytes of fields. Longer ones take so long to decode that the rest doesn't matter, and those that turn out to be wrong are
    /// decoded twice.
    private static let fieldsSizeMax = 4096
    /// The deepest objects and arrays in the fields: far less than Foundation reads.
    private static let depthMax = 32

    /// - Parameters:
    ///   - bytes: JSON without duplicate keys, as ``JSONScan`` has checked.
    ///   - limitsFields: Whether fields that are long or nested deeply are left to Foundation.
    init?(_ bytes: [UInt8], limitsFields: Bool = true) {
        var reader = Reader(bytes)
        var hasCall = false
        guard reader.take("{") else { return nil }
        repeat {
            guard let key = reader.string(), reader.take(":") else { return nil }
            switch key {
            case "call":
                guard let number = reader.number() else { return nil }
                (call, hasCall) = (number, true)
            case "operation":
                guard let name = reader.string() else { return nil }
                operation = name
            case "with":
                guard
                    let range = reader.object(
                        sizeMax: limitsFields ? Self.fieldsSizeMax : bytes.count,
                        depthMax: limitsFields ? Self.depthMax : bytes.count)
                else { return nil }
                fields = range
            default: return nil
            }
        } while reader.take(",")
        guard hasCall, !operation.isEmpty, reader.take("}"), reader.isAtEnd else { return nil }
    }

    /// Reads valid JSON. Everything that isn't written plainly is nil.
    private struct Reader {
        let bytes: [UInt8]
        private var index = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

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

        /// A text of ASCII without escapes.
        mutating func string() -> String? {
            guard take("\"") else { return nil }
            let start = index
            while let byte = next, byte != UInt8(ascii: "\"") {
                guard byte < 0x80, byte != UInt8(ascii: "\\") else { return nil }
                index += 1
            }
            defer { index += 1 }
            return String(decoding: bytes[start..<index], as: UTF8.self)
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
            // Another member follows, or the end; not the rest of a number.
            return next == UInt8(ascii: ",") || next == UInt8(ascii: "}") ? value : nil
        }

        /// The place of an object.
        mutating func object(sizeMax: Int, depthMax: Int) -> Range<Int>? {
            skipSpace()
            guard next == UInt8(ascii: "{") else { return nil }
            let start = index
            var (depth, isInString) = (0, false)
            while let byte = next, index < start + sizeMax {
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
}
