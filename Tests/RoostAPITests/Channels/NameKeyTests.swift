import RoostAPI
import Testing

@Suite("Keys of names")
struct NameKeyTests {
    @Test(
        "MN-14 X-21 one or two letters match at the beginning of a word, more anywhere; a character can have several",
        arguments: [
            ("jo", true), ("os", false), ("ose", true), ("e al", true), ("al", true), ("नमस्ते", true), ("नमस", true), ("मस्", true),
            ("स्त", true), ("दो", true), ("न", true), ("मस", false), ("त", false),
        ] as [(String, Bool)])
    func holds(part: String, isHeld: Bool) {
        #expect(NameKey.holds(NameKey.of(part), in: NameKey.of("José Álvarez, नमस्ते दोस्त")) == isHeld)
    }

    @Test("MN-14 a name has one key, however its letters are composed: a Korean syllable with its final consonant apart too")
    func isComposed() {
        func bytes(_ name: String) -> [UInt8] { Array(NameKey.of(name).utf8) }
        #expect(bytes("\u{d558}\u{11ab}\u{ad6d}") == bytes("\u{d55c}\u{ad6d}"))
        #expect(bytes("\u{1112}\u{1161}\u{11ab}\u{ad6d}") == bytes("\u{d55c}\u{ad6d}"))
    }
}
