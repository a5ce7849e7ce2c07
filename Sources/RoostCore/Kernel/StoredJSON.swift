import Foundation
import RoostAPI

/// JSON in a column: tags and metadata, which the database never parses.
enum StoredJSON {
    static func encode(_ value: (some Encodable)?) throws -> String? {
        guard let value else { return nil }
        return String(decoding: try JSONWriter.bytes(of: value), as: UTF8.self)
    }

    /// Returns whether two values have the same bytes. To Swift's `==`, canonically equivalent texts are equal.
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
