package import Foundation
package import RoostAPI

/// A file of the operator's with one JSON object in it (``StrictJSON``).
package enum StrictFile {
    /// Why a file can't be used: "it can't be read: No such file or directory."
    package struct Refusal: Error, CustomStringConvertible {
        package let description: String
    }

    /// Reads the object.
    package static func object(in file: URL) throws(Refusal) -> [String: JSONValue] {
        let data: Data
        do { data = try Data(contentsOf: file) } catch {
            throw Refusal(description: "it can't be read: \(SystemError.reason(of: error)).")
        }
        guard data.count <= Limits.bodySizeBytes else {
            throw Refusal(description: "it has a limit of \(Limits.bodySizeBytes) bytes.")
        }
        let value: JSONValue
        do { value = try StrictJSON.value(of: Array(data)) } catch { throw Refusal(description: error.message) }
        guard case .object(let fields) = value else { throw Refusal(description: "it must be a JSON object.") }
        return fields
    }
}
