import Foundation
import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// What an app receives and sends: events, the order of calls, and reading while a channel is on the screen.
@MainActor @Suite("Live: news and reading", .timeLimit(.minutes(5)))
struct NewsTests {
    private func happened(_ event: ChatEvent?) -> ChatEvent.Happening? {
        if case .happened(let news) = event { news } else { nil }
    }

    /// The next event of a kind.
    private func next(_ kind: Event.Kind, _ events: inout ChatEvents.Iterator) async -> ChatEvent.Happening? {
        while let event = await events.next(isolation: MainActor.shared) {
            if let news = happened(event), news.kind == kind { return news }
        }
        return nil
    }

    @Test("SB-46 every device reports a message when it has stored it: the sender's, the sender's other one, and others'")
    func devices() async throws {
        let server = try await TestServer()
        let (ann, phone, laptop) = (chat("ann", at: server), chat("bob", at: server), chat("bob", at: server))
        for client in [ann, phone, laptop] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let atPhone = phone.channel("general")
        try await wait("the channel") { atPhone.currentUserMembership == .member }
        var (atAnn, onPhone, onLaptop) = (
            ann.events.makeAsyncIterator(), phone.events.makeAsyncIterator(), laptop.events.makeAsyncIterator()
        )
        let sent = try await atPhone.sendConfirmed("hi")
        let news = [
            await next(.messageNew, &atAnn), await next(.messageNew, &onPhone), await next(.messageNew, &onLaptop),
        ]
        #expect(news.map(\.?.message) == [sent, sent, sent] && news.map(\.?.actor) == ["bob", "bob", "bob"])
        #expect(news.map(\.?.isOwn) == [false, true, true])
        #expect(news.map(\.?.isFromOtherDevice) == [false, false, true])
        // By then it is in the store: nothing has to be fetched.
        await ann.disconnect()
        #expect(try await general.message(sent.messageId) == sent)

        try await atPhone.markRead()
        #expect(await next(.readingMarked, &onLaptop)?.isFromOtherDevice == true)
        // What ann missed is one event.
        try await atPhone.sendConfirmed("you there?")
        let last = try await atPhone.sendConfirmed("hello?")
        try await ann.connect()
        let missed = await atAnn.next(isolation: MainActor.shared)
        #expect(missed == .missed(after: ["general": sent.seq]))
        #expect(try await general.message(last.messageId) == last)
        for client in [ann, phone, laptop] { await client.disconnect() }
        try await server.stop()
    }

    @Test("ST-07 R37 each device is told whether it watches an event's channel itself, while it does")
    func watching() async throws {
        let server = try await TestServer()
        let (ann, phone, laptop) = (chat("ann", at: server), chat("bob", at: server), chat("bob", at: server))
        for client in [ann, phone, laptop] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let (atPhone, atLaptop) = (phone.channel("general"), laptop.channel("general"))
        try await wait("the channel") { [atPhone, atLaptop].allSatisfy { $0.currentUserMembership == .member } }
        try await atPhone.watch()
        var (onPhone, onLaptop) = (phone.events.makeAsyncIterator(), laptop.events.makeAsyncIterator())
        try await general.sendConfirmed("hi")
        let news = [await next(.messageNew, &onPhone), await next(.messageNew, &onLaptop)]
        #expect(news.map(\.?.isWatched) == [true, false])
        try await atPhone.unwatch()
        try await general.sendConfirmed("there?")
        #expect(await next(.messageNew, &onPhone)?.isWatched == false)
        for client in [ann, phone, laptop] { await client.disconnect() }
        try await server.stop()
    }

