#if Cluster
import Foundation
import RoostCore
import RoostDatabase
import Synchronization

/// A real PostgreSQL server on a free loopback port, in a temporary directory, to be killed and restarted.
///
/// A shell runs next to it: it reads from a pipe that this process holds, and when the pipe ends, it ends the server and removes the
/// directory. So nothing is left behind, however the tests end.
public final class PostgreSQLServer: Sendable {
    /// The one that most tests use, each with its own databases. It starts on first use.
    public static var shared: PostgreSQLServer { get throws { try started.get() } }
    private static let started = Result { try PostgreSQLServer() }

    public var port: Int { chosenPort.withLock { $0 } }
    private let chosenPort = Mutex(0)
    private let programs: URL
    private let directory: URL
    /// The server refuses to run as root, and then runs as this account.
    private let account: String?
    private let lifeline: FileHandle
    private let databases = Mutex(Databases())

    private struct Databases {
        /// Databases whose tests have ended. Emptying one takes a fraction of the time that making one takes.
        var used: [String] = []
        var lastNumber = 0
        /// How to make one; nil until there is a template.
        var template: String?
    }

    /// - Parameter certificate: The certificate for clients that request TLS; without one TLS is refused.
    public init(showing certificate: TestCertificate? = nil) throws {
        programs = try Self.findPrograms()
        account = getuid() == 0 ? (getpwnam("postgres") == nil ? "nobody" : "postgres") : nil
        directory = Self.makePlace()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        if let account {
            try FileManager.default.setAttributes([.ownerAccountName: account], ofItemAtPath: directory.path)
        }
        lifeline = try Self.guardServer(programs: programs, directory: directory, account: account)
        try run(
            "initdb", "-D", data.path, "-U", "roost", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync",
            "--no-instructions")
        try configure()
        if let certificate { try showCertificate(certificate) }
        try startOnFreePort()
    }

    private var data: URL { directory.appending(path: "data") }
    private var log: URL { directory.appending(path: "log") }

    private func configure() throws {
        let settings = """
            listen_addresses = '127.0.0.1'
            unix_socket_directories = ''
            max_connections = 300
            # Not more than a small /dev/shm holds.
            max_wal_size = 128MB
            min_wal_size = 32MB
            """
        try append(settings, to: "postgresql.conf")
        // One account has a password, for tests with a wrong one.
        let access = data.appending(path: "pg_hba.conf")
        let rest = try String(contentsOf: access, encoding: .utf8)
        try Data("host all locked 127.0.0.1/32 scram-sha-256\n\(rest)".utf8).write(to: access)
    }

    private func showCertificate(_ shown: TestCertificate) throws {
        let (certificate, key) = try shown.write(to: data)
        var access: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        if let account { access[.ownerAccountName] = account }
        for file in [certificate, key] { try FileManager.default.setAttributes(access, ofItemAtPath: file.path) }
        let settings = "ssl = on\nssl_cert_file = '\(certificate.lastPathComponent)'\nssl_key_file = '\(key.lastPathComponent)'"
        try append(settings, to: "postgresql.conf")
    }

