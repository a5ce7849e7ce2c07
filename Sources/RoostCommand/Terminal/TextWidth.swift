extension Character {
    /// The columns that a terminal gives the character: 0, 1 or 2.
    var columnWidth: Int {
        guard let first = unicodeScalars.first else { return 0 }
        if first.isASCII { return first.value < 32 || first.value == 127 ? 0 : 1 }
        // A character drawn as a picture, by default or by a variation selector, is wide.
        if first.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}") { return 2 }
        // A terminal adds up the code points: joined letters, and marks next to their letter, as in Devanagari, have columns too.
        return unicodeScalars.reduce(0) { $0 + Self.columnWidth(of: $1) }
    }

    private static func columnWidth(of scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .control, .format: return 0
        default: break
        }
        // Vowels and ends of Korean syllables are drawn over their beginning.
        if (0x1160...0x11FF).contains(scalar.value) || (0xD7B0...0xD7FF).contains(scalar.value) { return 0 }
        return wide.contains { $0.contains(scalar.value) } ? 2 : 1
    }

    /// The blocks of East Asian wide and fullwidth characters (Unicode Standard Annex 11).
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF, 0xA960...0xA97F,
        0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF,
        0x20000...0x3FFFD,
    ]
}

extension StringProtocol {
    /// The columns that a terminal gives the text.
    var columnWidth: Int { reduce(0) { $0 + $1.columnWidth } }

    /// The text padded with spaces to a width.
    func padded(to width: Int) -> String { String(self) + String(repeating: " ", count: Swift.max(0, width - columnWidth)) }

    /// The beginning of the text that fits into a width, with an ellipsis if something was cut off.
    func truncated(to width: Int) -> String {
        guard columnWidth > width else { return String(self) }
        guard width > 1 else { return String(repeating: "…", count: Swift.max(0, width)) }
        var (result, used) = ("", 0)
        for character in self {
            guard used + character.columnWidth <= width - 1 else { break }
            result.append(character)
            used += character.columnWidth
        }
        return result + "…"
    }

    /// The text in lines of at most a width, broken between words if possible, and always at newlines.
    func wrapped(to width: Int) -> [String] {
        let width = Swift.max(2, width)
        return split(separator: "\n", omittingEmptySubsequences: false).flatMap { Self.wrap(String($0), to: width) }
    }

    private static func wrap(_ line: String, to width: Int) -> [String] {
        var lines: [String] = []
        var current = ""
        var used = 0
        /// The index at which the current line can be broken: after its last space.
        var lastBreak: String.Index?
        for character in line {
            if used + character.columnWidth > width {
                if character == " " {
                    lines.append(current)
                    (current, used, lastBreak) = ("", 0, nil)
                    continue
                }
                let cut = lastBreak ?? current.endIndex
                lines.append(String(current[..<cut]).trimmedEnd)
                current = String(current[cut...])
                (used, lastBreak) = (current.columnWidth, nil)
            }
            current.append(character)
            used += character.columnWidth
            if character == " " { lastBreak = current.endIndex }
        }
        lines.append(current)
        return lines
    }

    private var trimmedEnd: String { String(reversed().drop { $0 == " " }.reversed()) }
}
