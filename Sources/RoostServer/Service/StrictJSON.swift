import Foundation
package import RoostAPI

/// JSON written by an operator or a user of the command line, read as strictly as a client's: without duplicate keys, extra commas or numbers that
/// can't be represented.
package enum StrictJSON {
    /// Reads a value.
    ///
    /// - Throws: The error that a client would get: `invalid_argument` or `limit_exceeded`.
    package static func value(of bytes: [UInt8]) throws(RoostError) -> JSONValue {
        try value(of: bytes, as: JSONScan(bytes), at: [])
    }

    /// Reads a value where other text is allowed too.
    ///
    /// - Parameter path: The names that lead to it, for the refusal.
    /// - Returns: Nil if the text isn't JSON.
    /// - Throws: `invalid_argument` or `limit_exceeded` for JSON that can't be represented exactly.
    package static func valueIfAny(of bytes: [UInt8], at path: [String]) throws(RoostError) -> JSONValue? {
        let scan: JSONScan
        do {
            scan = try JSONScan(bytes)
        } catch {
            guard error.code == .limitExceeded else { return nil }
            throw error
        }
        return try value(of: bytes, as: scan, at: path)
    }

    private static func value(of bytes: [UInt8], as scan: JSONScan, at path: [String]) throws(RoostError) -> JSONValue {
        if let problem = scan.problem { throw problem.error(at: path + problem.path) }
        do { return try JSONDecoder().decode(JSONValue.self, from: Data(bytes)) } catch { throw RoostError(decoding: error) }
    }
}

extension RoostError {
    /// The message as the continuation of a sentence. The name of a field keeps its case.
    package var clause: String { field == nil ? message.prefix(1).lowercased() + message.dropFirst() : message }
}
