import RoostAPI
import Testing

@Suite("JSONValue")
struct JSONValueTests {
    /// A value as each of Swift's types that can be read from it.
    private func readings(of value: JSONValue) -> [String] {
        [
            value.stringValue.map { "string \($0)" }, value.boolValue.map { "bool \($0)" }, value.intValue.map { "int \($0)" },
            value.doubleValue.map { "double \($0)" }, value.arrayValue.map { "array \($0.count)" },
            value.objectValue.map { "object \($0.keys.sorted())" },
        ].compactMap(\.self)
    }

    @Test(
        "a value of metadata is read as the type that it has, and a whole number also as a Double",
        arguments: [
            (.null, []), (true, ["bool true"]), ("7", ["string 7"]), (7, ["int 7", "double 7.0"]),
            // Another platform may write a whole number so.
            (.number(7), ["int 7", "double 7.0"]), (7.5, ["double 7.5"]), (.number(1e300), ["double 1e+300"]),
            ([1, 2], ["array 2"]), (["b": 1, "a": 2], [#"object ["a", "b"]"#]),
        ] as [(JSONValue, [String])])
    func readsByType(value: JSONValue, expected: [String]) {
        #expect(readings(of: value) == expected)
    }

    @Test("a name that an object doesn't have, and a name in another value, read as nil")
    func readsNames() {
        let metadata: JSONValue = ["floor": 3, "open": ["from": "8:00"]]
        #expect(metadata["floor"]?.intValue == 3 && metadata["open"]?["from"]?.stringValue == "8:00")
        #expect(metadata["wing"]?.intValue == nil && metadata["floor"]?["from"]?.stringValue == nil)
    }
}
