package import Foundation

/// A directory to be created, with its missing parents. The name of each is stored in its parent, which has to be synced too: otherwise everything in
/// them can be lost in a power failure.
package struct MissingDirectories: Sendable {
    /// The missing directories' paths, the outermost first. Empty if the directory exists.
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

    /// Creates a directory, for its owner only, and its missing parents. When it returns, their names are on disk. Does nothing if the directory
    /// exists.
    ///
    /// - Throws: The system's error, as reported by Foundation.
    package static func make(_ url: URL) throws {
        let missing = MissingDirectories(upTo: url)
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try missing.syncNames()
    }

    /// Syncs the names of the directories created since.
    ///
    /// - Throws: The system's error, as reported by Foundation. A parent that this process may write but not read can't be synced, and is skipped.
    package func syncNames() throws {
        for path in paths {
            let above = URL(filePath: path, directoryHint: .isDirectory).deletingLastPathComponent()
            let descriptor = open(above.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            if descriptor < 0, errno == ENOENT || errno == EACCES { continue }
            guard descriptor >= 0 else { throw Self.failure(errno) }
            defer { close(descriptor) }
            guard FileSync.sync(descriptor, above.path) else { throw Self.failure(errno) }
        }
    }

    private static func failure(_ code: Int32) -> CocoaError {
        CocoaError(.fileWriteUnknown, userInfo: [NSUnderlyingErrorKey: POSIXError(POSIXError.Code(rawValue: code) ?? .EIO)])
    }
}
