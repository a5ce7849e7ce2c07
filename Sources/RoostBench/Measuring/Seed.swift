import Foundation
import RoostAPI
import RoostCore
import RoostDatabase

/// Fills a data directory, or a database, before a server starts on it: through the server's own rules, in large batches.
struct Seed {
    private let database: any Database
    private var ids = IDGenerator()
    /// A day ago, which is far enough for more operations than any benchmark begins with.
    private var now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 - 86_400) * 1000)
    /// The options of the server that will run on the data.
    var options = AppOptions()

    /// Opens the directory, runs the body, and closes it again.
    static func fill(_ directory: URL, _ body: (inout Seed) throws -> Void) throws {
        try fill(try SQLiteDatabase(directory: directory), body)
    }

    /// Runs the body on a database that no server is using.
    static func fill(_ database: any Database, _ body: (inout Seed) throws -> Void) throws {
        var seed = Seed(database: database)
        try body(&seed)
    }

    /// Makes the channels `channel-0` and so on, each with a different owner. Returns the owners.
    static func ownChannels(_ count: Int, in directory: URL) throws -> [UserID] {
        let users = (0..<count).map { UserID("user-\($0)") }
        try fill(directory) { seed in
            try seed.addUsers(users)
            try seed.forEach(Array(users.enumerated())) { batch, entry in
                try batch.perform(CreateChannel(channel: ChannelID("channel-\(entry.offset)")), as: entry.element)
            }
        }
        return users
    }

    /// Makes the channels `channel-0` and so on, each with a hundred of the users.
    static func channelsOfHundred(_ users: [UserID], in directory: URL) throws {
        try fill(directory) { seed in
            try seed.addUsers(users)
            try seed.forEach(Array(users.enumerated())) { batch, entry in
                let channel = ChannelID("channel-\(entry.offset / 100)")
                if entry.offset % 100 == 0 {
                    try batch.perform(CreateChannel(channel: channel), as: entry.element)
                } else {
                    try batch.perform(JoinChannel(channel: channel), as: entry.element)
                }
            }
        }
    }

    private init(database: any Database) { self.database = database }

    /// Runs the rules for each element in turn, a few thousand in one transaction.
    mutating func forEach<Element>(_ elements: some Collection<Element>, _ body: (inout Batch, Element) throws -> Void) throws {
        var remaining = elements[...]
        while !remaining.isEmpty {
            ids = try database.write(lane: 0) { transaction in
                // There are no other writers, so no heads are locked.
                transaction.heldStreams?.holdAll()
                var batch = Batch(transaction: transaction, ids: ids, options: options, now: now)
                for element in remaining.prefix(5000) { try body(&batch, element) }
                now = batch.now
                return batch.ids
            }
            remaining = remaining.dropFirst(5000)
        }
    }

    mutating func addUsers(_ users: [UserID]) throws {
        try forEach(users) { batch, user in try batch.run(as: user, scope: .user(user)) { try $0.registerCaller(displayName: nil) }
        }
    }

    /// One transaction.
    struct Batch {
        let transaction: any Transaction
        fileprivate(set) var ids: IDGenerator
        private let options: AppOptions
        /// Increases with each operation, so messages have distinct times.
        fileprivate private(set) var now: Timestamp

        fileprivate init(transaction: any Transaction, ids: IDGenerator, options: AppOptions, now: Timestamp) {
            self.now = now
            self.transaction = transaction
            self.options = options
            self.ids = ids
        }

        @discardableResult
        mutating func run<T>(as user: UserID, scope: Scope = Scope(), _ body: (inout Context) throws -> T) throws -> T {
            var context = Context(
                transaction: transaction, caller: Caller(user: user), now: now, ids: ids, options: options, scope: scope)
            let result = try body(&context)
            ids = context.ids
            now = Timestamp(milliseconds: now.milliseconds + 2)
            return result
        }

        @discardableResult
        mutating func perform<Call: Handled>(_ operation: Call, as user: UserID) throws -> Call.Response {
            try run(as: user, scope: operation.scope(for: Caller(user: user))) { try operation.handle(in: &$0) }
        }
    }
}

/// The text of the benchmarks' messages.
enum SampleText {
    /// 200 bytes, about the length of people's longer messages.
    static let message = String(
        String(repeating: "The quick brown fox jumps over the lazy dog, and then both of them go home to have dinner. ", count: 3)
            .prefix(200))

    /// An effect's payload: the message it is about.
    static let effect = #"{"channel":"channel-17","message":"7254210384203776123"}"#
}
