import Roost
import RoostAPI
import RoostTestSupport
import Testing

/// Reading sessions over real sockets, and as the SDK shows them.
@Suite struct ReadingSessionTests {
    /// The next read position that a device receives.
    private func position(_ socket: RawSocket, of channel: ChannelID = "general") async throws -> Seq {
        while true {
            let event = try await socket.nextEvent()
            if let row = event.rows.memberships?.first, event.kind == .readingMarked, row.channelId == channel {
                return row.readSeq
            }
        }
    }

    /// Waits until a device is notified that it no longer reads the channel.
    private func readingEnds(on socket: RawSocket) async throws {
        while true {
            switch await socket.next() {
            case .text(#"{"readingEnded":{"channel":"general"}}"#): return
            case .text, .ping: continue
            case let other: throw Missed("the end of reading: \(other)")
            }
        }
    }

    @Test(
        "AM-45 R25 while a device reads, messages it receives are read on all devices; stopping ends it for that device and channel only"
    )
    func reading() async throws {
        let server = try await TestServer()
        let (ann, phone, tablet) = (try await server.socket("ann"), try await server.socket("bob"), try await server.socket("bob"))
        for channel: ChannelID in ["general", "other"] { try await ann.call(CreateChannel(channel: channel, users: ["bob"])) }
        let first = try await ann.send("general", "1")
        #expect(try await tablet.call(StartReading(channel: "general")).unreadCount == 0)
        #expect(try await position(phone) == first.seq)
        // Any number of times, and several channels at once.
        #expect(try await tablet.call(StartReading(channel: "general")).readSeq == first.seq)
        try await tablet.call(StartReading(channel: "other"))
        _ = try await ann.send("general", "2")
        let second = try await ann.send("general", "3")
        try await tablet.confirmReading(upTo: second.seq, asking: phone)
        while try await position(phone) != second.seq {}
        #expect(try await phone.call(GetUnread(channel: "general")).unreadCount == 0)

        try await tablet.call(StopReading(channel: "general"))
        _ = try await ann.send("general", "4")
        let third = try await ann.send("other", "5")
        try await tablet.confirmReading(upTo: third.seq, of: "other", asking: phone)
        while try await position(phone, of: "other") != third.seq {}
        #expect(try await phone.call(GetTotalUnread()) == TotalUnread(unreadCount: 1, unreadChannelCount: 1))
        // HTTP has no session that could end.
        let token = try await server.token("bob")
        let refused = try await server.request("POST", "/v1/channels/general/reading", token: token, body: "{}")
        #expect(refused.status == 409 && refused.body.contains("not_connected"))
        try await server.stop()
    }

    @Test("AM-46 a device that is cut off or doesn't answer reads nothing more; the others continue")
    func cutOff() async throws {
        let server = try await TestServer()
        let (ann, phone) = (try await server.socket("ann"), try await server.socket("bob"))
        let (silent, gone) = (try await server.socket("bob"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        for socket in [silent, gone] { try await socket.call(StartReading(channel: "general")) }
        // A line that is cut in one direction: the server writes, and nothing arrives.
        await silent.stopAnsweringPings()
        await gone.close()
        try await ann.send("general", "1")
        try await silent.waitForPing()
        #expect(try await phone.call(GetUnread(channel: "general")).unreadCount == 1)
        try await phone.call(StartReading(channel: "general"))
        let second = try await ann.send("general", "2")
        try await phone.confirmReading(upTo: second.seq, asking: phone)
        while try await position(phone) != second.seq {}
        #expect(try await ann.call(GetUnread(channel: "general")).unreadCount == 0)
        try await server.stop()
    }

    @Test("AM-45 marking as unread on any device ends reading, and so does leaving")
    func ends() async throws {
        let server = try await TestServer()
        let (ann, phone, tablet) = (try await server.socket("ann"), try await server.socket("bob"), try await server.socket("bob"))
        for channel: ChannelID in ["general", "other"] { try await ann.call(CreateChannel(channel: channel, users: ["bob"])) }
        let sent = try await ann.send("general", "1")
        for channel: ChannelID in ["general", "other"] { try await tablet.call(StartReading(channel: channel)) }
        #expect(try await phone.call(MarkUnread(channel: "general", seq: sent.seq)).unreadCount == 1)
        try await ann.send("general", "2")
        // The ping is about the other channel only.
        let other = try await ann.send("other", "3")
        try await tablet.confirmReading(upTo: other.seq, of: "other", asking: phone)
        #expect(try await phone.call(GetUnread(channel: "general")).unreadCount == 2)
        try await phone.call(LeaveChannel(channel: "other"))
        try await ann.call(AddMembers(channel: "other", users: ["bob"]))
        try await ann.send("other", "4")
        let again = try await ann.send("general", "5")
        try await tablet.call(StartReading(channel: "general"))
        while try await position(phone) != again.seq {}
        #expect(try await phone.call(GetUnread(channel: "other")).unreadCount == 1)
        try await server.stop()
    }

    @Test("AM-45 the end of reading with the membership has no separate frame: the channel's removal implies it")
    func endsWithMembership() async throws {
        let server = try await TestServer()
        let (ann, phone, tablet) = (try await server.socket("ann"), try await server.socket("bob"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        try await tablet.call(StartReading(channel: "general"))
        try await phone.call(LeaveChannel(channel: "general"))
        let last = try await tablet.post(GetTotalUnread())
        var frames: [String] = []
        while frames.last?.hasPrefix(#"{"reply":\#(last)"#) != true {
            switch await tablet.next() {
            case .text(let text): frames.append(text)
            case .ping: continue
            case let other: throw Missed("the reply: \(other)")
            }
        }
        #expect(frames.contains { $0.contains(#""event":"member.left""#) && $0.contains(#""channelId":"general""#) }, "\(frames)")
        #expect(!frames.contains { $0.contains("readingEnded") }, "\(frames)")
        try await server.stop()
    }

    @Test("AM-45 a message that a device confirms late isn't read if another device has marked it as unread meanwhile")
    func confirmedLate() async throws {
        let server = try await TestServer()
        let (ann, phone, tablet) = (try await server.socket("ann"), try await server.socket("bob"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        try await tablet.call(StartReading(channel: "general"))
        await tablet.stopAnsweringPings()
        let sent = try await ann.send("general", "1")
        try await tablet.waitForPing()
        #expect(try await phone.call(MarkRead(channel: "general")).unreadCount == 0)
        #expect(try await phone.call(MarkUnread(channel: "general", seq: sent.seq)).unreadCount == 1)
        // The line is slow, not cut: the tablet is notified before its answer arrives.
        while try await tablet.nextEvent().kind != .readingUnmarked {}
        await tablet.answerPingsAgain()
        // A call after the answer in the same channel is queued after its effects.
        #expect(try await tablet.call(MarkRead(channel: "general", seq: sent.seq - 1)).unreadCount == 1)
        #expect(try await phone.call(GetUnread(channel: "general")).unreadCount == 1)
        try await server.stop()
    }

    @Test("AM-45 marking an unconfirmed message as unread ends reading as well")
    func markedBefore() async throws {
        let server = try await TestServer()
        let (ann, phone, tablet) = (try await server.socket("ann"), try await server.socket("bob"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        try await tablet.call(StartReading(channel: "general"))
        await tablet.stopAnsweringPings()
        let sent = try await ann.send("general", "1")
        try await tablet.waitForPing()
        #expect(try await phone.call(MarkUnread(channel: "general", seq: sent.seq)).unreadCount == 1)
        // The mark makes no event, since the position is unchanged: the connection is notified anyway.
        #expect(await tablet.nextText() == #"{"readingEnded":{"channel":"general"}}"#)
        await tablet.answerPingsAgain()
        #expect(try await tablet.call(MarkRead(channel: "general", seq: sent.seq - 1)).unreadCount == 1)
        try await ann.send("general", "2")
        // Another channel is confirmed after it, by the same device.
        try await ann.call(CreateChannel(channel: "other", users: ["bob"]))
        try await tablet.call(StartReading(channel: "other"))
        let other = try await ann.send("other", "3")
        try await tablet.confirmReading(upTo: other.seq, of: "other", asking: phone)
        #expect(try await phone.call(GetUnread(channel: "general")).unreadCount == 2)
        try await server.stop()
    }

    @Test("AM-45 MN-16 a device that may not read for a while hasn't read what it didn't get, nor messages until it reads again")
    func rightComesBack() async throws {
        let server = try await TestServer()
        let (ann, phone) = (try await server.socket("ann"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        try await phone.call(StartReading(channel: "general"))
        func open(to readers: ChannelPolicy.Audience) async throws {
            try await ann.call(UpdateChannel(channel: "general", policy: PolicyChanges(read: readers)))
        }
        try await open(to: .operators)
        try await readingEnds(on: phone)
        try await ann.call(SendMessage(channel: "general", clientId: "1", text: "@all", mentionees: [.channel]))
        try await open(to: .members)
        // Another channel is confirmed after it, by the same device.
        try await ann.call(CreateChannel(channel: "other", users: ["bob"]))
        try await phone.call(StartReading(channel: "other"))
        let other = try await ann.send("other", "2")
        try await phone.confirmReading(upTo: other.seq, of: "other", asking: phone)
        let unread = try await phone.call(GetUnread(channel: "general"))
        #expect(unread.unreadCount == 1 && unread.hasMention)
        #expect(try await phone.call(StartReading(channel: "general")).unreadCount == 0)
        try await server.stop()
    }

    @Test("AM-45 a device that was away while another marked as unread stops reading, and undoes nothing")
    @MainActor func markedWhileAway() async throws {
        let server = try await TestServer()
        let (ann, bob, phone) = (chat("ann", at: server), chat("bob", at: server), chat("bob", at: server))
        for client in [ann, bob, phone] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let (mine, atPhone) = (bob.channel("general"), phone.channel("general"))
        let first = try await general.sendConfirmed("1")
        try await wait("the message") { mine.unreadCount == 1 && atPhone.unreadCount == 1 }
        try await mine.startReading()
        try await wait("all to be read") { mine.unreadCount == 0 && atPhone.unreadCount == 0 }
        await bob.disconnect()
        #expect(mine.unreadCount == 0)
        try await phone.outbox.loaded()
        try await atPhone.markUnread(from: first.seq)
        try await wait("the server to have it") { phone.outbox.entries.isEmpty && atPhone.unreadCount == 1 }
        try await bob.connect()
        try await wait("the message to be unread here") { mine.unreadCount == 1 }
        let second = try await general.sendConfirmed("2")
        try await wait("the second message") { mine.lastMessage == second && atPhone.lastMessage == second }
        #expect(mine.unreadCount == 2 && atPhone.unreadCount == 2)
        #expect(try await bob.call(GetUnread(channel: "general")).unreadCount == 2)
        // Reading continues once the user says so.
        try await mine.startReading()
        try await wait("all to be read") { mine.unreadCount == 0 && atPhone.unreadCount == 0 }
        try await server.stop()
    }

    @Test("AM-45 R25 with the SDK nothing is unread on the device at any moment while a channel is read, after a reconnect too")
    @MainActor func shown() async throws {
        let server = try await TestServer()
        let (ann, bob, phone) = (chat("ann", at: server), chat("bob", at: server), chat("bob", at: server))
        for client in [ann, bob, phone] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let (mine, atPhone) = (bob.channel("general"), phone.channel("general"))
        try await wait("the channel") { mine.currentUserMembership == .member && atPhone.currentUserMembership == .member }
        try await general.sendConfirmed("1")
        try await wait("the message") { mine.unreadCount == 1 && atPhone.unreadCount == 1 }

        try await mine.startReading()
        try await wait("all to be read") { mine.unreadCount == 0 && atPhone.unreadCount == 0 }
        var counts: Set<Int> = []
        let total = bob.unread
        try await total.loaded()
        let tokens = [mine.observe { _ in counts.insert(mine.unreadCount) }, total.observe { counts.insert($0.unreadCount) }]
        let second = try await general.sendConfirmed("2")
        try await wait("the second message") { mine.lastMessage == second }
        try await wait("the other device to have it as read") { atPhone.lastMessage == second && atPhone.unreadCount == 0 }
        // Messages during an absence arrive and are read immediately; the others learn it with the next connection.
        await bob.disconnect()
        let third = try await general.sendConfirmed("3")
        try await wait("the third message") { atPhone.lastMessage == third && atPhone.unreadCount == 1 }
        try await bob.connect()
        try await wait("the third message here") { mine.lastMessage == third && atPhone.unreadCount == 0 }
        #expect(counts == [0])

        try await mine.stopReading()
        let fourth = try await general.sendConfirmed("4")
        try await wait("the fourth message") { mine.lastMessage == fourth && mine.unreadCount == 1 && atPhone.unreadCount == 1 }
        // Offline too: messages on this device are read once there is a connection.
        await bob.disconnect()
        try await mine.startReading()
        try await wait("all to be read here") { mine.unreadCount == 0 }
        try await mine.stopReading()
        #expect(mine.unreadCount == 0)
        try await bob.connect()
        try await wait("all to be read") { atPhone.unreadCount == 0 }
        // Another device ends it; a stop after that reads nothing.
        try await mine.startReading()
        try await atPhone.markUnread(from: fourth.seq)
        try await wait("the message to be unread") { mine.unreadCount == 1 && atPhone.unreadCount == 1 }
        try await mine.stopReading()
        #expect(mine.unreadCount == 1)
        for token in tokens { token.invalidate() }
        try await #require(throws: RoostError.self) { try await ann.channel("nowhere").startReading() }
        try await server.stop()
    }
}
