public import Foundation
import RoostDatabase

/// A server's data directory.
public enum DataDirectory {
    /// Makes it, for its owner only, with those above it that are missing; does nothing if it is there. When this returns, their names are on disk.
    ///
    /// - Throws: The system's error, as Foundation has it.
    public static func make(_ url: URL) throws { try MissingDirectories.make(url) }
}
