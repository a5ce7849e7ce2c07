public import Foundation
import RoostDatabase

/// Examines the files of a data directory on SQLite as a start would, without changing them.
public struct DataDirectoryExamination: Sendable {
    private let files: DataFiles

    public init(directory: URL) { files = DataFiles(directory: directory) }

    /// Returns why a server wouldn't start with these files, as sentences; nil if it would. Only for use while no server runs, since a running one
    /// changes its files.
    public func refusal() -> String? { files.refusal() }

    /// Whether the pages of the database carry checksums; nil if there is no database.
    public var hasChecksums: Bool? { files.hasChecksums }

    /// Reads every page of the database, which no server may have open, and returns the first one that doesn't match its checksum.
    public func firstDamagedPage() throws -> Int64? { try SQLiteDatabase.examinePages(of: files.database).damaged }

    /// The file at a path, or the one that a link there leads to.
    public struct File: Sendable {
        public let sizeBytes: Int64
        /// Its permissions: the last nine bits of its mode.
        public let mode: Int
        public let identity: Identity

        /// Identifies a file on the machine, whatever its name is.
        public struct Identity: Hashable, Sendable {
            let device: UInt64
            let number: UInt64
        }

        /// Nil if there is no file, or if this process may not examine it.
        public init?(path: String) {
            guard let status = FileStatus(path: path) else { return nil }
            sizeBytes = status.sizeBytes
            mode = status.mode
            identity = Identity(device: status.device, number: status.number)
        }
    }
}
