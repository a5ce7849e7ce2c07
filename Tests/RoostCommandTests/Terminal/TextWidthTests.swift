import Testing

@testable import RoostCommand

@Suite struct TextWidthTests {
    @Test(
        "a text has the width that a terminal gives it",
        arguments: [
            ("abc", 3), ("é", 1), ("漢字", 4), ("한", 2), ("🏴󠁧󠁢󠁳󠁣󠁴󠁿", 2), ("👩‍👩‍👧", 2), ("❤️", 2),
            // Vowels beside their consonant, and joined consonants.
            ("नमस्ते", 4), ("हिन्दी", 5), ("क्ष", 2), ("கொ", 2),
            // In Thai and Lao, signs after a consonant belong to it and have a column.
            ("น้ำ", 2), ("ນ້ຳ", 2), ("สวัสดี", 4),
        ])
    func width(text: String, columns: Int) {
        #expect(text.columnWidth == columns)
    }

    @Test(
        "shown text keeps the tags of a flag, and no others",
        arguments: [
            ("🏴󠁧󠁢󠁳󠁣󠁴󠁿!", "🏴󠁧󠁢󠁳󠁣󠁴󠁿!"), ("a\u{E0067}\u{E007F}b", "ab"),
            ("🏴\u{E0067}\u{E007F}\u{E0067}b", "🏴\u{E0067}\u{E007F}b"), ("🏴b\u{E0067}", "🏴b"), ("a\u{202E}b", "ab"),
        ])
    func flags(text: String, shown: String) {
        #expect(text.safe() == shown)
    }

    @Test(
        "shown text has no character that shows nothing, except joiners, and variation selectors after something visible",
        arguments: [
            ("pay\u{3164}pal", "paypal"), ("\u{115F}\u{1160}\u{3164}\u{FFA0}.", "."), ("a\u{34F}\u{17B4}\u{2800}\u{1D159}b", "ab"),
            ("\u{FE0F}a \u{FE0F}\u{180B}\u{E0100}b", "a b"), ("\u{2764}\u{FE0F}\u{FE0F}", "\u{2764}\u{FE0F}"),
            ("\u{1F468}\u{200D}\u{1F469}", "\u{1F468}\u{200D}\u{1F469}"), ("\u{845B}\u{E0100}", "\u{845B}\u{E0100}"),
        ])
    func nothingHidden(text: String, shown: String) {
        // Compared as characters, texts that differ in these can be equal.
        #expect(Array(text.safe().unicodeScalars) == Array(shown.unicodeScalars))
    }
}
