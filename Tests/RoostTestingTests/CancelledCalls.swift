import Foundation
import Roost
import RoostAPI
import RoostTesting
import Testing

/// The calls of the SDK, each of which can be repeated.
///
/// The name of an entry begins with the functions that it is for: `LiveChannel.send, delete: a row` is for two of `LiveChannel`.
/// A function with several forms has an entry for each. `CancelledCallListTests` fails if one is missing.
@MainActor
final class CancelledCalls {
    struct Call: Sendable {
        let name: String
        /// Whether it starts with preparation that continues if it is cancelled, and takes most of its turns.
        let hasPreparation: Bool
        let run: @MainActor @Sendable () async throws -> Void
    }

    private(set) var all: [Call] = []
    let ann: Chat
    private let bob: Chat
    /// A chat that is never connected: messages that it is asked to send stay in its outbox.
    private let offline: Chat
    private let general: LiveChannel
    private let server: RoostTestServer
    private let directory = FileManager.default.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private var last = 0
    /// The texts of messages acknowledged as kept.
    private var kept: Set<String> = []

    /// A server for the calls. It keeps the content of deleted messages; otherwise none could be undeleted.
    static func server() async throws -> RoostTestServer {
        try await RoostTestServer(options: AppOptions(undeletionSeconds: 3600))
    }

    init(_ server: RoostTestServer) async throws {
        self.server = server
        (ann, bob) = (server.chat(as: "ann", storage: .directory(directory)), server.chat(as: "bob"))
        offline = server.chat(as: "fay")
        try await ann.connect()
        try await bob.connect()
        // An invitation that is accepted automatically leaves nothing to answer.
        _ = try await ann.call(UpdatePreferences(autoAcceptInvitations: false))
        general = try await ann.createChannel("general", users: ["bob"])
        for number in 1...40 { try await bob.channel("general").send("\(number)") }
        try await bob.channel("general").sendConfirmed("41")
        // With another watcher, a list of one has a second page.
        try await bob.channel("general").watch(limit: 0)
        let own = try await general.sendConfirmed("mine")
        try await ann.createChannel("lobby", users: ["bob"])
        addMessages(own)
        addRows(own)
        try await addDeletions()
        addReading()
        addWatching()
        addChannels()
        addMembers()
        addUsers()
        addInvitations()
        addLists()
        addLiveObjects()
        addChats(own)
    }

    private func add(
        _ name: String, hasPreparation: Bool = false, _ run: @escaping @MainActor @Sendable () async throws -> Void
    ) {
        all.append(Call(name: name, hasPreparation: hasPreparation, run: run))
    }

    private func next() -> Int {
        last += 1
        return last
    }

    // MARK: What the calls need

    /// Restores what a call needs to succeed again, even if the call is cancelled.
    private func prepare<Value: Sendable>(
        _ work: @escaping @MainActor @Sendable () async throws -> Value
    ) async throws -> Value {
        try await Task { try await work() }.value
    }

    /// Makes a call that a user may make ten times a second. A refusal takes the same path as an answer.
    private func rateLimited(_ call: @MainActor @Sendable () async throws -> Void) async throws {
        do { try await call() } catch let error as RoostError where error.code == .rateLimited {}
    }

    /// Returns a row of a list once it exists.
    private func row<Item: Identifiable & Hashable & Sendable>(
        of updates: ListUpdates<Item>, where isWanted: (Item) -> Bool
    ) async throws -> Item where Item.ID: Sendable {
        for await update in updates {
            if let item = update.items.last(where: isWanted) { return item }
        }
        // Only a cancelled task reaches the end of the updates.
        throw CancellationError()
    }

    /// Sends a message as ann, to be deleted for good: a second deletion is refused.
    private func newMessage(in channel: ChannelID) async throws -> MessageID {
        let clientId = ClientID("purged-\(next())")
        return try await ann.call(SendMessage(channel: channel, clientId: clientId, text: "purged")).messageId
    }

    /// Invites ann to a new channel of bob's. In a shared channel, a cancelled answer could end the next invitation.
    private func newInvitation() async throws -> ChannelID {
        try await bob.call(CreateChannel(type: .group, users: ["ann"])).channel.channelId
    }

    /// Connects another device of ann's, to be signed out: a second sign-out is refused.
    private func newDevice() async throws -> DeviceID {
        // Fails at once while the server is away. The other device would wait for the server.
        _ = try await ann.me()
        let phone = server.chat(as: "ann")
        try await phone.connect()
        let devices = try await phone.devices()
        await phone.disconnect()
        return try #require(devices.first { $0.isCurrent }).deviceId
    }

