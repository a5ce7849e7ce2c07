import Foundation
import Roost
import RoostAPI
import RoostTesting
import Testing

@MainActor @Suite("RoostTesting: a server for an app's tests", .timeLimit(.minutes(1)))
struct RoostTestServerTests {
    /// The texts of a list once they are as expected.
    private func wait(for list: MessageList, _ isAsExpected: @escaping ([MessageItem]) -> Bool) async -> [MessageItem] {
        for await update in list.updates where isAsExpected(update.items) { return update.items }
        return []
    }

    @Test("Two users talk, and what one hasn't read is counted")
    func talk() async throws {
        let server = try await RoostTestServer()
        let (ann, bob) = (server.chat(as: "ann"), server.chat(as: "bob"))
        try await ann.connect()
        try await bob.connect()
        let room = try await ann.createChannel("room", displayName: "Room")
        let bobsRoom = try await bob.joinChannel("room")
        try await room.send("hi")
        let seen = await wait(for: bobsRoom.messages()) { !$0.isEmpty }
        #expect(seen.map(\.text) == ["hi"])
        for await total in bob.unread.updates where total.unreadCount == 1 { break }
        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()
    }

    @Test("While the server is away a message waits, and it is sent when the server comes back with its data")
    func outage() async throws {
        let server = try await RoostTestServer()
        let ann = server.chat(as: "ann")
        try await ann.connect()
        let room = try await ann.createChannel("room")
        let list = room.messages()
        try await room.sendConfirmed("before")
        try await server.goAway()
        try await server.goAway()
        for await status in ann.connection.updates where status != .online { break }
        try await room.send("after")
        let waiting = await wait(for: list) { $0.count == 2 }
        #expect(waiting.map(\.state) == [.sent, .pending])
        try await server.comeBack()
        try await server.comeBack()
        let sent = await wait(for: list) { $0.allSatisfy { $0.state == .sent } }
        #expect(sent.map(\.text) == ["before", "after"])
        await ann.disconnect()
        try await server.stop()
    }

    @Test("An operation is called as a backend does; what the server refuses is thrown; a token may have expired")
    func backend() async throws {
        let server = try await RoostTestServer()
        let bob = try await server.call(UpsertUser(user: "bob", displayName: "Bob"), as: "backend", role: .admin)
        #expect(bob.displayName == "Bob")
        let refusal = await #expect(throws: RoostError.self) {
            try await server.call(UpsertUser(user: "bob", displayName: "Robert"), as: "ann")
        }
        #expect(refusal?.code == .notPermitted)
        let url = server.url
        let late = Chat(url: url, user: "ann", configuration: .init(storage: .inMemory)) {
            try await server.token(for: "ann", lifetime: .zero)
        }
        let expired = await #expect(throws: RoostError.self) { try await late.connect() }
        #expect(expired?.code == .tokenExpired)
        await late.disconnect()
        try await server.stop()
        try await server.stop()
    }
}
