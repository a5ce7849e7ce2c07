public import Foundation
import RoostDatabase

/// Looks at the files of a data directory on SQLite as a start would, and changes nothing in them.
public struct DataDirectoryExamination: Sendable {
    private let files: DataFiles

    public init(directory: URL) { files = DataFiles(directory: directory) }

    /// Why a server wouldn't start with these files, as sentences; nil if it would. To ask while none runs: the files of one that runs change.
    public func refusal() -> String? { files.refusal() }

    /// Whether the pages of the database carry checksums; nil if there is no database.
    public var hasChecksums: Bool? { files.hasChecksums }

    /// A file as it stands at a path, or as the link there leads to it.
    public struct File: Sendable {
        public let sizeBytes: Int64
        /// Who may open it: the last nine bits of its mode.
        public let mode: Int
        public let identity: Identity

        /// Tells a file from every other one of the machine, whatever its name is.
        public struct Identity: Hashable, Sendable {
            let device: UInt64
            let number: UInt64
        }

        /// Nil if there is no file, or none that this process may look at.
        public init?(path: String) {
            guard let status = FileStatus(path: path) else { return nil }
            sizeBytes = status.sizeBytes
            mode = status.mode
            identity = Identity(device: status.device, number: status.number)
        }
    }
}
