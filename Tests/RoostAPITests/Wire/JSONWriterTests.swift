import Foundation
import RoostAPI
import Testing

@Suite("JSONWriter")
struct JSONWriterTests {
    @Test("its output reads the same as Foundation's", arguments: 1...20 as ClosedRange<UInt64>)
    func equalsFoundation(seed: UInt64) throws {
        var json = RandomJSON(random: SeededGenerator(seed: seed))
        for _ in 0..<100 {
            let value = json.value(depth: 5)
            let own = Data(try JSONWriter.bytes(of: value))
            let read = try JSONDecoder().decode(JSONValue.self, from: own)
            guard read == value else {
                #expect(read == value)
                return
            }
            // The top of the text is an array, since not every JSON reader accepts a bare value.
            let wrapped = Data(try JSONWriter.bytes(of: [value]))
            let theirs = try JSONSerialization.jsonObject(with: JSONEncoder().encode([value])) as? NSArray
            let ours = try JSONSerialization.jsonObject(with: wrapped) as? NSArray
            guard let ours, let theirs, ours == theirs else {
                Issue.record("\(String(decoding: wrapped, as: UTF8.self))")
                return
            }
        }
    }

    /// Uses every way in which a value can request containers.
    private struct Awkward: Encodable {
        enum Keys: String, CodingKey { case first, list, deep, empty, emptyList, parent, last }
        enum Inner: String, CodingKey { case one, two }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(UInt64.max, forKey: .first)
            var list = container.nestedUnkeyedContainer(forKey: .list)
            try list.encode(1)
            try list.encodeNil()
            var inList = list.nestedContainer(keyedBy: Inner.self)
            try inList.encode(true, forKey: .one)
            var listInList = list.nestedUnkeyedContainer()
            try listInList.encode("x")
            _ = list.nestedUnkeyedContainer()
            try list.encode([[Int]]())
            try list.encode(-10)
            var deep = container.nestedContainer(keyedBy: Inner.self, forKey: .deep)
            var deeper = deep.nestedContainer(keyedBy: Inner.self, forKey: .one)
            try deeper.encode(["a": [Int]()], forKey: .one)
            try deep.encode(Float(0.5), forKey: .two)
            _ = container.nestedContainer(keyedBy: Inner.self, forKey: .empty)
            _ = container.nestedUnkeyedContainer(forKey: .emptyList)
            try [1, 2].encode(to: container.superEncoder(forKey: .parent))
            try container.encodeNil(forKey: .last)
        }
    }

    @Test("nested and empty containers stand where they were requested")
    func nests() throws {
        let expected =
            #"{"first":18446744073709551615,"list":[1,null,{"one":true},["x"],[],[],-10],"deep":{"one":{"one":{"a":[]}},"two":0.5},"#
            + #""empty":{},"emptyList":[],"parent":[1,2],"last":null}"#
        #expect(String(decoding: try JSONWriter.bytes(of: Awkward()), as: UTF8.self) == expected)
    }

    @Test("values of one kind are written plainly")
    func plain() throws {
        func text(_ value: some Encodable) throws -> String { String(decoding: try JSONWriter.bytes(of: value), as: UTF8.self) }
        let texts = [
            try text(Done()), try text([Done(), Done()]), try text("\u{1}\u{1f}\"\\/\n"), try text([Int?.none, 3]),
            try text(["k": Int?.none]), try text(MessageID(rawValue: 7)), try text([Int8.min]), try text(1.0),
        ]
        #expect(texts == ["{}", "[{},{}]", #""\u0001\u001f\"\\/\n""#, "[null,3]", #"{"k":null}"#, #""7""#, "[-128]", "1.0"])
    }

    @Test("characters that need an escape get one wherever they stand among others, and no others do")
    func escapes() throws {
        let neighbours: [Unicode.Scalar] = ["a", " ", "!", "#", "[", "]", "\u{7f}", "é", "€", "\u{1F426}"]
        for scalar in (0...0x7F).compactMap({ Unicode.Scalar($0 as UInt32) }) {
            for length in [0, 1, 6, 7, 8, 9, 15, 16, 17] {
                for neighbour in neighbours {
                    let before = String(repeating: Character(neighbour), count: length)
                    let text = before + String(scalar) + before + String(scalar)
                    let written = try JSONWriter.bytes(of: [text])
                    let isEscaped = scalar.value < 0x20 || scalar == "\"" || scalar == "\\"
                    guard try JSONDecoder().decode([String].self, from: Data(written)) == [text],
                        written.count == JSONBytes.sizeBytes(of: text) + 2, isEscaped == (written.count > text.utf8.count + 4)
                    else {
                        Issue.record("\(scalar.value) after \(length) of \(neighbour)")
                        return
                    }
                }
            }
        }
    }

    @Test("U+FEFF is a character like any other", arguments: ["\u{feff}", "\u{feff}a", "/\u{feff}", "\n\u{feff}a\u{feff}"])
    func byteOrderMark(text: String) throws {
        // Foundation's reader of untyped objects drops some of them, so it can't be asked about them elsewhere.
        let written = try JSONWriter.bytes(of: [text: text])
        #expect(try JSONDecoder().decode([String: String].self, from: Data(written)) == [text: text])
    }

    @Test("a number that JSON doesn't have is an error", arguments: [Double.nan, .infinity, -.infinity])
    func refuses(number: Double) {
        #expect(throws: EncodingError.self) { try JSONWriter.bytes(of: ["x": number]) }
        #expect(throws: EncodingError.self) { try JSONWriter.bytes(of: JSONValue.number(number)) }
    }

    @Test("AM-36 equal JSON has equal bytes, whatever the order of its keys")
    func isCanonical() throws {
        let keys = (0..<200).map { "key \($0)" }
        let forwards = JSONValue.object(Dictionary(uniqueKeysWithValues: keys.map { ($0, .string($0)) }))
        let backwards = JSONValue.object(Dictionary(uniqueKeysWithValues: keys.reversed().map { ($0, .string($0)) }))
        #expect(try JSONWriter.bytes(of: forwards) == JSONWriter.bytes(of: backwards))
    }

    @Test(
        "AM-36 whole numbers keep all their digits",
        arguments: ["9223372036854775807", "-9223372036854775808", "9007199254740993", "0"])
    func keepsDigits(text: String) throws {
        let value = try JSONDecoder().decode(JSONValue.self, from: Data("[\(text)]".utf8))
        #expect(String(decoding: try JSONWriter.bytes(of: value), as: UTF8.self) == "[\(text)]")
    }
}
