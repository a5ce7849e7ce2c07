import ArgumentParser
import Foundation
import RoostServer

/// `roost backup`: makes the running server copy its database and read the copy back.
struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Back up a running server.",
        discussion: """
            The server copies its database into a new directory on its machine while it keeps serving, and reads every page back. DATA/roost.json \
            is copied too if it exists. When this ends with 0 the backup is complete and on disk. Run it as the user who runs the server.

            See docs/operations/backup.md, also for PostgreSQL.
            """)

    @Argument(help: "The new directory for the backup.") var directory: String
    @Option(help: "The server's data directory. Default: roost-data or roost-demo. Environment: ROOST_DATA.") var data: String?
    @Flag(help: "Include the token secret and token-keys.json. Anyone who can read them can issue tokens for any user.")
    var withSecret = false
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        guard !directory.isEmpty else { throw ValidationError("Name the new directory: it is empty.") }
        try PathArgument.refuseEmpty(("--data", data))
    }

    func run() async throws {
        let data = TokenMint.named(orDefault: data).directory
        let target = URL(filePath: directory, directoryHint: .isDirectory).standardizedFileURL
        guard access(data.path, F_OK) == 0 || errno != ENOENT else {
            throw Failure("There is no data directory \(data.path). Name the server's with --data.".safe())
        }
        let answer: ControlSocket.Answer
        do {
            answer = try await ControlSocket.ask(
                .init(backup: target.path, withSecret: withSecret), in: data)
        } catch is ControlSocket.Unanswered {
            let partial = target.deletingLastPathComponent().appending(path: Backup.partialPrefix(of: target)).path
            throw Failure(
                "The server ended before the backup was complete; see its log. Delete the partial copy, \(partial)…, and make another backup."
                    .safe())
        } catch {
            if await Self.isOnPostgreSQL(data) {
                throw Failure(
                    """
                    The server on \(data.relativePath) keeps its rows in PostgreSQL. Back them up with PostgreSQL's tools, such as pg_dump: see \
                    Backup and restore in docs/operations/cluster.md. Also copy token-secret, and token-keys.json if there is one: they are only in \
                    the data directory.
                    """.safe())
            }
            throw Failure(
                "No running server found for data directory \(data.relativePath). Start it, run this as its user, or name its directory with --data."
            )
        }
        if let error = answer.error { throw Failure(error.safe()) }
        guard let backup = answer.backup else { throw Failure("The server didn't answer. See its log.") }
        guard !json else { return try Output.json(backup) }
        try Output.lines(BackupText.lines(of: backup, in: target.path))
    }

    /// Whether a data directory's rows are stored elsewhere: its settings say so, or a server has run there without creating a database in it.
    private static func isOnPostgreSQL(_ data: URL) async -> Bool {
        let settings = try? await Settings.load(try SettingFlags.parse(["--data", data.relativePath]))
        if let settings, settings.server.database != nil { return true }
        // In another user's directory neither can be seen.
        let isWithoutDatabase = access(data.appending(path: "roost.sqlite").path, F_OK) != 0 && errno == ENOENT
        return isWithoutDatabase && access(SecretFile(directory: data).url.path, F_OK) == 0
    }
}

/// `roost restore`: makes a data directory from a backup.
struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Restore a data directory from a backup.",
        discussion: """
            The directory must be new. A server started on it has a new epoch: clients that know more than the backup \
            discard it and take the server's state.
            """)

    @Argument(help: "The directory of the backup.") var backup: String
    @Option(help: "The new data directory. Not with --check.") var data: String?
    @Option(help: "The file with the token secret, if the backup has none.") var secret: String?
    @Option(help: "The file token-keys.json of the server, if it had one and the backup doesn't.") var keys: String?
    @Flag(help: "Make a new token secret, which invalidates all tokens.") var newSecret = false
    @Flag(help: "Only read the backup, and the files of --secret and --keys, and report whether they are complete.")
    var check = false

    func validate() throws {
        guard !backup.isEmpty else { throw ValidationError("Name the backup's directory: it is empty.") }
        try PathArgument.refuseEmpty(("--data", data), ("--secret", secret), ("--keys", keys))
    }

    func run() async throws {
        guard secret == nil || !newSecret else { throw ValidationError("--secret and --new-secret can't be combined.") }
        guard keys == nil || secret != nil else { throw ValidationError("--keys needs --secret.") }
        let from = URL(filePath: backup, directoryHint: .isDirectory)
        let source: Backup.Secret =
            newSecret ? .new : secret.map { .file(URL(filePath: $0), keys: keys.map { URL(filePath: $0) }) } ?? .backup
        let found: Backup
        guard !check else {
            guard data == nil, !newSecret else {
                throw ValidationError("--check only reads: --data and --new-secret can't be combined with it.")
            }
            do { found = try await Backup.verify(from, secret: source) } catch { throw Failure(error) }
            return try Output.lines(BackupText.lines(of: found, in: from.path, secret: source))
        }
        guard let data else { throw ValidationError("Name the new data directory with --data.") }
        let directory = URL(filePath: data, directoryHint: .isDirectory)
        do { found = try await Backup.restore(from, to: directory, secret: source) } catch { throw Failure(error) }
        let next = ["", "Restored into \(directory.path). Next: roost serve --data \(data.shellWord)"]
        try Output.lines(BackupText.lines(of: found, in: from.path, secret: source) + next)
    }
}

private enum BackupText {
    /// - Parameter secret: The source of a restored directory's secret and keys; by default the backup's own are listed.
    static func lines(of backup: Backup, in path: String, secret: Backup.Secret = .backup) -> [String] {
        [
            "backup    \(path)",
            "made      \(backup.madeAt), version \(backup.version)",
            "database  \(backup.pages) pages, checksum \(backup.checksum), read back",
            "rows      " + ["message", "channel", "user"].map { counted(backup.rows(in: $0 + "s"), $0) }.joined(separator: ", "),
            "secret    \(source(of: backup, secret))",
        ] + keys(of: backup, secret) + (backup.hasSettings == true ? ["settings  \(Settings.fileName) included"] : [])
    }

    /// `1 user`, `2 users`
    private static func counted(_ count: Int64, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

    private static func source(of backup: Backup, _ secret: Backup.Secret) -> String {
        switch secret {
        case .backup: backup.hasSecret ? "included" : "not included: keep a copy of token-secret elsewhere"
        case .file(let file, _): "from \(file.path)"
        case .new: "a new one, made now: all tokens become invalid"
        }
    }

    private static func keys(of backup: Backup, _ secret: Backup.Secret) -> [String] {
        switch (secret, backup.keys) {
        // The keys end with the secret.
        case (.new, _): []
        case (.file(_, let file?), _): ["keys      from \(file.path)"]
        case (_, .included?): ["keys      included"]
        case (_, .separate?): ["keys      not included: keep a copy of token-keys.json elsewhere"]
        case (_, nil), (_, Backup.KeyRing.none?): []
        }
    }
}
