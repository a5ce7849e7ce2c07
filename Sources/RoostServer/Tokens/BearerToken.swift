import Foundation
import NIOHTTP1

/// The token of an `Authorization: Bearer …` header.
enum BearerToken {
    static func read(from headers: HTTPHeaders) -> String? { read(headers.first(name: "Authorization")) }

    static func read(_ value: String?) -> String? {
        guard let value, value.utf8.count > 7, value.utf8.prefix(7).elementsEqual("bearer ".utf8, by: { $0 | 0x20 == $1 }) else {
            return nil
        }
        let token = String(Substring(value.utf8.dropFirst(7)))
        // Tokens are rarely surrounded by spaces, and checking for all of Unicode's costs more than the rest.
        let isPlain = [token.utf8.first, token.utf8.last].allSatisfy { $0.map { 0x21...0x7E ~= $0 } ?? false }
        return isPlain ? token : token.trimmingCharacters(in: .whitespaces)
    }
}
