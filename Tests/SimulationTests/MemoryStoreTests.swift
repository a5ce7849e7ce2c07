import Foundation
import GRDB
import Logging
import RoostAPI
import RoostTestSupport
import Testing

@testable import Roost
@testable import RoostClientModel

@Suite("The model of the store in simulations")
struct MemoryStoreTests {
    @Test("it holds what the store holds after the same writes", arguments: Seeds.first(3))
    func agreement(seed: UInt64) async throws {
        let transactions = try writes(seed: seed)
        let store = try Self.store(.standard)
        var model = MemoryStore(user: "ann")
        // A list reads on from its messages.
        var windows: [ChannelID: MessageWindow] = [:]
        for writes in transactions {
            model.apply(writes)
            try await store.write(writes)
            for channel in Set(writes.compactMap(\.channel)) {
                windows[channel] = try await read(channel, in: store, after: windows[channel] ?? Self.empty)
            }
        }
        var saved = model.saved
        // Channels that were followed only while watched don't survive a start.
        saved.channels = saved.channels.filter { !$0.value.isVisit }
        #expect(try await store.savedState() == saved)
        try await expectSameRows(in: store, and: model, .standard)
        let listed = try await store.read { try ChannelQuery(hidden: .all).places(in: $0).map(\.id) }
        #expect(Set(listed) == Set(model.joined))
        for (channel, row) in model.channels {
            let view = try await store.read { try $0.channelView(channel) }
            let all = (model.messages[channel] ?? [:]).values.sorted { $0.seq < $1.seq }
            for window in [windows[channel] ?? Self.empty, Self.empty] {
                #expect(try await read(channel, in: store, after: window).rows.compactMap(\.item.message) == all)
            }
            #expect(view?.channel == row)
            // A deleted channel is shown without members.
            let membership = model.memberships[channel]
            let role = membership?.state == .member ? membership?.role : nil
            if row.deletedAt == nil { #expect(view?.membership == membership) }
            let isMuted = membership?.isMuted(at: nil) ?? false
            let permissions = model.capabilities[channel]?.now(as: role, isMuted: isMuted) ?? []
            #expect(view?.ownCapabilities == (row.deletedAt == nil ? permissions : []))
        }
    }

    @Test("SB-14 SB-59 it holds kinds that it doesn't name, and drops rows about messages concealed or deleted for good")
    func otherKinds() async throws {
        let kinds = RowKinds.standard.adding([Mark.self])
        let store = try Self.store(kinds)
        var model = MemoryStore(user: "ann", kinds: kinds)
        var held: [[String]] = []
        for writes in Self.transactions {
            model.apply(writes)
            try await store.write(writes)
            try await expectSameRows(in: store, and: model, kinds)
            held.append((model.others["general"]?[Mark.kind] ?? [:]).keys.sorted())
        }
        let all = ["2", "3", "4", "5"]
        #expect(held == [all, all, ["2", "3", "5"], ["2", "3", "5"], ["5"], ["5"], [], [], ["2"], ["2"], []])
    }

    @Test("ST-10 it ends the visits that aren't to be kept")
    func visits() async throws {
        let store = try Self.store(.standard)
        var model = MemoryStore(user: "ann")
        let visit = Position(cursor: 3, windowStart: 4, isVisit: true)
        let begun: [StoreWrite] = [
            .visit("ended", visit), .visit("kept", visit), .position("own", Position(cursor: 3, windowStart: 4)),
        ]
        for writes in [begun, [.keepVisits(["kept"])]] {
            model.apply(writes)
            try await store.write(writes)
        }
        #expect(model.saved.channels.keys.sorted() == ["kept", "own"])
        for channel in ["ended", "kept", "own"] as [ChannelID] {
            let cursor = try await store.read { try $0.cursor(of: channel) }
            #expect(cursor == model.saved.channels[channel]?.cursor)
        }
    }

    /// Rows of each kind, and each way in which they end.
    private static let transactions: [[StoreWrite]] = {
        let time = Timestamp(milliseconds: 1)
        func rows(_ rows: Rows) -> StoreWrite { .rows(rows, of: .channel("general")) }
        func message(_ seq: Seq) -> Message {
            Message(
                messageId: MessageID(rawValue: seq), channelId: "general", seq: seq, changeSeq: seq, sender: "bob",
                clientId: ClientID("\(seq)"), text: "hi", createdAt: time)
        }
        func membership(_ state: MembershipState = .member, floor: Seq = 0, userSeq: Seq) -> Membership {
            Membership(
                channelId: "general", role: .member, state: state, joinedAt: time, joinedSeq: 1, readSeq: 1, readCount: 0,
                historyFloor: floor, channelSeq: 1, userSeq: userSeq)
        }
        func invitation(of user: UserID, by inviter: UserID) -> Invitation {
            Invitation(channelId: "general", userId: user, inviter: inviter, state: .pending, invitedAt: time, revision: 1)
        }
        func deletion(_ seq: Seq, _ userSeq: Seq) -> OwnDeletion {
            OwnDeletion(channelId: "general", seq: seq, deletedAt: time, userSeq: userSeq)
        }
        func draft(_ text: String, _ userSeq: Seq) -> ChannelDraft {
            ChannelDraft(channelId: "general", text: text, updatedAt: time, userSeq: userSeq)
        }
        let marks = (2...5).map { Mark(message: $0, stamp: $0 + 4) }
        return [
            [.position("general", Position(cursor: 9, windowStart: 6, stretches: [2...5])), rows(Rows([membership(userSeq: 1)]))]
                + [rows(Rows((2...5).map(message), marks))],
            // An older row of a key, and a newer one.
            [rows(Rows([Mark(message: 3, stamp: 1), Mark(message: 5, stamp: 20)]))],
            [rows(Rows([PurgedMessage(seq: 4, changeSeq: 10, counts: true)]))],
            [rows(Rows([message(4)], [Mark(message: 4, stamp: 30)]))],
            [rows(Rows([membership(floor: 3, userSeq: 2)]))],
            [
                rows(Rows([message(2)], [Mark(message: 2, stamp: 40)])),
                rows(Rows([Member(userId: "bob", role: .owner, state: .member, joinedAt: time, joinedSeq: 1, changeSeq: 1)])),
                rows(Rows([invitation(of: "cid", by: "bob"), invitation(of: "dan", by: "ann")])),
                .rows(
                    Rows([User(userId: "ann", createdAt: time, updatedAt: time)], [Preferences(autoAcceptInvitations: false)]),
                    of: .user("ann")),
                .users([
                    UserSummary(userId: "ann", displayName: "older", version: 1),
                    UserSummary(userId: "bob", displayName: "Bob", version: 2),
                ]),
                .users([UserSummary(userId: "bob", displayName: "older", version: 1)]),
                .rows(Rows([draft("hi", 8)]), of: .user("ann")), .rows(Rows([draft("h", 7)]), of: .user("ann")),
                // Messages that the user has deleted for themselves: a cached one, and one that arrives later.
                .rows(Rows([deletion(5, 7), deletion(8, 7)]), of: .user("ann")),
                rows(Rows([message(8)])),
                // Only a channel's stream has rows in the common shape.
                .rows(Rows([Mark(message: 6, stamp: 50)]), of: .user("ann")),
            ],
            [.forgetMessages("general", 4...6)],
            [.forget("general")],
            // A former member who watches sees what was concealed from the member.
            [
                rows(Rows([membership(.none, floor: 3, userSeq: 3)])), .leave("general"),
                .visit("general", Position(cursor: 12, windowStart: 2, isVisit: true)),
                rows(Rows([message(2)], [Mark(message: 2, stamp: 60)])),
            ],
            [.erase(epoch: "second"), rows(Rows([Mark(message: 2, stamp: 1)]))],
            [.erase(epoch: "third")],
        ]
    }()

    private static func store(_ kinds: RowKinds) throws -> Store {
        try Store(
            url: nil, user: "ann", kinds: CachedRowKinds(kinds), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Compares every row of every kind.
    private func expectSameRows(in store: Store, and model: MemoryStore, _ kinds: RowKinds) async throws {
        func rows(_ columns: String, _ kind: any StreamRow.Type) async throws -> Set<String> {
            let sql = "SELECT \(columns) FROM \(kind.kind)"
            return try await store.read { try String.fetchSet($0, sql: sql) }
        }
        func models<Model: CachedModel & Hashable & Sendable>(_ table: String) async throws -> Set<Model> {
            let sql = "SELECT \(Model.cacheColumns) FROM \(table)"
            return Set(try await store.read { try $0.models(sql, []) })
        }
        let json = "CAST(json AS TEXT)"
        #expect(try await models("messages") == Set(model.messages.values.flatMap(\.values)))
        #expect(try await models("own_deletions") == Set(model.deletions.values.flatMap(\.values)))
        for (channel, draft) in model.drafts {
            #expect(try await store.read { try $0.draft(of: channel) } == (draft.isRemoved ? nil : draft))
        }
        #expect(try await models("memberships") == Set(model.memberships.values))
        #expect(try await models("invitations") == Set(model.invitations.values))
        #expect(try await models("users") == Set(model.users.values))
        #expect(try await store.read { try $0.preferences() } == model.preferences)
        for (channel, members) in model.members {
            #expect(try await Set(store.read { try $0.members(of: channel, changedAfter: -1) }) == Set(members.values))
        }
        let purged = model.purged.flatMap { channel, places in places.values.map { "\(channel) \($0.seq) \($0.changeSeq)" } }
        #expect(try await rows("channel_id || ' ' || seq || ' ' || change_seq", PurgedMessage.self) == Set(purged))
        let mentions: Set<ChannelMention> = try await models("channel_mentions")
        // The cache has a table of its own for them, and drops those that the user can't see.
        var heldMentions: [ChannelMention] = []
        for (channel, rows) in model.others {
            let floor = model.floor(of: channel)
            for row in (rows[ChannelMention.kind] ?? [:]).values {
                let mention = try JSONDecoder().decode(ChannelMention.self, from: Data(row.json))
                if mention.seq > floor, model.purged[channel]?[mention.seq] == nil { heldMentions.append(mention) }
            }
        }
        #expect(mentions == Set(heldMentions))
        for kind in kinds.all where !MemoryStore.named.contains(kind.kind) && kind.kind != ChannelMention.kind {
            let held = model.others.flatMap { channel, rows in
                (rows[kind.kind] ?? [:]).map { key, row in "\(channel) \(key) \(String(decoding: row.json, as: UTF8.self))" }
            }
            #expect(try await rows("channel_id || ' ' || key || ' ' || \(json)", kind) == Set(held))
        }
    }

    private static let empty = MessageWindow(pageSize: 1000)

    private func read(_ channel: ChannelID, in store: Store, after window: MessageWindow) async throws -> MessageWindow {
        try await store.read { database in
            var window = window
            try window.read(.stay, of: channel, in: database)
            return window
        }
    }

    private func writes(seed: UInt64) throws -> [[StoreWrite]] {
        let simulation = try Simulation(seed: seed)
        _ = try simulation.run()
        return simulation.firstClientWrites
    }
}

/// A row about a message, of a kind that only these tests know.
struct Mark: CachedRow {
    static let kind = "marks"

    var message: Seq
    var stamp: Int64

    var key: String { String(message) }
    var aboutMessage: Seq? { message }

    func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("message", message)
        json.member("stamp", stamp)
        json.endObject()
    }
}
