import Foundation

/// The files of a database as after a kill.
enum KilledFiles {
    /// Returns a new directory with a copy of them.
    static func copy(of directory: URL) throws -> URL {
        let copy = directory.appending(path: "copy-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
        // The database first: later writes of the copier are in the log.
        for name in ["roost.sqlite", "roost.sqlite-wal", "roost.state"] {
            try FileManager.default.copyItem(at: directory.appending(path: name), to: copy.appending(path: name))
        }
        return copy
    }
}
