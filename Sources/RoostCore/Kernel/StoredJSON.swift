import Foundation
import RoostAPI

/// JSON in a column: tags and metadata, which the database never parses.
enum StoredJSON {
    /// Returns the text that a body writes, for a value that is written and read without `Codable`.
    static func text(_ write: (inout JSONBytes) -> Void) throws -> String {
        var json = JSONBytes()
        write(&json)
        guard !json.isUnwritable else {
            throw EncodingError.invalidValue(json.bytes, .init(codingPath: [], debugDescription: "JSON has no such number."))
        }
        return String(decoding: json.bytes, as: UTF8.self)
    }

    /// Returns the value that a body reads from plainly written text, as `text(_:)` writes nearly all of it. Foundation decodes the rest.
    static func decode<T: Decodable>(_ text: String, plainly read: (inout PlainJSON) -> T?) throws -> T {
        var json = PlainJSON(Array(text.utf8))
        if let value = read(&json), json.isAtEnd { return value }
        return try decode(T.self, from: text)
    }

    static func encode(_ value: (some Encodable)?) throws -> String? {
        guard let value else { return nil }
        return String(decoding: try JSONWriter.bytes(of: value), as: UTF8.self)
    }

    /// Returns whether two values have the same bytes. In Swift's `==`, canonically equivalent texts are equal.
    static func isSame<T: Encodable>(_ one: T, _ other: T) throws -> Bool {
        try JSONWriter.bytes(of: one) == JSONWriter.bytes(of: other)
    }

    static func decode<T: Decodable>(_ type: T.Type, from text: String) throws -> T {
        do {
            return try JSONDecoder().decode(type, from: Data(text.utf8))
        } catch {
            throw DamagedDatabase(what: "\(T.self) as JSON")
        }
    }
}
