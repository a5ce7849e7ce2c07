#if Cluster
import Foundation

/// The programs of PostgreSQL and NATS on this machine.
enum ServerPrograms {
    /// The directory of PostgreSQL's programs: the one that `pg_config` reports, or the newest of Debian's.
    static func postgreSQL() throws -> URL {
        let root = URL(filePath: "/usr/lib/postgresql")
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root.path)) ?? []
        var places = versions.sorted { (Int($0) ?? 0) > (Int($1) ?? 0) }.map { root.appending(path: "\($0)/bin") }
        if let program = Programs.find("pg_config"), let directory = try? run(program, ["--bindir"]) {
            places.insert(URL(filePath: directory.trimmingCharacters(in: .whitespacesAndNewlines)), at: 0)
        }
        let needed = ["initdb", "postgres", "pgbench"]
        guard let place = places.first(where: { place in needed.allSatisfy { Programs.isProgram(place.appending(path: $0)) } })
        else {
            throw BenchFailure(
                "PostgreSQL's programs initdb, postgres and pgbench aren't installed; on Debian they are in the package postgresql")
        }
        return place
    }

    static func nats() throws -> URL {
        guard let program = Programs.find("nats-server") else {
            throw BenchFailure("nats-server isn't installed; on Debian it is in the package nats-server")
        }
        return program
    }

    /// Returns a command that doesn't run as root, which PostgreSQL refuses.
    static func asOrdinaryUser(_ program: URL, _ arguments: [String]) throws -> (program: URL, arguments: [String]) {
        guard let account = ordinaryAccount else { return (program, arguments) }
        guard let setpriv = Programs.find("setpriv") else {
            throw BenchFailure("setpriv isn't installed; on Debian it is in the package util-linux")
        }
        return (setpriv, ["--reuid=\(account)", "--regid=\(account)", "--init-groups", program.path] + arguments)
    }

    /// Nil if this process isn't root.
    static var ordinaryAccount: String? { getuid() == 0 ? "postgres" : nil }

    /// Runs a program that leaves no processes behind to its end, and returns its output.
    static func run(_ program: URL, _ arguments: [String], environment: [String: String] = [:]) throws -> String {
        let process = Process()
        let output = Pipe()
        let errors = Pipe()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.currentDirectoryURL = URL(filePath: "/")
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        try process.runHearingSignals()
        // Read one after the other: neither program writes more errors than fit into a pipe.
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let said = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw BenchFailure("\(program.lastPathComponent) failed: \(String(decoding: said.suffix(1000), as: UTF8.self))")
        }
        return String(decoding: text, as: UTF8.self)
    }
}
#endif
