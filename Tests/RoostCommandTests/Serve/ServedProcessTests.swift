import ArgumentParser
import Foundation
import RoostDatabase
import Testing

@testable import RoostCommand

/// What holds for all of the process in which a server runs.
@Suite struct ServedProcessTests {
    @Test("A served process has SQLite count no memory: all connections would share the lock of the count")
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
