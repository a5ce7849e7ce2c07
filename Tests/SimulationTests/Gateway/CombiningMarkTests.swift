import NIOHTTP1
import RoostAPI
import Testing

@testable import RoostServer

/// Rows of combining marks: comparing one takes time quadratic in its length, so a long one is refused before any comparison.
@Suite("Combining marks")
struct CombiningMarkTests {
    /// Marks of two classes, which are sorted by inserting one after the other.
    private static func row(_ count: Int) -> String {
        String(repeating: "\u{301}", count: count / 2) + String(repeating: "\u{316}", count: count - count / 2)
    }

    /// A million bytes in a row, written in several ways. Comparing any of them takes minutes.
    private static let rows: [String] = [
        row(500_000), String(repeating: "\u{F73}", count: 330_000), String(repeating: #"\u0301"#, count: 80_000) + #"\u0316"#,
        String(repeating: "\u{1D165}\u{301}", count: 160_000), String(repeating: #"\ud834\udd65\u0301"#, count: 50_000),
    ]

    @Test(
        "§8.7 I21 a long row of combining marks is refused in a key, a value, a name and a token, before anything is compared",
        arguments: rows)
    func long(_ row: String) {
        for text in [#"{"a\#(row)":1}"#, #"["a\#(row)"]"#, #"{"k":{"a\#(row)":1,"b\#(row)":2}}"#, "\"\(row)\""] {
            #expect(!UntrustedBytes.isJSON(Array(text.utf8)))
        }
        for text in [
            #"{"call":7,"operation":"a\#(row)"}"#, #"{"call":7,"operation":"user.me","with":{"a\#(row)":1}}"#,
            #"{"a\#(row)":7}"#, #"{"authenticate":{"token":"a\#(row)"}}"#,
        ] {
            guard case .refused(let error) = UntrustedBytes.message(Array(text.utf8)) else {
                Issue.record("It should be refused.")
                continue
            }
            #expect(error == .limitExceeded("body", limit: 128, unit: "combining marks in a row"))
        }
    }

    @Test("§8.7 I21 128 combining marks in a row are accepted, and any number in a text in which they aren't in a row")
    func few() {
        func isTaken(_ text: String) -> Bool { UntrustedBytes.isJSON(Array(#"{"a\#(text)":"\#(text)"}"#.utf8)) }
        #expect(isTaken(Self.row(128)) && !isTaken(Self.row(129)))
        #expect(isTaken(Self.row(128) + #"\n"# + Self.row(128)) && isTaken(Self.row(128) + "中" + Self.row(128)))
        #expect(!isTaken(Self.row(100) + #"\u0301"# + Self.row(28)))
        let words = ["a\u{301}\u{316}", "שָׁלוֹם", "नमस्ते", "ภาษาไทย", "བོད་ཡིག", "Việt", "각", "漢字", "👩‍👩‍👧", "e\u{301}"]
        for word in words { #expect(isTaken(String(repeating: word, count: 1000)), "\(word)") }
    }

    @Test("§8.7 I21 a request with too many combining marks in a header is refused before its headers are compared")
    func headers() throws {
        func head(_ value: String) -> HTTPRequestHead {
            HTTPRequestHead(version: .http1_1, method: .GET, uri: "/livez", headers: ["Host": "a", "Expect": value])
        }
        var (few, many) = (head("a" + Self.row(128)), head("a" + Self.row(129)))
        #expect(throws: RequestRules.Refusal.self) { try RequestRules.check(&many) }
        do { try RequestRules.check(&few) } catch { #expect(error.problem.code != .limitExceeded) }
        do { try RequestRules.check(&many) } catch {
            #expect(error.problem.code == .limitExceeded && error.problem.field == "Expect")
        }
    }

    @Test(
        "I21 an unknown operation is answered with a suggestion only if its name looks like a typo of one, also if it is as long as a frame"
    )
    func names() {
        func refusal(_ name: String) -> String? {
            guard case .refused(let error) = UntrustedBytes.message(Array(#"{"call":1,"operation":"\#(name)"}"#.utf8)) else {
                return nil
            }
            return error.message
        }
        #expect(refusal("mesage.send") == "There is no such operation. Did you mean message.send?")
        // No operation has a name like these.
        #expect(refusal("zzzz") == "There is no such operation.")
        #expect(refusal("send") == "There is no such operation.")
        #expect(refusal(String(repeating: "é", count: 500_000)) == "There is no such operation.")
        // A character of many bytes counts as that many.
        #expect("message.send".editDistance(to: String(repeating: "👩‍👩‍👧", count: 64)) == 64)
    }
}
