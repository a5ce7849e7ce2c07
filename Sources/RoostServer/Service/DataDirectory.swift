package import Foundation
import RoostDatabase

/// A server's data directory.
package enum DataDirectory {
    /// Makes it, for its owner only, along with any missing parent directories; does nothing if it exists. On return their names are on disk.
    ///
    /// - Throws: The system's error, as Foundation has it.
    package static func make(_ url: URL) throws { try MissingDirectories.make(url) }
}
