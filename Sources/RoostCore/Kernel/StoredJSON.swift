import Foundation
import RoostAPI

/// JSON in a column: tags and metadata, which the database never looks into.
enum StoredJSON {
    static func encode(_ value: (some Encodable)?) throws -> String? {
        guard let value else { return nil }
        return String(decoding: try JSONWriter.bytes(of: value), as: UTF8.self)
    }

    static func decode<T: Decodable>(_ type: T.Type, from text: String) throws -> T {
        do {
            return try JSONDecoder().decode(type, from: Data(text.utf8))
        } catch {
            throw DamagedDatabase(what: "\(T.self) as JSON")
        }
    }
}
