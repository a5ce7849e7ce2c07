import Testing

@testable import RoostCommand

@Suite("Bytes of a terminal")
struct KeyParserTests {
    private static let (start, end) = ("\u{1B}[200~", "\u{1B}[201~")

    /// Parses pieces one after the other.
    private func keys(_ pieces: String...) -> [Key] {
        var parser = KeyParser()
        return pieces.flatMap { parser.parse(Array($0.utf8)) }
    }

    @Test("an arrow key that arrives in two pieces is one key, and a lone escape is one after a pause")
    func split() {
        for pieces in [("\u{1B}", "[A"), ("\u{1B}[", "A"), ("\u{1B}[1;", "5C")] {
            let key = pieces.1 == "5C" ? Key.wordRight : .up
            #expect(keys(pieces.0, pieces.1) == [key])
        }
        var parser = KeyParser()
        #expect(parser.parse([0x1B]) == [] && parser.isEscapeOpen)
        #expect(parser.endEscape() == [.escape] && !parser.isWaiting)
        #expect(keys("\u{1B}\u{1B}[A") == [.escape, .up])
        // A pause after more of a sequence isn't the key, and an unfinished sequence is dropped.
        _ = parser.parse(Array("\u{1B}[".utf8))
        #expect(parser.endEscape() == [] && parser.isWaiting)
        #expect(parser.end() == [] && parser.parse(Array("A".utf8)) == [.text("A")])
    }

    @Test(
        "an unused key types nothing, however its bytes arrive: formerly the end of Alt-é and of F1 on Linux's console was typed",
        arguments: ["\u{1B}e", "\u{1B}é", "\u{1B}漢", "\u{1B}😀", "\u{1B}[[A", "\u{1B}[[E", "\u{1B}OP", "\u{1B}[15~"])
    func withoutMeaning(sequence: String) {
        #expect(keys("\(sequence)x") == [.text("x")])
        var parser = KeyParser()
        let bytes = Array("\(sequence)x".utf8)
        #expect(bytes.flatMap { parser.parse([$0]) } == [.text("x")])
    }

    @Test("an incomplete character after an escape drops no other key")
    func cutCharacter() {
        var parser = KeyParser()
        #expect(parser.parse([0x1B, 0xC3, 0x0D]) == [.enter])
        #expect(parser.parse([0x1B, 0xE6, 0xBC]) == [] && parser.isWaiting)
        #expect(parser.end() == [] && parser.parse([0x78]) == [.text("x")])
    }

    @Test("a paste is one key however its bytes arrive, and its newlines are newlines")
    func paste() {
        #expect(keys("\(Self.start)a\r\nb\rc\(Self.end)x") == [.paste("a\nb\nc"), .text("x")])
        let all = Array("\(Self.start)né\u{1B}[20 é\(Self.end)\r".utf8)
        var parser = KeyParser()
        #expect(all.flatMap { parser.parse([$0]) } == [.paste("né[20 é"), .enter])
    }

    @Test("a paste without an end ends by itself, and later keys work normally")
    func endlessPaste() {
        var parser = KeyParser()
        #expect(parser.parse(Array("\(Self.start)text\u{03}".utf8)) == [] && parser.isWaiting)
        #expect(parser.end() == [.paste("text")])
        #expect(parser.parse([0x03]) == [.interrupt])
    }

    @Test("no more of a paste is kept than a message can have, and it is read in one pass", .timeLimit(.minutes(1)))
    func longPaste() {
        var parser = KeyParser()
        _ = parser.parse(Array(Self.start.utf8))
        // With a search from the beginning for each piece these would take minutes.
        let piece = Array(String(repeating: "x", count: 4096).utf8)
        for _ in 0..<4096 { _ = parser.parse(piece) }
        let keys = parser.parse(Array("\(Self.end)y".utf8))
        #expect(keys == [.paste(String(repeating: "x", count: KeyParser.pasteSizeBytesMax)), .text("y")])
    }

    @Test(
        "typed and pasted text stays unchanged, except control characters",
        arguments: ["🏴󠁧󠁢󠁳󠁣󠁴󠁿", "soft\u{00AD}hyphen", "\u{200F}שלום", "a\u{200B}b", "👩‍👩‍👧"])
    func unchanged(text: String) {
        #expect(keys(text) == [.text(text)] && keys("\(Self.start)\(text)\u{07}\(Self.end)") == [.paste(text)])
        var editor = LineEditor()
        editor.apply(.text(text))
        #expect(editor.text == text && editor.visible(in: 80).text == text.safe())
    }
}
