import Testing

@testable import RoostCommand

@Suite struct TextWidthTests {
    @Test(
        "a text has the columns that a terminal gives it",
        arguments: [
            ("abc", 3), ("é", 1), ("漢字", 4), ("한", 2), ("🏴󠁧󠁢󠁳󠁣󠁴󠁿", 2), ("👩‍👩‍👧", 2), ("❤️", 2),
            // Vowels that stand beside their consonant, and consonants that are joined.
            ("नमस्ते", 4), ("हिन्दी", 5), ("क्ष", 2), ("கொ", 2),
            // What Thai and Lao have after a consonant belongs to it and has a column.
            ("น้ำ", 2), ("ນ້ຳ", 2), ("สวัสดี", 4),
        ])
    func width(text: String, columns: Int) {
        #expect(text.columnWidth == columns)
    }

    @Test(
        "what is shown has the tags of a flag, and no others",
        arguments: [
            ("🏴󠁧󠁢󠁳󠁣󠁴󠁿!", "🏴󠁧󠁢󠁳󠁣󠁴󠁿!"), ("a\u{E0067}\u{E007F}b", "ab"),
            ("🏴\u{E0067}\u{E007F}\u{E0067}b", "🏴\u{E0067}\u{E007F}b"), ("🏴b\u{E0067}", "🏴b"), ("a\u{202E}b", "ab"),
        ])
    func flags(text: String, shown: String) {
        #expect(text.safe() == shown)
    }
}
