import Foundation
import RoostAPI
import Testing

@testable import Roost

/// When the client asks for users of whom only the id is known, and for whom.
@Suite("Users: asking who they are")
struct UserQuestionTests {
    private func connected() async throws -> Harness {
        var client = try await Harness()
        try await client.connectWithChannel()
        _ = client.take()
        return client
    }

    /// The users of the questions among outputs.
    private func questions(in outputs: [Sync.Output]) -> [[UserID]] {
        outputs.compactMap { output in
            guard case .send(let bytes) = output else { return nil }
            return (try? JSONDecoder().decode(Question.self, from: Data(bytes)))?.with.users
        }
    }

    private struct Question: Decodable {
        var with: GetUsers
    }

    private func user(_ id: UserID, _ name: String? = nil, version: Int64 = 1) -> User {
        User(
            userId: id, displayName: name, createdAt: Timestamp(milliseconds: 0), updatedAt: Timestamp(milliseconds: 0),
            version: version)
    }

    @Test("Users who are missed within a moment are asked for in one call, and the next ones when that is answered")
    func together() async throws {
        var client = try await connected()
        try await client.feed(.miss(["bob", "cat"]))
        try await client.feed(.miss(["cat", "dan"]))
        #expect(client.take() == [.startTimer(.users, .milliseconds(20))])
        try await client.feed(.timer(.users))
        #expect(questions(in: client.take()) == [["bob", "cat", "dan"]])
        try await client.feed(.miss(["eve", "bob"]))
        #expect(client.take() == [])
        try await client.answer("user.getMany", with: [user("bob", "Bob"), user("cat", "Cat"), user("dan", "Dan")])
        #expect(try await client.store.read { try $0.summary(of: "bob") } == user("bob", "Bob").summary)
        try await client.feed(.timer(.users))
        #expect(questions(in: client.take()) == [["eve"]])
    }

    @Test("No question has more than 100 users, and the server isn't asked again for those whom it doesn't know")
    func absent() async throws {
        var client = try await connected()
        let many = (0..<130).map { UserID("u\(1000 + $0)") }
        try await client.feed(.miss(Set(many)))
        try await client.feed(.timer(.users))
        #expect(questions(in: client.take()) == [Array(many.prefix(100))])
        try await client.answer("user.getMany", with: [User]())
        try await client.feed(.timer(.users))
        #expect(questions(in: client.take()) == [Array(many.dropFirst(100))])
        try await client.answer("user.getMany", with: [User]())
        _ = client.take()
        try await client.feed(.miss(Set(many)))
        #expect(client.take() == [])
        try await client.feed(.miss(["bob", many[0]]))
        try await client.feed(.timer(.users))
        #expect(questions(in: client.take()) == [["bob"]])
    }

    @Test(
        "Offline nobody is asked for; once there is a connection, those who were missed meanwhile are, and those whose answer was lost"
    )
    func offline() async throws {
        var client = try await Harness()
        try await client.feed(.miss(["bob"]))
        #expect(client.take() == [])
        try await client.connectWithChannel()
        #expect(client.take().contains(.startTimer(.users, .milliseconds(20))))
        try await client.feed(.timer(.users))
        #expect(questions(in: client.take()) == [["bob"]])
        try await client.feed(.transport(client.sync.connection, .closed(code: nil, reason: "")))
        #expect(client.take().contains(.cancelTimer(.users)))
        client.forgetCalls()
        try await client.feed(.timer(.users))
        #expect(questions(in: client.take()).isEmpty)
        try await client.connectWithChannel()
        #expect(client.take().contains(.startTimer(.users, .milliseconds(20))))
        try await client.feed(.timer(.users))
        #expect(questions(in: client.take()) == [["bob"]])
    }

    @Test("A server that is busy is asked again after longer and longer pauses, one that refuses for good isn't")
    func refused() async throws {
        var client = try await connected()
        try await client.feed(.miss(["bob"]))
        for pause in [2, 4, 8] {
            try await client.feed(.timer(.users))
            _ = client.take()
            try await client.refuse("user.getMany", with: RoostError(.overloaded, "Busy."))
            #expect(client.take().contains(.startTimer(.users, .seconds(pause))))
        }
        try await client.feed(.timer(.users))
        try await client.refuse("user.getMany", with: RoostError(.notPermitted, "No."))
        _ = client.take()
        try await client.feed(.miss(["bob"]))
        #expect(client.take() == [])
    }

    @Test("However many are missed, those who were missed last are asked for")
    func bounded() {
        var questions = Sync.UserQuestions()
        for number in 0..<3000 { questions.miss([UserID("u\(number)")]) }
        #expect(questions.waiting.count == Sync.UserQuestions.waitingMax && questions.waiting.last == "u2999")
    }

    @Test(
        "Users are read wherever an answer carries them, without those that can't be",
        arguments: [
            (#"[{"userId":"bob","displayName":"Bob","version":2},{"userId":7}]"#, ["bob"]),
            (#"{"userId":"bob","metadata":{},"createdAt":"x"}"#, ["bob"]),
            (#"{"items":[{"user":{"userId":"bob"}},{"user":null},{}],"users":[{"userId":"cat"},{}]}"#, ["cat", "bob"]),
            (#"{"member":{},"user":{"userId":"bob"}}"#, ["bob"]), (#"{"users":7,"items":{}}"#, []), ("[]", []),
        ])
    func lenient(json: String, users: [String]) throws {
        let read = try JSONDecoder().decode(NamedUsers.self, from: Data(json.utf8)).users
        #expect(read.map(\.userId.rawValue) == users)
    }
}
