package import Foundation
import RoostDatabase

/// Examines the files of a data directory on SQLite as a start would, without changing them.
package struct DataDirectoryExamination: Sendable {
    private let files: DataFiles

    package init(directory: URL) { files = DataFiles(directory: directory) }

    /// Returns why a server wouldn't start with these files, as sentences; nil if it would. Only for use while no server runs, since a running one
    /// changes its files.
    package func refusal() -> String? { files.refusal() }

    /// Whether the pages of the database carry checksums; nil if there is no database.
    package var hasChecksums: Bool? { files.hasChecksums }

    /// Reads every page of the database, which no server may have open, and returns the first one that doesn't match its checksum.
    package func firstDamagedPage() throws -> Int64? { try SQLiteDatabase.examinePages(of: files.database).damaged }

    /// The file at a path, or the one that a link there leads to.
    package struct File: Sendable {
        package let sizeBytes: Int64
        /// Its permissions: the last nine bits of its mode.
        package let mode: Int
        package let identity: Identity

        /// Identifies a file on the machine, whatever its name is.
        package struct Identity: Hashable, Sendable {
            let device: UInt64
            let number: UInt64
        }

        /// Nil if there is no file, or if this process may not examine it.
        package init?(path: String) {
            guard let status = FileStatus(path: path) else { return nil }
            sizeBytes = status.sizeBytes
            mode = status.mode
            identity = Identity(device: status.device, number: status.number)
        }
    }
}
