import Foundation
import Roost
import RoostAPI
import RoostTesting
import Testing

/// The calls of the SDK, each of which may be made again and again.
@MainActor
final class CancelledCalls {
    struct Call: Sendable {
        let name: String
        let run: @MainActor @Sendable () async throws -> Void
    }

    private(set) var all: [Call] = []
    let ann: Chat
    private let bob: Chat
    private let general: LiveChannel
    private let server: RoostTestServer
    private let directory = FileManager.default.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private var last = 0
    /// The texts of messages that were said to be kept.
    private var kept: Set<String> = []

    init(_ server: RoostTestServer) async throws {
        self.server = server
        (ann, bob) = (server.chat(as: "ann", storage: .directory(directory)), server.chat(as: "bob"))
        try await ann.connect()
        try await bob.connect()
        general = try await ann.createChannel("general", users: ["bob"])
        for number in 1...40 { try await bob.channel("general").send("\(number)") }
        try await bob.channel("general").sendConfirmed("41")
        let own = try await general.sendConfirmed("mine")
        try await ann.createChannel("lobby", users: ["bob"])
        addMessages(own)
        addChannels()
        addMembers()
        addLists()
        addChats()
    }

    private func add(_ name: String, _ run: @escaping @MainActor @Sendable () async throws -> Void) {
        all.append(Call(name: name, run: run))
    }

    private func next() -> Int {
        last += 1
        return last
    }

    // MARK: The calls

    private func addMessages(_ own: Message) {
        let general = general
        add("send") { [unowned self] in
            let text = "sent \(next())"
            try await general.send(text)
            kept.insert(text)
        }
        add("sendConfirmed") { [unowned self] in
            let text = "confirmed \(next())"
            try await general.sendConfirmed(MessageDraft(text: text))
            kept.insert(text)
        }
        add("edit") { [unowned self] in try await general.edit(own.messageId, text: "edited \(next())") }
        add("send and delete") { [unowned self] in
            let sent = try await general.send("deleted \(next())")
            let list = general.messages()
            for await update in list.updates {
                guard let item = update.items.last(where: { $0.clientId == sent }) else { continue }
                return try await general.delete(item)
            }
            throw CancellationError()
        }
        add("message") { _ = try await general.message(own.messageId) }
        add("markRead") { try await general.markRead() }
        add("hide") { try await general.hide() }
        add("unhide") { try await general.unhide() }
        add("watch") { _ = try await general.watch() }
        add("unwatch") { try await general.unwatch() }
        add("messages") {
            let list = general.messages(pageSize: 5)
            try await list.loaded()
            try await list.loadOlder()
            try await list.loadNewer()
            await list.showNewest()
            await list.retry("none")
            await list.discard("none")
        }
        add("messages around") { try await general.messages(around: .message(own.messageId), pageSize: 5).loaded() }
        add("messages around the first unread") { try await general.messages(around: .firstUnread).loaded() }
    }

    private func addChannels() {
        let (ann, general) = (ann, general)
        add("call") { _ = try await ann.call(GetChannel(channel: "general")) }
        add("createChannel, destroy") { [unowned self] in
            let channel = try await ann.createChannel(ChannelID("room-\(next())"))
            try await channel.destroy()
        }
        add("createConversation") { try await ann.createConversation(with: ["bob"]) }
        add("getChannel") { _ = try await ann.getChannel("general") }
        add("joinChannel") { try await ann.joinChannel("general") }
        add("update") { [unowned self] in try await general.update(displayName: "General \(next())") }
        add("freeze") { try await general.freeze() }
        add("unfreeze") { try await general.unfreeze() }
        add("silence") { try await general.silence(for: .seconds(1000)) }
        add("unsilence") { try await general.unsilence() }
        add("setRateLimit") { try await general.setRateLimit(messages: 1000, per: .seconds(1)) }
        add("removeRateLimit") { try await general.removeRateLimit() }
        add("explain") { _ = try await general.explain(.messageSend) }
    }

