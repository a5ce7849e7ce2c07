public import Foundation
import RoostAPI
import RoostDatabase

/// The server's own keys in the data directory, next to its secret: a JWK set that only its owner may read.
///
/// A running server reads it again when it changes. Concurrent commands change it one after another, and each change is written atomically.
package struct TokenKeyRing: Sendable {
    package let url: URL
    let directory: URL

    package init(directory: URL) {
        self.directory = directory
        url = directory.appending(path: "token-keys.json")
    }

    /// The secret that tokens without `kid` are signed with, as commands name it.
    package static let tokenSecretName = "token-secret"

    /// A key without its secret.
    package struct Entry: Codable, Hashable, Sendable {
        /// The name by which tokens refer to it; `token-secret` for the key of tokens that name none.
        package let kid: String
        package let algorithm: String
        /// Whether `roost token` signs with it.
        package let signs: Bool
    }

    /// Why a change wasn't made.
    package struct Refusal: Error, CustomStringConvertible {
        package let description: String
        init(_ description: String) { self.description = description }
    }

    /// Returns all keys whose tokens a server on this directory accepts, except those of the operator's own file.
    package func entries() async throws -> [Entry] {
        let set = try await keys()
        var entries = set.names.compactMap { name in
            set.keys[name].map { Entry(kid: name, algorithm: $0.algorithm.rawValue, signs: name == set.signingName) }
        }
        if !set.isTokenSecretRetired {
            entries.insert(Entry(kid: Self.tokenSecretName, algorithm: "HS256", signs: set.signingName == nil), at: 0)
        }
        return entries
    }

    /// Adds a new secret. Tokens that name it are accepted from then on; the signing key doesn't change.
    ///
    /// - Returns: Its name.
    package func add(named name: String?) async throws -> String {
        try await change { document in
            let name = name ?? Self.newName()
            guard !name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
                throw Refusal("A key's name must not contain control characters.")
            }
            guard name != Self.tokenSecretName else { throw Refusal("\(name) is the name of the existing secret.") }
            guard !document.keys.contains(where: { $0.kid == name }) else { throw Refusal("There is already a key \(name).") }
            var generator = SystemRandomNumberGenerator()
            let secret = (0..<TokenKeys.secretSizeBytesMin).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
            document.keys.append(JSONWebKey(kty: "oct", kid: name, alg: "HS256", use: "sig", k: Base64URL.encode(Data(secret))))
            return name
        }
    }

    /// Makes `roost token` sign with a key.
    package func use(_ name: String) async throws {
        try await change { document in
            if name == Self.tokenSecretName {
                guard document.roostTokenSecret == nil else {
                    throw Refusal("The token secret is retired for good. Use another key, or add one: roost keys add.")
                }
                document.roostSigningKey = nil
                return
            }
            guard document.keys.contains(where: { $0.kid == name && $0.kty == "oct" }) else { throw Self.unknown(name) }
            document.roostSigningKey = name
        }
    }

    /// Removes a key: its tokens are refused from then on. The signing key can't be removed, so one key always remains.
    package func remove(_ name: String) async throws {
        try await change { document in
            guard name != (document.roostSigningKey ?? Self.tokenSecretName) else {
                throw Refusal("\(name) is the key that roost token signs with. Choose another first: roost keys use KID.")
            }
            if name == Self.tokenSecretName {
                guard document.roostTokenSecret == nil else { throw Self.unknown(name) }
                // The secret's file stays: it ties the directory to its database.
                document.roostTokenSecret = "retired"
                return
            }
            let before = document.keys.count
            document.keys.removeAll { $0.kid == name }
            guard document.keys.count < before else { throw Self.unknown(name) }
        }
    }

    /// The current keys; none if there is no file.
    func keys() async throws -> TokenKeySet {
        FileManager.default.fileExists(atPath: url.path) ? try await TokenKeySet.read(url) : TokenKeySet()
    }

    private static func unknown(_ name: String) -> Refusal { Refusal("There is no key \(name). See roost keys list.") }

    private static func newName() -> String {
        var generator = SystemRandomNumberGenerator()
        let number = UInt32.random(in: .min ... .max, using: &generator)
        return "key-" + String(number, radix: 36)
    }

    // MARK: The file

    private func change<T>(_ change: (inout TokenKeySet.Document) throws -> T) async throws -> T {
        // A separate lock file, since a running server holds the directory's lock. It is next to the keys, which links in several directories may
        // point to.
        let place = target.deletingLastPathComponent()
        let lock = open(place.appending(path: "token-keys.lock").path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard lock >= 0 else { throw Refusal("The directory \(place.path) can't be written: \(String(cString: strerror(errno))).") }
        defer { close(lock) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else { throw Refusal("Another command is changing the keys. Try again.") }
        _ = try await keys()
        var document = TokenKeySet.Document(keys: [])
        if let data = FileManager.default.contents(atPath: url.path) {
            document = try JSONDecoder().decode(TokenKeySet.Document.self, from: data)
        }
        let result = try change(&document)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        let data = try encoder.encode(document)
        // Checks that the written file can be read: for example, a name that is too long is refused here.
        do {
            _ = try await TokenKeySet(data)
        } catch {
            throw Refusal("The keys can't be changed this way: \(error).")
        }
        try write(data)
        return result
    }

    /// The file that holds the keys: the target of a link in its place.
    private var target: URL { url.resolvingSymlinksInPath() }

    /// Writes a temporary file next to it, syncs, then replaces the file. A link in its place stays: its target is replaced.
    private func write(_ data: Data) throws {
        let target = target
        let place = target.deletingLastPathComponent()
        let folder = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw Refusal("\(place.path) can't be opened: \(String(cString: strerror(errno))).") }
        defer { close(folder) }
        let temporary = place.appending(path: ".token-keys-\(getpid()).tmp").path
        unlink(temporary)
        let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Refusal("\(place.path) can't be written: \(String(cString: strerror(errno))).") }
        let isWritten = data.withUnsafeBytes { bytes in
            var rest = UnsafeRawBufferPointer(rebasing: bytes[...])
            while let start = rest.baseAddress, !rest.isEmpty {
                let count = Foundation.write(file, start, rest.count)
                guard count > 0 else { return false }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            return FileSync.sync(file, temporary)
        }
        close(file)
        guard isWritten, rename(temporary, target.path) == 0, FileSync.sync(folder, place.path) else {
            let reason = String(cString: strerror(errno))
            unlink(temporary)
            throw Refusal("\(target.path) can't be written: \(reason).")
        }
    }
}

extension TokenKeys {
    /// Reads the keys of a data directory in which a server has run, for `roost token` to sign with.
    ///
    /// - Throws: `SecretFile.Unusable`, or a failure whose description says what is wrong with the key file.
    public init(directory: URL) async throws {
        self.init(
            secret: try SecretFile(directory: directory).read(), own: try await TokenKeyRing(directory: directory).keys(),
            others: TokenKeySet())
    }
}
