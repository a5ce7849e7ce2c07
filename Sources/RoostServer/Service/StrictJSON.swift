import Foundation
package import RoostAPI

/// JSON that an operator or a user of the command line has written, read as strictly as a client's: without duplicate keys, commas too many or
/// numbers that can't be kept.
package enum StrictJSON {
    /// Reads a value.
    ///
    /// - Throws: What a client is told: `invalid_argument` or `limit_exceeded`.
    package static func value(of bytes: [UInt8]) throws(RoostError) -> JSONValue {
        try value(of: bytes, as: JSONScan(bytes), at: [])
    }

    /// Reads a value where other text may stand as well.
    ///
    /// - Parameter path: The names that lead to it, for the refusal.
    /// - Returns: Nil if the text isn't JSON.
    /// - Throws: `invalid_argument` or `limit_exceeded` for JSON that can't be kept as it is.
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
    /// The message as it goes on in a sentence. The name of a field stays as it is.
    package var clause: String { field == nil ? message.prefix(1).lowercased() + message.dropFirst() : message }
}