    private func addMembers() {
        let (ann, bob, general) = (ann, bob, general)
        add("members") { _ = try await general.members(limit: 1) }
        add("addMembers") { try await general.addMembers(["dan"]) }
        add("setRole") { try await general.setRole(.member, of: ["dan"]) }
        add("removeMembers") { try await general.removeMembers(["dan"]) }
        add("invite, withdraw") {
            try await general.invite(["eve"])
            try await general.withdrawInvitations(of: ["eve"])
        }
        add("join and leave") {
            let lobby = bob.channel("lobby")
            try await lobby.join()
            try await lobby.leave()
        }
        add("me, users") {
            _ = try await ann.me()
            _ = try await ann.users(["bob"])
        }
        add("updateMe") { [unowned self] in _ = try await ann.updateMe(displayName: "Ann \(next())") }
        add("setAutoAcceptInvitations") { try await ann.setAutoAcceptInvitations(false) }
    }

    private func addLists() {
        let (ann, general) = (ann, general)
        add("channels") {
            let list = ann.channels(matching: ChannelQuery(), pageSize: 1)
            try await list.loaded()
            try await list.loadMore()
        }
        add("channels of the server") {
            let list = ann.channels(matching: ChannelQuery(membership: .all), pageSize: 1)
            try await list.loaded()
            try await list.loadMore()
        }
        add("member list") {
            let list = general.members(pageSize: 1)
            try await list.loaded()
            try await list.loadMore()
        }
        add("member search") { try await general.searchMembers("b").loaded() }
        add("live objects") {
            try await ann.invitations().loaded()
            try await ann.unread.loaded()
            try await ann.preferences.loaded()
            try await ann.user("bob").loaded()
            try await ann.channel("general").loaded()
        }
        add("outbox") {
            let outbox = ann.outbox
            try await outbox.loaded()
            await outbox.loadMore()
            if let entry = outbox.entries.first { await outbox.retry(entry) }
            await outbox.sendToThisServer()
            await outbox.discardForAnotherServer()
        }
        add("updates") { for await _ in general.messages().updates { return } }
        add("events") {
            try await general.update(customType: "x")
            let events = ann.events
            Task { try? await general.update(customType: "y") }
            for await _ in events { return }
        }
    }

    private func addChats() {
        let (server, directory) = (server, directory)
        add("connect, disconnect") {
            let chat = server.chat(as: "cat")
            try await chat.connect()
            await chat.disconnect()
        }
        add("connect with a timeout") {
            let chat = server.chat(as: "cat")
            try await chat.connect(timeout: .seconds(20))
            try await chat.logOut()
        }
        add("logOut") {
            let folder = directory.appending(component: UUID().uuidString)
            let chat = server.chat(as: "cat", storage: .directory(folder))
            try await chat.connect()
            try await chat.logOut(discardingUnsent: true)
            try await Chat.erase("cat", at: server.url, in: .directory(folder))
        }
        add("StoredChat") {
            let stored = try StoredChat(user: "ann", at: server.url, in: .directory(directory))
            _ = try await stored.channels()
            _ = try await stored.channel("general")
            _ = try await stored.messages(in: "general")
            _ = try await stored.unread()
        }
    }

    // MARK: The end

    /// Everything that was said to be kept has arrived, once.
    func checkNothingIsLost() async throws {
        for await entries in ann.outbox.updates where entries.isEmpty { break }
        var texts: [String: Int] = [:]
        var page = ListMessages(channel: "general", after: 0, limit: 100)
        while true {
            let messages = try await bob.call(page).messages
            for message in messages { texts[message.text, default: 0] += 1 }
            guard let last = messages.last else { break }
            page.after = last.seq
        }
        #expect(kept.count > 1)
        for text in kept { #expect(texts[text] == 1, "\(text)") }
        #expect(texts.filter { $0.key.contains("ed ") && $0.value > 1 } == [:])
    }

    func end() async throws {
        await ann.disconnect()
        await bob.disconnect()
        try FileManager.default.removeItem(at: directory)
    }
}
