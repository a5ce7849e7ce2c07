import CPageVFS
import Foundation
import RoostTestSupport
import Testing

@testable import RoostDatabase

/// Starts prevented by something outside the database: the refusal says what it is and what to do, and nothing is lost.
@Suite("Refused starts")
struct StartRefusalTests {
    /// A directory in which a server has run.
    private func used() throws -> URL {
        let directory = TemporaryPlace.make()
        try SQLiteDatabase(directory: directory).close()
        try TemporaryPlace.waitUntilFree(directory)
        return directory
    }

    /// The refusal of a start; nil if it succeeds.
    private func refusal(_ directory: URL) -> String? {
        do {
            try TemporaryPlace.waitUntilFree(directory)
            try SQLiteDatabase(directory: directory).close()
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test(
        "I1 a database that another program reads or writes is in use, and starts when that one has ended",
        arguments: ["", "IMMEDIATE"])
    func inUse(lock: String) throws {
        let directory = try used()
        let path = directory.appending(path: "roost.sqlite").path
        var connection: OpaquePointer?
        #expect(sqlite3_open(path, &connection) == SQLITE_OK)
        // Otherwise closing it would write the log into the database without the pages' checksums.
        roost_keep_log_on_close(connection, 1)
        for sql in ["BEGIN \(lock)", "SELECT count(*) FROM settings"] {
            #expect(sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK)
        }
        #expect(refusal(directory) == "\(path) is in use by another program. End that program, then try again.")
        sqlite3_close(connection)
        #expect(refusal(directory) == nil)
    }

    @Test("I1 a database that another process has open is refused before anything is written, and starts when that one has ended")
    func openElsewhere() async throws {
        let directory = try used()
        let path = directory.appending(path: "roost.sqlite").path
        var connection: OpaquePointer?
        #expect(sqlite3_open(path, &connection) == SQLITE_OK)
        #expect(sqlite3_exec(connection, "SELECT count(*) FROM settings", nil, nil, nil) == SQLITE_OK)
        let state = try Data(contentsOf: directory.appending(path: "roost.state"))
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            let directory = URL(filePath: path).deletingLastPathComponent()
            do {
                _ = try SQLiteDatabase(directory: directory)
                exit(1)
            } catch {
                exit("\(error)" == "\(path) is in use by another program. End that program, then try again." ? 7 : 2)
            }
        }
        #expect(try Data(contentsOf: directory.appending(path: "roost.state")) == state)
        // It writes the log, which is empty, into the database.
        sqlite3_close(connection)
        #expect(refusal(directory) == nil)
        #expect(try SQLiteDatabase.examinePages(of: path).damaged == nil)
    }

    @Test(
        "I1 a file that the server's user may not open is refused with what to do, and isn't taken for a damaged one",
        .enabled(if: geteuid() != 0, "root may open every file"), arguments: ["roost.sqlite", "roost.state", "roost.lock"])
    func notPermitted(name: String) throws {
        let directory = try used()
        let path = directory.appending(path: name).path
        chmod(path, 0)
        defer { chmod(path, 0o600) }
        let expected = DataFiles.refusal(of: path, EACCES).message
        #expect(refusal(directory) == expected)
        #expect(DataFiles(directory: directory).refusal() == expected)
    }

    @Test(
        "I1 a file that is a symbolic link is refused as such, whatever its target, which isn't changed",
        arguments: ["roost.sqlite", "roost.state", "roost.lock"])
    func link(name: String) throws {
        let (directory, elsewhere) = (try used(), TemporaryPlace.make())
        let (file, target) = (directory.appending(path: name), elsewhere.appending(path: "target"))
        try FileManager.default.createDirectory(at: elsewhere, withIntermediateDirectories: true)
        try FileManager.default.moveItem(at: file, to: target)
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: target)
        let content = try Data(contentsOf: target)
        let expected =
            "\(file.path) is a symbolic link. The files of a data directory must be in it: they are compared and synced together. "
            + "Replace the link with the file itself, or link the whole directory instead."
        #expect(refusal(directory) == expected)
        #expect(DataFiles(directory: directory).refusal() == expected)
        #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.path) == ["target"])
        #expect(try Data(contentsOf: target) == content)
        try FileManager.default.removeItem(at: target)
        #expect(refusal(directory) == expected)
    }

    @Test(
        "I1 I24 a state that a newer version has written in any slot is refused as such, also if data loss is accepted, and isn't taken for a damaged one",
        arguments: [[0, 4096], [0], [4096]])
    func newerState(places: [Int]) throws {
        let directory = try used()
        let file = directory.appending(path: "roost.state")
        var bytes = [UInt8](try Data(contentsOf: file))
        for place in places {
            let range = place..<place + StateFile.slotSizeBytes
            let slot = String(decoding: bytes[range], as: UTF8.self)
            let end = try #require(slot.range(of: "checksum "))
            let text = String(slot[..<end.lowerBound]).replacing("version 1\n", with: "version 2\n")
            let content = Array(text.utf8)
            let sum = content.withUnsafeBytes { roost_checksum($0.baseAddress, $0.count, 1) }
            let written = content + Array("checksum \(String(sum, radix: 16))\n".utf8)
            let rest = [UInt8](repeating: UInt8(ascii: "\n"), count: StateFile.slotSizeBytes - written.count)
            bytes.replaceSubrange(range, with: written + rest)
        }
        try Data(bytes).write(to: file)
        let expected = "\(file.path) was written by a newer version of Roost. Start that version."
        #expect(refusal(directory) == expected)
        #expect(DataFiles(directory: directory).refusal() == expected)
        try TemporaryPlace.waitUntilFree(directory)
        #expect(throws: DatabaseFailure.self) { try SQLiteDatabase(directory: directory, acceptsDataLoss: true) }
        #expect(try [UInt8](Data(contentsOf: file)) == bytes)
    }

    @Test("a link to the whole directory works like the directory")
    func linkedDirectory() throws {
        let (directory, link) = (try used(), TemporaryPlace.make())
        try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: directory.path)
        #expect(refusal(link) == nil)
    }

    @Test("a directory in the place of a file is refused, and not taken for a damaged one")
    func notAFile() throws {
        let file = try used().appending(path: "roost.sqlite")
        try FileManager.default.removeItem(at: file)
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
        let expected = "\(file.path) isn't a file. Move it away, or name another directory with --data."
        #expect(refusal(file.deletingLastPathComponent()) == expected)
    }

    @Test("the refusal of a file has the system's reason and its remedy")
    func advice() {
        let found = [EACCES, EROFS, EIO].map { DataFiles.refusal(of: "/data/roost.sqlite", $0).message }
        let expected = [
            ": Permission denied. Run the server as the owner of its files, or give them to its user with chown.",
            ": Read-only file system. Mount the file system so that it can be written, or name another directory with --data.",
            ": Input/output error.",
        ]
        #expect(found == expected.map { "/data/roost.sqlite can't be read and written\($0)" })
    }

    @Test("the reason why SQLite couldn't write is found by writing a file, which is removed again")
    func trial() throws {
        let directory = try used()
        let before = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        #expect(DataFiles(directory: directory).writingFailure()?.message == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == before)
        let missing = directory.appending(path: "missing", directoryHint: .isDirectory)
        let failure = DataFiles(directory: missing).writingFailure()
        #expect(failure?.message == "\(missing.path) can't be read and written: No such file or directory.")
    }
}
