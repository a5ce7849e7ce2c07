import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

@Suite("Store: columns", .timeLimit(.minutes(5)))
struct CacheColumnsTests {
    @Test("every field of a model survives the cache's columns", arguments: 0..<200 as Range<UInt64>)
    func roundTrips(seed: UInt64) throws {
        var random = RandomModels(seed: seed)
        let queue = try DatabaseQueue()
        try queue.write { database in
            try expectSame(random.channel(), in: database) { $0.counters = ChannelCounters.nothing }
            try expectSame(random.counters(), in: database)
            try expectSame(random.message(), in: database)
            try expectSame(random.membership(), in: database)
            try expectSame(random.member(), in: database)
            try expectSame(random.invitation(), in: database)
            try expectSame(random.user(), in: database)
            try expectSame(random.capabilities(), in: database)
        }
    }

    /// - Parameter leavingOut: Removes the fields in other tables.
    private func expectSame<Model: CachedModel & Hashable>(
        _ model: Model, in database: Database, leavingOut: (inout Model) -> Void = { _ in }
    ) throws {
        var expected = model
        leavingOut(&expected)
        let columns = Model.cacheColumns
        try database.execute(sql: "DROP TABLE IF EXISTS model; CREATE TABLE model (\(columns))")
        try database.run("INSERT INTO model (\(columns)) VALUES (\(columns.placeholders))") { row in
            try row.put(model)
            #expect(Int(row.count) == columns.names.count && Set(columns.names).count == columns.names.count)
        }
        let read: [Model] = try database.models("SELECT \(columns) FROM model", [])
        #expect(read == [expected])
    }

    @Test("a row with a value that this version never writes is an error and no crash")
    func damaged() throws {
        try DatabaseQueue().write { database in
            for column in Message.cacheColumns.names
            where !["custom_type", "data", "parent_id", "edited_at", "deleted_at"].contains(column) {
                try database.execute(sql: "DROP TABLE IF EXISTS model; CREATE TABLE model (\(Message.cacheColumns))")
                var message = message(1, "hi")
                message.content.metadata = .object(["a": .integer(1)])
                message.content.tags = ["a"]
                message.content.mentionees = [.channel]
                message.content.metaArrays = ["a": ["b"]]
                message.content.targetLanguages = ["de"]
                try database.run("INSERT INTO model VALUES (\(Message.cacheColumns.placeholders))") { try $0.put(message) }
                let isJSON = ["metadata", "tags", "mentionees", "meta_arrays", "target_languages"].contains(column)
                try database.execute(sql: "UPDATE model SET \(column) = \(isJSON ? "x'00'" : "NULL")")
                #expect(throws: (any Error).self, "\(column)") {
                    let _: [Message] = try database.models("SELECT \(Message.cacheColumns) FROM model", [])
                }
            }
        }
    }

    @Test("a task that is cancelled during a statement gets a CancellationError, and none of SQLite's")
    func cancelled() async throws {
        let queue = try DatabaseQueue()
        let (rows, found) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let reader = Task {
            try await queue.read { database in
                // If cancelling doesn't end it, it ends by itself after a while.
                let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000)"
                try database.each("\(numbers) SELECT i FROM n") { _ in found.yield() }
            }
        }
        for await _ in rows { break }
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
        // The connection works for the next one.
        #expect(try await queue.read { try $0.value("SELECT 1") } == 1)
    }

    @Test("a channel's permissions take a byte for eight of them, however many there are")
    func permissions() throws {
        let capabilities = Capabilities(own: .init(permissions: Permission.allCases, userSeq: 1, channelSeq: 2))
        let size: Int? = try DatabaseQueue().write { database in
            try database.execute(sql: "CREATE TABLE model (\(Capabilities.cacheColumns))")
            try database.run("INSERT INTO model VALUES (\(Capabilities.cacheColumns.placeholders))") { try $0.put(capabilities) }
            return try database.value("SELECT length(own) FROM model")
        }
        #expect(size == (Permission.allCases.count + 7) / 8)
    }
}

extension ChannelCounters {
    fileprivate static let nothing = ChannelCounters(
        seq: 0, memberCount: 0, messageCount: 0, ordinal: 0, lastActivity: Timestamp(milliseconds: 0))
}

/// Models whose fields have any valid value.
private struct RandomModels {
    private var chance: SeededChance

    init(seed: UInt64) { chance = SeededChance(seed: seed) }

