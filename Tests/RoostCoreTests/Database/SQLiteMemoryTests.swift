import Dispatch
import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

/// The lists that a database on SQLite caches between reads, with the sizes and thresholds of a server.
@Suite("Memory of reads on SQLite")
struct SQLiteMemoryTests {
    @Test(
        "NF-04 a long list is read again after its second read, then only where something changed; a short one is never cached"
    )
    func rows() throws {
        try withDatabase { database in
            try fill(database, user: "ann", channels: 150)
            try fill(database, user: "bob", channels: 99)
            let long = try (0..<4).map { _ in try rowCount(of: GetTotalUnread(), as: "ann", in: database) }
            // One row of a summing statement; then the position in the user's stream with all rows, and with none.
            #expect(long == [1, 151, 1, 1])
            try send(to: "ann-7", by: "ann", in: database)
            #expect(try rowCount(of: GetTotalUnread(), as: "ann", in: database) == 2)
            #expect(try rowCount(of: GetTotalUnread(), as: "ann", in: database) == 1)
            let short = try (0..<6).map { _ in try rowCount(of: GetTotalUnread(), as: "bob", in: database) }
            #expect(short == [1, 100, 1, 1, 1, 1])
        }
    }

    @Test("NF-04 a list with many changes is given up for a while, and retried less and less often while that continues")
    func backingOff() throws {
        try withDatabase { database in
            try fill(database, user: "ann", channels: 150)
            var lists: [Int] = []
            for read in 0..<20 {
                for number in 0..<20 { try send(to: ChannelID("ann-\(number)"), by: "ann", in: database) }
                if try rowCount(of: GetTotalUnread(), as: "ann", in: database) > 100 { lists.append(read) }
            }
            #expect(lists == [1, 4, 9, 18])
        }
    }

    @Test("NF-04 the cache is bounded: the least recently used lists are evicted, and one that is too long is never cached")
    func bounded() throws {
        // 1.5 MiB of page caches, and therefore 1 MiB of lists.
        try withDatabase(pageCacheBytes: 3 << 19) { database in
            // Long ids, so a list of 500 channels takes a tenth of that.
            let users = (0..<12).map { UserID("user-\($0)-" + String(repeating: "x", count: 100)) }
            for user in users { try fill(database, user: user, channels: 500) }
            for user in users {
                for _ in 0..<3 { _ = try rowCount(of: GetTotalUnread(), as: user, in: database) }
                #expect(database.kept.sizeBytes <= 1 << 20)
            }
            #expect(try rowCount(of: GetTotalUnread(), as: users[11], in: database) == 1)
            // The first one's list was evicted: it starts over.
            #expect(try (0..<3).map { _ in try rowCount(of: GetTotalUnread(), as: users[0], in: database) } == [1, 501, 1])

            let large = UserID("large-" + String(repeating: "x", count: 100))
            try fill(database, user: large, channels: 3000)
            let counts = try (0..<4).map { _ in try rowCount(of: GetTotalUnread(), as: large, in: database) }
            #expect(counts == [1, 3001, 1, 1])
        }
    }

    @Test("NF-04 a list that has grown or shrunk counts like one that is read again")
    func changedSize() throws {
        try withDatabase { database in
            let user = UserID("user-" + String(repeating: "x", count: 100))
            try fill(database, user: user, channels: 150)
            func read() throws -> Int {
                for _ in 0..<3 { _ = try rowCount(of: GetTotalUnread(), as: user, in: database) }
                return database.kept.sizeBytes
            }
            /// Changes memberships one after another with reads in between, and compares the cached list with a new read.
            func size(after state: String) throws -> Int {
                for number in 100..<150 {
                    try changeMembership(of: user, in: ChannelID("\(user)-\(number)"), database, state)
                    _ = try read()
                }
                let kept = database.kept.sizeBytes
                database.forgetReads()
                #expect(try read() == kept)
                return kept
            }
            let all = try read()
            let fewer = try size(after: "none")
            #expect(fewer < all / 10 * 8)
            #expect(try size(after: "member") == all)
        }
    }

