import Foundation
import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Lists of messages that don't begin at the newest message, against the real server.
@MainActor @Suite("Messages: lists around a place", .timeLimit(.minutes(5)))
struct MessageAnchorTests {
    /// Ann's socket in a channel with 200 messages of hers, of which bob has read 80.
    ///
    /// - Parameter isApart: Whether each message has its own millisecond: a page around a time keeps those of one moment together.
    private func room(
        at server: TestServer, _ count: Int = 200, isApart: Bool = false
    ) async throws -> (ann: RawSocket, messages: [Message]) {
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        try await ann.call(CreateChannel(channel: "general"))
        try await bob.call(JoinChannel(channel: "general"))
        var messages: [Message] = []
        for number in 1...count {
            let message = try await send("\(number)", ann)
            messages.append(message)
            while isApart, Timestamp(Date()) <= message.createdAt { await Task.yield() }
        }
        if count > 80 { try await bob.call(MarkRead(channel: "general", seq: messages[79].seq)) }
        return (ann, messages)
    }

    @discardableResult
    private func send(_ text: String, _ socket: RawSocket) async throws -> Message {
        try await socket.call(SendMessage(channel: "general", clientId: ClientID(text), text: text))
    }

    /// Bob reads everything on a device, which then goes offline.
    private func readAll(at server: TestServer, in folder: URL) async throws {
        let bob = chat("bob", at: server, in: folder)
        try await bob.connect()
        _ = try await bob.call(MarkRead(channel: "general"))
        let read = bob.channel("general")
        try await read.loaded()
        try await wait("everything read") { read.unreadCount == 0 }
        await bob.disconnect()
    }

    private func texts(_ range: ClosedRange<Int>) -> [String] { range.map { "\($0)" } }

    @Test(
        "AM-30 AM-43 I6 a list from the first unread message continues in both directions, and reading doesn't move the mark"
    )
    func firstUnread() async throws {
        let server = try await TestServer()
        let (ann, _) = try await room(at: server)
        let bob = chat("bob", at: server)
        try await bob.connect()
        let general = bob.channel("general")
        let list = general.messages(around: .firstUnread, pageSize: 20)
        try await list.loaded()
        #expect(list.items.map(\.text) == texts(71...90) && list.hasOlder && list.hasNewer && list.newerCount == nil)
        let mark = list.firstUnread
        #expect(mark?.clientId == "81")
        // It is further back than a list of the newest reaches.
        let newest = general.messages(pageSize: 20)
        try await newest.loaded()
        #expect(newest.items.map(\.text) == texts(181...200) && newest.firstUnread == mark)

        try await list.loadOlder()
        #expect(list.items.map(\.text) == texts(51...90))
        try await send("201", ann)
        try await wait("the newest message") { newest.items.last?.text == "201" }
        #expect(list.items.map(\.text) == texts(51...90))
        while list.hasNewer { try await list.loadNewer() }
        #expect(list.items.map(\.text) == texts(51...201))
        try await general.markRead()
        try await send("202", ann)
        try await wait("a message that came") { list.items.last?.text == "202" }
        #expect(list.firstUnread == mark && newest.firstUnread == mark)

        // A read channel has no first unread message.
        try await general.markRead()
        try await wait("everything read") { general.unreadCount == 0 }
        let read = general.messages(around: .firstUnread, pageSize: 20)
        try await read.loaded()
        #expect(read.items.map(\.text) == texts(183...202) && read.firstUnread == nil && !read.hasNewer)
        await bob.disconnect()
        try await server.stop()
    }