    private func append(_ text: String, to file: String) throws {
        let handle = try FileHandle(forWritingTo: data.appending(path: file))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data("\n\(text)\n".utf8))
        try handle.close()
    }

    // MARK: Running

    /// Ends running work and stops, as an administrator does.
    public func stop() throws { try run("pg_ctl", "-D", data.path, "-m", "fast", "-w", "stop") }

    /// Starts it on a port that it keeps. Making the files took a while, in which another process may have taken a port chosen before.
    private func startOnFreePort() throws {
        for _ in 0..<4 {
            try choosePort()
            do { return try startAgain() } catch  where LoopbackPort.saysPortIsTaken("\(error)") {}
        }
        try choosePort()
        try startAgain()
    }

    private func choosePort() throws { try chosenPort.withLock { $0 = try LoopbackPort.free() } }

    /// Starts it after it was stopped or killed, on the same port with the same data, and waits until it accepts connections.
    public func startAgain() throws {
        do {
            try run("pg_ctl", "-D", data.path, "-l", log.path, "-o", "-p \(port)", "-w", "-t", "60", "start")
        } catch {
            let said = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            throw Missed("a PostgreSQL server; \(error) \(said.suffix(2000))")
        }
    }

    /// SIGKILL to the server and all its processes: nothing in it runs after this.
    public func killNow() throws {
        let lock = data.appending(path: "postmaster.pid")
        let text = try String(contentsOf: lock, encoding: .utf8)
        guard let first = text.split(separator: "\n").first, let server = pid_t(first) else { throw Missed("a running server") }
        // A stopped server starts no further process.
        kill(server, SIGSTOP)
        let processes = Self.children(of: server) + [server]
        for process in processes { kill(process, SIGKILL) }
        let deadline = ContinuousClock.now + .seconds(20)
        while processes.contains(where: Self.runs) {
            guard ContinuousClock.now < deadline else { throw Missed("the end of the killed processes") }
            usleep(1000)
        }
        // A process that its parent hasn't reaped yet would count as running.
        try FileManager.default.removeItem(at: lock)
    }

    // MARK: Databases

    /// An empty database with the tables of this version, for one test: its URL.
    public func makeDatabase() throws -> String {
        if let used = takeUsedDatabase() {
            try empty(used)
            return used
        }
        return try makeNewDatabase()
    }

    /// The URL of a used database, which isn't empty; nil if there is none.
    func takeUsedDatabase() -> String? { databases.withLock { $0.used.popLast() }.map(url) }

    func makeNewDatabase() throws -> String {
        let name = try databases.withLock { databases in
            let template = try databases.template ?? makeTemplate()
            databases.template = template
            databases.lastNumber += 1
            let name = "roost_\(databases.lastNumber)"
            try run(sql: ["CREATE DATABASE \(name) \(template)"])
            return name
        }
        return url(of: name)
    }

    /// Empties a database that has no connections, whatever a test has done to its tables' migrations.
    func empty(_ url: String) throws {
        let known = Migrations.steps.map { "'\($0.name)'" }.joined(separator: ", ")
        let statements =
            CoreTables.all.map { "DELETE FROM \($0.name)" } + ["DELETE FROM migrations WHERE name NOT IN (\(known))"]
        try run(sql: [statements.joined(separator: "; ")], in: url)
    }

    private func makeTemplate() throws -> String {
        try run(sql: ["CREATE DATABASE roost_template"])
        _ = try PostgreSQLDatabase(url: url(of: "roost_template"), laneCount: 1, readerCount: 1)
        let version = try run(sql: ["SHOW server_version_num"]).first.flatMap { Int($0) } ?? 0
        // Since version 15 the default is another strategy, which takes three times as long for so small a database.
        return "TEMPLATE roost_template" + (version >= 150_000 ? " STRATEGY FILE_COPY" : "")
    }

    /// Makes a database from a dump.
    public func makeDatabase(from dump: String) throws -> String {
        let url = try makeEmptyDatabase()
        try run(sql: [dump], in: url)
        return url
    }

    /// Makes a database without tables, for tests that start with none. The options are those of `CREATE DATABASE`.
    public func makeEmptyDatabase(options: String = "") throws -> String {
        try databases.withLock { databases in
            databases.lastNumber += 1
            let name = "roost_\(databases.lastNumber)"
            try run(sql: ["CREATE DATABASE \(name) \(options)"])
            return url(of: name)
        }
    }

    /// Returns a database that was made by ``makeDatabase()``, with the tables that it had.
    public func giveBack(_ url: String) {
        guard let name = url.split(separator: "/").last else { return }
        databases.withLock { $0.used.append(String(name)) }
    }

    /// Runs statements as an administrator, each on its own, and answers the first column of their results.
    @discardableResult
    public func run(sql statements: [String], in url: String? = nil) throws -> [String] {
        let output = try run(
            ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url ?? self.url(of: "postgres")]
                + statements.flatMap { ["-c", $0] })
        return output.split(separator: "\n").map(String.init)
    }

    private func url(of database: String) -> String { "postgres://roost@127.0.0.1:\(port)/\(database)" }
}

