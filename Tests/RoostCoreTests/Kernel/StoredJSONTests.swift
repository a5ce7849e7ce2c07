import Foundation
import RoostAPI
import RoostTestSupport
import Testing

@testable import RoostCore

/// Plain JSON in columns is read and written without `Codable`. Databases have JSON that earlier versions wrote with it.
@Suite("Stored JSON")
struct StoredJSONTests {
    @Test(
        "metadata are read as Foundation reads them, however they were written, and are returned unchanged",
        arguments: [
            #"{"a":1,"b":[true,null,"x"]}"#, #"{ "a" : -1.5e3 }"#, #"{"a":9223372036854775807,"b":9223372036854775808}"#,
            #"{"a":"\u00e9\n\ud83d\ude00 \/ \\ \""}"#, #"{"a":{"b":{"c":[{},[]]}},"":""}"#, "{}", "[]",
            #"[-1,-0,0.5,1.0,1e3,1E-3,-9223372036854775808,1e-400,0.1e1,12345678901234567890,9007199254740993.0]"#,
            #"["\b\f\u0000\u001f\uD834\uDD1E",null,-7]"#, "-1", "1.5", "null", #"{"a":1,"a":2}"#,
            #"{"a":"# + String(repeating: "[", count: 40) + String(repeating: "]", count: 40) + "}",
        ])
    func metadata(text: String) throws {
        let expected = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
        #expect(try StoredJSON.decode(text, plainly: JSONValue.read) == expected)
        let written = try StoredJSON.text(expected.write)
        #expect(try StoredJSON.decode(written, plainly: JSONValue.read) == expected)
        #expect(try JSONDecoder().decode(JSONValue.self, from: Data(written.utf8)) == expected)
    }

    @Test(
        "invalid JSON is refused, as by Foundation",
        arguments: [
            "-", "01", "1e400", "1.", ".5", "1e", "1e+", "+1", "--1", "0x1", "1 2", "nul", #""\u12""#, #""\ud834""#,
            #""\ud834\u0041""#, #""\udd1e""#, #""\x""#,
        ])
    func rubbish(text: String) {
        for text in [text, "[\(text)]"] {
            #expect(throws: DamagedDatabase.self, "\(text)") { try StoredJSON.decode(text, plainly: JSONValue.read) }
        }
    }

    @Test("I18 whatever metadata contain, no stored JSON is left to Foundation, which takes ten times as long")
    func isReadPlainly() throws {
        var random = SeededGenerator(seed: 11)
        let texts = ["", "a", "\u{0}\u{1F}\u{7F}\"\\/\n", "é 🐦 日本", "\u{1D11E}\u{FFFD}"]
        func value(_ depth: Int) -> JSONValue {
            switch Int.random(in: 0..<(depth > 1 ? 8 : 6), using: &random) {
            case 0: return .null
            case 1: return .boolean(.random(using: &random))
            case 2:
                return .integer(
                    [0, -1, 7, .min, .max, .random(in: -1000...1000, using: &random)].randomElement(using: &random) ?? 0)
            case 3: return .number(Double.random(in: -1e6...1e6, using: &random))
            case 4: return .number([1e300, -1e-300, 0.1, 2.5e18, 1e16, .leastNonzeroMagnitude].randomElement(using: &random) ?? 0)
            case 5: return .string(texts.randomElement(using: &random) ?? "")
            case 6: return .array((0..<3).map { _ in value(depth - 1) })
            default:
                return .object(
                    Dictionary((0..<3).map { ("\($0)" + (texts.randomElement(using: &random) ?? ""), value(depth - 1)) }) { $1 })
            }
        }
        for _ in 0..<3000 {
            // As received from a client: a whole number stays one, however it was written.
            let stored = try JSONDecoder().decode(JSONValue.self, from: Data(JSONWriter.bytes(of: value(6))))
            var json = PlainJSON(try JSONWriter.bytes(of: stored))
            let read = json.value(depthMax: Limits.metadataDepth)
            #expect(read == stored && json.isAtEnd)
        }
    }

    @Test("lists of texts and of mentions, and lists by their names, are read as they are written now and as Codable wrote them")
    func lists() throws {
        let mentionees: [Mentionee] = [.users(["ann", #"b "e\n 😀"#]), .channel]
        let texts = ["a", "é\n", ""]
        let lists = ["likes": ["ann", #"b"en"#], "none": []]
        func former(_ value: some Encodable) throws -> String { String(decoding: try JSONEncoder().encode(value), as: UTF8.self) }
        for text in [try former(mentionees), try StoredJSON.text { Mentionee.write(mentionees, to: &$0) }] {
            #expect(try StoredJSON.decode(text, plainly: Mentionee.readList) == mentionees)
        }
        for text in [try former(texts), try StoredJSON.text { String.write(texts, to: &$0) }] {
            #expect(try StoredJSON.decode(text, plainly: String.readList) == texts)
        }
        for text in [try former(lists), try StoredJSON.text(lists.write)] {
            #expect(try StoredJSON.decode(text, plainly: [String: [String]].read) == lists)
        }
    }

    @Test("invalid JSON, or JSON of another kind, is damage; a number that JSON doesn't have isn't written")
    func damage() {
        for text in ["", "[1", #"["a"]x"#, #"["a",1]"#, "null", "{}"] {
            #expect(throws: DamagedDatabase.self) { try StoredJSON.decode(text, plainly: String.readList) }
        }
        #expect(throws: EncodingError.self) { try StoredJSON.text(JSONValue.array([.number(.infinity)]).write) }
    }
}
