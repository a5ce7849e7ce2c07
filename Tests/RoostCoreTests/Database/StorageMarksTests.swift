import Foundation
import RoostCore
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostDatabase

/// A running server's records about its files.
@Suite("Marks in roost.state")
struct StorageMarksTests {
    @Test(
        "I1 marks that don't fit on the disk stay due: commits and checkpoints continue, a kill loses nothing, and one slot is always whole",
        arguments: [ENOSPC, EDQUOT])
    func fullDisk(error: Int32) async throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let isFull = Atomic(false)
        let database = try SQLiteDatabase(
            directory: directory, acceptsDataLoss: false, base: nil,
            writeState: { slot, place, descriptor in
                guard isFull.load(ordering: .relaxed) else { return StateFile.write(slot, at: place, of: descriptor) }
                // This slot's contents are lost.
                _ = StateFile.write([UInt8](repeating: UInt8(ascii: "?"), count: slot.count / 2), at: place, of: descriptor)
                return error
            })
        for number in 0..<10 { try insert("before \(number)", into: database) }
        try database.markNow()
        isFull.store(true, ordering: .relaxed)
        database.waitForMarks()
        let before = try #require(state(in: directory))

        for number in 0..<40 {
            try insert("on a full disk \(number)", into: database)
            #expect(throws: DatabaseFailure.self) { try database.markNow() }
            if number % 10 == 9 { #expect(try database.checkpointNow().isComplete) }
            #expect(try database.maintain(lane: 0, isIdle: false) == nil)
            #expect(state(in: directory) == before)
        }
        try requireRows(of: database, afterKillIn: directory)

        isFull.store(false, ordering: .relaxed)
        let generation = before.generation + 4
        try await eventually("the mark that is due") { state(in: directory)?.generation == generation }
        try requireRows(of: database, afterKillIn: directory)
        // From here on a truncated log is noticed again.
        try insert("after", into: database)
        try database.markNow()
        let copy = try KilledFiles.copy(of: directory)
        try Data().write(to: copy.appending(path: "roost.sqlite-wal"))
        #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: copy) }
        try database.close()
    }

    @Test("I1 a state file that can't be written for another reason ends the process")
    func brokenDisk() throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let isBroken = Atomic(false)
        let database = try SQLiteDatabase(
            directory: directory, acceptsDataLoss: false, base: nil,
            writeState: { slot, place, descriptor in
                isBroken.load(ordering: .relaxed) ? EIO : StateFile.write(slot, at: place, of: descriptor)
            })
        isBroken.store(true, ordering: .relaxed)
        #expect(throws: DatabaseFailure.self) { try database.markNow() }
        let failure = #expect(throws: DatabaseFailure.self) { try database.maintain(lane: 0, isIdle: false) }
        #expect(failure?.kind == .fatal)
    }

    // MARK: Files

    /// Twelve pages.
    private func insert(_ name: String, into database: SQLiteDatabase) throws {
        let value = String(repeating: "x", count: 40_000)
        try database.write(lane: 0) { _ = try $0.execute("INSERT INTO settings (name, value) VALUES (\(name), \(value))") }
    }

    private func names(in database: SQLiteDatabase) throws -> [String] {
        try database.read { try $0.rows("SELECT name FROM settings ORDER BY name") { $0.string() } }
    }

    /// Nil if no slot is whole.
    private func state(in directory: URL) -> StorageState? {
        guard case .state(let state) = StateFile.read(path: directory.appending(path: "roost.state").path) else { return nil }
        return state
    }

    /// Checks that a start after a kill at this moment misses nothing.
    private func requireRows(of database: SQLiteDatabase, afterKillIn directory: URL) throws {
        let killed = try SQLiteDatabase(directory: KilledFiles.copy(of: directory))
        #expect(killed.losses == [])
        #expect(try names(in: killed) == names(in: database))
        try killed.close()
    }
}