    // MARK: The calls

    private func addMessages(_ own: Message) {
        let (ann, general) = (ann, general)
        add("LiveChannel.send") { [unowned self] in
            let text = "sent \(next())"
            try await general.send(text)
            kept.insert(text)
        }
        add("LiveChannel.send: a draft") { [unowned self] in
            let text = "drafted \(next())"
            try await general.send(MessageDraft(text: text))
            kept.insert(text)
        }
        add("LiveChannel.sendConfirmed") { [unowned self] in
            let text = "confirmed \(next())"
            try await general.sendConfirmed(MessageDraft(text: text))
            kept.insert(text)
        }
        add("LiveChannel.edit") { [unowned self] in try await general.edit(own.messageId, text: "edited \(next())") }
        add("LiveChannel.message") { _ = try await general.message(own.messageId) }
        add("LiveChannel.setDraft") { [unowned self] in try await general.setDraft("draft \(next())") }
        add("Chat.mentions") { _ = try await ann.mentions(limit: 1) }
        add("LiveChannel.mentions") { _ = try await general.mentions(limit: 1) }
        add("MessageList.loaded, loadOlder, loadNewer, showNewest, retry, discard") {
            let list = general.messages(pageSize: 5)
            try await list.loaded()
            try await list.loadOlder()
            try await list.loadNewer()
            await list.showNewest()
            await list.retry("none")
            await list.discard("none")
        }
        add("MessageList.loaded: around a message") {
            try await general.messages(around: .message(own.messageId), pageSize: 5).loaded()
        }
        add("MessageList.loaded: around the first unread") { try await general.messages(around: .firstUnread).loaded() }
        add("MessageHistory.loadOlder, loadNewer") {
            let history = general.history(from: .aroundMessage(own.messageId), limit: 5)
            _ = try await history.loadOlder()
            _ = try await history.loadNewer()
        }
    }

    /// Calls with a row of a list, which may be an unsent message.
    private func addRows(_ own: Message) {
        let general = general
        add("LiveChannel.edit: a row") { [unowned self] in
            let list = general.messages(around: .message(own.messageId), pageSize: 5)
            let item = try await row(of: list.updates) { $0.message?.messageId == own.messageId }
            try await general.edit(item, text: "edited \(next())")
        }
        add("LiveChannel.send, delete: a row") { [unowned self] in
            let sent = try await general.send("deleted \(next())")
            let item = try await row(of: general.messages().updates) { $0.clientId == sent }
            try await general.delete(item)
        }
        add("MessageList.retry, discard: a row") { [unowned self] in
            let sent = try await general.send("discarded \(next())")
            let list = general.messages()
            let item = try await row(of: list.updates) { $0.clientId == sent }
            await list.retry(item)
            await list.discard(item)
        }
    }

    /// They have their own channel: no other call needs what they delete.
    private func addDeletions() async throws {
        let attic = try await ann.createChannel("attic", users: ["bob"])
        let lobby = ann.channel("lobby")
        let deleted = try await attic.sendConfirmed("deleted").messageId
        let several = [
            try await attic.sendConfirmed("the first").messageId,
            try await attic.sendConfirmed("the second").messageId,
        ]
        let hidden = try await attic.sendConfirmed("hidden").messageId
        let liked = try await attic.sendConfirmed("liked").messageId
        add("LiveChannel.delete, undelete") {
            try await attic.delete(deleted)
            try await attic.undelete(deleted)
        }
        add("LiveChannel.delete: several") { try await attic.delete(several) }
        add("LiveChannel.deleteForMe") { try await attic.deleteForMe([hidden]) }
        add("LiveChannel.purge", hasPreparation: true) { [unowned self] in
            let message = try await prepare { [unowned self] in try await newMessage(in: "attic") }
            try await attic.purge(message)
        }
        add("LiveChannel.updateMetaArrays") { [unowned self] in
            // The list is replaced each time, or it would be full after a hundred.
            try await attic.updateMetaArrays(
                of: liked, create: ["likes"], add: ["likes": ["\(next())"]], remove: ["likes"])
        }
        add("LiveChannel.resetHistory") { try await lobby.resetHistory() }
    }

