import RoostAPI

/// A pressed key, or pasted text.
enum Key: Hashable {
    case text(String), paste(String)
    case enter, backspace, delete, escape, tab
    case left, right, up, down, home, end, pageUp, pageDown, wordLeft, wordRight
    case deleteToStart, deleteToEnd, deleteWord
    case interrupt, endOfInput, redraw, suspend
}

/// Parses a terminal's bytes into keys. An incomplete sequence or character waits for the next bytes.
///
/// It has no clock. While it ``isWaiting``, its owner calls it when nothing more has arrived for a while.
struct KeyParser {
    private var pending: [UInt8] = []
    /// The text of a paste whose end hasn't arrived yet; nil between pastes.
    private var pasted: [UInt8]?

    private static let pasteStart = Array("\u{1B}[200~".utf8)
    private static let pasteEnd = Array("\u{1B}[201~".utf8)
    /// The most bytes of a message's text: the rest of a longer paste is dropped.
    static let pasteSizeBytesMax = Limits.messageTextLength * Limits.bytesPerCharacterMax

    private static let sequences: [String: Key] = [
        "[A": .up, "[B": .down, "[C": .right, "[D": .left, "[H": .home, "[F": .end, "[5~": .pageUp, "[6~": .pageDown,
        "[3~": .delete,
        "[1~": .home, "[4~": .end, "[7~": .home, "[8~": .end, "OA": .up, "OB": .down, "OC": .right, "OD": .left, "OH": .home,
        "OF": .end, "[1;5C": .wordRight, "[1;5D": .wordLeft, "[1;3C": .wordRight, "[1;3D": .wordLeft, "f": .wordRight,
        "b": .wordLeft, "\u{7F}": .deleteWord,
    ]

    /// Whether only an escape has arrived: the key itself, or the beginning of a sequence.
    var isEscapeOpen: Bool { pasted == nil && pending == [0x1B] }

    /// Whether a key, sequence or paste is incomplete.
    var isWaiting: Bool { pasted != nil || !pending.isEmpty }

    mutating func parse(_ bytes: [UInt8]) -> [Key] {
        pending += bytes
        var keys: [Key] = []
        // Removed in one go at the end: each removal from the beginning moves all the rest.
        var rest = pending[...]
        while let first = rest.first {
            let found: (key: Key?, length: Int)?
            if pasted != nil {
                found = paste(rest)
            } else if first == 0x1B {
                found = escapeSequence(rest)
            } else if let key = Self.control(first) {
                found = (key, 1)
            } else if first < 0x20 {
                found = (nil, 1)
            } else {
                found = Self.text(rest)
            }
            guard let found else { break }
            rest = rest.dropFirst(found.length)
            if let key = found.key { keys.append(key) }
        }
        pending = Array(rest)
        return keys
    }

    /// Called when nothing has followed an escape: it is the key.
    mutating func endEscape() -> [Key] {
        guard isEscapeOpen else { return [] }
        pending = []
        return [.escape]
    }

    /// Called when nothing has arrived for so long that the rest won't: a paste ends here, and any other incomplete input is dropped.
    mutating func end() -> [Key] {
        let isEscape = isEscapeOpen
        let text = pasted.map { $0 + pending }
        (pending, pasted) = ([], nil)
        return text.map { [.paste(Self.pastedText($0))] } ?? (isEscape ? [.escape] : [])
    }

    private static func control(_ byte: UInt8) -> Key? {
        switch byte {
        case 0x09: .tab
        case 0x0A, 0x0D: .enter
        case 0x7F, 0x08: .backspace
        case 0x01: .home
        case 0x05: .end
        case 0x02: .left
        case 0x06: .right
        case 0x03: .interrupt
        case 0x04: .endOfInput
        case 0x0B: .deleteToEnd
        case 0x0C: .redraw
        case 0x15: .deleteToStart
        case 0x17: .deleteWord
        case 0x1A: .suspend
        default: nil
        }
    }

