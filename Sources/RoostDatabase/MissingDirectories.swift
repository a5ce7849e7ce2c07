package import Foundation

/// A directory that is to be made, with those above it that aren't there either. The name of each is in the one above it, which has to be brought to disk too:
/// otherwise all that is in them can be gone after a power failure.
package struct MissingDirectories: Sendable {
    /// Their paths, the outermost first. Empty if the directory is there.
    package let paths: [String]

    package init(upTo url: URL) {
        var missing: [String] = []
        var directory = url.absoluteURL.standardizedFileURL
        while directory.path.count > 1, access(directory.path, F_OK) != 0 {
            missing.append(directory.path)
            directory.deleteLastPathComponent()
        }
        paths = missing.reversed()
    }

    /// Makes a directory, for its owner only, and those above it that are missing. When it returns, their names are on disk. It does nothing if the directory
    /// is there.
    ///
    /// - Throws: The system's error, as Foundation has it.
    package static func make(_ url: URL) throws {
        let missing = MissingDirectories(upTo: url)
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try missing.syncNames()
    }

    /// Brings the names of those to disk that were made since.
    ///
    /// - Throws: The system's error, as Foundation has it. One above them that this process may write and not read can't be brought to disk, and is passed by.
    package func syncNames() throws {
        for path in paths {
            let above = URL(filePath: path, directoryHint: .isDirectory).deletingLastPathComponent()
            let descriptor = open(above.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            if descriptor < 0, errno == ENOENT || errno == EACCES { continue }
            guard descriptor >= 0 else { throw Self.failure(errno) }
            defer { close(descriptor) }
            guard fsync(descriptor) == 0 else { throw Self.failure(errno) }
        }
    }

    private static func failure(_ code: Int32) -> CocoaError {
        CocoaError(.fileWriteUnknown, userInfo: [NSUnderlyingErrorKey: POSIXError(POSIXError.Code(rawValue: code) ?? .EIO)])
    }
}
