package import Foundation
package import RoostAPI

/// A file of the operator's with one JSON object in it (``StrictJSON``).
package enum StrictFile {
    /// Why a file can't be used, as it goes on after the file's name: "can't be read: No such file or directory."
    package struct Refusal: Error, CustomStringConvertible {
        package let description: String

        fileprivate init(unreadable reason: String) { description = "can't be read: \(reason)." }
        fileprivate init(_ reason: String) { description = "can't be used: \(reason)" }
    }

    /// Reads the object.
    package static func object(in file: URL) throws(Refusal) -> [String: JSONValue] {
        let data: Data
        do { data = try Data(contentsOf: file) } catch {
            throw Refusal(unreadable: SystemError.reason(of: error))
        }
        guard data.count <= Limits.bodySizeBytes else {
            throw Refusal("it has a limit of \(Limits.bodySizeBytes) bytes.")
        }
        let value: JSONValue
        do { value = try StrictJSON.value(of: Array(data)) } catch { throw Refusal(error.clause) }
        guard case .object(let fields) = value else { throw Refusal("it must be a JSON object.") }
        return fields
    }
}
