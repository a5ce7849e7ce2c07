import Foundation

/// The folder of a user's files, as a system keeps it from others.
enum StoreFolder {
    /// Makes the folder where it is missing, and says how its files are to be kept.
    ///
    /// - Throws: What the file system throws.
    static func make(_ folder: URL) throws {
        // Nobody else on this machine may read what is in it.
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        #if canImport(Darwin)
        try keepOutOfBackups(folder)
        #if !os(macOS)
        // Files get the class of their folder. A message may come, or be sent, while the device is locked; before it was unlocked for the first
        // time, nothing can be read.
        try FileManager.default.setAttributes(
            [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: folder.path)
        #endif
        #endif
    }

    #if canImport(Darwin)
    /// The cache is fetched again. An outbox that comes back from a backup would send what was discarded since.
    private static func keepOutOfBackups(_ folder: URL) throws {
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        var folder = folder
        try folder.setResourceValues(values)
    }
    #endif
}
