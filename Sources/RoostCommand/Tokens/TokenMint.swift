import ArgumentParser
import Foundation
import RoostAPI
import RoostServer

/// Makes tokens with the secret of a data directory.
struct TokenMint: Sendable {
    let directory: URL
    /// The server's rules for the claims; nil to read them from the settings of the directory.
    var rules: TokenRules?

    /// How long a token is valid by default, unless the server's rules allow less.
    private static let lifetimeSeconds = 3600

    /// Makes a token with the claims required by the server's rules.
    ///
    /// - Parameter expiresAt: When it expires; nil for an hour from now, or for the server's maximum if that is less.
    /// - Throws: `ValidationError` for an invalid user or name; a ``Failure`` for a directory in which no server has run.
    func token(
        for user: UserID, role: AppRole = .user, displayName: String? = nil, expiresAt: Date? = nil, id: String? = nil
    ) async throws -> String {
        do {
            try user.validate(field: "The user's id")
            try Limits.check(displayName, length: Limits.displayNameLength, field: "The name")
        } catch {
            throw ValidationError(error.message)
        }
        _ = try secretFile()
        let rules = await knownRules()
        let lifetimeSeconds = min(Self.lifetimeSeconds, rules.lifetimeSecondsMax)
        let end = expiresAt ?? Date(timeIntervalSinceNow: TimeInterval(lifetimeSeconds))
        var claims = TokenKeys.Claims(user: user, role: role, displayName: displayName, expiresAt: end, id: id)
        claims.iss = rules.issuer
        claims.aud = rules.audience.map { TokenKeys.Audience([$0]) }
        do {
            return try await TokenKeys(directory: directory).sign(claims)
        } catch {
            throw Failure(error)
        }
    }

    /// A token provider for a client. One token is made at once, so that an unusable secret ends the command: the client would request a
    /// token again and again.
    ///
    /// - Throws: As ``token(for:role:displayName:expiresAt:id:)``.
    func provider(for user: UserID, role: AppRole = .user) async throws -> @Sendable () async throws -> String {
        // The settings are read once, so that a problem with them is reported only once.
        let mint = TokenMint(directory: directory, rules: await knownRules())
        _ = try await mint.token(for: user, role: role)
        return { try await mint.token(for: user, role: role) }
    }

    private func knownRules() async -> TokenRules {
        if let rules { return rules }
        return await TokenRules.load(data: directory.relativePath)
    }

    /// - Throws: A ``Failure`` for a directory in which no server has run.
    func secretFile() throws -> SecretFile {
        guard hasSecret != false else {
            throw Failure(
                "There is no secret in \(directory.path). Start a server there first (roost serve --data \(directory.relativePath.shellWord)), or name its directory with --data."
            )
        }
        return SecretFile(directory: directory)
    }

    /// Whether the directory has a secret; nil if that can't be seen, as in another user's directory.
    private var hasSecret: Bool? {
        if access(SecretFile(directory: directory).url.path, F_OK) == 0 { return true }
        return errno == EACCES ? nil : false
    }

    /// The data directory that an option or `ROOST_DATA` names; nil if neither does.
    static func named(_ option: String?) -> TokenMint? {
        (option ?? ProcessInfo.processInfo.variable("ROOST_DATA")).map {
            TokenMint(directory: URL(filePath: $0, directoryHint: .isDirectory))
        }
    }

    /// The data directory for a command, named or not; the standard one if there is none.
    static func named(orDefault option: String?) -> TokenMint {
        named(option) ?? usual() ?? TokenMint(directory: URL(filePath: "\(Setting.data.standard)", directoryHint: .isDirectory))
    }

    /// The data directory for a command on the server's machine that names none: of the usual two, the one whose server runs, otherwise the
    /// first that has a secret, otherwise one of another user: what a command says of that one is better than that there is none.
    static func usual() -> TokenMint? {
        let mints = ["\(Setting.data.standard)", Demo.standardData].map {
            TokenMint(directory: URL(filePath: $0, directoryHint: .isDirectory))
        }
        let possible = mints.filter { $0.hasSecret != false }
        return possible.first { $0.isServed } ?? possible.first { $0.hasSecret == true } ?? possible.first
    }

    /// The command that starts the server of a data directory.
    static func startCommand(of directory: URL) -> String {
        let isUsual = { (path: String) in URL(filePath: path, directoryHint: .isDirectory).path == directory.path }
        if isUsual("\(Setting.data.standard)") { return "roost serve" }
        return isUsual(Demo.standardData) ? "roost demo" : "roost serve --data \(directory.relativePath.shellWord)"
    }

    /// Whether a server runs on the directory: the process named in its lock file is alive, and the lock is held.
    private var isServed: Bool {
        let text = try? String(contentsOf: directory.appending(path: "roost.lock"), encoding: .utf8)
        let process = text.flatMap { pid_t($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        // The process is checked first: the lock of a stopped server is left alone, in case one is just starting.
        guard let process, kill(process, 0) == 0 || errno == EPERM else { return false }
        // The id may belong to another process by now: the file keeps it after a server has stopped.
        return FileChecks.isLocked(directory)
    }
}