    private mutating func number() -> Int { Int.random(in: 0...1_000_000, using: &chance) }
    private mutating func seq() -> Seq { Seq.random(in: 0...Limits.seqMax, using: &chance) }
    private mutating func flag() -> Bool { Bool.random(using: &chance) }
    private mutating func time() -> Timestamp {
        Timestamp(milliseconds: Int64.random(in: -1...253_402_300_799_999, using: &chance))
    }
    private mutating func maybe<Value>(_ value: Value) -> Value? { flag() ? value : nil }
    private mutating func one<Value>(of values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &chance)] }

    private mutating func text() -> String {
        let letters = ["a", "Z", "é", "😀", " ", "\n", "\"", "\\", "'", "?", "\u{7F}", "日本", "%"]
        return (0..<Int.random(in: 0...12, using: &chance)).map { _ in one(of: letters) }.joined()
    }

    private mutating func json() -> JSONValue {
        .object([
            text(): .string(text()), "n": .number(0.1), "i": .integer(Int64(number())), "b": .boolean(flag()), "z": .null,
            "l": .array([.object([text(): .null])]),
        ])
    }

    private mutating func tags() -> [String] { (0..<Int.random(in: 0...3, using: &chance)).map { "\($0)\(text())" } }

    mutating func counters() -> ChannelCounters {
        ChannelCounters(
            seq: seq(), memberCount: number(), messageCount: number(), ordinal: number(), lastActivity: time(),
            lastMessageAt: maybe(time()))
    }

    mutating func channel() -> Channel {
        let attributes = ChannelAttributes(
            displayName: maybe(text()), avatarFileId: maybe(text()), coverUrl: maybe(text()), customType: maybe(text()),
            data: maybe(text()))
        let policy = PolicyChanges(discovery: maybe(.everyone), send: maybe(.operators), maxMembers: maybe(number()))
        return Channel(
            channelId: ChannelID(text()), type: ChannelType(text()), isDistinct: flag(), isPublic: flag(), isEphemeral: flag(),
            attributes: attributes, metadata: maybe(json()), metadataVersion: number(), metadataUpdatedBy: maybe(UserID(text())),
            tags: tags(), policy: maybe(policy), isFrozen: flag(), isMuted: flag(), mutedUntil: maybe(time()),
            isRateLimited: flag(), rateLimit: maybe(number()), rateLimitWindowSeconds: maybe(number()),
            rateLimitedUntil: maybe(time()), counters: counters(), createdBy: maybe(UserID(text())), createdAt: time(),
            updatedAt: time(), deletedAt: maybe(time()))
    }

    mutating func message() -> Message {
        let content = MessageContent(
            text: text(), kind: one(of: MessageKind.allCases + [.unknown("poll")]), customType: maybe(text()), data: maybe(text()),
            metadata: maybe(json()), tags: maybe(tags()), parentId: maybe(MessageID(rawValue: seq())),
            mentionees: maybe([.users([UserID(text())]), .channel, Mentionee(type: .unknown("team"))]),
            metaArrays: maybe([text(): tags()]),
            pushOption: one(of: PushOption.allCases + [.unknown("later")]), targetLanguages: maybe(tags()), isSilent: flag())
        return Message(
            messageId: MessageID(rawValue: seq()), channelId: ChannelID(text()), seq: seq(), changeSeq: seq(),
            sender: UserID(text()), clientId: ClientID(text()), content: content, createdAt: time(), editedAt: maybe(time()),
            deletedAt: maybe(time()))
    }

    mutating func membership() -> Membership {
        Membership(
            channelId: ChannelID(text()), role: ChannelRole(text()), state: one(of: MembershipState.allCases), joinedAt: time(),
            joinedSeq: seq(), readSeq: seq(), readCount: number(), lastReadAt: maybe(time()), historyFloor: seq(),
            hiddenState: one(of: HiddenState.allCases), hiddenOrdinal: number(), mentionSeq: seq(),
            mentionMessage: maybe(MessageID(rawValue: seq())), mutedUntil: maybe(time()),
            bannedUntil: maybe(time()), channelSeq: seq(), userSeq: seq())
    }

    mutating func member() -> Member {
        Member(
            userId: UserID(text()), role: ChannelRole(text()), state: one(of: MembershipState.allCases), joinedAt: time(),
            joinedSeq: seq(), changeSeq: seq())
    }

    mutating func invitation() -> Invitation {
        Invitation(
            channelId: ChannelID(text()), userId: UserID(text()), inviter: UserID(text()), welcome: maybe(text()),
            state: one(of: InvitationState.allCases), invitedAt: time(), endedAt: maybe(time()), revision: number())
    }

    mutating func user() -> UserSummary {
        UserSummary(
            userId: UserID(text()), displayName: maybe(text()), avatarFileId: maybe(text()), status: maybe(text()),
            version: Int64(number()))
    }

    mutating func capabilities() -> Capabilities {
        var lists = (0..<3).map { _ in [Permission]() }
        for index in lists.indices { lists[index] = Permission.allCases.filter { _ in flag() } }
        return Capabilities(
            own: .init(permissions: lists[0], userSeq: seq(), channelSeq: seq()),
            byRole: .init(permissions: flag() ? ["member": lists[1], text(): lists[2]] : [:], channelSeq: seq()))
    }
}
