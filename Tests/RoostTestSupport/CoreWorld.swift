public import Foundation
public import RoostAPI
public import RoostCore
public import RoostDatabase

/// The rules in isolation: a database in its own directory, a clock that a test sets, and all notices.
///
///     let world = try CoreWorld()
///     try world.channel("general", owner: "ann", members: ["bob"])
///     try world.perform(SendMessage(channel: "general", clientId: "1", text: "hi"), as: "ann")
///
/// An operation runs as it does in the server: validated, then alone in a durable transaction, or beside the writer if it only reads. The
/// database is that of ``TestDatabase``, on the engine that the tests run on. Batches, lanes and delivery aren't tested with it:
/// decision 0043.
public final class CoreWorld {
    /// Nil only between an end and a start.
    private var opened: (any RoostDatabase.Database)?
    private let place: TestDatabase
    /// The clock. It moves only when a test moves it.
    public var now = CoreWorld.start
    /// The initial time.
    public static let start = Timestamp(milliseconds: 1_772_368_205_250)
    /// The clock of a node's machine, if it isn't the database's.
    public var machineNow: Timestamp?
    public var ids = IDGenerator()
    public var presence: any Presence = EmptyPresence()
    /// The operator's options.
    public var options = AppOptions()
    /// Whether operations request pushes.
    public var handsOffPushes = false
    /// The kinds of rows that streams carry.
    package var rowKinds = StoredRowKinds.standard
    /// The notices of all operations so far, in the order of their commits.
    public private(set) var notices: [Notice] = []
    private var lastClientID = 0
    /// The transaction of ``batch(_:)``, while it runs.
    package private(set) var batched: (any WriteTransaction)?
    /// Runs in the transaction of the next operations after their rule, which are then refused and rolled back; nil for operations that are kept.
    package var fault: ((any Transaction) throws -> Void)?
    /// Runs once, when the next operation that is about channels has found them, before its turn.
    package var meanwhile: (() throws -> Void)?

    public init() throws {
        place = try TestDatabase()
        opened = try place.open()
    }

    /// A world on a copy of a database that another version wrote.
    public init(copying folder: URL) throws {
        place = try TestDatabase(copying: folder)
        let database = try place.open()
        opened = database
        ids = try database.read { try IDGenerator(continuing: $0) }
    }

    public var database: any RoostDatabase.Database {
        guard let opened else { preconditionFailure("The world couldn't be started again.") }
        return opened
    }

    // MARK: Performing

    /// Performs an operation and answers as the server would. Throws `RoostError` if it is refused.
    @discardableResult
    public func perform<O: Handled>(
        _ operation: O, as user: UserID, role: AppRole = .user, connection: Int64? = nil, token: TokenIdentity? = nil,
        device: DeviceIdentity? = nil
    ) throws -> O.Response {
        try operation.validate()
        let caller = Caller(
            user: user, role: role, connection: connection.map(ConnectionID.init(rawValue:)), token: token, device: device)
        let scope = O.isReadOnly ? Scope() : operation.scope(for: caller)
        let found = try findChannels(of: operation, for: caller)
        var made: [Notice] = []
        func run(_ transaction: any Transaction) throws -> O.Response {
            var context = Context(
                transaction: transaction, caller: caller, now: now, ids: ids, presence: presence, options: options,
                rowKinds: rowKinds, scope: scope)
            context.machineNow = machineNow
            context.handsOffPushes = handsOffPushes
            context.foundChannels = found
            defer { ids = context.ids }
            try context.requireAccess()
            let response = try operation.handle(in: &context)
            if let fault, !O.isReadOnly {
                try fault(transaction)
                throw RoostError(.overloaded, "The test takes this back.")
            }
            made = context.notices
            return response
        }
        let response: O.Response
        if let batched {
            response = O.isReadOnly ? try run(batched) : try batched.attempt { try run(batched) }
        } else if O.isReadOnly {
            response = try database.read { try run($0) }
        } else {
            response = try write { transaction in
                try scope.lock(in: transaction)
                let response = try transaction.attempt { try run(transaction) }
                try ids.save(in: transaction, at: now)
                return response
            }
        }
        notices += made
        return response
    }

