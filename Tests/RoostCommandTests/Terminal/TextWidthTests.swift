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
}
