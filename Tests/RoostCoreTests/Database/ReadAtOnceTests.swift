import CPageVFS
import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Reads of SQLite that wait for nothing (``Database/readWithoutBlocking(_:)``).
@Suite("Reads at once", .enabled(if: TestDatabase.Engine.chosen == .sqlite))
struct ReadAtOnceTests {
    /// Opens a database with a table that isn't in the server's cache, and passes its file to the body. The file is closed with the database: a process
    /// that closes a file loses its locks on it.
    private func withRows(_ body: (SQLiteDatabase, _ file: Int32) throws -> Void) throws {
        let directory = TemporaryDirectory.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let database = try SQLiteDatabase(directory: directory)
        let file = open(directory.appending(path: "roost.sqlite").path, O_RDONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        try database.write(lane: 0) { transaction in
            try transaction.perform("CREATE TABLE pages (number BIGINT PRIMARY KEY, text TEXT)")
            for number in 0..<4000 as Range<Int64> {
                try transaction.perform(
                    "INSERT INTO pages (number, text) VALUES (\(number), \(String(repeating: "a", count: 3000)))")
            }
        }
        while try !database.checkpointNow().isComplete {}
        try body(database, file)
        try database.close()
    }

    private static func text(of number: Int64, in transaction: any Transaction) throws -> String? {
        try transaction.first("SELECT text FROM pages WHERE number = \(number)") { $0.string() }
    }

    private static func size(of number: Int64, atOnceIn database: SQLiteDatabase) throws -> Int? {
        try database.readWithoutBlocking { try text(of: number, in: $0)?.count } ?? nil
    }

    @Test("pages in the system's memory are read, and pages that it would have to read from the disk aren't waited for")
    func memory() throws {
        try withRows { database, file in
            let size = database.canReadWithoutBlocking ? 3000 : nil
            #expect(try Self.size(of: 17, atOnceIn: database) == size)
            roost_drop_cache(file)
            let isGone = Self.isGone(file)
            // However a rule handles the failure, its result doesn't count.
            let found = try database.readWithoutBlocking { (try? Self.text(of: 3990, in: $0)) ?? "nothing" }
            #expect((found == nil) == (isGone || !database.canReadWithoutBlocking))
            #expect(try database.read { try Self.text(of: 3990, in: $0)?.count } == 3000)
            #expect(try Self.size(of: 3990, atOnceIn: database) == size)
        }
    }

    /// Whether the system has none of the last pages of a file in memory.
    private static func isGone(_ file: Int32) -> Bool {
        #if os(Linux)
        let size = lseek(file, 0, SEEK_END)
        let length = 64 * 4096
        let start = (Int(size) - length) / 4096 * 4096
        guard let map = mmap(nil, length, PROT_READ, MAP_SHARED, file, off_t(start)), map != MAP_FAILED else { return false }
        defer { munmap(map, length) }
        var pages = [UInt8](repeating: 1, count: length / 4096)
        return mincore(map, length, &pages) == 0 && pages.allSatisfy { $0 & 1 == 0 }
        #else
        return true
        #endif
    }

    @Test("a rule's refusal is passed on, and the next read starts over")
    func refusal() throws {
        try withRows { database, _ in
            let refusal = RoostError(.notFound, "It isn't there.")
            let result = Result { try database.readWithoutBlocking { _ -> Int in throw refusal } }
            if database.canReadWithoutBlocking {
                #expect(throws: refusal) { try result.get() }
            } else {
                #expect(try result.get() == nil)
            }
            let next = try Self.size(of: 1, atOnceIn: database)
            #expect(next == (database.canReadWithoutBlocking ? 3000 : nil))
        }
    }
}

/// The same for a database behind a socket.
@Suite("Reads at once of PostgreSQL", .enabled(if: TestDatabase.Engine.chosen == .postgresql))
struct ReadAtOnceOfPostgreSQLTests {
    @Test("a database behind a socket would always be waited for: no read is begun")
    func neverBegun() throws {
        let files = try TestDatabase()
        let database = try files.open()
        var hasBegun = false
        let found = try database.readWithoutBlocking { transaction in
            hasBegun = true
            return try transaction.first("SELECT 7") { $0.int64() }
        }
        #expect(found == nil && !hasBegun)
    }
}
