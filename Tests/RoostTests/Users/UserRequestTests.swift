import Foundation
import RoostAPI
import Testing

@testable import Roost

/// When the client requests shown users, and which.
@Suite("Users: requests")
struct UserRequestTests {
    private func connected() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        return client
    }

    /// The versions in the requests among outputs.
    private func requests(in outputs: [Sync.Output]) -> [[String: Int64]] {
        outputs.compactMap { output in
            guard case .send(let bytes) = output else { return nil }
            return (try? JSONDecoder().decode(Request.self, from: Data(bytes)))?.with.versions
        }
    }

    private struct Request: Decodable {
        var with: ListChangedUsers
    }

    private func user(_ id: UserID, _ name: String? = nil, version: Int64 = 1) -> UserSummary {
        UserSummary(userId: id, displayName: name, version: version)
    }

    private func name(of user: UserID, in client: Harness) async throws -> String? {
        try await client.store.read { try $0.summary(of: user) }.displayName
    }

    @Test("users who are shown within a moment are one request, and the next ones another when that is answered")
    func together() async throws {
        var client = try await connected()
        try await client.feed(.show(["bob": 0, "cat": 3]))
        try await client.feed(.show(["cat": 3, "dan": 0]))
        #expect(client.take() == [.startTimer(.users, .milliseconds(20))])
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()) == [["bob": 0, "cat": 3, "dan": 0]])
        try await client.feed(.show(["eve": 0, "bob": 0]))
        #expect(client.take() == [])
        try await client.answer(
            "user.listChanged", with: ChangedUsers(users: [user("bob", "Bob"), user("dan", "Dan")], hasMore: false))
        #expect(try await name(of: "bob", in: client) == "Bob")
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()) == [["eve": 0]])
    }

    /// The ids that a call of `user.getMany` names.
    private static func ids(in call: ScriptedServer.Call) -> [UserID] {
        guard case .object(let fields) = call.with, case .array(let values) = fields["users"] else { return [] }
        return values.compactMap { if case .string(let id) = $0 { UserID(id) } else { nil } }
    }

    @Test("R15 users whose profiles are too large for one answer are requested in parts, and each is returned once, ordered by id")
    func inParts() async throws {
        let server = ScriptedServer { call in
            guard call.operation == "user.getMany" else { return .error(.notFound("operation")) }
            let ids = Self.ids(in: call)
            guard ids.count <= 3 else {
                return .error(RoostError(.limitExceeded, "They are too large.", limit: Int64(Limits.pageContentBytes)))
            }
            let time = Timestamp(milliseconds: 0)
            return .result(Set(ids).sorted().map { User(userId: $0, createdAt: time, updatedAt: time) })
        }
        let chat = try await server.connected()
        let ids = (1...9).map { UserID("u\($0)") }
        let users = try await chat.users(Array(ids.reversed()) + [ids[4]])
        #expect(users.map(\.userId) == ids)
        await chat.disconnect()
    }

    @Test("R15 a request for too many users is refused and not repeated in parts")
    func tooManyAtOnce() async throws {
        let refusal = RoostError(.limitExceeded, "Too many.", limit: Int64(Limits.usersPerCall))
        let server = ScriptedServer { _ in .error(refusal) }
        let chat = try await server.connected()
        let thrown = await #expect(throws: RoostError.self) { try await chat.users(["bob", "cat"]) }
        #expect(thrown == refusal)
        #expect(await server.operations().count { $0 == "user.getMany" } == 1)
        await chat.disconnect()
    }

    @Test("AM-13 two ids that are equal as texts can't be keys of one request: the second is requested with the next")
    func spellings() async throws {
        var client = try await connected()
        let ids: [UserID] = ["\u{105c9}", "\u{105d2}\u{307}"]
        try await client.feed(.show([ids[0]: 0, ids[1]: 0]))
        var requested: [[UserID]] = []
        for _ in ids {
            try await client.feed(.timer(.users))
            let sent = requests(in: client.take())
            let request = try #require(sent.first)
            requested.append(request.keys.map { UserID($0) })
            try await client.answer(
                "user.listChanged", with: ChangedUsers(users: requested[requested.count - 1].map { user($0) }, hasMore: false))
        }
        #expect(requested == ids.sorted().map { [$0] })
    }

    @Test("users missing from an answer that contains others aren't requested again, whatever more it promises")
    func others() async throws {
        var client = try await connected()
        try await client.feed(.show(["bob": 0]))
        try await client.feed(.timer(.users))
        _ = client.take()
        try await client.answer("user.listChanged", with: ChangedUsers(users: [user("dan", "Dan")], hasMore: true))
        #expect(!client.take().contains(.startTimer(.users, .milliseconds(20))))
    }

    @Test("no request has more than 1000 users, and users unknown to the server aren't requested again")
    func absent() async throws {
        var client = try await connected()
        let many = (0..<1300).map { UserID("u\(1000 + $0)") }
        let versions = Dictionary(uniqueKeysWithValues: many.map { ($0, Int64(0)) })
        try await client.feed(.show(versions))
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()).map { Set($0.keys) } == [Set(many.prefix(1000).map(\.rawValue))])
        try await client.answer("user.listChanged", with: ChangedUsers(users: [], hasMore: false))
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()).map { Set($0.keys) } == [Set(many.dropFirst(1000).map(\.rawValue))])
        try await client.answer("user.listChanged", with: ChangedUsers(users: [], hasMore: false))
        _ = client.take()
        try await client.feed(.show(versions))
        #expect(client.take() == [])
        try await client.feed(.show(["bob": 0, many[0]: 0]))
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()) == [["bob": 0]])
    }

    @Test("offline no users are requested; with a connection, shown users are, and those whose answer was lost")
    func offline() async throws {
        var client = try await Harness()
        try await client.feed(.show(["bob": 0]))
        #expect(client.take() == [])
        try await client.connectWithChannel()
        #expect(client.take().contains(.startTimer(.users, .milliseconds(20))))
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()) == [["bob": 0]])
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        #expect(client.take().contains(.cancelTimer(.users)))
        client.forgetCalls()
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()).isEmpty)
        try await client.connectWithChannel()
        #expect(client.take().contains(.startTimer(.users, .milliseconds(20))))
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()) == [["bob": 0]])
    }

    @Test("with another connection all shown users are one request again, except those whom it has already returned")
    func reconnected() async throws {
        var client = try await connected()
        try await client.feed(.show(["bob": 0, "cat": 2, "dan": 5]))
        try await client.feed(.timer(.users))
        try await client.answer("user.listChanged", with: ChangedUsers(users: [user("bob", "Bob", version: 4)], hasMore: false))
        _ = client.take()
        try await client.feed(.show(["bob": 4, "cat": 2]))
        #expect(client.take() == [])
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        client.forgetCalls()
        try await client.connectWithChannel()
        try await client.receive(
            Signal(
                kind: .usersChanged, channel: "general", users: UsersChange(users: [user("dan", "Don", version: 6)], isWhole: true))
        )
        _ = client.take()
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()) == [["bob": 4, "cat": 2]])
        #expect(try await name(of: "dan", in: client) == "Don")
    }

    @Test("users in a signal are stored at once, an older version never; if it is incomplete, shown users are one request")
    func signals() async throws {
        var client = try await connected()
        try await client.feed(.show(["bob": 1, "cat": 1]))
        try await client.feed(.timer(.users))
        try await client.answer("user.listChanged", with: ChangedUsers(users: [], hasMore: false))
        func send(_ users: [UserSummary], isWhole: Bool) async throws {
            try await client.receive(
                Signal(kind: .usersChanged, channel: "general", users: UsersChange(users: users, isWhole: isWhole)))
        }
        try await send([user("bob", "Bob", version: 3)], isWhole: true)
        try await send([user("bob", "Robert", version: 2)], isWhole: true)
        #expect(try await name(of: "bob", in: client) == "Bob")
        _ = client.take()
        try await send([], isWhole: false)
        #expect(client.take() == [.startTimer(.users, .milliseconds(500))])
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()) == [["bob": 3, "cat": 1]])
    }

    @Test(
        "SB-61 ST-01 opening a channel of many members, or as a non-member, shows earlier renames; however many open, all are requested at most every 10 s"
    )
    func watching() async throws {
        var client = try await connected()
        try await client.feed(.show(["bob": 1]))
        try await client.feed(.timer(.users))
        try await client.answer("user.listChanged", with: ChangedUsers(users: [], hasMore: false))
        _ = client.take()
        /// Watches a channel, and returns the timers that this starts.
        func watch(memberCount: Int, isMember: Bool = true) async throws -> [Sync.Output] {
            var channel = channel(counters(3, messages: 2))
            channel.counters.memberCount = memberCount
            let state = WatchedChannel(
                config: ChannelPolicy.presets[0], channel: channel,
                membership: isMember ? membership(readSeq: 1, readCount: 0) : nil,
                online: 1, watcherCount: 1, watchers: [:], members: [:], read: [:],
                messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 3), ownCapabilities: [])
            try await client.feed(.call(1, WatchChannel(channel: Harness.channel, limit: 0)))
            _ = client.take()
            try await client.answer("channel.watch", with: state)
            return client.take().filter {
                if case .startTimer(let timer, _) = $0 { [.users, .userPause].contains(timer) } else { false }
            }
        }
        let asks: [Sync.Output] = [.startTimer(.userPause, .seconds(10)), .startTimer(.users, .milliseconds(20))]
        // Members of a small channel were notified.
        #expect(try await watch(memberCount: Limits.receiptMembers) == [])
        #expect(try await watch(memberCount: Limits.receiptMembers + 1) == asks)
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()) == [["bob": 1]])
        try await client.answer("user.listChanged", with: ChangedUsers(users: [user("bob", "Robert", version: 2)], hasMore: false))
        #expect(try await name(of: "bob", in: client) == "Robert")
        #expect(try await watch(memberCount: 1, isMember: false) == [])
        #expect(try await watch(memberCount: 50) == [])
        _ = client.take()
        try await client.feed(.timer(.userPause))
        #expect(client.take() == asks)
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()) == [["bob": 2]])
        try await client.feed(.timer(.userPause))
        #expect(client.take() == [])
    }

    @Test("a busy server is asked again after growing pauses, and one that refuses permanently isn't")
    func refused() async throws {
        var client = try await connected()
        try await client.feed(.show(["bob": 0]))
        for pause in [2, 4, 8] {
            try await client.feed(.timer(.users))
            _ = client.take()
            try await client.refuse("user.listChanged", with: RoostError(.overloaded, "Busy."))
            #expect(client.take().contains(.startTimer(.users, .seconds(pause))))
        }
        try await client.feed(.timer(.users))
        try await client.refuse("user.listChanged", with: RoostError(.notPermitted, "No."))
        _ = client.take()
        try await client.feed(.show(["bob": 0]))
        #expect(client.take() == [])
    }

    @Test("SB-61 changes missed during a request are requested after its answer; of an answer that has more, the rest")
    func outdated() {
        var requests = Sync.UserRequests()
        requests.show(["bob": 1, "cat": 1])
        #expect(requests.ask() == ["bob": 1, "cat": 1])
        requests.recheck()
        #expect(requests.waiting == [])
        requests.answered(with: [user("bob", "Bob", version: 2)])
        #expect(requests.ask() == ["bob": 2, "cat": 1])
        requests.answered(with: [user("bob", "Bob", version: 3)], isWhole: false)
        #expect(requests.ask() == ["cat": 1])
        requests.answered(with: [])
        #expect(requests.ask() == [:])
        // With another history the former requests are meaningless.
        requests.recheck()
        _ = requests.ask()
        requests.forget()
        requests.answered(with: [])
        #expect(requests.ask() == ["bob": 0, "cat": 0])
    }

    @Test("SB-61 users unknown to the server are requested again with the next connection, as are those who couldn't be stored")
    func absentNoMore() async throws {
        var state = Sync.UserRequests()
        state.show(["new": 0])
        _ = state.ask()
        state.answered(with: [])
        #expect(state.ask() == [:])
        state.disconnected()
        #expect(state.ask() == ["new": 0])
        state.answered(with: [user("new", "New", version: 1)])
        state.disconnected()
        #expect(state.ask() == ["new": 1])
        var client = try await connected()
        try await client.feed(.show(["bob": 0]))
        try await client.feed(.timer(.users))
        try await client.answer("user.listChanged", with: ChangedUsers(users: [user("bob", "Bob", version: 5)], hasMore: false))
        try await client.feed(.storeFailed(client.sync.saved, nil, "full"))
        client.forgetCalls()
        try await client.connectWithChannel()
        _ = client.take()
        try await client.feed(.timer(.users))
        #expect(requests(in: client.take()) == [["bob": 0]])
    }

    @Test("SB-61 users unknown to the server are requested again when a message of theirs, or their member row, arrives")
    func metAfterwards() async throws {
        var client = try await connected()
        func ask() async throws -> [[String: Int64]] {
            try await client.feed(.timer(.users))
            return requests(in: client.take())
        }
        let nobody = ChangedUsers(users: [], hasMore: false)
        try await client.feed(.show(["cat": 0, "dan": 0, "eve": 0]))
        #expect(try await ask() == [["cat": 0, "dan": 0, "eve": 0]])
        // During the request: the answer may be older.
        try await client.receive(sent(message(4, "I'm new", by: "cat"), messages: 3))
        try await client.answer("user.listChanged", with: nobody)
        #expect(try await ask() == [["cat": 0]])
        try await client.answer("user.listChanged", with: ChangedUsers(users: [user("cat", "Cat")], hasMore: false))
        try await client.receive(sent(message(5, "Me too", by: "dan"), messages: 4))
        #expect(try await ask() == [["dan": 0]])
        try await client.answer("user.listChanged", with: nobody)
        let time = Timestamp(milliseconds: 6)
        let eve = Member(userId: "eve", role: .member, state: .member, joinedAt: time, joinedSeq: 6, changeSeq: 6)
        try await client.receive(
            Event(
                kind: .memberJoined, stream: .channel(Harness.channel), seq: 6, actor: "eve",
                rows: Rows(counters: counters(6, messages: 4), [eve])))
        #expect(try await ask() == [["eve": 0]])
        try await client.answer("user.listChanged", with: nobody)
        // If the server doesn't know them after all, it isn't asked with each of their messages.
        try await client.receive(sent(message(7, "Hello?", by: "dan"), messages: 5))
        #expect(try await ask() == [])
    }

    @Test("SB-61 a request with long ids is no longer than the server accepts, and the others follow with the next")
    func longIDs() {
        var requests = Sync.UserRequests()
        let users = (0..<900).map { UserID(String(repeating: "🐓", count: 120) + "\($0)") }
        requests.show(Dictionary(uniqueKeysWithValues: users.map { ($0, Int64(1)) }))
        var asked: Set<String> = []
        while true {
            let request = requests.ask()
            guard !request.isEmpty else { break }
            let bytes = try? JSONWriter.bytes(of: CallFrame(call: 1, with: ListChangedUsers(versions: request)))
            #expect(bytes.map { $0.count < Limits.messageSizeBytes } == true)
            asked.formUnion(request.keys)
            requests.answered(with: [])
        }
        #expect(asked == Set(users.map(\.rawValue)))
    }

    @Test("SB-61 an impossible user id isn't requested: the server would refuse the whole request")
    func impossible() {
        var requests = Sync.UserRequests()
        requests.show(["bob": 0, "a/b": 0, "": 0, UserID(String(repeating: "a", count: Limits.messageSizeBytes)): 0])
        #expect(requests.ask() == ["bob": 0])
        requests.disconnected()
        #expect(requests.ask() == ["bob": 0])
    }

    @Test("SB-61 users who are shown again are dropped last")
    func again() {
        var requests = Sync.UserRequests()
        requests.show(["ann": 1])
        for number in 0..<10 {
            requests.show(Dictionary(uniqueKeysWithValues: (0..<400).map { (UserID("u\(number)-\($0)"), Int64(1)) }))
            requests.show(["ann": 1])
        }
        requests.disconnected()
        #expect(requests.waiting.last == "ann")
    }

    @Test("however many users are shown, a bounded number of them is remembered, those shown last")
    func bounded() {
        var requests = Sync.UserRequests()
        for number in 0..<30_000 { requests.show([UserID("u\(number)"): 0]) }
        #expect(requests.waiting.count <= 2 * Sync.UserRequests.shownMax && requests.waiting.last == "u29999")
        requests.disconnected()
        #expect(requests.waiting.count <= 2 * Sync.UserRequests.shownMax && requests.waiting.last == "u29999")
        #expect(requests.ask().count == Limits.changedUsersPerCall)
    }
}
