import Foundation
import RoostAPI

/// The text of a header that belongs to Roost or to an operation.
enum HeaderText {
    /// Returns the value of a header that occurs once, without surrounding white space; nil if there is none.
    ///
    /// - Throws: `invalid_argument` for a repeated header, even with the same value, as for `Authorization`, `Host` and `Content-Length`.
    static func single(_ values: [String], of name: String) throws(RoostError) -> String? {
        guard let first = values.first else { return nil }
        guard values.count == 1 else { throw .invalidArgument(name, "is given more than once") }
        return first.trimmingCharacters(in: .whitespaces)
    }

    /// Returns the text of a percent-encoded value.
    ///
    /// - Throws: `invalid_argument` if it isn't percent-encoded UTF-8, `limit_exceeded` for too many combining marks in a row.
    static func decoded(_ value: String, of name: String) throws(RoostError) -> String {
        guard let text = value.removingPercentEncoding else { throw .invalidArgument(name, "must be percent-encoded UTF-8") }
        try CombiningMarks.requireWithinLimit(in: text, field: name)
        return text
    }
}
