#if Cluster
import Foundation
import RoostDatabase

/// The benchmark's own PostgreSQL server, in its directory and on a free port.
final class DatabaseService {
    let url: String
    private let port: UInt16
    private let process: ChildProcess

    /// Its settings are the defaults, except for its address.
    init(directory: URL) throws {
        let programs = try ServerPrograms.postgreSQL()
        let data = directory.appending(path: "postgresql")
        try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
        if let account = ServerPrograms.ordinaryAccount {
            try FileManager.default.setAttributes([.ownerAccountName: account], ofItemAtPath: data.path)
        }
        let making = try ServerPrograms.asOrdinaryUser(
            programs.appending(path: "initdb"),
            ["-D", data.path, "-U", "roost", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"])
        _ = try ServerPrograms.run(making.program, making.arguments)
        port = try LoopbackSocket.freePort()
        let settings = [
            "listen_addresses=127.0.0.1", "port=\(port)", "unix_socket_directories=", "fsync=on", "synchronous_commit=on",
        ]
        let starting = try ServerPrograms.asOrdinaryUser(
            programs.appending(path: "postgres"), ["-D", data.path] + settings.flatMap { ["-c", $0] })
        process = try ChildProcess.startServer(
            starting.program, starting.arguments, log: directory.appending(path: "postgresql.log"), port: port, endingBy: .quit)
        url = "postgres://roost@127.0.0.1:\(port)/postgres"
        try waitUntilOpen()
    }

    /// The server listens some time before it accepts sessions.
    private func waitUntilOpen() throws {
        let start = Clock.now()
        while true {
            do {
                _ = try PostgreSQLDatabase.examine(url: url)
                return
            } catch {
                guard Clock.now() - start < 30_000_000_000 else { throw error }
                usleep(20_000)
            }
        }
    }

    /// Makes a copy of the first database, which must have no open connections. Returns its URL.
    func copyDatabase(to name: String) throws -> String {
        let program = try ServerPrograms.postgreSQL().appending(path: "createdb")
        _ = try ServerPrograms.run(program, ["-h", "127.0.0.1", "-p", "\(port)", "-U", "roost", "-T", "postgres", name])
        return "postgres://roost@127.0.0.1:\(port)/\(name)"
    }

    var identifier: Int32 { process.identifier }

    /// CPU seconds of all its processes together, including those that have ended.
    var cpuSeconds: Double { ProcessFamily.cpuSeconds(of: process.identifier) }

    /// The directory is deleted, so nothing needs an orderly end.
    func end() { process.end(by: SIGQUIT, after: 10) }
}

extension ChildProcess {
    /// Starts a server, and waits until it listens.
    ///
    /// - Parameter ending: How the server is ended when this process is gone.
    static func startServer(
        _ program: URL, _ arguments: [String], log: URL, port: UInt16, endingBy ending: Lifeline.Ending = .kill
    ) throws -> ChildProcess {
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        let process = try ChildProcess(program: program, arguments, errors: try FileHandle(forWritingTo: log), endingBy: ending)
        let start = Clock.now()
        while true {
            let socket = LoopbackSocket.connect(port: port)
            if socket >= 0 {
                close(socket)
                return process
            }
            guard process.isRunning, Clock.now() - start < 30_000_000_000 else {
                let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
                throw BenchFailure("\(log.deletingPathExtension().lastPathComponent) didn't start: \(text.suffix(1000))")
            }
            usleep(5000)
        }
    }
}

/// A server made of many processes, which come and go.
enum ProcessFamily {
    /// The server's own time, and that of its ended and its running children: no time is lost when one of them ends.
    static func cpuSeconds(of server: Int32) -> Double {
        let children = SystemFile.read("/proc/\(server)/task/\(server)/children").split(separator: " ").compactMap { Int32($0) }
        let all = children.reduce(ticks(of: server, withEnded: true)) { $0 + ticks(of: $1, withEnded: false) }
        return all / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    private static func ticks(of process: Int32, withEnded: Bool) -> Double {
        let stat = SystemFile.read("/proc/\(process)/stat")
        // The name of the process may contain spaces; the numbers follow its closing parenthesis.
        let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ")
        guard fields.count > 15 else { return 0 }
        return fields[12...(withEnded ? 15 : 13)].reduce(0) { $0 + (Double($1) ?? 0) }
    }
}
#endif
