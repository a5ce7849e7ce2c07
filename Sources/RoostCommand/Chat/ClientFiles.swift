import Foundation
import Roost
import RoostAPI

/// The folder of a chat's cache and outbox. Two processes must not share one, so it is locked.
struct ClientFiles: ~Copyable {
    /// Nil when everything stays in memory.
    let directory: URL?
    private let lock: Int32

    /// - Parameters:
    ///   - directory: As the user named it; nil for the usual place.
    ///   - isOptional: Whether memory will do when none was named.
    init(user: UserID, url: URL, directory named: String?, isOptional: Bool) throws {
        let environment = ProcessInfo.processInfo.environment
        let state = environment["XDG_STATE_HOME"].map { URL(filePath: $0) } ?? URL.homeDirectory.appending(path: ".local/state")
        guard named != nil || !isOptional else {
            (self.directory, lock) = (nil, -1)
            return
        }
        // One for each user and server, as the SDK's own folders are.
        let name = "\(user)@\(url.host() ?? ""):\(url.port ?? 0)".map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
        let parent = named.map { URL(filePath: $0, directoryHint: .isDirectory) } ?? state.appending(path: "roost")
        let directory = parent.appending(path: String(name), directoryHint: .isDirectory)
        try? FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        lock = open(directory.appending(path: "lock").path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if lock >= 0, flock(lock, LOCK_EX | LOCK_NB) == 0 {
            self.directory = directory
        } else if named != nil {
            throw Failure("\(directory.path) is in use by another roost chat, or can't be written.")
        } else {
            // The same user in a second terminal: it keeps its messages in memory.
            self.directory = nil
        }
    }

    deinit { if lock >= 0 { close(lock) } }
}
