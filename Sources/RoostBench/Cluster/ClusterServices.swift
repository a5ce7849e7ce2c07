#if Cluster
import Foundation
import RoostDatabase

/// A PostgreSQL server and a NATS server: the benchmark's own, in its directory and on free ports, or those that it was given.
///
/// It only knows the CPU time and the count of messages of its own servers.
final class ClusterServices {
    let databaseURL: String
    let busURL: String
    let lifeline: Lifeline
    private let database: ChildProcess?
    private let bus: ChildProcess?
    private let monitorPort: UInt16

    init(directory: URL, databaseURL: String?, busURL: String?) throws {
        lifeline = try Lifeline(directory: directory)
        if let databaseURL {
            database = nil
            self.databaseURL = databaseURL
        } else {
            let port = try LoopbackSocket.freePort()
            database = try Self.startDatabase(in: directory, port: port, lifeline)
            self.databaseURL = "postgres://roost@127.0.0.1:\(port)/postgres"
            try Self.waitForDatabase(self.databaseURL)
        }
        monitorPort = try LoopbackSocket.freePort()
        if let busURL {
            bus = nil
            self.busURL = busURL
        } else {
            let port = try LoopbackSocket.freePort()
            bus = try Self.startBus(in: directory, port: port, monitorPort: monitorPort, lifeline)
            self.busURL = "nats://127.0.0.1:\(port)"
        }
    }

    func end() {
        bus?.end()
        // The directory is deleted, so nothing needs an orderly end.
        database?.end(by: SIGQUIT, after: 10)
        lifeline.release()
    }

    // MARK: PostgreSQL

    /// Its settings are the defaults, except for its address.
    private static func startDatabase(in directory: URL, port: UInt16, _ lifeline: Lifeline) throws -> ChildProcess {
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
        let settings = [
            "listen_addresses=127.0.0.1", "port=\(port)", "unix_socket_directories=", "fsync=on", "synchronous_commit=on",
        ]
        let starting = try ServerPrograms.asOrdinaryUser(
            programs.appending(path: "postgres"), ["-D", data.path] + settings.flatMap { ["-c", $0] })
        return try start(starting.program, starting.arguments, log: directory.appending(path: "postgresql.log"), port: port) {
            lifeline.watch($0, endingBy: .quit)
        }
    }

    /// It listens some time before it lets anybody in.
    private static func waitForDatabase(_ url: String) throws {
        let start = Clock.now()
        while true {
            do {
                _ = try PostgreSQLDatabase(url: url, laneCount: 1, readerCount: 1)
                return
            } catch {
                guard Clock.now() - start < 30_000_000_000 else { throw error }
                usleep(20_000)
            }
        }
    }

    /// CPU seconds of all its processes together, those that have ended among them. Nil for a server that was given.
    var databaseCPUSeconds: Double? { database.map { ProcessFamily.cpuSeconds(of: $0.identifier) } }

    // MARK: NATS

    private static func startBus(
        in directory: URL, port: UInt16, monitorPort: UInt16, _ lifeline: Lifeline
    ) throws -> ChildProcess {
        try start(
            try ServerPrograms.nats(), ["-a", "127.0.0.1", "-p", "\(port)", "-m", "\(monitorPort)"],
            log: directory.appending(path: "nats.log"), port: port
        ) { lifeline.watch($0, endingBy: .kill) }
    }

    var busCPUSeconds: Double? { bus?.usage.cpuSeconds }

    struct BusMessages {
        /// From nodes to the server, and from the server to nodes.
        let received: Double
        let sent: Double
    }

    /// Returns the server's own counts. Nil for an external server.
    func busMessages() -> BusMessages? {
        guard let counts = busCounts, let received = counts["in_msgs"] as? Double, let sent = counts["out_msgs"] as? Double else {
            return nil
        }
        return BusMessages(received: received, sent: sent)
    }

    var busSubscriptions: Double? { busCounts?["subscriptions"] as? Double }
    var busResidentBytes: Double? { bus?.usage.residentBytes }

    private var busCounts: [String: Any]? {
        guard bus != nil, let answer = LoopbackSocket.get("/varz", port: monitorPort), let head = answer.range(of: "\r\n\r\n")
        else { return nil }
        return try? JSONSerialization.jsonObject(with: Data(answer[head.upperBound...].utf8)) as? [String: Any]
    }

    // MARK: Starting

    private static func start(
        _ program: URL, _ arguments: [String], log: URL, port: UInt16, _ watch: (Int32) -> Void
    ) throws -> ChildProcess {
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        let process = try ChildProcess(program: program, arguments, errors: try FileHandle(forWritingTo: log))
        watch(process.identifier)
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

/// A server that is many processes, which come and go.
enum ProcessFamily {
    /// The server's own time, that of its children who ended, and that of those who run: no time is lost when one of them ends.
    static func cpuSeconds(of server: Int32) -> Double {
        let children = SystemFile.read("/proc/\(server)/task/\(server)/children").split(separator: " ").compactMap { Int32($0) }
        let all = children.reduce(ticks(of: server, withEnded: true)) { $0 + ticks(of: $1, withEnded: false) }
        return all / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    private static func ticks(of process: Int32, withEnded: Bool) -> Double {
        let stat = SystemFile.read("/proc/\(process)/stat")
        // The name of the process may hold spaces; the numbers stand after its closing parenthesis.
        let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ")
        guard fields.count > 15 else { return 0 }
        return fields[12...(withEnded ? 15 : 13)].reduce(0) { $0 + (Double($1) ?? 0) }
    }
}
#endif