    @Test("I8 totals and pages are exact while channels and memberships change beside the reads")
    func concurrent() throws {
        try withDatabase(checksMemory: true) { database in
            try fill(database, user: "ann", channels: 150)
            let isDone = Atomic<Bool>(false)
            let readCount = Atomic<Int>(0)
            let failures = Mutex<[String]>([])
            let readers = DispatchGroup()
            for _ in 0..<database.readerCount {
                DispatchQueue.global().async(group: readers) {
                    while !isDone.load(ordering: .relaxed) {
                        // Each use of the cache is compared with a statement on the same snapshot, and fails if it differs.
                        do {
                            _ = try rowCount(of: GetTotalUnread(), as: "ann", in: database)
                            _ = try rowCount(of: QueryChannels(sort: .unreadFirst, limit: 3), as: "ann", in: database)
                            readCount.add(1, ordering: .relaxed)
                        } catch {
                            failures.withLock { $0.append("\(error)") }
                        }
                    }
                }
            }
            var random = SeededGenerator(seed: 1)
            var write = 0
            while write < 400 || (readCount.load(ordering: .relaxed) < 20 && failures.withLock(\.isEmpty)) {
                write += 1
                let channel = ChannelID("ann-\(random.number(0...149))")
                if random.once(in: 3) {
                    try changeMembership(of: "ann", in: channel, database, random.once(in: 2) ? "member" : "none")
                } else {
                    for _ in 0..<random.number(1...3) { try send(to: channel, by: "ann", in: database) }
                }
            }
            isDone.store(true, ordering: .relaxed)
            readers.wait()
            #expect(failures.withLock { $0 } == [])
        }
    }

    // MARK: A database

    private func withDatabase(
        pageCacheBytes: Int = SQLiteDatabase.standardPageCacheBytes, checksMemory: Bool = false,
        _ body: (SQLiteDatabase) throws -> Void
    ) throws {
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        let database = try SQLiteDatabase(
            directory: directory, acceptsDataLoss: false, pageCacheBytes: pageCacheBytes, base: nil, checksMemory: checksMemory)
        try body(database)
        try database.close()
    }

    /// Makes channels that a user owns, `ann-0` and so on.
    private func fill(_ database: SQLiteDatabase, user: UserID, channels: Int) throws {
        try database.write(lane: 0) { transaction in
            for number in 0..<channels {
                let id = ChannelID("\(user)-\(number)")
                try transaction.perform(
                    """
                    INSERT INTO channel_heads (channel_id, seq, member_count, message_count, ordinal, last_activity)
                    VALUES (\(id), 1, 1, 3, 3, 5)
                    """)
                try transaction.perform(
                    """
                    INSERT INTO members (channel_id, user_id, role, state, joined_at, joined_seq, joined_user_seq, change_seq, user_seq,
                                         read_seq, read_count, last_sent_seq)
                    VALUES (\(id), \(user), 'member', 'member', 1, 1, 1, 1, 1, 1, 1, 0)
                    """)
            }
            try transaction.perform("INSERT INTO user_heads (user_id, seq) VALUES (\(user), 1)")
        }
    }

    /// Advances a channel as the rules do.
    private func send(to channel: ChannelID, by user: UserID, in database: SQLiteDatabase) throws {
        try database.write(lane: 0) { transaction in
            let head = try transaction.first("SELECT seq, ordinal FROM channel_heads WHERE channel_id = \(channel)") {
                ($0.int64(), $0.int())
            }
            let (seq, ordinal) = try #require(head)
            let context = Context(
                transaction: transaction, caller: Caller(user: user), now: Timestamp(milliseconds: seq), ids: IDGenerator(),
                scope: .channel(channel))
            try context.moveStream(
                of: channel,
                to: ChannelCounters(
                    seq: seq + 1, memberCount: 1, messageCount: ordinal + 1, ordinal: ordinal + 1,
                    lastActivity: Timestamp(milliseconds: seq)))
        }
    }

    /// Changes a membership like the rules that advance the user's stream.
    private func changeMembership(of user: UserID, in channel: ChannelID, _ database: SQLiteDatabase, _ state: String) throws {
        try database.write(lane: 0) { transaction in
            let context = Context(
                transaction: transaction, caller: Caller(user: user), now: Timestamp(milliseconds: 1), ids: IDGenerator(),
                scope: .user(user))
            let seq = try context.advanceStream(of: user)
            try transaction.perform(
                """
                UPDATE members SET state = \(state), read_count = read_count + 1, user_seq = \(seq)
                WHERE channel_id = \(channel) AND user_id = \(user)
                """)
        }
    }

    private func rowCount(of operation: some Handled, as user: UserID, in database: SQLiteDatabase) throws -> Int {
        try database.read { transaction in
            let counting = Counting(transaction)
            var context = Context(
                transaction: counting, caller: Caller(user: user), now: Timestamp(milliseconds: 1), ids: IDGenerator())
            _ = try operation.handle(in: &context)
            return counting.rowCount
        }
    }
}

/// A transaction that counts the rows it answers with.
private final class Counting: Transaction {
    private let transaction: any Transaction
    private(set) var rowCount = 0

    init(_ transaction: any Transaction) { self.transaction = transaction }

    var dialect: Dialect { transaction.dialect }
    var readCache: (any ReadCache)? { transaction.readCache }
    func execute(_ sql: SQL) throws -> Int { try transaction.execute(sql) }
    func perform(_ sql: SQL) throws { try transaction.perform(sql) }
    func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws {
        try transaction.each(sql) { row in
            rowCount += 1
            try body(&row)
        }
    }
}