// How processes are started and ended.
extension PostgreSQLServer {
    /// The directory of the server's programs: according to `pg_config`, or the newest of Debian's.
    private static func findPrograms() throws -> URL {
        let root = URL(filePath: "/usr/lib/postgresql")
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root.path)) ?? []
        var places = versions.sorted { (Int($0) ?? 0) > (Int($1) ?? 0) }.map { root.appending(path: "\($0)/bin") }
        if let directory = try? launch(["/usr/bin/env", "pg_config", "--bindir"]) {
            places.insert(URL(filePath: directory.trimmingCharacters(in: .whitespacesAndNewlines)), at: 0)
        }
        guard let place = places.first(where: { FileManager.default.isExecutableFile(atPath: $0.appending(path: "initdb").path) })
        else { throw Missed("the programs of a PostgreSQL server (apt-get install postgresql)") }
        return place
    }

    /// In memory if there is enough of it: there an fsync costs nothing, and a killed process loses nothing.
    private static func makePlace() -> URL {
        let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
        let free = try? FileManager.default.attributesOfFileSystem(forPath: memory.path)[.systemFreeSize] as? NSNumber
        let isRoomy = (free?.int64Value ?? 0) > 2 << 30 && FileManager.default.isWritableFile(atPath: memory.path)
        let root = isRoomy ? memory : FileManager.default.temporaryDirectory
        return root.appending(path: "roost-postgresql-\(UUID().uuidString)", directoryHint: .isDirectory)
    }

    /// Starts the shell that ends the server with this process.
    private static func guardServer(programs: URL, directory: URL, account: String?) throws -> FileHandle {
        let stop = [
            programs.appending(path: "pg_ctl").path, "-D", directory.appending(path: "data").path, "-m", "immediate", "stop",
        ]
        return try ExitScript.start(
            "place=$1; shift; \"$@\" >/dev/null 2>&1; rm -rf \"$place\"", arguments: [directory.path] + asAccount(account, stop))
    }

    private static func asAccount(_ account: String?, _ command: [String]) -> [String] {
        guard let account else { return command }
        return ["/usr/bin/env", "setpriv", "--reuid=\(account)", "--regid=\(account)", "--init-groups"] + command
    }

    private func run(_ command: String...) throws { try run(command) }

    @discardableResult
    private func run(_ command: [String]) throws -> String {
        let program = programs.appending(path: command[0]).path
        return try Self.launch(Self.asAccount(account, [program] + command.dropFirst()))
    }

    /// Runs a program to its end and answers its output, which goes to a file.
    ///
    /// Foundation's `Process` waits for every process that a program has started, and so would wait for a server forever.
    private static func launch(_ command: [String]) throws -> String {
        let file = FileManager.default.temporaryDirectory.appending(path: "roost-output-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, file.path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // The server's account may not enter the directory of the tests.
        let shell = ["/bin/sh", "-c", "cd /; exec \"$@\"", "sh"]
        var arguments = (shell + command).map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        let problem = posix_spawn(&process, shell[0], &actions, nil, &arguments, environ)
        guard problem == 0 else { throw Missed("the start of \(command): \(String(cString: strerror(problem)))") }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { throw Missed("the end of \(command)") }
        }
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        guard status == 0 else { throw Missed("the success of \(command): \(text)") }
        return text
    }

    private static func children(of parent: pid_t) -> [pid_t] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return all.compactMap { pid_t($0) }.filter { status(of: $0)?.parent == parent }
    }

    private static func runs(_ process: pid_t) -> Bool {
        status(of: process).map { $0.state != "Z" && $0.state != "X" } ?? false
    }

    private static func status(of process: pid_t) -> (state: String, parent: pid_t)? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let end = text.lastIndex(of: ")")
        else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        guard fields.count > 1, let parent = pid_t(fields[1]) else { return nil }
        return (String(fields[0]), parent)
    }
}
#endif
