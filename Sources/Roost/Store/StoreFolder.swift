import Foundation

/// The folder of a user's files, protected as the system allows.
enum StoreFolder {
    /// Creates the folder if it is missing, and sets how its files are protected.
    ///
    /// - Throws: The errors of the file system.
    static func make(_ folder: URL) throws {
        // No other user of this machine may read its content.
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        #if canImport(Darwin)
        try keepOutOfBackups(folder)
        #if !os(macOS)
        // Files get the class of their folder. A message may arrive or be sent while the device is locked; before its first unlock, nothing can be read.
        try FileManager.default.setAttributes(
            [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: folder.path)
        #endif
        #endif
    }

    #if canImport(Darwin)
    /// The cache is fetched again. An outbox restored from a backup would send operations that were discarded since.
    private static func keepOutOfBackups(_ folder: URL) throws {
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        var folder = folder
        try folder.setResourceValues(values)
    }
    #endif
}