    /// Finds the channels that an operation is about, beside the writer.
    private func findChannels(of operation: some Handled, for caller: Caller) throws -> FoundChannels? {
        guard let query = operation.channelQuery else { return nil }
        let found = try database.read { transaction in
            var context = Context(
                transaction: transaction, caller: caller, now: now, ids: ids, presence: presence, options: options,
                rowKinds: rowKinds)
            try context.requireAccess()
            return try FoundChannels(query, in: &context)
        }
        try meanwhile.take()?()
        return found
    }

    /// Performs an operation with a key. Returns nil if an earlier call with the key performed it.
    public func perform<O: Handled>(
        _ operation: O, key: IdempotencyKey, as user: UserID, role: AppRole = .user
    ) throws -> O.Response? {
        let caller = Caller(user: user, role: role)
        let scope = operation.scope(for: caller)
        return try write { transaction in
            try scope.lock(in: transaction)
            return try transaction.attempt {
                var context = Context(
                    transaction: transaction, caller: caller, now: now, ids: ids, presence: presence, options: options,
                    rowKinds: rowKinds, scope: scope)
                defer { ids = context.ids }
                return try operation.handle(once: key, in: &context)
            }
        }
    }

    /// Performs all operations of the body in one transaction, as a lane does with queued operations.
    ///
    /// An engine can roll back the body's work and run it again. Nothing else writes meanwhile: no heads are locked.
    ///
    /// - Parameters:
    ///   - callers: The callers whose memberships are read at the beginning, if that saves anything.
    ///   - messages: The client ids of the messages that they send.
    package func batch(
        readingAhead callers: Set<ChannelCaller> = [], sending messages: [ChannelCaller: Set<ClientID>] = [:],
        _ body: () throws -> Void
    ) throws {
        let (noticesBefore, nowBefore) = (notices, now)
        defer { batched = nil }
        try write { transaction in
            (notices, now, fault) = (noticesBefore, nowBefore, nil)
            batched = transaction
            transaction.heldStreams?.holdAll()
            try transaction.readAhead(callers, sending: messages)
            try body()
            try ids.save(in: transaction, at: now)
        }
    }

    /// The refusal of an operation with a key; nil if it was performed, now or before.
    public func refusal(
        _ operation: some Handled, key: IdempotencyKey, as user: UserID, role: AppRole = .user
    ) throws -> RoostError? {
        do {
            try operation.validate()
            _ = try perform(operation, key: key, as: user, role: role)
            return nil
        } catch let error as RoostError {
            return error
        }
    }

    /// The refusal of an operation; nil if it was performed.
    public func refusal(
        _ operation: some Handled, as user: UserID, role: AppRole = .user, connection: Int64? = nil, token: TokenIdentity? = nil
    ) throws -> RoostError? {
        do {
            _ = try perform(operation, as: user, role: role, connection: connection, token: token)
            return nil
        } catch let error as RoostError {
            return error
        }
    }

    /// The code of a refusal; nil if the operation was performed.
    public func code(
        _ operation: some Handled, as user: UserID, role: AppRole = .user, connection: Int64? = nil, token: TokenIdentity? = nil
    ) throws
        -> RoostError.Code?
    {
        try refusal(operation, as: user, role: role, connection: connection, token: token)?.code
    }

    /// Writes on the first lane. An engine can run the body again, which then begins with the same ids.
    private func write<T>(_ body: (any WriteTransaction) throws -> T) throws -> T {
        let before = ids
        return try database.write(lane: 0) { transaction in
            ids = before
            return try body(transaction)
        }
    }

    /// Runs an internal change of the server's in a transaction, as an effect does.
    @discardableResult
    public func inContext<T>(scope: Scope = Scope(), as caller: Caller = .server, _ body: (inout Context) throws -> T) throws -> T {
        try write { transaction in
            try scope.lock(in: transaction)
            return try transaction.attempt {
                var context = Context(
                    transaction: transaction, caller: caller, now: now, ids: ids, presence: presence, options: options,
                    scope: scope)
                defer { ids = context.ids }
                return try body(&context)
            }
        }
    }

    /// An effect that failed permanently, as the runner leaves one.
    public func deadEffect(_ kind: String, key: String, failure: String = "unavailable: It isn't there.") throws {
        try execute(
            """
            INSERT INTO effects (kind, effect_key, payload, due_at, revision, attempts, failure, dead_at)
            VALUES (\(kind), \(key), \("secret"), \(now), 1, 12, \(failure), \(now))
            """)
    }

    // MARK: Building

