/// A key that was pressed, or text that was pasted.
enum Key: Hashable {
    case text(String), paste(String)
    case enter, backspace, delete, escape, tab
    case left, right, up, down, home, end, pageUp, pageDown, wordLeft, wordRight
    case deleteToStart, deleteToEnd, deleteWord
    case interrupt, endOfInput, redraw
}

/// Turns the bytes that a terminal sends into keys. A sequence or a character that isn't complete yet waits for the next bytes.
struct KeyParser {
    private var pending: [UInt8] = []

    private static let pasteStart = Array("\u{1B}[200~".utf8)
    private static let pasteEnd = Array("\u{1B}[201~".utf8)

    private static let sequences: [String: Key] = [
        "[A": .up, "[B": .down, "[C": .right, "[D": .left, "[H": .home, "[F": .end, "[5~": .pageUp, "[6~": .pageDown,
        "[3~": .delete,
        "[1~": .home, "[4~": .end, "[7~": .home, "[8~": .end, "OA": .up, "OB": .down, "OC": .right, "OD": .left, "OH": .home,
        "OF": .end, "[1;5C": .wordRight, "[1;5D": .wordLeft, "[1;3C": .wordRight, "[1;3D": .wordLeft, "f": .wordRight,
        "b": .wordLeft, "\u{7F}": .deleteWord,
    ]

    mutating func parse(_ bytes: [UInt8]) -> [Key] {
        pending += bytes
        var keys: [Key] = []
        while let first = pending.first {
            let found: (key: Key?, length: Int)?
            if first == 0x1B {
                found = escapeSequence()
            } else if let key = Self.control(first) {
                found = (key, 1)
            } else if first < 0x20 {
                found = (nil, 1)
            } else {
                found = text()
            }
            guard let found else { break }
            pending.removeFirst(found.length)
            if let key = found.key { keys.append(key) }
        }
        return keys
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
        default: nil
        }
    }

    /// The key of an escape sequence at the beginning, nil inside for one that means nothing here; nil when it isn't complete.
    private func escapeSequence() -> (key: Key?, length: Int)? {
        if pending.starts(with: Self.pasteStart) { return paste() }
        // Terminals send a sequence in one piece: an escape that comes alone is the key.
        guard pending.count > 1 else { return (.escape, 1) }
        var end = 2
        if pending[1] == UInt8(ascii: "[") {
            while end < pending.count, !(0x40...0x7E).contains(pending[end]) { end += 1 }
            guard end < pending.count else { return end > 32 ? (nil, pending.count) : nil }
            end += 1
        } else if pending[1] == UInt8(ascii: "O") {
            guard pending.count > 2 else { return nil }
            end = 3
        }
        return (Self.sequences[String(decoding: pending[1..<end], as: UTF8.self)], end)
    }

    private func paste() -> (key: Key?, length: Int)? {
        let start = Self.pasteStart.count
        var index = start
        while index + Self.pasteEnd.count <= pending.count {
            if pending[index...].starts(with: Self.pasteEnd) {
                let text = String(decoding: pending[start..<index], as: UTF8.self).replacing("\r\n", with: "\n").replacing(
                    "\r", with: "\n")
                return (.paste(text.safe(keepsNewlines: true)), index + Self.pasteEnd.count)
            }
            index += 1
        }
        return nil
    }

    /// The characters up to the next control byte; a last one that isn't complete is left for later.
    private func text() -> (key: Key?, length: Int)? {
        var end = pending.firstIndex { $0 < 0x20 || $0 == 0x7F } ?? pending.count
        if end == pending.count {
            let start = pending.lastIndex { $0 & 0b1100_0000 != 0b1000_0000 } ?? 0
            let length = max(1, (~pending[start]).leadingZeroBitCount)
            if length > pending.count - start, length <= 4 { end = start }
        }
        guard end > 0 else { return nil }
        return (.text(String(decoding: pending[..<end], as: UTF8.self).safe()), end)
    }
}
