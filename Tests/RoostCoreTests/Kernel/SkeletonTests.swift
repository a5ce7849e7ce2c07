import Testing

@testable import RoostCore

/// Skeletons of texts, after UTS 39.
@Suite struct SkeletonTests {
    @Test(
        "texts that look the same have the same skeleton",
        arguments: [
            ("paypal", "раураl"), ("paypal", "paypaI"), ("paypal", "paypa1"), ("scope", "ѕсоре"), ("modern", "modem"),
            ("Ödön", "O\u{308}do\u{308}n"), ("admin", "ad\u{200D}min"), ("admin", "𝐚𝐝𝐦𝐢𝐧"), ("admin", "ａｄｍｉｎ"),
            ("O0", "00"), ("ann lee", "ann\u{A0} lee"), ("ann lee", "ann\u{3000}lee"), ("a:b", "a：b"), ("...", "…"),
            ("", "\u{FE0F}"),
            ("صلى الله عليه وسلم", "\u{FDFA}"), ("℀", "a/c"),
        ])
    func alike(one: String, other: String) {
        #expect(Skeleton.of(one) == Skeleton.of(other) && Skeleton.key(of: one) == Skeleton.key(of: other))
    }

    @Test(
        "texts that look different have different skeletons",
        arguments: [("Ann", "ann"), ("ann", "anne"), ("ann", "änn"), ("ann lee", "annlee"), ("東京", "京東"), ("😀", "😃")])
    func different(one: String, other: String) {
        #expect(Skeleton.of(one) != Skeleton.of(other) && Skeleton.key(of: one) != Skeleton.key(of: other))
    }

    @Test("the table is read whole, and every character looks like its prototype")
    func table() {
        #expect(Skeleton.prototypes.count == 5247)
        #expect(Skeleton.prototypes[0x430] == "a" && Skeleton.prototypes[0x6D] == "rn")
        let different = Skeleton.prototypes.filter { value, prototype in
            Unicode.Scalar(value).map { Skeleton.of("a\(Character($0))") != Skeleton.of("a\(prototype)") } ?? true
        }
        #expect(different.isEmpty)
    }

    @Test("a long skeleton is stored as its fingerprint, which is no other text's key")
    func long() {
        let name = String(repeating: "\u{FDFA}", count: 128)
        #expect(Skeleton.of(name).utf8.count > 3000 && Skeleton.key(of: name).utf8.count == 64)
        #expect(Skeleton.key(of: Skeleton.key(of: name)) != Skeleton.key(of: name))
    }
}
