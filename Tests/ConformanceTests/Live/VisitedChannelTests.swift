import Roost
import RoostAPI
import RoostTestSupport
import Testing

/// A watched channel that the user isn't a member of, against the real server.
@MainActor @Suite(.timeLimit(.minutes(5))) struct VisitedChannelTests {
    @Test(
        "ST-01 ST-06 ST-08 R39 a non-member who watches a livestream is shown its messages, after a reconnect too, and then as a member"
    )
    func livestream() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        let show = try await ann.createChannel("show", type: .livestream)
        try await show.sendConfirmed("We begin.")
        let atBob = bob.channel("show")
        let list = atBob.messages()
        try await wait("the refusal") { list.phase.error?.code == .notMember }
        try await atBob.watch()
        try await wait("what there is") { list.phase == .loaded && list.items.map(\.text) == ["We begin."] }
        let events = bob.events
        try await atBob.sendConfirmed("Bravo!")
        try await wait("what bob has sent") {
            list.items.map(\.text) == ["We begin.", "Bravo!"] && list.items.last?.state == .sent
        }
        try await show.sendConfirmed("Welcome.")
        try await wait("what comes") { list.items.last?.text == "Welcome." && atBob.lastMessage?.text == "Welcome." }
        for await event in events {
            if case .happened(let news) = event, news.message?.text == "Welcome.", news.channel == "show" { break }
        }

        await bob.disconnect()
        try await show.sendConfirmed("An absence.")
        try await bob.connect()
        try await wait("what was missed") {
            list.items.map(\.text) == ["We begin.", "Bravo!", "Welcome.", "An absence."]
                && atBob.lastMessage?.text == "An absence."
        }
        #expect(atBob.membership == nil && atBob.unreadCount == 0)
        let own = bob.channels()
        try await own.loaded()
        #expect(own.items.isEmpty)

        try await atBob.join()
        try await show.sendConfirmed("To members.")
        try await wait("what comes to members") {
            list.phase == .loaded && list.items.count == 5 && list.items.last?.text == "To members."
                && atBob.currentUserMembership == .member
        }
        _ = try await ann.call(RemoveMembers(channel: "show", users: ["bob"]))
        try await wait("the end of it") { list.phase.error?.code == .notMember && list.items.isEmpty }
        try await server.stop()
    }
}