    /// The key of an escape sequence at the beginning, with a nil key if it is unused here; nil if it isn't complete.
    private mutating func escapeSequence(_ bytes: ArraySlice<UInt8>) -> (key: Key?, length: Int)? {
        if bytes.starts(with: Self.pasteStart) {
            pasted = []
            return (nil, Self.pasteStart.count)
        }
        let sequence = bytes.dropFirst()
        guard let kind = sequence.first else { return nil }
        var length = 1
        if kind == UInt8(ascii: "[") {
            // Linux's own console sends a second bracket for F1 to F5.
            let rest = sequence.dropFirst()
            let parameters = rest.first == UInt8(ascii: "[") ? rest.dropFirst() : rest
            guard let end = parameters.firstIndex(where: { (0x40...0x7E).contains($0) }) else {
                return bytes.count > 32 ? (nil, bytes.count) : nil
            }
            length = end - sequence.startIndex + 1
        } else if kind == UInt8(ascii: "O") {
            guard sequence.count > 1 else { return nil }
            length = 2
        } else if kind == 0x1B {
            // Two escapes: each is a key, or begins a sequence, by itself.
            return (.escape, 1)
        } else {
            // With Alt a key sends an escape and its character.
            guard let character = Self.lengthOfCharacter(sequence) else { return nil }
            length = character
        }
        return (Self.sequences[String(decoding: sequence.prefix(length), as: UTF8.self)], length + 1)
    }

    /// The number of bytes that belong to the first character; nil if it isn't complete.
    private static func lengthOfCharacter(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let first = bytes.first, (0xC2...0xF4).contains(first) else { return 1 }
        let whole = (~first).leadingZeroBitCount
        let length = 1 + bytes.dropFirst().prefix(whole - 1).prefix { $0 & 0b1100_0000 == 0b1000_0000 }.count
        return length < whole && length == bytes.count ? nil : length
    }

    /// Takes the bytes of the paste. The last ones received may be the beginning of its end mark.
    private mutating func paste(_ bytes: ArraySlice<UInt8>) -> (key: Key?, length: Int)? {
        var text = pasted ?? []
        let escape = Self.indexOfEnd(in: bytes)
        let part = bytes[..<(escape ?? bytes.endIndex)]
        text += part.prefix(max(0, Self.pasteSizeBytesMax - text.count))
        guard let escape, bytes[escape...].starts(with: Self.pasteEnd) else {
            pasted = text
            return part.isEmpty ? nil : (nil, part.count)
        }
        pasted = nil
        return (.paste(Self.pastedText(text)), part.count + Self.pasteEnd.count)
    }

    /// The index at which the end mark of a paste begins, or may begin.
    private static func indexOfEnd(in bytes: ArraySlice<UInt8>) -> Int? {
        var from = bytes.startIndex
        while let escape = bytes[from...].firstIndex(of: 0x1B) {
            if pasteEnd.starts(with: bytes[escape...].prefix(pasteEnd.count)) { return escape }
            from = escape + 1
        }
        return nil
    }

    private static func pastedText(_ bytes: [UInt8]) -> String {
        let text = String(decoding: bytes, as: UTF8.self).replacing("\r\n", with: "\n").replacing("\r", with: "\n")
        return text.withoutControls(keeping: ["\n", "\t"])
    }

    /// The characters up to the next control byte; an incomplete last one is left for later.
    private static func text(_ bytes: ArraySlice<UInt8>) -> (key: Key?, length: Int)? {
        var end = bytes.firstIndex { $0 < 0x20 || $0 == 0x7F } ?? bytes.endIndex
        if end == bytes.endIndex, let start = bytes.lastIndex(where: { $0 & 0b1100_0000 != 0b1000_0000 }) {
            let length = max(1, (~bytes[start]).leadingZeroBitCount)
            if length > bytes.endIndex - start, length <= 4 { end = start }
        }
        guard end > bytes.startIndex else { return nil }
        return (.text(String(decoding: bytes[..<end], as: UTF8.self).withoutControls()), end - bytes.startIndex)
    }
}
