import Foundation
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostServer

/// What the command line says of backups that can't be made or restored.
@Suite struct BackupRefusalTests {
    /// The command's errors, with paths replaced by their names.
    private func errors(_ arguments: String..., in place: URL) async throws -> String {
        let run = try await CommandRun.roost(arguments: arguments)
        #expect(run.status == 1 && run.output == "")
        return run.errors.replacing(place.path, with: "PLACE")
    }

    private func place() throws -> URL {
        let place = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        try Data("x".utf8).write(to: place.appending(path: "file"))
        return place
    }

    @Test("roost backup says why a directory can't be written, and what to do")
    func backup() async throws {
        let server = try await TestServer()
        let (place, data) = (try place(), server.directory.path)
        let found = [
            try await errors("backup", "\(place.path)/file/b", "--data", data, in: place),
            try await errors("backup", "\(place.path)/file", "--data", data, in: place),
            try await errors("backup", "/proc/b", "--data", data, in: place),
            try await errors("backup", "\(place.path)/b", "--data", "\(place.path)/nowhere", in: place),
            try await errors("backup", "\(place.path)/b", "--data", place.path, in: place),
        ]
        #expect(
            found == [
                "Error: PLACE/file/b can't be written: Not a directory. A file is in its way: name another directory.\n",
                "Error: PLACE/file already exists. A backup never overwrites anything: name another directory.\n",
                "Error: /proc/b can't be written: No such file or directory. Name another directory.\n",
                "Error: There is no data directory PLACE/nowhere. Name the server's with --data.\n",
                "Error: No running server found for data directory PLACE. Start it, run this as its user, or name its directory with --data.\n",
            ])
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == ["file"])
        try await server.stop()
    }

    @Test("a backup is refused if the files of the secret or the keys are no longer what the running server uses")
    func changedSecrets() async throws {
        let (place, data) = (try place(), TemporaryDirectory.make())
        try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
        let ring = TokenKeyRing(directory: data)
        _ = try await ring.add(named: "k1")
        let server = try await TestServer(directory: data)
        let secret = SecretFile(directory: data).url
        let right = try Data(contentsOf: secret)
        let other = SecretFile(directory: place.appending(path: "other"))
        _ = try other.readOrMake()

        func refusal(_ options: [String]) async throws -> String {
            let run = try await CommandRun.roost(arguments: ["backup", "\(place.path)/b", "--data", data.path] + options)
            #expect(run.status == 1 && run.output == "", "\(run)")
            return run.errors.replacing(data.path, with: "DATA")
        }
        var found: [String] = []
        for content in [try Data(contentsOf: other.url), Data("c2hvcnQ=".utf8)] {
            try content.write(to: secret)
            found.append(try await refusal(["--with-secret"]))
        }
        try right.write(to: secret)
        try Data("{".utf8).write(to: ring.url)
        let unreadable = try await refusal(["--with-secret"])
        #expect(unreadable.hasPrefix("Error: DATA/token-keys.json isn't a key ring: it isn't a JWK set"), "\(unreadable)")
        try Data(#"{"keys":[{"kty":"oct","kid":"k1","alg":"HS256","k":"abc"}]}"#.utf8).write(to: ring.url)
        let unusable = try await refusal(["--with-secret"])
        #expect(unusable.hasPrefix("Error: DATA/token-keys.json isn't a key ring: key k1: "), "\(unusable)")
        try FileManager.default.removeItem(at: ring.url)
        // Without the secret too: the backup would say that there were no keys.
        for options in [["--with-secret"], []] as [[String]] { found.append(try await refusal(options)) }
        let advice = "Put the right one back before the server ends: the next start would need it."
        let wrong = "Error: DATA/token-secret isn't the secret that the server uses. \(advice)\n"
        let missing = "Error: DATA/token-keys.json is missing, and the server still uses what it said. \(advice)\n"
        #expect(found == [wrong, wrong, missing, missing])
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).sorted() == ["file", "other"])
        try await server.stop()
    }

    @Test("for a server on PostgreSQL, roost backup says where its rows are backed up, not that no server runs")
    func postgreSQL() async throws {
        let place = try place()
        let (used, named) = (place.appending(path: "used"), place.appending(path: "named"))
        for directory in [used, named] { _ = try SecretFile(directory: directory).readOrMake() }
        try Data(#"{"database":"postgres://roost@127.0.0.1:1/roost"}"#.utf8).write(to: named.appending(path: "roost.json"))
        // From before the settings named a database.
        try Data().write(to: named.appending(path: "roost.sqlite"))
        for directory in [used, named] {
            let found = try await errors("backup", "\(place.path)/b", "--data", directory.path, in: place)
            let start =
                "Error: The server on PLACE/\(directory.lastPathComponent) keeps its rows in PostgreSQL. Back them up with PostgreSQL's tools, such as pg_dump"
            #expect(found.hasPrefix(start) && found.contains("docs/operations/cluster.md. Also copy token-secret"), "\(found)")
        }
        try FileManager.default.removeItem(at: named.appending(path: "roost.json"))
        let stopped = try await errors("backup", "\(place.path)/b", "--data", named.path, in: place)
        #expect(stopped.hasPrefix("Error: No running server found for data directory PLACE/named."), "\(stopped)")
    }

    @Test("roost restore says what is wrong with the backup, the data directory or the secret, and what to do")
    func restore() async throws {
        let server = try await TestServer()
        let place = try place()
        let (good, damaged, short) = ("\(place.path)/good", "\(place.path)/damaged", "\(place.path)/short")
        let target = "\(place.path)/new"
        let made = try await CommandRun.roost(arguments: ["backup", good, "--data", server.directory.path, "--with-secret"])
        #expect(made.status == 0, "\(made.errors)")
        try await server.stop()
        for copy in [damaged, short] { try FileManager.default.copyItem(atPath: good, toPath: copy) }
        try Data(repeating: 7, count: 8192).write(to: URL(filePath: "\(damaged)/roost.sqlite"))
        let database = try Data(contentsOf: URL(filePath: "\(good)/roost.sqlite"))
        try database.prefix(4096).write(to: URL(filePath: "\(short)/roost.sqlite"))
        let found = [
            try await errors("restore", "\(place.path)/nowhere", "--data", target, in: place),
            try await errors("restore", place.path, "--data", target, in: place),
            try await errors("restore", damaged, "--data", target, in: place),
            try await errors("restore", short, "--data", target, in: place),
            try await errors("restore", good, "--data", "\(place.path)/file", in: place),
            try await errors("restore", good, "--data", "\(place.path)/file/new", in: place),
            try await errors("restore", good, "--data", place.path, in: place),
            try await errors("restore", good, "--data", "/proc/new", in: place),
            try await errors("restore", good, "--data", target, "--secret", "\(place.path)/nowhere", in: place),
        ]
        #expect(
            found == [
                "Error: PLACE/nowhere doesn't exist. Name the directory that roost backup made.\n",
                "Error: PLACE isn't a complete backup: it has no backup.json. Name the directory that roost backup made.\n",
                "Error: Page 1 of PLACE/damaged/roost.sqlite doesn't match its checksum. The backup is damaged: use another one.\n",
                "Error: PLACE/short/roost.sqlite can't be read: database disk image is malformed. The backup is damaged: use another one.\n",
                "Error: PLACE/file is a file. Name a new directory with --data.\n",
                "Error: PLACE/file/new can't be written: Not a directory. A file is in its way: name another directory.\n",
                "Error: PLACE isn't empty. A backup is restored into a new directory: name one with --data.\n",
                "Error: /proc/new can't be written: No such file or directory. Name another directory.\n",
                "Error: PLACE/nowhere can't be read: No such file or directory.\n",
            ])
        #expect(!FileManager.default.fileExists(atPath: target))
    }

    @Test("roost restore says that a backup is a newer version's, whatever else its manifest has, instead of calling it damaged")
    func newerFormat() async throws {
        let place = try place()
        let backup = "\(place.path)/backup"
        try FileManager.default.createDirectory(atPath: backup, withIntermediateDirectories: true)
        let manifests = [
            #"{"format":2,"version":"9.0.0"}"#, #"{"format":2,"version":9}"#, #"{"format":1,"version":"9.0.0"}"#,
        ]
        var found: [String] = []
        for manifest in manifests {
            try Data(manifest.utf8).write(to: URL(filePath: "\(backup)/backup.json"))
            found.append(try await errors("restore", backup, "--check", in: place))
        }
        #expect(
            found == [
                "Error: PLACE/backup was made by a newer version of Roost (9.0.0). Restore it with that version.\n",
                "Error: PLACE/backup was made by a newer version of Roost. Restore it with that version.\n",
                "Error: PLACE/backup/backup.json doesn't describe a backup: it was changed or damaged. Use another backup.\n",
            ])
    }

    @Test(
        "a check and a restore find a secret or a key ring that is missing, truncated or another server's, and leave no directory"
    )
    func secrets() async throws {
        let server = try await TestServer()
        let place = try place()
        _ = try await TokenKeyRing(directory: server.directory).add(named: "k1")
        let good = "\(place.path)/good"
        let target = "\(place.path)/new"
        let made = try await CommandRun.roost(arguments: ["backup", good, "--data", server.directory.path, "--with-secret"])
        #expect(made.status == 0, "\(made.errors)")
        try await server.stop()
        let checked = try await CommandRun.roost(arguments: ["restore", good, "--check"])
        #expect(checked.status == 0 && checked.lines.contains("secret included"), "\(checked)")

        let other = "\(place.path)/other"
        _ = try SecretFile(directory: URL(filePath: other)).readOrMake()
        let faults: [(String, () throws -> Void)] = [
            ("lost", { try FileManager.default.removeItem(atPath: "\(place.path)/lost/token-secret") }),
            ("short", { try Data("c2hvcnQ=".utf8).write(to: URL(filePath: "\(place.path)/short/token-secret")) }),
            (
                "others",
                {
                    try Data(contentsOf: URL(filePath: "\(other)/token-secret"))
                        .write(to: URL(filePath: "\(place.path)/others/token-secret"))
                }
            ),
            ("ring", { try Data("{".utf8).write(to: URL(filePath: "\(place.path)/ring/token-keys.json")) }),
        ]
        var found: [String] = []
        for (name, breakIt) in faults {
            let backup = "\(place.path)/\(name)"
            try FileManager.default.copyItem(atPath: good, toPath: backup)
            try breakIt()
            found.append(try await errors("restore", backup, "--check", in: place))
            #expect(try await errors("restore", backup, "--data", target, in: place) != "")
            #expect((try? FileManager.default.contentsOfDirectory(atPath: target)) ?? [] == [])
        }
        #expect(found[0] == "Error: PLACE/lost/token-secret can't be read: No such file or directory.\n")
        #expect(found[1].hasPrefix("Error: The token secret PLACE/short/token-secret doesn't hold at least 32 bytes in base 64."))
        #expect(
            found[2].hasPrefix("Error: PLACE/others/token-secret isn't the secret that the database was used with. Restore with"))
        #expect(found[3].hasPrefix("Error: PLACE/ring/token-keys.json isn't a key ring: it isn't a JWK set"))

        // The same for a file named in an option.
        try FileManager.default.createDirectory(atPath: "\(place.path)/files", withIntermediateDirectories: true)
        try Data(#"{"keys":7}"#.utf8).write(to: URL(filePath: "\(place.path)/files/keys"))
        let secret = "\(server.directory.path)/token-secret"
        let wrong = ["restore", good, "--data", target, "--secret", secret, "--keys", "\(place.path)/files/keys"]
        let refused = try await CommandRun.roost(arguments: wrong)
        #expect(
            refused.status == 1 && refused.errors.contains("/files/keys isn't a key ring: it isn't a JWK set"), "\(refused.errors)")
        // What the backup lacks doesn't matter if another file is named.
        let ring = "\(server.directory.path)/token-keys.json"
        let mended = try await CommandRun.roost(
            arguments: ["restore", "\(place.path)/lost", "--data", "\(target) one", "--secret", secret, "--keys", ring])
        #expect(mended.status == 0, "\(mended.errors)")
        #expect(mended.output.hasSuffix(" Next: roost serve --data '\(target) one'\n"))
        #expect(mended.lines.contains("secret from \(secret)") && mended.lines.contains("keys from \(ring)"), "\(mended)")
    }

    @Test("a check reads the secret and the keys that it is given, and refuses the options of a restore that it has no use for")
    func namedSecret() async throws {
        let server = try await TestServer()
        let place = try place()
        _ = try await TokenKeyRing(directory: server.directory).add(named: "k1")
        let (backup, other) = ("\(place.path)/backup", "\(place.path)/other")
        let made = try await CommandRun.roost(arguments: ["backup", backup, "--data", server.directory.path])
        #expect(made.status == 0, "\(made.errors)")
        try await server.stop()
        _ = try SecretFile(directory: URL(filePath: other)).readOrMake()
        let (secret, ring) = ("\(server.directory.path)/token-secret", "\(server.directory.path)/token-keys.json")
        let check = ["restore", backup, "--check"]

        let others = try await errors("restore", backup, "--check", "--secret", "\(other)/token-secret", in: place)
        #expect(others.hasPrefix("Error: PLACE/other/token-secret isn't the secret that the database was used with."), "\(others)")
        let alone = try await errors("restore", backup, "--check", "--secret", secret, in: place)
        #expect(alone.hasPrefix("Error: The server also had keys in token-keys.json, and they aren't in the backup."), "\(alone)")
        let file = "\(place.path)/file"
        let unreadable = try await errors("restore", backup, "--check", "--secret", secret, "--keys", file, in: place)
        #expect(unreadable.hasPrefix("Error: PLACE/file isn't a key ring:"), "\(unreadable)")
        let right = try await CommandRun.roost(arguments: check + ["--secret", secret, "--keys", ring])
        #expect(right.status == 0 && right.lines.contains("secret from \(secret)"), "\(right)")
        #expect(right.lines.contains("keys from \(ring)"), "\(right)")
        for option in [["--data", "\(place.path)/new"], ["--new-secret"]] {
            let refused = try await CommandRun.roost(arguments: check + option)
            let start = "Error: --check only reads: --data and --new-secret can't be combined with it.\n"
            #expect(refused.status == 64 && refused.errors.hasPrefix(start), "\(refused)")
        }
    }

    @Test("a restore reports where the secret came from, and that the new one which it makes invalidates all tokens")
    func sources() async throws {
        let server = try await TestServer()
        let place = try place()
        let backup = "\(place.path)/backup"
        let made = try await CommandRun.roost(arguments: ["backup", backup, "--data", server.directory.path])
        try await server.stop()
        let secret = SecretFile(directory: server.directory).url.path
        var found = [made]
        for source in [["--secret", secret], ["--new-secret"]] {
            found.append(
                try await CommandRun.roost(
                    arguments: ["restore", backup, "--data", "\(place.path)/\(found.count)"] + source))
        }
        #expect(found.map(\.status) == [0, 0, 0], "\(found)")
        #expect(
            found.flatMap { run in run.lines.filter { $0.hasPrefix("secret ") } } == [
                "secret not included: keep a copy of token-secret elsewhere", "secret from \(secret)",
                "secret a new one, made now: all tokens become invalid",
            ])
        // A restored database without a secret would look as if the secret were lost.
        let doctor = try await CommandRun.roost(arguments: ["doctor", "--data", "\(place.path)/2", "--url", "http://127.0.0.1:1"])
        #expect(doctor.lines.filter { $0.hasPrefix("fail ") } == [])
        let secrets = try [server.directory, place.appending(path: "2")].map { try SecretFile(directory: $0).read() }
        #expect(secrets.first != secrets.last)
    }

    @Test(
        "a failed restore removes what it made, and nothing that others put there meanwhile; no server starts there before it ends"
    )
    func othersFiles() async throws {
        let server = try await TestServer()
        let place = try place()
        let (backup, secret) = ("\(place.path)/backup", "\(place.path)/secret")
        let data = place.appending(path: "above/new", directoryHint: .isDirectory)
        let made = try await CommandRun.roost(arguments: ["backup", backup, "--data", server.directory.path])
        #expect(made.status == 0, "\(made.errors)")
        try await server.stop()
        #expect(mkfifo(secret, 0o600) == 0)
        async let restored = CommandRun.roost(arguments: ["restore", backup, "--data", data.path, "--secret", secret])
        // The restore has read the backup once it waits for the secret, that is, once the pipe has a reader.
        let pipe = try await Polling.value(within: .seconds(60)) {
            open(secret, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        } until: {
            $0 >= 0
        }
        let settings = data.appending(path: "roost.json")
        try Data("{}".utf8).write(to: settings)
        #expect(throws: DirectoryLock.Held.self) { try SQLiteDatabase(directory: data) }
        let key = SecretFile(directory: server.directory).url
        let writing = FileHandle(fileDescriptor: pipe, closeOnDealloc: true)
        try writing.write(contentsOf: Data(contentsOf: key))
        try writing.close()
        let run = try await restored
        #expect(run.status == 1 && run.errors.contains("/above/new isn't empty."), "\(run)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: data.path) == ["roost.json"])
        #expect(try Data(contentsOf: settings) == Data("{}".utf8))

        try FileManager.default.removeItem(at: settings)
        let again = try await CommandRun.roost(arguments: ["restore", backup, "--data", data.path, "--secret", key.path])
        #expect(again.status == 0, "\(again.errors)")
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: data.path).sorted()
                == ["roost.lock", "roost.sqlite", "roost.state", "token-secret"])
    }

    @Test(
        "making a new data directory overwrites nothing; removing it deletes only what was made, with the directories"
    )
    func newDirectory() throws {
        let place = try place()
        let url = place.appending(path: "above/new", directoryHint: .isDirectory)
        func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: url.path) }
        var first = try NewDataDirectory(url, for: "this user")
        #expect(throws: DirectoryLock.Held.self) { try NewDataDirectory(url, for: "this user") }
        try first.write(Data("ours".utf8), as: "token-keys.json")
        try Data("theirs".utf8).write(to: url.appending(path: "roost.json"))
        #expect(throws: CocoaError.self) { try first.write(Data("ours".utf8), as: "roost.json") }
        #expect(throws: Backup.Unusable.self) { try first.reserve(["roost.state"]) }
        first.remove()
        #expect(try names() == ["roost.json"])
        #expect(try Data(contentsOf: url.appending(path: "roost.json")) == Data("theirs".utf8))
        #expect(throws: Backup.Unusable.self) { try NewDataDirectory(url, for: "this user") }

        try FileManager.default.removeItem(at: place.appending(path: "above"))
        var second = try NewDataDirectory(url, for: "this user")
        try second.copy(place.appending(path: "file"), as: "roost.sqlite")
        #expect(try Data(contentsOf: url.appending(path: "roost.sqlite")) == Data("x".utf8))
        second.remove()
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == ["file"])

        // The remains of a restore that was killed while it read the backup.
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        try Data("1\n".utf8).write(to: url.appending(path: "roost.lock"))
        try NewDataDirectory(url, for: "this user").remove()
        #expect(try names() == ["roost.lock"])
    }

    @Test("a link in place of a new data directory's lock is refused, and what it leads to is neither changed nor made")
    func linkedLock() throws {
        let place = try place()
        let url = place.appending(path: "new", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        let lock = url.appending(path: "roost.lock")
        for target in ["file", "nowhere"] {
            try FileManager.default.createSymbolicLink(atPath: lock.path, withDestinationPath: place.appending(path: target).path)
            let failure = #expect(throws: DatabaseFailure.self) { try NewDataDirectory(url, for: "this user") }
            #expect(failure?.message.hasPrefix("\(lock.path) is a symbolic link.") == true)
            #expect(unlink(lock.path) == 0)
        }
        #expect(try Data(contentsOf: place.appending(path: "file")) == Data("x".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).sorted() == ["file", "new"])
    }

    @Test("a file of a backup is made for its owner alone: an existing one, which others may have open, isn't written")
    func ownFiles() throws {
        let file = try place().appending(path: "secret")
        try Durable.write(Data("s".utf8), to: file)
        #expect(DataFiles.mode(of: file.path) == 0o600)
        let open = file.deletingLastPathComponent().appending(path: "open")
        #expect(FileManager.default.createFile(atPath: open.path, contents: Data("x".utf8), attributes: [.posixPermissions: 0o644]))
        let error = #expect(throws: CocoaError.self) { try Durable.write(Data("s".utf8), to: open) }
        #expect(error.flatMap { SystemError.code(of: $0) } == EEXIST)
        #expect(try Data(contentsOf: open) == Data("x".utf8))
    }

    @Test("a start that is refused for a damaged page names the database and the way out, whichever step reads the page first")
    func damagedPages() async throws {
        let server = try await TestServer()
        try await server.stop()
        var refused: [Int] = []
        for page in 1...10 {
            let directory = TemporaryDirectory.make()
            try FileManager.default.copyItem(at: server.directory, to: directory)
            let file = try FileHandle(forUpdating: directory.appending(path: "roost.sqlite"))
            let place = UInt64(page - 1) * 4096 + 100
            try file.seek(toOffset: place)
            let byte = try #require(try file.read(upToCount: 1)?.first)
            try file.seek(toOffset: place)
            try file.write(contentsOf: [byte ^ 8])
            try file.close()
            let started: ServerProcess
            do { started = try await ServerProcess.start(directory: directory) } catch {
                let expected =
                    "Error: \(directory.path)/roost.sqlite is damaged. SQLite error 8202: disk I/O error. Page \(page) of"
                #expect(
                    "\(error)".contains(expected) && "\(error)".contains("or restore a backup into a new directory: roost restore"))
                refused.append(page)
                continue
            }
            // No step of the start needs the page.
            try await started.killNow()
        }
        #expect(refused.starts(with: [1, 2]) && refused.count > 2, "\(refused)")
    }

    @Test("a full disk is reported as such, whether the system reports it or the database")
    func fullDisk() {
        let directory = URL(filePath: "/backups/today", directoryHint: .isDirectory)
        let errors: [any Error] = [
            CocoaError(.fileWriteOutOfSpace, userInfo: [NSUnderlyingErrorKey: POSIXError(.ENOSPC)]),
            DatabaseFailure(message: "SQLite error 13: database or disk is full.", kind: .transaction, obstacle: .fullDisk),
        ]
        let expected =
            "/backups/today can't be written: No space left on device. Free some space, or name a directory on another disk."
        #expect(errors.map { "\(Backup.explained($0, writing: directory, as: "this user"))" } == [expected, expected])
    }
}