    @Test("AM-43 AM-45 a list made right before the channel is read marks the messages unread at that time, each time")
    func beforeReading() async throws {
        let server = try await TestServer()
        let (ann, _) = try await room(at: server)
        let bob = chat("bob", at: server)
        try await bob.connect()
        let general = bob.channel("general")
        try await general.loaded()
        for number in 201...220 {
            let list = general.messages(around: .firstUnread, pageSize: 20)
            try await general.startReading()
            try await list.loaded()
            #expect(list.firstUnread?.clientId == (number == 201 ? "81" : ClientID("\(number - 1)")))
            try await general.stopReading()
            try await send("\(number)", ann)
            try await wait("the message") { general.unreadCount == 1 }
        }
        await bob.disconnect()
        try await server.stop()
    }

    @Test(
        "AM-30 AM-43 a list made before the device has caught up moves to the first unread message then, unless the app has moved it"
    )
    func unreadFoundLater() async throws {
        let server = try await TestServer()
        let (ann, _) = try await room(at: server, 60)
        let folder = TemporaryDirectory.make()
        try await readAll(at: server, in: folder)
        for number in 61...100 { try await send("\(number)", ann) }
        let bob = chat("bob", at: server, in: folder)
        let general = bob.channel("general")
        let list = general.messages(around: .firstUnread, pageSize: 20)
        let moved = general.messages(around: .firstUnread, pageSize: 10)
        let atEnd = general.messages(around: .firstUnread, pageSize: 20)
        for list in [list, moved, atEnd] {
            try await list.loaded()
            #expect(list.firstUnread == nil && list.items.last?.text == "60")
        }
        try await moved.loadOlder()
        // The last row is visible: an app asks for newer ones, and there are none.
        try await atEnd.loadNewer()
        try await bob.connect()
        for list in [list, atEnd] {
            try await wait("the first unread message") {
                list.firstUnread?.clientId == "61" && list.items.contains { $0.text == "61" }
            }
            #expect(list.items.map(\.text) == texts(51...70) && list.hasNewer)
        }
        try await wait("the newest message") { moved.items.last?.text == "100" }
        #expect(moved.firstUnread?.clientId == "61")
        await bob.disconnect()
        try await server.stop()
    }

    @Test(
        "AM-43 a list made without a connection, with everything read, has no first unread message when one arrives later"
    )
    func nothingUnreadFound() async throws {
        let server = try await TestServer()
        let (ann, _) = try await room(at: server, 60)
        let folder = TemporaryDirectory.make()
        try await readAll(at: server, in: folder)
        let bob = chat("bob", at: server, in: folder)
        let general = bob.channel("general")
        let lists = [general.messages(around: .firstUnread, pageSize: 20), general.messages(pageSize: 20)]
        for list in lists { try await list.loaded() }
        try await bob.connect()
        // Each list reads again once there is a connection. This list and the call come after that.
        let later = general.messages(pageSize: 20)
        try await later.loaded()
        #expect(try await bob.call(GetUnread(channel: "general")).unreadCount == 0)
        try await send("61", ann)
        for list in lists + [later] {
            try await wait("the message") { list.items.last?.text == "61" }
            #expect(list.firstUnread == nil)
        }
        await bob.disconnect()
        try await server.stop()
    }

    @Test(
        "AM-30 I6 a list around a message stays there while others arrive, reports them, and shows changes to its own, live and after an absence"
    )
    func message() async throws {
        let server = try await TestServer()
        let (ann, messages) = try await room(at: server)
        let bob = chat("bob", at: server)
        try await bob.connect()
        let general = bob.channel("general")
        let list = general.messages(around: .message(messages[49].messageId), pageSize: 10)
        try await list.loaded()
        #expect(list.items.map(\.text) == texts(46...55))
        try await ann.call(EditMessage(channel: "general", message: messages[50].messageId, text: "live"))
        try await wait("an edit") { list.items[5].text == "live" }
        try await general.sendConfirmed("mine")
        try await send("201", ann)
        await bob.disconnect()
        try await ann.call(EditMessage(channel: "general", message: messages[51].messageId, text: "later"))
        try await ann.call(DeleteMessage(channel: "general", message: messages[52].messageId))
        try await bob.connect()
        try await wait("what was missed") { list.items[6].text == "later" && list.items[7].isDeleted }
        #expect(list.items.map(\.text) == ["46", "47", "48", "49", "50", "live", "later", "", "54", "55"] && list.hasNewer)

        await list.showNewest()
        #expect(list.items.last?.text == "201" && !list.hasNewer && list.newerCount == 0)
        try await list.loadOlder()
        try await send("202", ann)
        try await wait("the newest message") { list.items.last?.text == "202" }
        await bob.disconnect()
        try await server.stop()
    }

