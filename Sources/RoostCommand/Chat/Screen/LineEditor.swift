/// A line of input with a cursor.
struct LineEditor: Hashable {
    private(set) var characters: [Character] = []
    /// Characters before the cursor.
    private(set) var cursor = 0

    var text: String {
        get { String(characters) }
        set {
            characters = Array(newValue)
            cursor = characters.count
        }
    }

    /// The cursor's position in UTF-16 code units. Setting one inside a character moves the cursor after it.
    var utf16Cursor: Int {
        get { characters[..<cursor].reduce(0) { $0 + $1.utf16.count } }
        set {
            var (index, place) = (0, 0)
            while index < characters.count, place < newValue {
                place += characters[index].utf16.count
                index += 1
            }
            cursor = index
        }
    }

    mutating func insert(_ text: String) {
        // A combining mark or a joiner may form one character with the text before it.
        let before = String(characters[..<cursor]) + text
        let after = characters[cursor...]
        characters = Array(before)
        cursor = characters.count
        characters += after
    }

    /// Applies a key. Keys that don't edit change nothing.
    mutating func apply(_ key: Key) {
        switch key {
        case .text(let text), .paste(let text): insert(text)
        case .backspace where cursor > 0: remove(cursor - 1..<cursor)
        case .delete where cursor < characters.count: remove(cursor..<cursor + 1)
        case .left where cursor > 0: cursor -= 1
        case .right where cursor < characters.count: cursor += 1
        case .wordLeft: cursor = wordStart
        case .wordRight: cursor = wordEnd
        case .home: cursor = 0
        case .end: cursor = characters.count
        case .deleteToStart: remove(0..<cursor)
        case .deleteToEnd: remove(cursor..<characters.count)
        case .deleteWord: remove(wordStart..<cursor)
        default: break
        }
    }

    private mutating func remove(_ range: Range<Int>) {
        characters.removeSubrange(range)
        cursor = range.lowerBound
    }

    private var wordStart: Int {
        var index = cursor
        while index > 0, characters[index - 1].isWhitespace { index -= 1 }
        while index > 0, !characters[index - 1].isWhitespace { index -= 1 }
        return index
    }

    private var wordEnd: Int {
        var index = cursor
        while index < characters.count, characters[index].isWhitespace { index += 1 }
        while index < characters.count, !characters[index].isWhitespace { index += 1 }
        return index
    }

    /// The part of the line that fits into a width with the cursor in it, and the cursor's column there.
    func visible(in width: Int) -> (text: String, column: Int) {
        // Works back from the cursor as far as there is room: the line may be long and is drawn on every key.
        var (text, column) = ("", 0)
        for character in characters[..<cursor].reversed() {
            let shown = Self.shown(character)
            guard column + shown.columnWidth < width else { break }
            text = shown + text
            column += shown.columnWidth
        }
        var used = column
        for character in characters[cursor...] {
            let shown = Self.shown(character)
            guard used + shown.columnWidth <= width else { break }
            text += shown
            used += shown.columnWidth
        }
        return (text, column)
    }

    /// A character as it is drawn. A pasted newline is one column wide here, and a line break in the message.
    private static func shown(_ character: Character) -> String {
        if character.isNewline { return "⏎" }
        return character == "\t" ? "→" : String(character).safe()
    }
}
