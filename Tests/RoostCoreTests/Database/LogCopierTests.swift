import CFaultVFS
import CPageVFS
import Foundation
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostDatabase

/// A large log is written into the database file beside the lane, before the lane completes the checkpoint.
@Suite("Copying the log beside the lane")
struct LogCopierTests {
    @Test("I1 commits continue while the log is copied, and the log restarts only after the lane has completed the checkpoint")
    func restartsAfterCheckpoint() throws {
        try inDirectory { directory in
            let database = try open(directory)
            for number in 0..<20 { try insert("before \(number)", into: database) }
            let salts = try salts(directory)
            #expect(try database.maintain(lane: 0, isIdle: false) == nil)
            database.waitForCopy()
            // By now the whole log is in the file. It is pinned.
            try insert("meanwhile", into: database)
            #expect(try self.salts(directory) == salts)
            let done = try #require(try database.maintain(lane: 0, isIdle: false))
            #expect(done.isComplete && done.framesDone == done.logFrames)
            try insert("after", into: database)
            #expect(try self.salts(directory) != salts)
            #expect(try rows(of: database).count == 22)
        }
    }

    @Test("I1 in a pause too a log is copied beside the lane, which checks on it until it is complete")
    func pause() throws {
        try inDirectory { directory in
            let database = try open(directory)
            // More than the megabyte that is due in a pause.
            for number in 0..<30 { try insert("before \(number)", into: database) }
            #expect(!database.isMaintaining(lane: 0))
            #expect(try database.maintain(lane: 0, isIdle: true) == nil)
            #expect(database.isMaintaining(lane: 0))
            // A write at that time doesn't wait for the copy, and needn't copy the log again.
            try insert("meanwhile", into: database)
            database.waitForCopy()
            #expect(try database.maintain(lane: 0, isIdle: true)?.isComplete == true)
            #expect(!database.isMaintaining(lane: 0))
        }
    }

    @Test("I1 a log that grew while it was copied is copied again, four times at most")
    func growingLog() throws {
        try inDirectory { directory in
            let database = try open(directory)
            var copies = 0
            var done: Maintenance?
            while done == nil {
                for number in 0..<20 { try insert("\(copies) \(number)", into: database) }
                done = try database.maintain(lane: 0, isIdle: false)
                database.waitForCopy()
                copies += 1
            }
            #expect(copies == 5 && done?.isComplete == true)
        }
    }

    @Test("I1 the copy of a log is on disk in steps of 64 pages, and one that fails ends the database")
    func steps() throws {
        try inDirectory { directory in
            let database = try open(directory)
            for number in 0..<20 { try insert("before \(number)", into: database) }
            // With SQLITE_IOERR_FSYNC. SQLite makes one fsync at the end of a copy, and the copier another. More than these precede them.
            let fault = fault_begin(
                "\(directory.lastPathComponent)/roost.sqlite", Int32(fault_sync.rawValue), 1034, 2, 0)
            #expect(try database.maintain(lane: 0, isIdle: false) == nil)
            database.waitForCopy()
            #expect(fault_end(fault) > 0)
            let failure = #expect(throws: DatabaseFailure.self) { try database.maintain(lane: 0, isIdle: false) }
            #expect(failure?.kind == .fatal)
            let killed = try SQLiteDatabase(directory: KilledFiles.copy(of: directory))
            #expect(try killed.losses == [] && rows(of: killed).count == 20)
        }
    }

    @Test("I1 each further copy of a log is synced in larger steps, so that it overtakes commits on a disk whose fsyncs take long")
    func largerSteps() throws {
        try inDirectory { directory in
            let database = try open(directory)
            var syncs: [Int32] = []
            for copy in 0..<Checkpoints.copiesMax {
                // 400 pages, which are more than six steps of 64.
                for number in 0..<40 { try insert("\(copy) \(number)", into: database) }
                // With SQLITE_OK it counts the syncs, and none fails.
                let counted = fault_begin("\(directory.lastPathComponent)/roost.sqlite", Int32(fault_sync.rawValue), 0, 0, 0)
                #expect(try database.maintain(lane: 0, isIdle: false) == nil)
                database.waitForCopy()
                syncs.append(fault_end(counted))
            }
            // One or two of each copy are made at its end.
            #expect(syncs[0] > 6 && syncs.dropFirst().allSatisfy { $0 <= 4 }, "\(syncs)")
            #expect(try database.maintain(lane: 0, isIdle: false)?.isComplete == true)
        }
    }

