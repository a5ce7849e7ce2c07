import Foundation
import RoostCore
import RoostDatabase
import RoostServer
import RoostTestSupport
import Synchronization
import Testing

/// Copies of a database in use, for backups.
@Suite("Copies of the database")
struct CopyTests {
    @Test(
        "I24 a copy fails if its disk refuses a part of it, which the system reports only once, not again at the end",
        arguments: [EIO, ENOSPC])
    func refusedPart(error: Int32) throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let database = try SQLiteDatabase(directory: directory)
        func insert(_ name: String) throws {
            let value = String(repeating: "x", count: 500_000)
            try database.write(lane: 0) { _ = try $0.execute("INSERT INTO settings (name, value) VALUES (\(name), \(value))") }
        }
        for number in 0..<6 { try insert("before \(number)") }
        var calls = 0
        let failure = #expect(throws: DatabaseFailure.self) {
            try database.copy(to: directory.appending(path: "refused").path) { _ in
                calls += 1
                return calls == 2 ? error : 0
            }
        }
        #expect(calls == 2)
        #expect(failure?.message == "The copy of the database couldn't be written: \(String(cString: strerror(error))).")
        let obstacle: DatabaseFailure.Obstacle? = error == ENOSPC ? .fullDisk : nil
        #expect(failure?.obstacle == obstacle)
        // The server continues.
        try insert("after")
    }

    @Test(
        "I24 a server's backup is copied at 32 MB a second at most, read back at 64, and checked with pauses, so commits get the disk in between"
    )
    func pace() throws {
        let (data, target) = (TemporaryPlace.make(), TemporaryDirectory.make())
        defer { for directory in [data, target] { try? FileManager.default.removeItem(at: directory) } }
        let database = try SQLiteDatabase(directory: data)
        let value = String(repeating: "x", count: 500_000)
        try database.write(lane: 0) { transaction in
            _ = try transaction.epoch(orNew: "one")
            for number in 0..<32 {
                let name = "large \(number)"
                _ = try transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), \(value))")
            }
        }
        let pauses = Mutex<[CopyPace.Part: [Duration]]>([:])
        let pace = CopyPace { part, time in pauses.withLock { $0[part, default: []].append(time) } }
        let backup = try Backup.make(of: database, data: data, withSecret: false, in: target, pace: pace)
        let found = pauses.withLock { $0 }
        let (copying, reading) = (found[.copying] ?? [], found[.reading] ?? [])
        // The last part of each has none.
        let pages = Int(backup.database.pages)
        #expect(pages > 3900 && copying.count == (pages - 1) / 32 && reading.count == pages / 8)
        func bytesPerSecond(_ bytes: Double, _ pause: Duration?) -> Double { bytes / ((pause ?? .zero) / .seconds(1)) }
        #expect(bytesPerSecond(32 * 4096, copying.min()) <= 32 * 1_048_576)
        #expect(bytesPerSecond(8 * 4096, reading.min()) <= 64 * 1_048_576)
        // A check reads each page, which takes longer than the shortest pause even from memory.
        let checking = found[.checking] ?? []
        #expect(!checking.isEmpty && checking.allSatisfy { $0 >= .microseconds(500) })
    }

    @Test(
        "I24 a backup, and a data directory restored from it, are on disk when they are complete: each file, and the names in each directory"
    )
    func synced() async throws {
        let place = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: place) }
        let data = place.appending(path: "data", directoryHint: .isDirectory)
        let backup = place.appending(path: "above/backup", directoryHint: .isDirectory)
        let restored = place.appending(path: "new/restored", directoryHint: .isDirectory)
        let database = try SQLiteDatabase(directory: data)
        _ = try database.write(lane: 0) { try $0.epoch(orNew: "one") }
        _ = try SecretFile(directory: data).readOrMake()
        _ = try await TokenKeyRing(directory: data).add(named: "k1")
        try Data("{}".utf8).write(to: data.appending(path: "roost.json"))

        let record = FileSync.Record()
        func synced() -> [String] {
            record.take().map {
                $0.replacing(place.path, with: "PLACE").replacing(#/\.backup\.partial-[0-9A-F]{8}/#, with: "PARTIAL")
            }
        }
        try recordedBackup(of: database, data: data, in: backup, record)
        let partial = ["roost.sqlite", "token-secret", "token-keys.json", "roost.json", "backup.json", "roost.sqlite"]
            .map { "PLACE/above/PARTIAL/\($0)" }
        #expect(synced() == partial + ["PLACE/above/PARTIAL", "PLACE/above", "PLACE"])
        try database.close()

        _ = try await FileSync.$record.withValue(record) { try await Backup.restore(backup, to: restored, secret: .backup) }
        let directory = "PLACE/new/restored"
        // They are there before the database: without its secret, an incomplete one would look like a new server's.
        let files = ["token-secret", "token-keys.json", "roost.json"].map { "\(directory)/\($0)" }
        // The database syncs the directory itself: twice when it opens, once when it closes.
        let opened = ["\(directory)/roost.sqlite"] + Array(repeating: directory, count: 3)
        let expected: [String] = files + [directory] + opened + [directory, "PLACE/new", "PLACE"]
        #expect(synced().filter { $0 != "\(directory)/roost.state" } == expected)
    }

    private func recordedBackup(of database: SQLiteDatabase, data: URL, in target: URL, _ record: FileSync.Record) throws {
        let pace = CopyPace { _, _ in }
        _ = try FileSync.$record.withValue(record) {
            try Backup.make(of: database, data: data, withSecret: true, in: target, pace: pace)
        }
    }

    @Test("I24 a copy is read back with a pause after every 32 KiB, with the same result as one read at once")
    func pauses() throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let database = try SQLiteDatabase(directory: directory)
        let value = String(repeating: "x", count: 500_000)
        try database.write(lane: 0) { _ = try $0.execute("INSERT INTO settings (name, value) VALUES ('large', \(value))") }
        let path = directory.appending(path: "copy").path
        try database.copy(to: path)
        try SQLiteDatabase.seal(copy: path)
        let pauses = Mutex<Int64>(0)
        let pace = CopyPace { part, _ in pauses.withLock { $0 += part == .reading ? 1 : 0 } }
        let copy = try SQLiteDatabase.verify(copy: path, pace: pace)
        #expect(copy.pages > 120 && pauses.withLock { $0 } == copy.pages / 8)
        #expect(try SQLiteDatabase.verify(copy: path) == copy)
        // Whatever the size of the last read.
        let size = try #require(FileManager.default.attributesOfItem(atPath: path)[.size] as? Int64)
        #expect(size == copy.pages * 4096)
        for cut in [1, 4096, 40_000] as [Int64] {
            let cutPath = directory.appending(path: "cut").path
            try Data(contentsOf: URL(filePath: path)).prefix(Int(size - cut)).write(to: URL(filePath: cutPath))
            let found = try SQLiteDatabase.examinePages(of: cutPath)
            #expect(found.pages == (size - cut + 4095) / 4096)
            #expect((found.damaged == nil) == (cut == 4096), "\(cut)")
        }
    }
}