    /// Makes sure that a user exists, as the first use of their token does.
    @discardableResult
    public func user(_ id: UserID, displayName: String? = nil) throws -> UserID {
        var context: Context?
        try write { transaction in
            try Scope.user(id).lock(in: transaction)
            var admitting = Context(
                transaction: transaction, caller: Caller(user: id), now: now, ids: ids, presence: presence, options: options,
                scope: .user(id))
            try admitting.registerCaller(displayName: displayName)
            context = admitting
        }
        notices += context?.notices ?? []
        return id
    }

    /// Has a user's device connect, as its first socket does.
    @discardableResult
    public func device(
        _ device: DeviceID, of user: UserID, name: String? = nil, platform: String? = nil, token: TokenIdentity? = nil,
        tokenSeconds: Int = 3600
    ) throws -> DeviceIdentity {
        let description = DeviceDescription(deviceId: device, name: name, platform: platform)
        try description.validate()
        return try write { transaction in
            try Scope.user(user).lock(in: transaction)
            var connecting = Context(
                transaction: transaction, caller: Caller(user: user, token: token), now: now, ids: ids, scope: .user(user))
            return try connecting.registerDevice(description, tokenExpiresAt: now.after(seconds: tokenSeconds))
        }
    }

    /// Makes a channel with its owner and further members; missing users are made.
    @discardableResult
    public func channel(
        _ id: ChannelID, type: ChannelType = .community, owner: UserID, members: [UserID] = []
    ) throws -> ChannelID {
        for user in [owner] + members { try self.user(user) }
        try perform(CreateChannel(channel: id, type: type, users: members), as: owner)
        return id
    }

    /// Sends a message with its own client id.
    @discardableResult
    public func send(_ text: String, to channel: ChannelID, as user: UserID, role: AppRole = .user) throws -> Message {
        lastClientID += 1
        return try perform(SendMessage(channel: channel, clientId: ClientID("c\(lastClientID)"), text: text), as: user, role: role)
    }

    /// Gives a member another role, bypassing the rules, without an event.
    public func setRole(_ role: ChannelRole, of user: UserID, in channel: ChannelID) throws {
        try execute("UPDATE members SET role = \(role) WHERE channel_id = \(channel) AND user_id = \(user)")
    }

    /// Writes, bypassing the rules, for states that would take too long to reach through them.
    public func execute(_ sql: SQL) throws {
        try write { transaction in _ = try transaction.execute(sql) }
        (database as? SQLiteDatabase)?.forgetReads()
    }

    /// Has PostgreSQL, if it is the engine, count what the tables hold. It may wait for the server's own vacuuming, which gives way after a
    /// second: longer than an operation waits for a lock.
    public func analyze() throws {
        guard TestDatabase.Engine.chosen == .postgresql else { return }
        try write { transaction in
            _ = try transaction.execute("SET LOCAL lock_timeout = '1min'")
            _ = try transaction.execute("ANALYZE")
        }
    }

    public func rows<T>(_ sql: SQL, _ read: (inout RowReader) throws -> T) throws -> [T] {
        try database.read { try $0.rows(sql, read) }
    }

    public func advance(milliseconds: Int64) { now = Timestamp(milliseconds: now.milliseconds + milliseconds) }

    /// Stops the server and starts it again on the same database, as the engine does.
    public func restart() throws {
        opened = nil
        opened = try place.open()
        ids = try database.read { try IDGenerator(continuing: $0) }
    }

    // MARK: Inspection

    /// Returns the events so far, only those of one audience if it is given: those of a channel whatever their readers.
    public func events(to audience: Audience? = nil) -> [Event] {
        notices.compactMap { notice in
            guard case .event(let event, let receivers) = notice else { return nil }
            switch (audience, receivers) {
            case (nil, _): return event
            case (.channel(let asked, _), .channel(let receiver, _)): return asked == receiver ? event : nil
            case (.user(let asked), .user(let receiver)): return asked == receiver ? event : nil
            default: return nil
            }
        }
    }

    /// Performs an operation, and returns its notices.
    public func notices(_ body: () throws -> Void) rethrows -> [Notice] {
        let before = notices.count
        try body()
        return Array(notices.dropFirst(before))
    }

    /// Every row of every table as text, for tests that check that nothing changed.
    public func dump() throws -> [String] {
        try database.read { try CoreTables.dump(in: $0) }
    }
}
