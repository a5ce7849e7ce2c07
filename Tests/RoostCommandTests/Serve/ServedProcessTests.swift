import ArgumentParser
import Foundation
import RoostDatabase
import Testing

@testable import RoostCommand

/// Properties of the whole process in which a server runs.
@Suite struct ServedProcessTests {
    @Test("a server's process turns off SQLite's memory counting, whose lock all connections would share")
    func uncountedMemory() async {
        await #expect(processExitsWith: .exitCode(70)) {
            let directory = FileManager.default.temporaryDirectory.appending(path: "roost-served-\(UUID().uuidString)")
            let flags = try SettingFlags.parse(["--data", directory.path, "--port", "0"])
            let settings = try await Settings.load(flags, environment: [:])
            try await ServerRun(settings: settings).run { _, _ in
                // The database is open.
                let counted = ProcessMemory.bytesCountedBySQLite
                try? FileManager.default.removeItem(at: directory)
                exit(counted == 0 ? 70 : 71)
            }
        }
    }
}
