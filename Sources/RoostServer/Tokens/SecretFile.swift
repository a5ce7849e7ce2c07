public import Foundation
import RoostDatabase

/// The secret that signs tokens: a file in the data directory that only its owner may read.
public struct SecretFile: Sendable {
    /// The file.
    public let url: URL

    /// The file of a data directory, which isn't touched yet.
    public init(directory: URL) { url = directory.appending(path: "token-secret") }

    /// Reads the secret, or makes one on the first run.
    ///
    /// - Returns: The secret, and whether it is new.
    public func readOrMake() throws -> (secret: Data, isNew: Bool) {
        if FileManager.default.fileExists(atPath: url.path) { return (try read(), false) }
        let (secret, text) = Self.makeSecret()
        try MissingDirectories.make(url.deletingLastPathComponent())
        try write(text)
        return (secret, true)
    }

    /// Makes a secret without writing it to a file.
    ///
    /// - Returns: The secret, and the text of a file that holds it.
    static func makeSecret() -> (secret: Data, text: String) {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<TokenKeys.secretSizeBytesMin).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        return (Data(bytes), Data(bytes).base64EncodedString() + "\n")
    }

    /// Writes the file atomically, and waits until it and its name are on disk: tokens are signed with it from now on.
    func write(_ text: String) throws {
        func refusal(_ what: String) -> Unusable {
            Unusable(path: url.path, reason: "\(what): \(String(cString: strerror(errno)))", advice: nil)
        }
        let new = url.appendingPathExtension("new").path
        let bytes = Array(text.utf8)
        unlink(new)
        let file = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw refusal("can't be written") }
        defer { close(file) }
        guard bytes.withUnsafeBytes({ Foundation.write(file, $0.baseAddress, $0.count) }) == bytes.count, FileSync.sync(file, new),
            rename(new, url.path) == 0
        else { throw refusal("can't be written") }
        let place = url.deletingLastPathComponent().path
        let directory = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw refusal("can't be kept") }
        defer { close(directory) }
        guard FileSync.sync(directory, place) else { throw refusal("can't be kept") }
    }

    /// Refuses a file that anyone but its owner may read or change: with the secret, anyone can make any token.
    func requirePrivate() throws {
        guard let mode = DataFiles.mode(of: url.path) else { return }
        guard mode & 0o077 == 0 else {
            throw Unusable(
                path: url.path, reason: "has mode \(String(mode, radix: 8)), so others can open it",
                advice: "Type: chmod 600 \(url.path.shellWord)")
        }
    }

    /// Reads the secret of a server that has run before.
    public func read() throws -> Data {
        let data: Data
        do { data = try Data(contentsOf: url) } catch {
            throw Unusable(
                path: url.path, reason: "can't be read: \(SystemError.reason(of: error))",
                advice: "Run this as the user who runs the server: only that user can read it")
        }
        return try Self.secret(in: String(decoding: data, as: UTF8.self), path: url.path)
    }

    /// Returns the secret in a file's text.
    static func secret(in text: String, path: String) throws -> Data {
        guard let secret = Data(base64Encoded: text.trimmingCharacters(in: .whitespacesAndNewlines)),
            secret.count >= TokenKeys.secretSizeBytesMin
        else {
            throw Unusable(
                path: path, reason: "doesn't hold at least \(TokenKeys.secretSizeBytesMin) bytes in base 64",
                advice: "Put the right one back, from a backup or another node: another secret would invalidate all tokens")
        }
        return secret
    }

    /// Why the secret can't be read or made, and what to do.
    public struct Unusable: Error, CustomStringConvertible {
        /// The file.
        public let path: String
        /// What is wrong with it, as the end of a sentence about it.
        public let reason: String
        /// What to do about it, without a full stop; nil if the reason says it.
        public let advice: String?
        public var description: String { "The token secret \(path) \(reason)." + (advice.map { " \($0)." } ?? "") }
    }
}
