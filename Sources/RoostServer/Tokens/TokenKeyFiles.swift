package import Foundation
import Logging
import RoostAPI

/// The files of a server's keys: the key ring of its data directory, and the operator's own JWK set.
///
/// The files are checked every second. A changed file is read again; if one can't be used or no longer exists, the keys stay as they are and an
/// error is logged.
package struct TokenKeyFiles: Sendable {
    private let secret: Data
    private let ring: TokenKeyRing
    private let file: URL?
    /// The state of the files before their first reading, so that changes during the start are noticed too.
    private let firstMarks: [Mark]

    init(secret: Data, directory: URL, file: URL?) {
        self.secret = secret
        ring = TokenKeyRing(directory: directory)
        self.file = file
        firstMarks = Self.marks(of: ring, file)
    }

    /// The fingerprint of the secret, by which the database remembers that it is retired.
    var secretFingerprint: String { Storage.fingerprint(of: secret) }

    /// Reads the keys, and the fingerprints of the secrets that must be the same on all nodes of a cluster.
    func read() async throws -> (keys: TokenKeys, fingerprints: [String: String]) {
        let own = try await ring.keys()
        let others: TokenKeySet
        if let file { others = try await Self.others(in: file, besides: own, of: ring) } else { others = TokenKeySet() }
        return (TokenKeys(secret: secret, own: own, others: others), own.keys.compactMapValues(\.fingerprint))
    }

    /// Checks the operator's own JWK set as a start does, without changing anything.
    ///
    /// - Parameter directory: The data directory. An unusable key ring there is ignored: it is refused elsewhere.
    /// - Returns: The names of the set's keys.
    /// - Throws: A failure whose description says what is wrong with the file.
    package static func examine(_ file: URL, besides directory: URL) async throws -> [String] {
        let ring = TokenKeyRing(directory: directory)
        let own = (try? await ring.keys()) ?? TokenKeySet()
        return try await others(in: file, besides: own, of: ring).names
    }

    private static func others(in file: URL, besides own: TokenKeySet, of ring: TokenKeyRing) async throws -> TokenKeySet {
        let others = try await TokenKeySet.read(file)
        guard others.signingName == nil, !others.isTokenSecretRetired else {
            throw TokenKeySet.Unusable("The members roostSigningKey and roostTokenSecret are for the file \(ring.url.path) only.")
        }
        if let twice = own.names.first(where: { others.keys[$0] != nil }) {
            throw TokenKeySet.Unusable("The kid \(twice) is in both files of keys, \(ring.url.path) and \(file.path).")
        }
        return others
    }

    /// Reads the files again whenever one changes, until the task is cancelled.
    ///
    /// - Parameter confirm: Throws if the other nodes of the cluster have other secrets by the same names.
    func watch(
        _ tokens: TokenVerifier, logger: Logger, confirm: @Sendable (TokenKeys, [String: String]) async throws -> Void
    ) async {
        var known = firstMarks
        var lastFailure = ""
        while (try? await Task.sleep(for: .seconds(1))) != nil {
            let now = Self.marks(of: ring, file)
            guard now != known || !lastFailure.isEmpty else { continue }
            do {
                // Without this file a retired secret would be valid again.
                if known.first?.inode != nil, now.first?.inode == nil {
                    throw TokenKeySet.Unusable("The file \(ring.url.path) no longer exists.")
                }
                let (keys, fingerprints) = try await read()
                // A recreated ring doesn't know what its predecessor retired.
                guard keys.isTokenSecretRetired || !tokens.isTokenSecretRetired else {
                    throw RetirementLost(directory: ring.directory)
                }
                try await confirm(keys, fingerprints)
                tokens.replace(keys)
                known = now
                lastFailure = ""
                logger.notice("The token keys were reloaded.", metadata: ["keys": "\(keys.count)"])
            } catch {
                // Logged once, and retried until it succeeds: a file changed in place may have been read while half written.
                if "\(error)" != lastFailure {
                    logger.error("The token keys stay as they were.", metadata: ["error": "\(error)"])
                }
                lastFailure = "\(error)"
            }
        }
    }

    /// The token secret was retired, and the file that said so is gone or no longer says so.
    struct RetirementLost: Error, CustomStringConvertible {
        let directory: URL
        var description: String {
            let data = "--data \(directory.relativePath.shellWord)"
            return
                "The token secret was retired, and \(TokenKeyRing(directory: directory).url.path) doesn't say so: its tokens would be valid again. "
                + "Put token-keys.json back from a backup or from another node. If there is no copy, retire the secret again with new keys: "
                + "roost keys add KID \(data), roost keys use KID \(data), roost keys remove token-secret --for-good \(data)."
        }
    }

    /// The properties that change when a file is written or replaced.
    private struct Mark: Equatable {
        var inode: Int?
        var sizeBytes: Int?
        var changedAt: Date?
        var mode: Int?
    }

    private static func marks(of ring: TokenKeyRing, _ file: URL?) -> [Mark] {
        [ring.url, file].compactMap { $0 }.map { file in
            let attributes = try? FileManager.default.attributesOfItem(atPath: file.resolvingSymlinksInPath().path)
            return Mark(
                inode: (attributes?[.systemFileNumber] as? NSNumber)?.intValue,
                sizeBytes: (attributes?[.size] as? NSNumber)?.intValue,
                changedAt: attributes?[.modificationDate] as? Date, mode: (attributes?[.posixPermissions] as? NSNumber)?.intValue)
        }
    }
}