    @Test(
        "AM-30 SB-51 SB-55 a list begins at a time, or at the beginning or end if nothing is there, and offline where it was"
    )
    func time() async throws {
        let server = try await TestServer()
        let (ann, messages) = try await room(at: server, isApart: true)
        let bob = chat("bob", at: server)
        try await bob.connect()
        let general = bob.channel("general")
        let time = messages[99].createdAt
        let first = messages.firstIndex { $0.createdAt >= time } ?? 0
        let list = general.messages(around: .time(time), pageSize: 10)
        try await list.loaded()
        #expect(list.items.map(\.text) == texts(first - 4...first + 5) && list.hasOlder && list.hasNewer)
        try await list.loadOlder()
        try await list.loadNewer()
        #expect(list.items.map(\.text) == texts(first - 14...first + 15))
        let ends = [
            Timestamp(milliseconds: 0), messages[0].createdAt, Timestamp(milliseconds: messages[199].createdAt.milliseconds + 1000),
        ]
        var shown: [MessageList] = []
        for time in ends { shown.append(general.messages(around: .time(time), pageSize: 10)) }
        for list in shown { try await list.loaded() }
        #expect(shown[0].items.map(\.text) == texts(1...5) && !shown[0].hasOlder)
        #expect(shown[1].items.first?.text == "1" && !shown[1].hasOlder)
        #expect(shown[2].items.map(\.text) == texts(191...200) && !shown[2].hasNewer)
        try await send("201", ann)
        try await wait("the newest message") { shown[2].items.last?.text == "201" }

        await bob.disconnect()
        let again = general.messages(around: .time(time), pageSize: 10)
        try await again.loaded()
        #expect(again.items.map(\.text) == texts(first - 4...first + 5))
        // If this device doesn't know the place, it needs a connection.
        let elsewhere = general.messages(around: .time(messages[150].createdAt), pageSize: 10)
        try await wait("the reason") { elsewhere.phase != .loading || !elsewhere.items.isEmpty }
        #expect(elsewhere.phase != .loaded && elsewhere.items.last?.text == "201")
        try await bob.connect()
        try await elsewhere.loaded()
        #expect(elsewhere.items.contains { $0.text == "151" } && elsewhere.hasNewer)

        // Messages before bob's visible history aren't shown, whatever the time.
        _ = try await bob.call(ResetHistory(channel: "general"))
        try await send("202", ann)
        try await wait("what came since") { general.lastMessage?.text == "202" && list.items.last?.text == "202" }
        let floor = general.messages(around: .time(time), pageSize: 10)
        try await floor.loaded()
        #expect(floor.items.map(\.text) == ["202"] && !floor.hasOlder && !floor.hasNewer)
        await bob.disconnect()
        try await server.stop()
    }