    private func addReading() {
        let (ann, general) = (ann, general)
        add("LiveChannel.markRead") { try await general.markRead() }
        add("LiveChannel.markUnread, Chat.markAllRead") {
            try await general.markUnread(from: 2)
            try await ann.markAllRead()
        }
        add("LiveChannel.startReading, stopReading") {
            try await general.startReading()
            try await general.stopReading()
        }
        add("LiveReceipts.loaded") { try await general.receipts().loaded() }
        add("LiveChannel.hide") { try await general.hide() }
        add("LiveChannel.unhide") { try await general.unhide() }
        add("LiveChannel.muteNotifications") { try await general.muteNotifications() }
        add("LiveChannel.unmuteNotifications") { try await general.unmuteNotifications() }
    }

    private func addWatching() {
        let (ann, general) = (ann, general)
        add("LiveChannel.watch") { _ = try await general.watch() }
        add("Chat.watch: by filters") { _ = try await ann.watch(QueryChannels(limit: 1)) }
        add("Chat.watch: one that is made if there is none") {
            _ = try await ann.watch("general", creating: CreateChannel())
        }
        add("WatcherList.loaded, loadMore") {
            try await general.watch(limit: 0)
            let list = general.watchers(pageSize: 1)
            try await list.loaded()
            try await list.loadMore()
        }
        add("LivePresence.loaded, LiveTyping.loaded") {
            try await general.presence().loaded()
            try await general.typing().loaded()
        }
        add("LiveChannel.sendSignal") { [unowned self] in
            try await rateLimited { try await general.sendSignal("wave") }
        }
        add("LiveChannel.unwatch") { try await general.unwatch() }
    }

    private func addChannels() {
        let (ann, general) = (ann, general)
        add("Chat.call") { _ = try await ann.call(GetChannel(channel: "general")) }
        add("Chat.createChannel, LiveChannel.delete") { [unowned self] in
            let channel = try await ann.createChannel(ChannelID("room-\(next())"))
            try await channel.delete()
        }
        add("Chat.createChannel: from a draft") {
            // There is one conversation of two users: repeating the call makes no other channel.
            try await ann.createChannel(CreateChannel(type: .conversation, users: ["bob"]))
        }
        add("Chat.createConversation") { try await ann.createConversation(with: ["bob"]) }
        add("Chat.getChannel") { _ = try await ann.getChannel("general") }
        add("Chat.joinChannel") { try await ann.joinChannel("general") }
        add("LiveChannel.update") { [unowned self] in try await general.update(displayName: "General \(next())") }
        add("LiveChannel.freeze") { try await general.freeze() }
        add("LiveChannel.unfreeze") { try await general.unfreeze() }
        add("LiveChannel.silence") { try await general.silence(for: .seconds(1000)) }
        add("LiveChannel.unsilence") { try await general.unsilence() }
        add("LiveChannel.setRateLimit") { try await general.setRateLimit(messages: 1000, per: .seconds(1)) }
        add("LiveChannel.removeRateLimit") { try await general.removeRateLimit() }
        add("LiveChannel.explain") { _ = try await general.explain(.messageSend) }
    }

    private func addMembers() {
        let (bob, general) = (bob, general)
        add("LiveChannel.members") { _ = try await general.members(after: nil, limit: 1) }
        add("LiveChannel.addMembers") { try await general.addMembers(["dan"]) }
        add("LiveChannel.setRole") { try await general.setRole(.member, of: ["dan"]) }
        add("LiveChannel.removeMembers") { try await general.removeMembers(["dan"]) }
        add("LiveChannel.invite, withdrawInvitations") {
            try await general.invite(["eve"])
            try await general.withdrawInvitations(of: ["eve"])
        }
        add("LiveChannel.join, leave") {
            let lobby = bob.channel("lobby")
            try await lobby.join()
            try await lobby.leave()
        }
    }

    private func addUsers() {
        let ann = ann
        add("Chat.me, users") {
            _ = try await ann.me()
            _ = try await ann.users(["bob"])
        }
        add("Chat.presence") { [unowned self] in
            try await rateLimited { _ = try await ann.presence(of: ["bob"]) }
        }
        add("Chat.updateMe") { [unowned self] in _ = try await ann.updateMe(displayName: "Ann \(next())") }
        add("Chat.setAutoAcceptInvitations") { try await ann.setAutoAcceptInvitations(false) }
        add("Chat.setSharing") { try await ann.setSharing(typing: true) }
        add("Chat.devices") { _ = try await ann.devices() }
        add("Chat.signOut", hasPreparation: true) { [unowned self] in
            let device = try await prepare { [unowned self] in try await newDevice() }
            try await rateLimited { _ = try await ann.signOut(device: device) }
        }
    }

