import Foundation
import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

/// `roost doctor`: the line that reports each state of a directory and a server.
@Suite struct DoctorTests {
    private struct Finding: Decodable {
        let check: String
        let result: String
        let found: String
        let advice: String?
    }

    private func doctor(
        _ directory: URL, port: Int = 1, _ arguments: [String] = [], environment: [String: String] = [:]
    ) async throws -> (status: Int32, findings: [Finding]) {
        let run = try await CommandRun.roost(
            arguments: ["doctor", "--json", "--data", directory.path, "--url", "http://127.0.0.1:\(port)"] + arguments,
            environment: environment)
        return (run.status, try JSONDecoder().decode([Finding].self, from: Data(run.output.utf8)))
    }

    /// The problems, as `result check: found`. The checks of the machine itself, and whether a server answers, are left out.
    private func problems(
        _ directory: URL, port: Int = 1, _ arguments: [String] = [], environment: [String: String] = [:]
    ) async throws -> [String] {
        let (status, findings) = try await doctor(directory, port: port, arguments, environment: environment)
        #expect((status == 0) == !findings.contains { $0.result == "fail" })
        #expect(findings.filter { $0.result != "ok" && $0.advice == nil }.map(\.check) == [])
        let machine = ["SQLite", "fsync", "disk space", "clock", "open files", "server", "open files of the process"]
        return findings.filter { $0.result != "ok" && !machine.contains($0.check) }
            .map { "\($0.result) \($0.check): \($0.found.replacing(directory.path, with: "DATA"))" }
    }

    /// A directory in which a server has run.
    private func used() async throws -> URL {
        let server = try await WatchedServer.start()
        _ = try await server.request("GET", "/v1/me", token: try await server.token("ann"))
        try await server.stop()
        return server.directory
    }

