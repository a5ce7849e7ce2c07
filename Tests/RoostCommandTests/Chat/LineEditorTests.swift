import Testing

@testable import RoostCommand

@Suite struct LineEditorTests {
    @Test("MN-09 the cursor's position in UTF-16 code units is read and set, also beside characters of several")
    func utf16Cursor() {
        var editor = LineEditor()
        editor.text = "👩‍👩‍👧 é @b"
        #expect(editor.utf16Cursor == editor.text.utf16.count)
        for place in [0, 8, 9] {
            editor.utf16Cursor = place
            #expect(editor.utf16Cursor == place)
        }
        // The cursor can't be within a character.
        editor.utf16Cursor = 3
        #expect(editor.utf16Cursor == 8)
        editor.utf16Cursor = 99
        #expect(editor.cursor == editor.characters.count)
    }

    @Test("of a long line the part around the cursor is shown, found in time proportional to the screen's width")
    func visible() {
        var editor = LineEditor()
        editor.text = String(repeating: "x", count: 200_000) + "漢字"
        let start = ContinuousClock.now
        for _ in 0..<1000 { #expect(editor.visible(in: 5) == ("漢字", 4)) }
        editor.apply(.home)
        #expect(editor.visible(in: 5) == ("xxxxx", 0))
        editor.text = "a\nb\tc"
        editor.apply(.left)
        #expect(editor.visible(in: 4) == ("⏎b→c", 3) && editor.visible(in: 80) == ("a⏎b→c", 4))
        // A search through the whole line took a second each.
        #expect(ContinuousClock.now - start < .seconds(60))
    }

    @Test("Tab is a key, even between others that arrive at once")
    func tab() {
        var keys = KeyParser()
        #expect(keys.parse(Array("@b\tx".utf8)) == [.text("@b"), .tab, .text("x")])
    }
}