    private func addInvitations() {
        let ann = ann
        add("LiveChannel.acceptInvitation", hasPreparation: true) { [unowned self] in
            let channel = try await prepare { [unowned self] in try await newInvitation() }
            try await ann.channel(channel).acceptInvitation()
        }
        add("LiveChannel.declineInvitation", hasPreparation: true) { [unowned self] in
            let channel = try await prepare { [unowned self] in try await newInvitation() }
            try await ann.channel(channel).declineInvitation()
        }
        add("InvitationList.accept", hasPreparation: true) { [unowned self] in
            let channel = try await prepare { [unowned self] in try await newInvitation() }
            let list = ann.invitations()
            let item = try await row(of: list.updates) { $0.invitation.channelId == channel }
            try await list.accept(item)
        }
        add("InvitationList.decline", hasPreparation: true) { [unowned self] in
            let channel = try await prepare { [unowned self] in try await newInvitation() }
            let list = ann.invitations()
            let item = try await row(of: list.updates) { $0.invitation.channelId == channel }
            try await list.decline(item)
        }
    }

    private func addLists() {
        let (ann, general) = (ann, general)
        add("ChannelList.loaded, loadMore") {
            let list = ann.channels(matching: ChannelQuery(), pageSize: 1)
            try await list.loaded()
            try await list.loadMore()
        }
        add("ChannelList.loaded, loadMore: channels of the server") {
            let list = ann.channels(matching: ChannelQuery(membership: .all), pageSize: 1)
            try await list.loaded()
            try await list.loadMore()
        }
        add("MemberList.loaded, loadMore") {
            let list = general.members(pageSize: 1)
            try await list.loaded()
            try await list.loadMore()
        }
        add("MemberList.loaded: a search") { try await general.searchMembers("b").loaded() }
        add("ListUpdates.next") { for await _ in general.messages().updates { return } }
        add("ChatEvents.next") {
            try await general.update(customType: "x")
            let events = ann.events
            Task { try? await general.update(customType: "y") }
            for await _ in events { return }
        }
    }

    private func addLiveObjects() {
        let (ann, general, offline) = (ann, general, offline)
        add("InvitationList.loaded, LiveUnread.loaded, LivePreferences.loaded, LiveUser.loaded, LiveChannel.loaded") {
            try await ann.invitations().loaded()
            try await ann.unread.loaded()
            try await ann.preferences.loaded()
            try await ann.user("bob").loaded()
            try await ann.channel("general").loaded()
        }
        add("LiveDraft.loaded, DraftList.loaded") {
            try await general.draft().loaded()
            try await ann.drafts().loaded()
        }
        add("LiveOutbox.loaded, loadMore, retry, sendOperationsForAnotherServer, discardOperationsForAnotherServer") {
            let outbox = ann.outbox
            try await outbox.loaded()
            try await outbox.loadMore()
            if let entry = outbox.entries.first { await outbox.retry(entry) }
            await outbox.sendOperationsForAnotherServer()
            await outbox.discardOperationsForAnotherServer()
        }
        add("LiveOutbox.retry, discard: without a connection") { [unowned self] in
            try await offline.channel("general").send("unsent \(next())")
            for await entries in offline.outbox.updates {
                guard let entry = entries.first else { continue }
                await offline.outbox.retry(entry)
                await offline.outbox.discard(entry)
                return
            }
            throw CancellationError()
        }
    }

    private func addChats(_ own: Message) {
        let (ann, server, directory) = (ann, server, directory)
        add("Chat.connect, disconnect") {
            let chat = server.chat(as: "cat")
            try await chat.connect()
            await chat.disconnect()
        }
        add("Chat.connect: with a timeout") { try await server.chat(as: "cat").connect(timeout: .seconds(20)) }
        add("Chat.logOut, erase", hasPreparation: true) { [unowned self] in
            let folder = directory.appending(component: UUID().uuidString)
            let chat = server.chat(as: "cat", storage: .directory(folder))
            try await prepare {
                // Fails at once while the server is away. The new chat would wait for the server.
                _ = try await ann.me()
                try await chat.connect()
            }
            try await chat.logOut(discardingUnsent: true)
            try await Chat.erase("cat", at: server.url, in: .directory(folder))
        }
        add("StoredChat.channels, channel, messages, message, unread") {
            let stored = try StoredChat(user: "ann", at: server.url, in: .directory(directory))
            _ = try await stored.channels()
            _ = try await stored.channel("general")
            _ = try await stored.messages(in: "general")
            _ = try await stored.message(own.messageId, in: "general")
            _ = try await stored.unread()
        }
    }

    // MARK: The end

    /// Every message acknowledged as kept has arrived, once.
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
