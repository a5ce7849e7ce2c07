import Foundation
import RoostAPI
import Testing

@testable import RoostCore

/// JSON in columns is read and written without `Codable` where it is plain. Databases have what earlier versions wrote with it.
@Suite("Stored JSON")
struct StoredJSONTests {
    @Test(
        "metadata are read as Foundation reads them, however they were written, and come back as they were",
        arguments: [
            #"{"a":1,"b":[true,null,"x"]}"#, #"{ "a" : -1.5e3 }"#, #"{"a":9223372036854775807,"b":9223372036854775808}"#,
            #"{"a":"\u00e9\n\ud83d\ude00 \/ \\ \""}"#, #"{"a":{"b":{"c":[{},[]]}},"":""}"#, "{}", "[]",
            #"{"a":"# + String(repeating: "[", count: 40) + String(repeating: "]", count: 40) + "}",
        ])
    func metadata(text: String) throws {
        let expected = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
        #expect(try StoredJSON.decode(text, plainly: JSONValue.read) == expected)
        let written = try StoredJSON.text(expected.write)
        #expect(try StoredJSON.decode(written, plainly: JSONValue.read) == expected)
        #expect(try JSONDecoder().decode(JSONValue.self, from: Data(written.utf8)) == expected)
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

    @Test("what isn't JSON, or not of this kind, is damage; a number that JSON doesn't have isn't written")
    func damage() {
        for text in ["", "[1", #"["a"]x"#, #"["a",1]"#, "null", "{}"] {
            #expect(throws: DamagedDatabase.self) { try StoredJSON.decode(text, plainly: String.readList) }
        }
        #expect(throws: EncodingError.self) { try StoredJSON.text(JSONValue.array([.number(.infinity)]).write) }
    }
}
