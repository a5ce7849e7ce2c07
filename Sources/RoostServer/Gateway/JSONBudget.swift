import Foundation
import RoostAPI

/// Bounds what reading a client's JSON can cost, before it is read.
///
/// Foundation reads about a value a microsecond, and free JSON several times slower, since each value is tried as one type after another. A
/// megabyte of `[[],[],…` would hold an event loop for seconds.
enum JSONBudget {
    /// Below this size there can't be too many values to matter.
    private static let uncheckedSizeBytes = 4096

    /// Throws `limit_exceeded` when the text has more than `Limits.jsonValues` values. It isn't checked to be JSON.
    static func check(_ data: Data) throws(RoostError) {
        guard data.count > uncheckedSizeBytes else { return }
        var count = 0
        var isInString = false
        var isEscaped = false
        for byte in data.withUnsafeBytes({ Array($0) }) {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
            } else if byte == UInt8(ascii: "\"") {
                isInString = true
            } else if byte == UInt8(ascii: ",") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{") {
                count += 1
            }
        }
        guard count <= Limits.jsonValues else {
            throw .limitExceeded("body", limit: Limits.jsonValues, unit: "JSON values")
        }
    }
}
