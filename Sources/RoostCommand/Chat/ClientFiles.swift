import Foundation
import Roost
import RoostAPI

/// The folder of a chat's cache and outbox. Two processes must not share the files of one user on one server, so these are locked.
struct ClientFiles: ~Copyable {
    /// Nil if everything stays in memory.
    let directory: URL?
    /// Why everything stays in memory although a folder was intended; nil if it doesn't.
    let memoryReason: String?
    private let lock: Int32

    /// - Parameters:
    ///   - directory: As named by the user; nil for the default location.
    ///   - isOptional: Whether memory suffices if none was named.
    init(user: UserID, url: URL, directory named: String?, isOptional: Bool) throws {
        guard named != nil || !isOptional else {
            (self.directory, memoryReason, lock) = (nil, nil, -1)
            return
        }
        // Its name is for people: users whose ids differ only in characters replaced by "_" share it. The SDK's folders in it and the lock
        // are separate for each user.
        let name = "\(user)@\(url.host() ?? ""):\(url.port ?? 0)".map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
        let parent = named.map { URL(filePath: $0, directoryHint: .isDirectory) } ?? Self.defaultParent()
        let directory = parent.appending(path: String(name), directoryHint: .isDirectory)
        var reason: String?
        do {
            try FileManager.default.createDirectory(
                at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            reason = "\(directory.path) can't be created: \(PlainWords.reason(of: error))"
        }
        let lockFile = directory.appending(path: "\(SyncFiles.folderName(of: user, at: url)).lock")
        lock = reason == nil ? open(lockFile.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) : -1
        if reason == nil, lock < 0 { reason = "\(directory.path) can't be written: \(String(cString: strerror(errno)))" }
        if lock >= 0, flock(lock, LOCK_EX | LOCK_NB) != 0 { reason = "\(directory.path) is in use by another roost chat" }
        if let reason, named != nil { throw Failure("\(reason).".safe()) }
        // For example the same user in a second terminal: its messages are kept in memory.
        (self.directory, memoryReason) = (reason == nil ? directory : nil, reason?.safe())
    }

    deinit { if lock >= 0 { close(lock) } }

    /// The parent of the folders if none is named: the environment gives the user's state folder or home.
    static func defaultParent(environment: [String: String] = ProcessInfo.processInfo.environment) -> URL {
        // Relative paths are to be ignored (XDG Base Directory Specification).
        func folder(_ name: String) -> URL? {
            environment.variable(name).flatMap { $0.hasPrefix("/") ? URL(filePath: $0, directoryHint: .isDirectory) : nil }
        }
        let state = folder("XDG_STATE_HOME") ?? (folder("HOME") ?? URL.homeDirectory).appending(path: ".local/state")
        return state.appending(path: "roost", directoryHint: .isDirectory)
    }
}