    private func setMode(_ mode: Int, of url: URL) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url.path)
    }

    @Test("a healthy server and its directory are reported as healthy")
    func well() async throws {
        let server = try await WatchedServer.start()
        let socket = try await server.socket("ann")
        let (_, findings) = try await doctor(server.directory, port: server.port)
        let checks = [
            "database file", "page checksums", "file modes", "write-ahead log", "open files of the server", "stored operations",
            "connections",
            "environment",
        ]
        #expect(findings.filter { checks.contains($0.check) }.map(\.result) == Array(repeating: "ok", count: checks.count))
        #expect(try await problems(server.directory, port: server.port) == [])
        await socket.close()
        try await server.stop()
        #expect(try await problems(server.directory) == [])
    }

    /// The findings of a command that names no directory, run where the usual directories are.
    private func doctor(in place: URL) async throws -> [Finding] {
        let script = #"cd "$1" && exec "$2" doctor --json --url http://127.0.0.1:1"#
        let run = try await CommandRun.program(
            "/usr/bin/env", arguments: ["-u", "ROOST_DATA", "/bin/sh", "-c", script, "sh", place.path, ServerProcess.binary.path])
        return try JSONDecoder().decode([Finding].self, from: Data(run.output.utf8))
    }

    @Test("if only a demo's directory exists, it is the one checked")
    func demo() async throws {
        let place = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        try FileManager.default.moveItem(at: try await used(), to: place.appending(path: "roost-demo"))
        let findings = try await doctor(in: place)
        let server = findings.first { $0.check == "server" }
        #expect(server?.advice == "Start it with roost demo, or name its address with --url", "\(findings)")
        #expect(findings.contains { $0.result == "ok" && $0.found.contains("roost-demo") }, "\(findings)")
        #expect(!findings.contains { $0.found.contains("roost-data") }, "\(findings)")
    }

    @Test(
        "a running demo's directory is checked rather than a stopped server's, whose process id is another process's by now")
    func servedDemo() async throws {
        let place = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let stopped = place.appending(path: "roost-data")
        try FileManager.default.moveItem(at: try await used(), to: stopped)
        try Data("\(getpid())\n".utf8).write(to: stopped.appending(path: "roost.lock"))
        let server = try await WatchedServer.start(directory: place.appending(path: "roost-demo"))
        let findings = try await doctor(in: place)
        #expect(findings.contains { $0.result == "ok" && $0.found.contains("roost-demo") }, "\(findings)")
        #expect(!findings.contains { $0.found.contains("roost-data") }, "\(findings)")
        try await server.stop()
    }

    @Test("the server at ROOST_URL is checked if the command names none")
    func addressOfEnvironment() async throws {
        let server = try await WatchedServer.start()
        let environment = ["ROOST_URL": "http://127.0.0.1:\(server.port)"]
        let words = ["doctor", "--json", "--data", server.directory.path]
        var found: [String?] = []
        for option in [[], ["--url", "http://127.0.0.1:1"]] as [[String]] {
            let run = try await CommandRun.roost(arguments: words + option, environment: environment)
            let findings = try JSONDecoder().decode([Finding].self, from: Data(run.output.utf8))
            found.append(findings.first { $0.check == "server" }?.result)
        }
        #expect(found == ["ok", "warn"])
        try await server.stop()
    }

    @Test("a server behind a proxy that adds a path prefix is checked below the prefix")
    func prefix() async throws {
        let server = try await WatchedServer.start()
        let proxy = try await TCPProxy.start(targets: [server.port], strippingPrefix: "/roost")
        let words = ["doctor", "--json", "--data", server.directory.path, "--url", "http://127.0.0.1:\(proxy.port)/roost"]
        let run = try await CommandRun.roost(arguments: words)
        let findings = try JSONDecoder().decode([Finding].self, from: Data(run.output.utf8))
        #expect(findings.first { $0.check == "server" }?.result == "ok", "\(findings)")
        #expect(findings.contains { $0.check == "connections" }, "its metrics are found too")
        await proxy.stop()
        try await server.stop()
    }

    @Test("files that others can open are named, with their modes")
    func modes() async throws {
        let directory = try await used()
        try setMode(0o644, of: directory.appending(path: "roost.sqlite"))
        #expect(try await problems(directory) == ["fail file modes: DATA/roost.sqlite has mode 644"])
        try setMode(0o600, of: directory.appending(path: "roost.sqlite"))
        try setMode(0o755, of: directory)
        let found = try await problems(directory)
        #expect(found.count == 1, "\(found)")
        #expect(found.first?.hasPrefix("warn data directory: DATA, owner ") == true && found.first?.hasSuffix(", mode 755") == true)
        try setMode(0o700, of: directory)
        try setMode(0o640, of: directory.appending(path: "token-secret"))
        #expect(try await problems(directory) == ["fail secret: DATA/token-secret has mode 640"])
    }

    @Test("links to the directory, the secret and the token keys are fine if their targets are")
    func links() async throws {
        let (directory, secrets) = (try await used(), TemporaryDirectory.make())
        let keys = directory.appending(path: "token-keys.json")
        try Data(#"{"keys":[],"roostTokenSecret":"retired"}"#.utf8).write(to: keys)
        try setMode(0o600, of: keys)
        try FileManager.default.createDirectory(at: secrets, withIntermediateDirectories: true)
        for name in ["token-secret", "token-keys.json"] {
            let (link, file) = (directory.appending(path: name), secrets.appending(path: name))
            try FileManager.default.moveItem(at: link, to: file)
            try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: file.path)
        }
        let data = TemporaryDirectory.make().appendingPathExtension("link")
        try FileManager.default.createSymbolicLink(atPath: data.path, withDestinationPath: directory.path)
        #expect(try await problems(data) == [])
        try setMode(0o640, of: secrets.appending(path: "token-secret"))
        #expect(try await problems(data) == ["fail secret: DATA/token-secret has mode 640"])
    }

    @Test("a file of token keys that others can open, or that can't be read as keys, fails")
    func tokenKeys() async throws {
        let directory = try await used()
        let file = directory.appending(path: "token-keys.json")
        try Data(#"{"keys":[],"roostTokenSecret":"retired"}"#.utf8).write(to: file)
        try setMode(0o644, of: file)
        #expect(try await problems(directory) == ["fail token keys: DATA/token-keys.json has mode 644"])
        try setMode(0o600, of: file)
        #expect(try await problems(directory) == [])
        try Data(#"{"keys":[{"#.utf8).write(to: file)
        try setMode(0o600, of: file)
        let found = try await problems(directory)
        #expect(found.count == 1 && found.first?.hasPrefix("fail token keys: The file of keys DATA/token-keys.json can't") == true)
    }

    @Test("settings on which no server starts fail: an unusable file of further keys, and a bus without a database")
    func settings() async throws {
        let directory = try await used()
        let file = TemporaryDirectory.make().appendingPathExtension("json")
        func keys() async throws -> [String] {
            try await problems(directory, ["--token-keys", file.path]).map { $0.replacing(file.path, with: "KEYS") }
        }
        #expect(
            try await keys() == [
                "fail further token keys: The file of keys KEYS can't be read: No such file or directory"
            ])
        try Data(#"{"keys":7}"#.utf8).write(to: file)
        try setMode(0o600, of: file)
        #expect(try await keys().first?.hasPrefix("fail further token keys: The file of keys KEYS can't be used: it isn't") == true)
        try Data(#"{"keys":[]}"#.utf8).write(to: file)
        try setMode(0o600, of: file)
        #expect(try await keys() == [])
        let bus = try await problems(directory, ["--bus", "nats://127.0.0.1:1"])
        #expect(bus.contains("fail settings: there is a bus, but no database that nodes share"), "\(bus)")
    }

    @Test("a setting above its maximum, as an earlier version allowed, is a warning")
    func loweredSetting() async throws {
        let found = try await problems(try await used(), ["--mentions-per-message", "50"])
        #expect(found.count == 1 && found.first?.hasPrefix("warn settings: ") == true, "\(found)")
    }

    @Test(
        "a server isn't taken for that of another directory, of a copy of its own, or of a missing one"
    )
    func otherDirectory() async throws {
        let (server, other) = (try await WatchedServer.start(), try await used())
        let copy = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
        for name in ["roost.sqlite", "roost.lock", "token-secret"] {
            try FileManager.default.copyItem(at: server.directory.appending(path: name), to: copy.appending(path: name))
        }
        for directory in [other, copy, URL(filePath: "/nowhere/roost-data")] {
            let (status, findings) = try await doctor(directory, port: server.port)
            let finding = try #require(findings.first { $0.check == "server" })
            #expect(status == 1 && finding.result == "fail" && finding.found.hasSuffix("doesn't run on \(directory.path)"))
            #expect(!findings.contains { $0.check == "connections" }, "what it does is no matter of this directory")
        }
        let (_, findings) = try await doctor(server.directory, port: server.port)
        #expect(findings.first { $0.check == "server" }?.result == "ok")
        #expect(
            try await problems(URL(filePath: "/nowhere/roost-data")) == ["warn data directory: DATA doesn't exist"])
        try await server.stop()
    }

    @Test("if a directory and its restored copy are both served, each one's server is recognised")
    func servedCopy() async throws {
        let first = try await WatchedServer.start()
        let (backup, copy) = (TemporaryDirectory.make(), TemporaryDirectory.make())
        let made = try await CommandRun.roost(
            arguments: ["backup", backup.path, "--data", first.directory.path, "--with-secret"])
        let restored = try await CommandRun.roost(arguments: ["restore", backup.path, "--data", copy.path])
        #expect([made.status, restored.status] == [0, 0], "\(made.errors)\(restored.errors)")
        // They are distinguished by when they started.
        try await Task.sleep(for: .seconds(2))
        let second = try await WatchedServer.start(directory: copy)
        for (directory, port, result) in [
            (first.directory, first.port, "ok"), (first.directory, second.port, "fail"), (copy, first.port, "fail"),
            (copy, second.port, "ok"),
        ] {
            let (_, findings) = try await doctor(directory, port: port)
            #expect(findings.first { $0.check == "server" }?.result == result)
            #expect(findings.contains { $0.check == "connections" } == (result == "ok"))
        }
        try await second.stop()
        try await first.stop()
    }

    @Test("the disk of a missing directory is that of its nearest existing parent, however far above")
    func missingParents() async throws {
        let there = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: there, withIntermediateDirectories: true)
        let (_, findings) = try await doctor(there.appending(path: "a/b/c", directoryHint: .isDirectory))
        let disk = findings.filter { ["disk space", "fsync"].contains($0.check) }
        #expect(disk.count == 2 && disk.allSatisfy { $0.result != "fail" }, "\(disk)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: there.path) == [])
    }

    @Test("a finding is followed by its advice after one full stop")
    func fullStops() async throws {
        let directory = try await used()
        let secret = directory.appending(path: "token-secret")
        try Data("short".utf8).write(to: secret)
        try setMode(0o600, of: secret)
        let run = try await CommandRun.roost(arguments: ["doctor", "--data", directory.path, "--url", "http://127.0.0.1:1"])
        #expect(run.output.contains("in base 64. Restore it from a backup") && !run.output.contains(".."))
    }

    @Test("a missing or empty piece of the directory is found before a server starts on it")
    func missing() async throws {
        let directory = try await used()
        let secret = directory.appending(path: "token-secret")
        let kept = try Data(contentsOf: secret)
        try FileManager.default.removeItem(at: secret)
        #expect(try await problems(directory) == ["fail database file: DATA/token-secret is missing next to a database"])
        try kept.write(to: secret)
        try setMode(0o600, of: secret)
        let database = directory.appending(path: "roost.sqlite")
        try Data().write(to: database)
        #expect(try await problems(directory).contains("fail database file: DATA/roost.sqlite is empty"))
        try FileManager.default.removeItem(at: database)
        #expect(
            try await problems(directory).contains(
                "fail database file: DATA/roost.sqlite is missing, but there is a secret: a server has run here before"))
    }

    @Test("a log that isn't checkpointed is found by its size")
    func log() async throws {
        let directory = try await used()
        let log = directory.appending(path: "roost.sqlite-wal")
        _ = FileManager.default.createFile(atPath: log.path, contents: nil, attributes: [.posixPermissions: 0o600])
        let file = try FileHandle(forWritingTo: log)
        try file.truncate(atOffset: 300 << 20)
        try file.close()
        #expect(
            try await problems(directory).contains(
                "fail write-ahead log: DATA/roost.sqlite-wal has 300 MiB: checkpoints don't complete"))
    }

    @Test(
        "files removed or replaced under a running server are found",
        arguments: ["roost.sqlite", "roost.sqlite-wal", "roost.lock"])
    func underARunningServer(name: String) async throws {
        for isReplaced in [false, true] {
            let server = try await WatchedServer.start()
            _ = try await server.request("GET", "/v1/me", token: try await server.token("ann"))
            // Freezes the process: what it does itself when it notices isn't tested here.
            server.process.signal(SIGSTOP)
            let file = server.directory.appending(path: name)
            if isReplaced {
                let copy = file.appendingPathExtension("new")
                try FileManager.default.copyItem(at: file, to: copy)
                try setMode(0o600, of: copy)
                #expect(rename(copy.path, file.path) == 0)
            } else {
                try FileManager.default.removeItem(at: file)
            }
            let problems = try await problems(server.directory)
            let expected = "DATA/\(name) was \(isReplaced ? "replaced" : "removed")"
            #expect(
                problems.contains { $0.hasPrefix("fail open files of the server: process ") && $0.hasSuffix(expected) },
                "\(problems)")
            try await server.process.killNow()
        }
    }

    @Test("a backup is to be restored if a running server's database was replaced, but not if only its lock was")
    func replacedUnderARunningServer() async throws {
        for (name, restores) in [("roost.lock", false), ("roost.sqlite", true)] {
            let server = try await WatchedServer.start()
            _ = try await server.request("GET", "/v1/me", token: try await server.token("ann"))
            server.process.signal(SIGSTOP)
            let file = server.directory.appending(path: name)
            // A second start, which is refused, leaves such a lock if there was none.
            let content = name == "roost.lock" ? Data() : try Data(contentsOf: file)
            try FileManager.default.removeItem(at: file)
            try content.write(to: file)
            try setMode(0o600, of: file)
            let (_, findings) = try await doctor(server.directory)
            let finding = try #require(findings.first { $0.check == "open files of the server" })
            #expect(finding.result == "fail" && finding.found.hasSuffix("\(name) was replaced"))
            #expect(finding.advice?.hasSuffix("restore a backup") == restores, "\(finding)")
            #expect((finding.advice == "Nothing is lost, but the server ends at its next write: restart it") != restores)
            try await server.process.killNow()
        }
    }

    private func openFilesOfServer(_ findings: [Finding]) -> Finding? {
        findings.first { $0.check == "open files of the server" }
    }

    @Test("a program that has files of a stopped server's directory open, as to copy them, isn't taken for the server")
    func otherPrograms() async throws {
        let directory = try await used()
        let log = directory.appending(path: "roost.log")
        try Data("x".utf8).write(to: log)
        let opened = try [log, directory.appending(path: "roost.sqlite")].map { try FileHandle(forReadingFrom: $0) }
        let (_, findings) = try await doctor(directory)
        #expect(openFilesOfServer(findings) == nil, "\(findings)")
        #expect(try await problems(directory) == [])
        for file in opened { try file.close() }
    }

    @Test("if the number in a held lock is another process's here, as with a server in a container, nothing is said of its files")
    func numberOfAnotherProcess() async throws {
        let (directory, other) = (try await used(), try await WatchedServer.start())
        let file = directory.appending(path: "roost.lock")
        try Data("\(other.process.identifier)\n".utf8).write(to: file)
        let lock = open(file.path, O_RDWR | O_CLOEXEC)
        defer { close(lock) }
        try #require(flock(lock, LOCK_EX | LOCK_NB) == 0)
        let (_, findings) = try await doctor(directory)
        let finding = try #require(openFilesOfServer(findings))
        #expect(finding.result == "ok" && finding.found.contains("can't be seen from here"), "\(finding)")
        #expect(try await problems(directory) == [])
        try await other.stop()
    }

    @Test(
        "a running server whose lock this user may not open isn't taken for a stopped one",
        .enabled(if: geteuid() != 0 || FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv"), "root may open every file")
    )
    func unreadableLock() async throws {
        let server = try await WatchedServer.start()
        server.process.signal(SIGSTOP)
        try setMode(0, of: server.directory.appending(path: "roost.lock"))
        var arguments = [ServerProcess.binary.path, "doctor", "--json", "--data", server.directory.path]
        arguments += ["--url", "http://127.0.0.1:1"]
        if geteuid() == 0 { arguments = ["/usr/bin/setpriv", "--bounding-set=-dac_override,-dac_read_search"] + arguments }
        let run = try await CommandRun.program("/usr/bin/env", arguments: arguments)
        let findings = try JSONDecoder().decode([Finding].self, from: Data(run.output.utf8))
        #expect(findings.first { $0.check == "database file" }?.result == "ok", "\(findings)")
        let found = openFilesOfServer(findings)?.found
        #expect(found?.hasSuffix("/roost.lock is another user's: run this as that user, or as root, to compare") == true)
        try await server.process.killNow()
    }

    @Test(
        "in a directory that a restore fills, incomplete files are no failure, and nothing is written, which would end the restore")
    func duringARestore() async throws {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let lock = try DirectoryLock(directory: directory)
        let database = directory.appending(path: "roost.sqlite")
        try Data("x".utf8).write(to: database)
        try setMode(0o600, of: database)
        let (_, findings) = try await doctor(directory)
        let checks = ["database file", "page checksums", "file modes", "open files of the server", "secret"]
        #expect(findings.filter { checks.contains($0.check) && $0.result != "ok" }.map(\.check) == [])
        let sync = findings.first { $0.check == "fsync" }
        #expect(sync?.found == "not measured while another process restores a backup here or starts")
        lock.release()
    }

    @Test("a restore in a container, whose process doesn't exist here, is left alone as well")
    func duringARestoreElsewhere() async throws {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = directory.appending(path: "roost.lock")
        // Linux has no process of a higher number than 4194304.
        try Data("4194305\n".utf8).write(to: file)
        let lock = open(file.path, O_RDWR | O_CLOEXEC)
        defer { close(lock) }
        try #require(flock(lock, LOCK_EX | LOCK_NB) == 0)
        let database = directory.appending(path: "roost.sqlite")
        try Data("x".utf8).write(to: database)
        try setMode(0o600, of: database)
        let (_, findings) = try await doctor(directory)
        #expect(openFilesOfServer(findings)?.found.contains("can't be seen from here") == true)
        #expect(findings.first { $0.check == "database file" } == nil)
        #expect(
            findings.first { $0.check == "fsync" }?.found == "not measured while another process restores a backup here or starts")
    }

    @Test("a variable that looks like a setting and isn't one is a warning, and so are those that Kubernetes sets")
    func environment() async throws {
        let directory = try await used()
        let problems = try await problems(
            directory, environment: ["ROOST_PROT": "7", "ROOST_PORT": "tcp://10.0.0.7:8080", "ROOST_SERVICE_HOST": "10.0.0.7"])
        #expect(problems.count == 2 && problems.allSatisfy { $0.hasPrefix("warn environment: ") })
        #expect(
            problems.contains { $0.contains("ROOST_PROT") } && problems.contains { $0.contains("ROOST_PORT, ROOST_SERVICE_HOST") })
    }

    @Test(
        "too few open files for connections-max are a warning; the running server accepts no more connections than it has files for"
    )
    func openFiles() async throws {
        let server = try await WatchedServer.start(arguments: ["--connections-max", "1000000"])
        let (_, findings) = try await doctor(server.directory, port: server.port, ["--connections-max", "1000000"])
        let page = try await server.metrics()
        let isEnough = page.value("process_max_fds") ?? 0 >= 1_000_000
        let results = findings.filter { $0.check.hasPrefix("open files") && !$0.check.hasSuffix("server") }.map(\.result)
        #expect(results == [isEnough ? "ok" : "warn", "ok"])
        try await server.stop()
    }

    @Test("one bit that flipped in the database of a stopped server fails, with its page")
    func flippedBit() async throws {
        let directory = try await used()
        #expect(try await problems(directory) == [])
        let file = try FileHandle(forUpdating: directory.appending(path: "roost.sqlite"))
        try file.seek(toOffset: 4096 + 100)
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: 4096 + 100)
        try file.write(contentsOf: [byte ^ 8])
        try file.close()
        #expect(
            try await problems(directory) == [
                "fail page checksums: page 2 of DATA/roost.sqlite doesn't match its own: its content would be refused"
            ])
    }

    @Test("connections refused at a limit are a warning that names the setting")
    func refusedConnections() async throws {
        let server = try await WatchedServer.start(arguments: ["--connections-per-user", "1"])
        #expect(try await problems(server.directory, port: server.port) == [])
        let socket = try await server.socket("ann")
        let second = try await server.request("GET", "/v1/me", token: try await server.token("ann"))
        #expect(second.status == 503)
        #expect(
            try await problems(server.directory, port: server.port) == [
                "warn refused connections: 1 over connections-per-user since the start"
            ])
        await socket.close()
        try await server.stop()
    }
}
