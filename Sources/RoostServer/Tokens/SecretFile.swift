public import Foundation

/// The secret that signs tokens, as a file in the data directory that only its owner may read.
public struct SecretFile: Sendable {
    public let url: URL

    public init(directory: URL) { url = directory.appending(path: "token-secret") }

    /// The secret; one is made on the first run.
    ///
    /// - Returns: the secret, and whether it is new.
    public func readOrMake() throws -> (secret: Data, isNew: Bool) {
        if FileManager.default.fileExists(atPath: url.path) { return (try read(), false) }
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<TokenKeys.secretSizeBytesMin).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let text = Data(bytes).base64EncodedString() + "\n"
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        guard FileManager.default.createFile(atPath: url.path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
        else { throw Unusable(path: url.path, reason: "can't be written") }
        return (Data(bytes), true)
    }

    /// The secret of a server that has run before.
    public func read() throws -> Data {
        guard let text = try? String(contentsOf: url, encoding: .utf8) else {
            throw Unusable(path: url.path, reason: "can't be read")
        }
        guard let secret = Data(base64Encoded: text.trimmingCharacters(in: .whitespacesAndNewlines)),
            secret.count >= TokenKeys.secretSizeBytesMin
        else { throw Unusable(path: url.path, reason: "doesn't hold at least \(TokenKeys.secretSizeBytesMin) bytes in base 64") }
        return secret
    }

    public struct Unusable: Error, CustomStringConvertible {
        public let path: String
        public let reason: String
        public var description: String { "The token secret \(path) \(reason)." }
    }
}
