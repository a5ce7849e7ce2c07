import Foundation
import RoostAPI

/// The keys of a file: a JWK set (RFC 7517 §5), read strictly. A file with anything unusable in it isn't used at all.
struct TokenKeySet: Sendable {
    /// By their names.
    var keys: [String: TokenKey] = [:]
    /// In the order of the file.
    var names: [String] = []
    /// The key that `roost token` signs with. Only in the server's own file.
    var signingName: String?
    /// Whether tokens without a key's name, signed with the secret of the data directory, are refused. Only in the server's own file.
    var isTokenSecretRetired = false

    static let sizeBytesMax = 262_144
    static let keysMax = 100
    static let nameLengthMax = 128

    /// A set as JSON. Unknown members are ignored, as the RFC requires.
    struct Document: Codable {
        var keys: [JSONWebKey]
        var roostSigningKey: String?
        var roostTokenSecret: String?
    }

    /// Why a file of keys isn't used. The reason never holds a key.
    struct Unusable: Error, CustomStringConvertible, Equatable {
        var description: String
        init(_ description: String) { self.description = description }
    }

    init() {}

    init(_ data: Data) async throws(Unusable) {
        let document = try Self.document(in: data)
        for (index, jwk) in document.keys.enumerated() { try await add(jwk, at: index) }
        signingName = document.roostSigningKey
        if let signingName, keys[signingName]?.isSecret != true {
            throw Unusable("roostSigningKey names no HS256 key of the file")
        }
        isTokenSecretRetired = document.roostTokenSecret != nil
    }

    /// Reads a set without its keys' content.
    static func document(in data: Data) throws(Unusable) -> Document {
        guard data.count <= sizeBytesMax else { throw Unusable("it has more than \(sizeBytesMax) bytes") }
        let duplicate: [String]?
        do {
            duplicate = try JSONScan(Array(data)).duplicate
        } catch {
            // The caller's sentence has its own full stop.
            let reason = RoostError(decoding: error).clause
            throw Unusable(#"it isn't a JWK set, {"keys":[…]}: \#(reason.hasSuffix(".") ? String(reason.dropLast()) : reason)"#)
        }
        if let duplicate { throw Unusable("\(duplicate.joined(separator: ".")) is given more than once") }
        guard let document = try? JSONDecoder().decode(Document.self, from: data) else {
            throw Unusable(#"it isn't a JWK set: {"keys":[…]}"#)
        }
        guard document.keys.count <= keysMax else { throw Unusable("it has more than \(keysMax) keys") }
        guard document.roostTokenSecret == nil || document.roostTokenSecret == "retired" else {
            throw Unusable("roostTokenSecret must be retired, or absent")
        }
        return document
    }

    private mutating func add(_ jwk: JSONWebKey, at index: Int) async throws(Unusable) {
        // Many providers' sets contain encryption keys next to the signature keys.
        if jwk.use == "enc" { return }
        guard let name = jwk.kid, !name.isEmpty, name.count <= Self.nameLengthMax else {
            throw Unusable("key \(index + 1): kid must have 1 to \(Self.nameLengthMax) characters")
        }
        guard keys[name] == nil else { throw Unusable("it has the kid \(name) twice") }
        do {
            keys[name] = try await TokenKey(jwk, id: name)
        } catch {
            throw Unusable("key \(name): \(error)")
        }
        names.append(name)
    }
}

extension TokenKeySet {
    /// Reads a file. One with secrets must be readable by its owner only; none may be writable by others.
    static func read(_ file: URL) async throws(Unusable) -> TokenKeySet {
        let set: TokenKeySet
        let path = file.resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        let data: Data
        do { data = try contents(of: path, attributes) } catch { throw Unusable("The file of keys \(file.path) \(error).") }
        do { set = try await TokenKeySet(data) } catch {
            throw Unusable("The file of keys \(file.path) can't be used: \(error).")
        }
        // An unknown mode counts as open to everyone.
        let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue ?? 0o777
        let forbidden = set.keys.values.contains(where: \.isSecret) ? 0o077 : 0o022
        guard mode & forbidden == 0 else {
            throw Unusable(
                "The file of keys \(file.path) has mode \(String(mode, radix: 8)), so others can \(forbidden == 0o077 ? "read" : "change") it. "
                    + "Type: chmod \(forbidden == 0o077 ? "600" : "644") \(file.path.shellWord)")
        }
        return set
    }

    /// - Throws: The reason, worded to follow the file's name.
    private static func contents(of path: String, _ attributes: [FileAttributeKey: Any]?) throws(Unusable) -> Data {
        // Without attributes, the read below reports the reason.
        guard attributes?[.type] as? FileAttributeType ?? .typeRegular == .typeRegular else { throw Unusable("isn't a file") }
        guard (attributes?[.size] as? NSNumber)?.intValue ?? 0 <= sizeBytesMax else {
            throw Unusable("can't be used: it has more than \(sizeBytesMax) bytes")
        }
        do { return try Data(contentsOf: URL(filePath: path)) } catch {
            throw Unusable("can't be read: \(SystemError.reason(of: error))")
        }
    }
}
