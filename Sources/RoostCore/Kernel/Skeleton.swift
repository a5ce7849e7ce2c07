import Foundation

/// The look of a text: two texts that can be mistaken for one another have the same skeleton.
///
/// It follows UTS 39, section 4: the text is decomposed, invisible characters are dropped, and each other one is replaced by
/// the prototype of those that look like it. It goes further in two ways. Forms that differ only in width or style are
/// decomposed too (NFKD), which UTS 39 leaves to the rules for identifiers; and a run of white space counts as one space, since
/// pages show it so. Capital and small letters look different: `Ann` and `ann` aren't alike.
package enum Skeleton {
    package static func of(_ text: String) -> String {
        // First the table's own entries for such forms, then the decomposition of the rest and of the prototypes.
        let known = replacing(text.decomposedStringWithCanonicalMapping)
        let replaced = replacing(known.decomposedStringWithCompatibilityMapping).decomposedStringWithCompatibilityMapping
        var skeleton = String.UnicodeScalarView()
        for scalar in replaced.unicodeScalars {
            guard scalar.properties.isWhitespace else {
                skeleton.append(scalar)
                continue
            }
            if !skeleton.isEmpty, skeleton.last != " " { skeleton.append(" ") }
        }
        if skeleton.last == " " { skeleton.removeLast() }
        return String(skeleton)
    }

    private static func replacing(_ text: String) -> String {
        var replaced = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if scalar.properties.isDefaultIgnorableCodePoint { continue }
            if let prototype = prototypes[scalar.value] {
                replaced.append(contentsOf: prototype.unicodeScalars)
            } else {
                replaced.append(scalar)
            }
        }
        return String(replaced)
    }

    /// Returns the skeleton as indexes store it: a long one as its fingerprint.
    static func key(of text: String) -> String {
        let skeleton = of(text)
        return skeleton.utf8.count < keySizeBytes ? skeleton : Fingerprint.of(skeleton)
    }

    /// The size of a fingerprint: no shorter skeleton can equal one.
    private static let keySizeBytes = 64

    /// The prototype of each character that looks like another. Read once, when the first name is written.
    static let prototypes: [UInt32: String] = table.withUTF8Buffer { read($0) }

    /// Reads the output of `scripts/confusables`.
    private static func read(_ table: UnsafeBufferPointer<UInt8>) -> [UInt32: String] {
        var found: [UInt32: String] = [:]
        var prototype = ""
        var (number, value) = (UInt32(0), UInt32(0))
        var (isValue, isContinued) = (false, false)
        func scalar(_ value: UInt32) -> Unicode.Scalar { Unicode.Scalar(value) ?? "\u{FFFD}" }
        for byte in table {
            switch byte {
            case UInt8(ascii: "+"):
                prototype.unicodeScalars.append(scalar(number))
            case UInt8(ascii: ":"):
                prototype.unicodeScalars.append(scalar(number))
                (value, isValue) = (0, true)
            case UInt8(ascii: ","), UInt8(ascii: " "), UInt8(ascii: "\n"):
                // A group that is longer than a line continues after the comma.
                if isContinued { continue }
                value &+= number
                if isValue { found[value] = prototype }
                if byte != UInt8(ascii: ",") { (prototype, isValue) = ("", false) }
            default:
                number = number << 4 | (UInt32(byte) & 0xF) &+ (byte >= UInt8(ascii: "a") ? 9 : 0)
                isContinued = false
                continue
            }
            number = 0
            isContinued = byte == UInt8(ascii: ",")
        }
        if isValue { found[value &+ number] = prototype }
        return found
    }
}