    #if os(Linux)
    @Test("a thread that gives way has a low priority, and one with a lower priority keeps it")
    func priority() async {
        let found = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let process = __priority_which_t(PRIO_PROCESS.rawValue)
                roost_lower_priority()
                let first = getpriority(process, 0)
                _ = setpriority(process, 0, 19)
                roost_lower_priority()
                continuation.resume(returning: [first, getpriority(process, 0)])
            }
        }
        #expect(found[0] >= 10 && found[1] == 19)
    }
    #endif

    @Test("I1 frames that a reader kept from being copied are copied beside the lane once the reader is gone")
    func readerInTheWay() throws {
        try inDirectory { directory in
            let database = try open(directory)
            try insert("first", into: database)
            try database.read { transaction in
                #expect(try rows(in: transaction).count == 1)
                for number in 0..<20 { try insert("while it reads \(number)", into: database) }
                #expect(try database.maintain(lane: 0, isIdle: false) == nil)
                database.waitForCopy()
            }
            // Nearly the whole log is left: too much for the lane.
            #expect(try database.maintain(lane: 0, isIdle: false) == nil)
            database.waitForCopy()
            #expect(try database.maintain(lane: 0, isIdle: false)?.isComplete == true)
        }
    }

    @Test("I1 the file of a log that grew during reads is truncated once the log is in the database and the next one begins")
    func largeLog() throws {
        try inDirectory { directory in
            let database = try open(directory)
            try insert("first", into: database)
            try database.read { transaction in
                #expect(try rows(in: transaction).count == 1)
                for number in 0..<40 { try insert("while it reads \(number)", into: database) }
            }
            func size() throws -> Int64 {
                try #require(DataFiles.size(of: directory.appending(path: "roost.sqlite-wal").path))
            }
            let limit = Checkpoints.logSizeBytesMax(dueAtFrames: 150)
            #expect(try size() > limit)
            #expect(try database.checkpointNow().isComplete)
            try insert("after", into: database)
            #expect(try size() == limit)
            let killed = try SQLiteDatabase(directory: KilledFiles.copy(of: directory))
            #expect(try killed.losses == [] && rows(of: killed) == rows(of: database))
            // The log may grow again.
            for number in 0..<30 { try insert("again \(number)", into: database) }
            #expect(try size() > limit)
            #expect(try database.checkpointNow().isComplete)
            // One commit that takes more than the limit.
            let value = String(repeating: "x", count: 1_500_000)
            try database.write(lane: 0) { _ = try $0.execute("INSERT INTO settings (name, value) VALUES ('large', \(value))") }
            #expect(try size() > limit)
            try insert("last", into: database)
            let again = try SQLiteDatabase(directory: KilledFiles.copy(of: directory))
            #expect(try again.losses == [] && rows(of: again) == rows(of: database))
        }
    }

    @Test("I1 after a disk had no room for the checkpoint's number, commits are appended to the log, and the next start finds them")
    func fullDiskAtNumber() throws {
        try inDirectory { directory in
            let database = try open(directory)
            for number in 0..<20 { try insert("before \(number)", into: database) }
            #expect(try database.maintain(lane: 0, isIdle: false) == nil)
            database.waitForCopy()
            try database.markNow()
            let fault = fault_begin("\(directory.lastPathComponent)/roost.sqlite-wal", Int32(fault_write.rawValue), 13, 0, 0)
            #expect(try database.maintain(lane: 0, isIdle: false)?.isComplete == false)
            #expect(fault_end(fault) > 0)
            // If this restarted the log, a start would take it for another server's.
            try insert("after", into: database)
            let killed = try SQLiteDatabase(directory: KilledFiles.copy(of: directory))
            #expect(try killed.losses == [] && rows(of: killed) == rows(of: database))
            for number in 0..<20 { try insert("again \(number)", into: database) }
            #expect(try database.maintain(lane: 0, isIdle: false) == nil)
            database.waitForCopy()
            #expect(try database.maintain(lane: 0, isIdle: true)?.isComplete == true)
        }
    }

    @Test(
        "I1 a power cut at any moment of a checkpoint, whichever pages reached the disk, loses nothing", arguments: Seeds.first(6))
    func powerCuts(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try inDirectory { directory in
            let database = try open(directory)
            let kept = fault_keep_synced("\(directory.lastPathComponent)/roost.sqlite")
            defer { _ = fault_end(kept) }
            var model = try rows(of: database)
            var (checkpoints, cuts) = (0, 0)
            func step() throws {
                let (name, value) = ("row \(random.number(1...60))", String(repeating: "x", count: random.number(0...9000)))
                try database.write(lane: 0) {
                    _ = try $0.execute("DELETE FROM settings WHERE name = \(name)")
                    _ = try $0.execute("INSERT INTO settings (name, value) VALUES (\(name), \(value))")
                }
                model[name] = value
                // On a busy machine a copy takes longer than many commits, and there would be few checkpoints.
                if random.once(in: 8) { database.waitForCopy() }
                if try database.maintain(lane: 0, isIdle: random.once(in: 60)) != nil { checkpoints += 1 }
            }
            for round in 0..<250 {
                try step()
                if random.once(in: 20) {
                    // A reader holds up the frames that it still needs, and keeps seeing its state.
                    let before = model
                    try database.read { transaction in
                        let seen = try rows(in: transaction)
                        for _ in 0..<random.number(1...60) { try step() }
                        #expect(try seen == before && rows(in: transaction) == before, "round \(round)")
                    }
                }
                if random.once(in: 12) {
                    let cut = try copy(of: directory, losing: &random)
                    let restarted = try SQLiteDatabase(directory: cut)
                    #expect(try restarted.losses == [] && rows(of: restarted) == model, "round \(round)")
                    cuts += 1
                }
            }
            #expect(checkpoints > 5 && cuts > 5)
            try database.close()
            #expect(try rows(of: SQLiteDatabase(directory: directory)) == model)
        }
    }

    @Test("I1 a power cut right after a commit loses nothing: all of it was in the log at the last sync")
    func powerCutsOfTheLog() throws {
        try inDirectory { directory in
            let database = try open(directory)
            let kept = fault_keep_synced("\(directory.lastPathComponent)/roost.sqlite-wal")
            defer { _ = fault_end(kept) }
            var model = try rows(of: database)
            for number in 1...24 {
                // One page or several: their frames are joined to one write.
                let (name, value) = ("row \(number)", String(repeating: "x", count: number % 3 * 9000))
                try database.write(lane: 0) { _ = try $0.execute("INSERT INTO settings (name, value) VALUES (\(name), \(value))") }
                model[name] = value
                let cut = try KilledFiles.copy(of: directory)
                let log = cut.appending(path: "roost.sqlite-wal")
                try FileManager.default.removeItem(at: log)
                try FileManager.default.copyItem(at: directory.appending(path: "roost.sqlite-wal.synced"), to: log)
                let restarted = try SQLiteDatabase(directory: cut)
                #expect(try restarted.losses == [] && rows(of: restarted) == model, "commit \(number)")
                try restarted.close()
            }
            try database.close()
        }
    }

    // MARK: Files

    /// With a log that is due at 150 pages.
    private func open(_ directory: URL) throws -> SQLiteDatabase {
        #expect(fault_vfs_register() == 0)
        return try SQLiteDatabase(directory: directory, acceptsDataLoss: false, base: "faults", checkpointFrames: 150)
    }

    /// Twelve pages.
    private func insert(_ name: String, into database: SQLiteDatabase) throws {
        let value = String(repeating: "x", count: 40_000)
        try database.write(lane: 0) { _ = try $0.execute("INSERT INTO settings (name, value) VALUES (\(name), \(value))") }
    }

    private func rows(of database: SQLiteDatabase) throws -> [String: String] { try database.read { try rows(in: $0) } }

    private func rows(in transaction: any RoostCore.Transaction) throws -> [String: String] {
        let rows = try transaction.rows("SELECT name, value FROM settings WHERE name <> 'epoch'") { ($0.string(), $0.string()) }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    /// The salts that distinguish a log from the previous one.
    private func salts(_ directory: URL) throws -> Data {
        try Data(contentsOf: directory.appending(path: "roost.sqlite-wal"))[16..<24]
    }

    /// The files as after a power cut: some of the database's pages written after its last fsync are lost. A commit
    /// has synced the log.
    private func copy(of directory: URL, losing random: inout SeededGenerator) throws -> URL {
        let copy = try KilledFiles.copy(of: directory)
        let file = copy.appending(path: "roost.sqlite")
        let kept = directory.appending(path: "roost.sqlite.synced")
        guard FileManager.default.fileExists(atPath: kept.path) else { return copy }
        var pages = try Data(contentsOf: file)
        let synced = try Data(contentsOf: kept)
        if random.once(in: 2) { pages = pages.prefix(max(synced.count, 4096)) }
        for page in 0..<(min(pages.count, synced.count) / 4096) where random.once(in: 2) {
            let range = page * 4096..<(page + 1) * 4096
            pages.replaceSubrange(range, with: synced[range])
        }
        try pages.write(to: file)
        return copy
    }

    private func inDirectory(_ body: (URL) throws -> Void) throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        try body(directory)
    }
}