    @Test("SB-17 a group's members learn who was invited and by whom, who has declined, and who has joined by an invitation")
    func invitations() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        let dora = try await server.socket("dora")
        try await dora.call(UpdatePreferences(autoAcceptInvitations: false))
        var events = bob.events.makeAsyncIterator()
        let trip = try await ann.createChannel("trip", type: .group, users: ["bob"])
        // Users who accept automatically join by an invitation too.
        #expect(await next(.channelCreated, &events)?.invitations.map(\.state) == [.accepted])
        let atBob = bob.channel("trip")
        try await wait("the channel") { atBob.currentUserMembership == .member }
        var received: [ChatEvent.Happening?] = []
        try await trip.invite(["dora"])
        received.append(await next(.invitationReceived, &events))
        try await dora.call(DeclineInvitation(channel: "trip"))
        received.append(await next(.invitationDeclined, &events))
        try await trip.invite(["dora"])
        try await dora.call(AcceptInvitation(channel: "trip"))
        received.append(await next(.memberJoined, &events))
        #expect(received.map(\.?.actor) == ["ann", "dora", "dora"] && received.allSatisfy { $0?.channel == "trip" })
        let invitations = received.compactMap(\.?.invitations.first)
        #expect(invitations.map(\.state) == [.pending, .declined, .accepted])
        #expect(invitations.allSatisfy { $0.userId == "dora" && $0.inviter == "ann" })
        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()
    }

    @Test("calls keep the order in which they were made, without waiting for one another: messages, and other operations")
    func order() async throws {
        let server = try await TestServer()
        let ann = chat("ann", at: server)
        try await ann.connect()
        let general = try await ann.createChannel("general")
        let sending = (1...100).map { number in Task { try await general.send("\(number)") } }
        for task in sending { _ = try await task.value }
        let list = general.messages(pageSize: 100)
        try await wait("all messages") { list.items.count == 100 && list.items.allSatisfy { $0.state == .sent } }
        #expect(list.items.map(\.text) == (1...100).map { "\($0)" })

        let naming = (1...100).map { number in
            Task { try await ann.call(UpdateChannel(channel: "general", displayName: "\(number)")) }
        }
        var seqs: [Seq] = []
        for task in naming { seqs.append(try await task.value.counters.seq) }
        #expect(seqs == Array(seqs[0]...seqs[0] + 99))
        await ann.disconnect()
        try await server.stop()
    }

    @Test(
        "AM-45 a channel on the screen is marked as read immediately, then at intervals, and its last message is marked at the end"
    )
    func reading() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let bob = chat("bob", at: server)
        try await bob.connect()
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        let general = bob.channel("general")
        func send(_ texts: ClosedRange<Int>) async throws {
            for text in texts {
                try await ann.call(SendMessage(channel: "general", clientId: ClientID("\(text)"), text: "\(text)"))
            }
        }
        try await send(1...3)
        try await wait("three messages") { general.unreadCount == 3 }
        var events = bob.events.makeAsyncIterator()
        /// Counts the marks that the server reports, until there are this many or the message arrives. The screen shows marks before the server has them.
        func marks(upTo count: Int, orUntil text: String) async -> Int {
            var marks = 0
            while marks < count, let news = happened(await events.next(isolation: MainActor.shared)), news.message?.text != text {
                if news.kind == .readingMarked { marks += 1 }
            }
            return marks
        }
        do {
            let token = general.markReadWhileVisible(every: .seconds(3600))
            try await wait("the first mark") { general.unreadCount == 0 }
            #expect(await marks(upTo: 1, orUntil: "4") == 1)
            try await send(4...9)
            try await wait("more messages") { general.unreadCount == 6 }
            #expect(await marks(upTo: 1, orUntil: "9") == 0)
            token.invalidate()
        }
        try await wait("the last mark") { general.unreadCount == 0 }
        #expect(await marks(upTo: 1, orUntil: "10") == 1)
        try await send(10...10)
        #expect(await marks(upTo: 1, orUntil: "10") == 0)
        // It has ended.
        try await wait("the message after it") { general.unreadCount == 1 }
        await bob.disconnect()
        try await server.stop()
    }

    @Test("AM-45 in a list that is scrolled back only the shown messages are marked")
    func readingAList() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let bob = chat("bob", at: server)
        try await bob.connect()
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        for text in 1...60 {
            try await ann.call(SendMessage(channel: "general", clientId: ClientID("\(text)"), text: "\(text)"))
        }
        let general = bob.channel("general")
        try await wait("all messages") { general.unreadCount == 60 }
        let list = general.messages(around: .firstUnread, pageSize: 20)
        try await list.loaded()
        let shown = try #require(list.items.last.flatMap { Int($0.text) })
        let token = general.markReadWhileVisible(list, every: .milliseconds(1))
        try await wait("what is shown") { general.unreadCount == 60 - shown }
        #expect(shown < 60 && list.hasNewer)
        while list.hasNewer { try await list.loadNewer() }
        try await wait("everything") { general.unreadCount == 0 }
        token.invalidate()
        await bob.disconnect()
        try await server.stop()
    }
}
