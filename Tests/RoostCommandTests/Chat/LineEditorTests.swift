import Testing

@testable import RoostCommand

@Suite struct LineEditorTests {
    @Test("MN-09 the cursor's place in UTF-16 code units is read and set, also beside characters of several")
    func utf16Cursor() {
        var editor = LineEditor()
        editor.text = "👩‍👩‍👧 é @b"
        #expect(editor.utf16Cursor == editor.text.utf16.count)
        for place in [0, 8, 9] {
            editor.utf16Cursor = place
            #expect(editor.utf16Cursor == place)
        }
        // Within a character there is no place.
        editor.utf16Cursor = 3
        #expect(editor.utf16Cursor == 8)
        editor.utf16Cursor = 99
        #expect(editor.cursor == editor.characters.count)
    }

    @Test("Tab is a key, between others that come at once")
    func tab() {
        var keys = KeyParser()
        #expect(keys.parse(Array("@b\tx".utf8)) == [.text("@b"), .tab, .text("x")])
    }
}
