package import Foundation
package import RoostAPI

/// An operator's file with one JSON object (``StrictJSON``).
package enum StrictFile {
    /// Why a file can't be used, worded to follow the file's name: "can't be read: No such file or directory."
    package struct Refusal: Error, CustomStringConvertible {
        package let description: String

        fileprivate init(unreadable reason: String) { description = "can't be read: \(reason)." }
        fileprivate init(_ reason: String) { description = "can't be used: \(reason)" }
    }

    package static func object(in file: URL) throws(Refusal) -> [String: JSONValue] {
        let data: Data
        do { data = try Data(contentsOf: file) } catch {
            throw Refusal(unreadable: SystemError.reason(of: error))
        }
        guard data.count <= Limits.bodySizeBytes else {
            throw Refusal("it has more than \(Limits.bodySizeBytes) bytes.")
        }
        let value: JSONValue
        do { value = try StrictJSON.value(of: Array(data)) } catch { throw Refusal(error.clause) }
        guard case .object(let fields) = value else { throw Refusal("it must be a JSON object.") }
        return fields
    }
}
