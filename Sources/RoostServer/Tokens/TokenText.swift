import Foundation
import RoostAPI

/// The parts of a token before anything in it is trusted: the compact form of a JSON Web Signature (RFC 7515 §3.1), read strictly.
///
/// Everything that parsers could interpret differently is refused: white space, padding, the other base 64 alphabet, unused bits that aren't 0, a
/// fourth part, text that isn't UTF-8, and duplicate members of an object.
struct TokenText {
    /// The signed bytes: the header and the payload as they were sent.
    let signed: Data
    let signature: Data
    let header: Header
    /// The claims, as JSON.
    let payload: Data

    /// The members of a header that matter here. All others are ignored, as RFC 7515 requires.
    struct Header: Decodable {
        let alg: String
        let kid: String?
        /// Whether it names parameters that must be understood. This server understands none.
        let isCritical: Bool

        private enum CodingKeys: String, CodingKey { case alg, kid, crit }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            alg = try container.decode(String.self, forKey: .alg)
            kid = try container.decodeIfPresent(String.self, forKey: .kid)
            isCritical = container.contains(.crit)
        }
    }

    /// The most bytes of a token: as many as fit into one header line.
    static let sizeBytesMax = 8192

    init(_ token: String) throws(TokenRefusal) {
        guard token.utf8.count <= Self.sizeBytesMax else { throw TokenRefusal("it has more than \(Self.sizeBytesMax) bytes") }
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64URL.decode(parts[0]), let payload = Base64URL.decode(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw TokenRefusal("it isn't three parts in base 64 for URLs, without padding") }
        signed = Data(token.utf8.prefix(parts[0].count + 1 + parts[1].count))
        self.signature = signature
        self.payload = payload
        try Self.requirePlainJSON(header, "header")
        try Self.requirePlainJSON(payload, "payload")
        guard let read = try? JSONDecoder().decode(Header.self, from: header) else {
            throw TokenRefusal("its header isn't a JSON object with alg")
        }
        guard !read.isCritical else { throw TokenRefusal("its header has crit, which names what this server doesn't know") }
        self.header = read
    }

    private static func requirePlainJSON(_ data: Data, _ part: String) throws(TokenRefusal) {
        guard String(validating: data, as: UTF8.self) != nil else { throw TokenRefusal("its \(part) isn't UTF-8") }
        let scan: JSONScan
        do {
            scan = try JSONScan(Array(data))
        } catch {
            throw TokenRefusal("its \(part) can't be read: \(error.message)")
        }
        guard scan.duplicate == nil else { throw TokenRefusal("its \(part) has a member more than once") }
    }
}

/// Why a token is refused, for the server's log. Anyone can send a token, so the reason contains nothing of it except the plain name of a key.
struct TokenRefusal: Error, Equatable {
    let reason: String
    /// The error for the client.
    var error = RoostError(.unauthenticated, "The token is not valid.")

    init(_ reason: String) { self.reason = reason }

    /// - Parameter name: Shown if it is at most 64 letters, digits, `.`, `_` and `-`: with spaces and `=` it could pass for fields of the line.
    init(unknownKey name: String) {
        let isPlain =
            !name.isEmpty && name.utf8.count <= 64
            && name.unicodeScalars.allSatisfy { scalar in
                scalar.isASCII
                    && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil
                        || "._-".unicodeScalars.contains(scalar))
            }
        self.init(isPlain ? "there is no key with the kid \(name)" : "there is no key with its kid")
    }

    init(_ reason: String, reporting error: RoostError) {
        self.reason = reason
        self.error = error
    }
}