    @Test("AM-30 SB-26 a missing message, or one hidden from the user, is refused; the list continues where it is asked to")
    func refused() async throws {
        let server = try await TestServer()
        let (ann, messages) = try await room(at: server, 50)
        let bob = chat("bob", at: server)
        try await bob.connect()
        let general = bob.channel("general")
        // Once the server has it: a hide queued in the outbox would hide the next message too.
        _ = try await bob.call(HideChannel(channel: "general", hidePreviousMessages: true))
        try await send("51", ann)
        for id in [messages[9].messageId, MessageID(rawValue: 1)] {
            let list = general.messages(around: .message(id))
            await #expect(throws: RoostError(.notFound, "There is no such message.", field: "aroundMessage")) {
                try await list.loaded()
            }
            await #expect(throws: RoostError.self) { try await general.message(id) }
            #expect(list.items.isEmpty)
            // Events in the channel don't turn it into another message's list.
            try await send("after \(id)", ann)
            try await wait("the message") { general.lastMessage?.text == "after \(id)" }
            #expect(list.items.isEmpty && list.phase.error?.code == .notFound)
            await list.showNewest()
            #expect(list.phase == .loaded && list.items.first?.text == "51")
        }
        let closed = bob.channel("nowhere").messages(around: .message(messages[9].messageId))
        await #expect(throws: RoostError.self) { try await closed.loaded() }
        #expect(closed.phase.error?.code == .notMember)
        await bob.disconnect()
        try await server.stop()
    }

    @Test("AM-30 offline, a fetched place is shown again; instead of any other the newest stored messages are, until connected")
    func offline() async throws {
        let server = try await TestServer()
        let (_, messages) = try await room(at: server)
        let directory = TemporaryDirectory.make()
        do {
            let bob = chat("bob", at: server, in: directory)
            try await bob.connect()
            let list = bob.channel("general").messages(around: .message(messages[49].messageId), pageSize: 10)
            try await list.loaded()
            await bob.disconnect()
        }
        let bob = chat("bob", at: server, in: directory)
        let general = bob.channel("general")
        let known = general.messages(around: .message(messages[51].messageId), pageSize: 10)
        try await known.loaded()
        #expect(known.items.map(\.text) == texts(46...55) && known.hasOlder && known.hasNewer)
        #expect(try await general.message(messages[47].messageId) == messages[47])
        await #expect(throws: RoostError(.notConnected, "There is no connection to the server.")) { try await known.loadNewer() }

        let unknown = general.messages(around: .message(messages[99].messageId), pageSize: 10)
        try await wait("what is here") { unknown.items.map(\.text) == texts(191...200) }
        #expect(unknown.phase == .loading)
        // The last row is visible: an app asks for newer ones, and there are none.
        try await unknown.loadNewer()
        #expect(unknown.phase == .loading && unknown.items.map(\.text) == texts(191...200))
        await #expect(throws: RoostError.self) { try await general.message(messages[99].messageId) }
        let unread = general.messages(around: .firstUnread, pageSize: 10)
        try await wait("what is here") { unread.items.map(\.text) == texts(191...200) }
        try await bob.connect()
        try await unknown.loaded()
        try await unread.loaded()
        #expect(unknown.items.map(\.text) == texts(96...105))
        #expect(unread.items.contains { $0.id == unread.firstUnread } && unread.items.map(\.text) == texts(76...85))
        #expect(try await general.message(messages[99].messageId) == messages[99])
        await bob.disconnect()
        try await server.stop()
    }

    @Test("AM-30 I6 a list whose channel was re-fetched after a long absence stays where it was, not at the newest messages")
    func afresh() async throws {
        let server = try await TestServer()
        let (ann, messages) = try await room(at: server, 100)
        let bob = chat("bob", at: server)
        try await bob.connect()
        let general = bob.channel("general")
        let list = general.messages(around: .message(messages[49].messageId), pageSize: 10)
        let newest = general.messages(pageSize: 10)
        try await list.loaded()
        await bob.disconnect()
        for number in 101...620 { try await send("\(number)", ann) }
        try await bob.connect()
        try await wait("the newest messages") { newest.items.map(\.text) == texts(611...620) }
        try await wait("the place where it was") { list.items.contains { $0.text == "50" } && list.phase == .loaded }
        let numbers = list.items.compactMap { Int($0.text) }
        #expect(numbers == Array((numbers.first ?? 0)...(numbers.last ?? 0)) && numbers.count == 10 && list.hasNewer)
        await bob.disconnect()
        try await server.stop()
    }
}
