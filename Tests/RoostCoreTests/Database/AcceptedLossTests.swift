import CFaultVFS
import Foundation
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostDatabase

/// Starts that accept a loss but fail.
@Suite("Accepted losses")
struct AcceptedLossTests {
    private static let epoch = "first"

    /// A directory in which a server has run, and its database before its last row.
    private func used() throws -> (directory: URL, older: Data) {
        let directory = TemporaryPlace.make()
        var older = Data()
        for name in ["older", "newer"] {
            let database = try SQLiteDatabase(directory: directory)
            try database.write(lane: 0) { transaction in
                _ = try transaction.epoch(orNew: Self.epoch)
                _ = try transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), \(name))")
            }
            try database.close()
            try TemporaryPlace.waitUntilFree(directory)
            if name == "older" { older = try Data(contentsOf: directory.appending(path: "roost.sqlite")) }
        }
        return (directory, older)
    }

    @Test(
        "I1 a refused start that accepts a loss leaves the loss for the next one to find", arguments: ["missing", "damaged"])
    func refused(state: String) throws {
        let (directory, older) = try used()
        defer { try? FileManager.default.removeItem(at: directory) }
        let (file, stateFile) = (directory.appending(path: "roost.sqlite"), directory.appending(path: "roost.state"))
        if state == "missing" {
            try FileManager.default.removeItem(at: stateFile)
        } else {
            try Data("rubbish".utf8).write(to: stateFile)
        }
        try Data(contentsOf: file).dropLast(4096).write(to: file)
        #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory) }
        #expect(throws: (any Error).self) { try SQLiteDatabase(directory: directory, acceptsDataLoss: true) }
        // An older copy in its place isn't the newest one either.
        try older.write(to: file)
        #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory) }
        let accepting = try SQLiteDatabase(directory: directory, acceptsDataLoss: true)
        #expect(!accepting.losses.isEmpty)
        #expect(try accepting.read { try $0.setting("epoch") } != Self.epoch)
    }

    @Test("I1 after a start that accepts a loss and fails at any fsync the next is refused, or has a new epoch", arguments: 0..<12)
    func failed(passes: Int32) throws {
        #expect(fault_vfs_register() == 0)
        let (directory, _) = try used()
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.removeItem(at: directory.appending(path: "roost.state"))
        let name = passes.isMultiple(of: 2) ? "roost.sqlite" : "roost.sqlite-wal"
        let fault = fault_begin("\(directory.lastPathComponent)/\(name)", Int32(fault_sync.rawValue), 10 | 4 << 8, passes / 2, 0)
        try? SQLiteDatabase(directory: directory, acceptsDataLoss: true, base: "faults").close()
        _ = fault_end(fault)
        try TemporaryPlace.waitUntilFree(directory)
        do {
            let database = try SQLiteDatabase(directory: directory)
            #expect(try database.read { try $0.setting("epoch") } != Self.epoch)
            try database.close()
        } catch {
            #expect(error is DamagedFiles)
        }
    }

    /// A directory as a server killed right after its start leaves it, or as one that stopped leaves it, but with the log of the
    /// run before.
    private func left(stopped: Bool) throws -> URL {
        let (directory, _) = try used()
        let names = ["roost.sqlite", "roost.sqlite-wal", "roost.state"]
        let copy = TemporaryPlace.make()
        try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
        func take(_ names: [String]) throws {
            for name in names {
                try Data(contentsOf: directory.appending(path: name)).write(to: copy.appending(path: name))
            }
        }
        let database = try SQLiteDatabase(directory: directory)
        if stopped {
            try database.write(lane: 0) { transaction in
                _ = try transaction.execute("INSERT INTO settings (name, value) VALUES ('more', 'more')")
            }
        }
        try take(names)
        try database.close()
        if stopped {
            try TemporaryPlace.waitUntilFree(directory)
            try SQLiteDatabase(directory: directory).close()
            try take(["roost.sqlite", "roost.state"])
        }
        try FileManager.default.removeItem(at: directory)
        return copy
    }

    @Test(
        "I1 a start that sets a log aside or makes one, and is then refused, leaves a new epoch to the next",
        arguments: [true, false])
    func afterTheLog(stopped: Bool) throws {
        let directory = try left(stopped: stopped)
        defer { try? FileManager.default.removeItem(at: directory) }
        if !stopped { try FileManager.default.removeItem(at: directory.appending(path: "roost.sqlite-wal")) }
        let file = directory.appending(path: "roost.sqlite")
        let whole = try Data(contentsOf: file)
        #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory) }
        // A page with a wrong checksum ends the accepting start before its first change.
        var damaged = whole
        damaged[8192 + 100] ^= 1
        try damaged.write(to: file)
        #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory, acceptsDataLoss: true) }
        try TemporaryPlace.waitUntilFree(directory)
        try whole.write(to: file)
        do {
            let database = try SQLiteDatabase(directory: directory)
            #expect(try database.read { try $0.setting("epoch") } != Self.epoch)
            try database.close()
        } catch {
            #expect(error is DamagedFiles)
        }
    }

    @Test("I1 after a killed first start on an older version's files, an absent database isn't taken for its own")
    func upgradeWithoutItsDatabase() throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try StateFile(path: directory.appending(path: "roost.state").path).write(
            StorageState(server: "s", lineage: "l", sequence: 1))
        try Data("secret".utf8).write(to: directory.appending(path: "token-secret"))
        for _ in 0..<2 {
            #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory) }
        }
        #expect(throws: Never.self) { try SQLiteDatabase(directory: directory, acceptsDataLoss: true).close() }
    }

    @Test("I1 I20 an older copy of a database next to the state of a killed first start is refused, and accepted under a new epoch")
    func copyBesideFirstStart() throws {
        let (used, older) = try used()
        let directory = TemporaryPlace.make()
        defer { for place in [used, directory] { try? FileManager.default.removeItem(at: place) } }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try StateFile(path: directory.appending(path: "roost.state").path).write(
            StorageState(server: "s", lineage: "l", sequence: 1))
        try older.write(to: directory.appending(path: "roost.sqlite"))
        for _ in 0..<2 {
            #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory) }
        }
        let accepting = try SQLiteDatabase(directory: directory, acceptsDataLoss: true)
        #expect(try accepting.read { try $0.setting("epoch") } != Self.epoch)
        try accepting.close()
        try TemporaryPlace.waitUntilFree(directory)
        #expect(throws: Never.self) { try SQLiteDatabase(directory: directory).close() }
    }

    @Test("I1 a start refused because a newer version has used the database changes no file")
    func newer() throws {
        let (directory, _) = try used()
        defer { try? FileManager.default.removeItem(at: directory) }
        let database = try SQLiteDatabase(directory: directory)
        try database.write(lane: 0) { transaction in
            _ = try transaction.execute("INSERT INTO migrations (name) VALUES ('9999 of the future')")
        }
        try database.close()
        try TemporaryPlace.waitUntilFree(directory)
        let state = directory.appending(path: "roost.state")
        let before = try Data(contentsOf: state)
        let refusal = #expect(throws: DatabaseFailure.self) { try SQLiteDatabase(directory: directory) }
        #expect(refusal?.message.contains("9999 of the future") == true)
        #expect(try Data(contentsOf: state) == before)
    }

    @Test("I1 a token secret without a database is refused until the loss is accepted, once")
    func ownSecret() throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data("secret".utf8).write(to: directory.appending(path: "token-secret"))
        for _ in 0..<2 {
            #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory) }
        }
        for acceptsDataLoss in [true, false] {
            try SQLiteDatabase(directory: directory, acceptsDataLoss: acceptsDataLoss).close()
            try TemporaryPlace.waitUntilFree(directory)
        }
    }

    @Test("I1 a state file of only zeros is a first start that a power cut ended")
    func zeros() throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data(count: 5120).write(to: directory.appending(path: "roost.state"))
        #expect(throws: Never.self) { try SQLiteDatabase(directory: directory).close() }
    }
}
