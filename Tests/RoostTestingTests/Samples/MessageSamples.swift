import Foundation
import Roost
import RoostAPI

@MainActor private func send(_ channel: LiveChannel) async throws {
    // sample.begin
    try await channel.send("hello")
    try await channel.send(MessageDraft(text: "It's raining.", customType: "weather", metadata: ["mm": 12], tags: ["rain"]))
    // The app's own: its text may be empty, and it says by its custom type what it is.
    try await channel.send(MessageDraft(text: "", kind: .custom, customType: "location", data: "52.52,13.40"))
    // Silent: it counts as unread for nobody.
    try await channel.send(MessageDraft(text: "Backup done.", isSilent: true))
    // For whatever sends pushes or translates: Roost stores both with the message, and does neither itself: `translationStatus` is `unavailable`.
    try await channel.send(MessageDraft(text: "Fire alarm!", pushOption: .force, targetLanguages: ["de", "pt-BR"]))
    // sample.end
}

@MainActor private func announce(_ staff: Chat) async throws {
    // sample.begin
    // A chat with a token of the role admin. Sent again with the same client id, it is stored once.
    let news = SendAdminMessage(channels: ["general", "random"], clientId: "maintenance-7", text: "Back in ten minutes.")
    for message in try await staff.call(news).messages { print(message.channelId, message.kind) }
    // sample.end
}

@MainActor private func compose(_ channel: LiveChannel) async throws {
    // sample.begin
    var composer = MentionComposer(text: "lunch, @b")
    let cursor = composer.text.utf16.count
    if let typed = composer.query(at: cursor) {
        // Right after the "@" there is nothing to search for.
        let members = typed.isEmpty ? channel.members() : channel.searchMembers(typed)
        try await members.loaded()
        if let found = members.items.first { _ = composer.choose(found.user, at: cursor) }
    }
    try await channel.send(composer.draft)
    // The same without a composer: everyone, and ben by name.
    var mentions = MentioneesBuilder()
    mentions.mentionUsers(["ben"])
    mentions.mentionChannel()
    try await channel.send(MessageDraft(text: "@Ben @all", mentionees: mentions.mentionees))
    // sample.end
}

// sample.begin
func line(for message: Message) -> String {
    guard let event = message.content.systemEvent else { return message.text }
    return switch event.kind {
    case .memberJoined: "+ \(event.users.count)"
    case .memberLeft: "− \(event.users.count)"
    case .channelRenamed: event.displayName ?? ""
    }
}
// sample.end

// sample.begin
func highlighted(_ message: Message) -> AttributedString {
    var text = AttributedString(message.text)
    for mention in MentionMapper.mentions(from: message.metadata) {
        if let range = mention.range(in: text) { text[range].link = URL(string: "user:\(mention.userId ?? "all")") }
    }
    return text
}
// sample.end

@MainActor private func mentions(_ chat: Chat, _ channel: LiveChannel) async throws {
    // sample.begin
    // The newest mention, by name or by "@all", is an unread one.
    if channel.hasMention, let message = try await channel.mentions(limit: 1).items.first { print(message.text) }
    var page = try await chat.mentions()
    while let next = page.nextCursor { page = try await chat.mentions(after: next) }
    // Those of one channel, also by "@all".
    print(try await channel.mentions().items.map(\.text))
    // sample.end
}

@MainActor private func change(_ channel: LiveChannel, _ item: MessageItem, _ others: [MessageID]) async throws {
    // sample.begin
    try await channel.edit(item, text: "hello, @all", mentionees: [.channel])
    // Its place stays, with nothing in it.
    try await channel.delete(item)
    // Several, all of them or none.
    try await channel.delete(others)
    // For this user alone: the others see them as before.
    try await channel.deleteForMe(others)
    // Nothing is left but its place, for nobody.
    if let message = item.message { try await channel.purge(message.messageId) }
    // sample.end
}

@MainActor private func bringBack(_ chat: Chat, _ channel: LiveChannel, _ message: MessageID) async throws {
    // sample.begin
    try await channel.undelete(message)
    let earlier = try await chat.call(ListMessageVersions(channel: channel.id, message: message)).versions
    print(earlier.map(\.text))
    // sample.end
}

@MainActor private func vote(_ channel: LiveChannel, _ message: MessageID) async throws {
    // sample.begin
    try await channel.updateMetaArrays(of: message, create: ["yes"], add: ["yes": ["ann"]])
    // sample.end
}

@MainActor private func lastWeek(_ channel: LiveChannel) async throws {
    // sample.begin
    let monday = channel.messages(around: .time(Timestamp(Date(timeIntervalSinceNow: -7 * 86_400))))
    try await monday.loaded()
    try await monday.loadOlder()
    await monday.showNewest()
    // sample.end
}

@MainActor private func follow(_ text: String, in channel: LiveChannel) async throws {
    // sample.begin
    // The text of the id is in the link: "\(message.messageId)". `anchorItem` is the row to scroll to and to highlight.
    if let id = MessageID(text) {
        let linked = channel.messages(around: .message(id))
        try await linked.loaded()
        print(linked.items.first { $0.id == linked.anchorItem }?.text ?? "")
    }
    // sample.end
}

@MainActor private func history(_ chat: Chat, _ channel: LiveChannel) async throws {
    // sample.begin
    let announcements = channel.history(limit: 100, kinds: [.admin])
    var found: [Message] = []
    while announcements.hasOlder { found += try await announcements.loadOlder() }
    // By time: the page doesn't end between messages of the same time, unless these are more than 1 MiB.
    var yesterday = ListMessages(channel: channel.id, limit: 50)
    yesterday.beforeTime = Timestamp(Date(timeIntervalSinceNow: -86_400))
    print(found.count, try await chat.call(yesterday).messages.count)
    // sample.end
}

@MainActor private func listDrafts(_ chat: Chat) async throws {
    // sample.begin
    let drafts = chat.drafts()
    try await drafts.loaded()
    for draft in drafts.items { print(draft.channelId, draft.text) }
    // sample.end
}

@MainActor private func keepDraft(_ channel: LiveChannel) async throws {
    // sample.begin
    let draft = channel.draft()
    try await draft.loaded()
    var field = draft.text
    field += "see you at"
    try await channel.setDraft(field)
    // sample.end
}

// sample.begin
func mark(of item: MessageItem) -> String {
    switch item.state {
    case .sent: "✓"
    case .pending: "…"
    // Sent again by itself when the refusal ends: a mute, say.
    case .waiting(let error): "not before \(error.until?.date.formatted() ?? "later")"
    case .failed(let error): "not sent: \(error.message)"
    case .forAnotherServer: "not sent: it was meant for another server's data"
    }
}
// sample.end

@MainActor private func showRefusedChanges(_ messages: MessageList) {
    // sample.begin
    for item in messages.items {
        // An edit or deletion that was refused: the row shows the message as it was.
        if case .failed(let error) = item.change { print("not changed: \(error.message)") }
    }
    // sample.end
}

@MainActor private func settle(_ item: MessageItem, in messages: MessageList) async {
    // sample.begin
    // For the row that the user has chosen, one of the two.
    await messages.retry(item)
    await messages.discard(item)
    // sample.end
}

@MainActor func discardOthers(of chat: Chat) async {
    // sample.begin
    // Whatever else was refused, in any channel: marks, hiding, preferences, drafts. Messages and their changes stay in their rows.
    for entry in chat.outbox.entries where entry.clientId == nil && entry.messages.isEmpty {
        guard case .failed(let error) = entry.state else { continue }
        print("refused: \(entry.operation) \(entry.content?.text ?? ""): \(error.message)")
        await chat.outbox.discard(entry)
    }
    // sample.end
}

// sample.begin
@MainActor final class Bell: ChannelDelegate {
    func channel(_ channel: ChannelID, received message: Message) {
        if message.content.kind == .admin { print("from the staff: \(message.text)") }
    }
    func missedEvents(in channels: [ChannelID: Seq]) { print("there is news in \(channels.count) channels") }
}
// sample.end

@MainActor private func listen(_ chat: Chat, _ bell: Bell) {
    // sample.begin
    chat.add(bell, identifier: "bell")
    chat.removeDelegate(identifier: "bell")
    // sample.end
}

@MainActor private func listenBesideDelegates(_ chat: Chat) async {
    // sample.begin
    let token = chat.connection.observe { status in print(status) }
    for await case .happened(let news) in chat.events where news.isFromOtherDevice == true {
        print("done on another device:", news.kind as Any)
    }
    token.invalidate()
    // sample.end
}

@MainActor private func configure(_ chat: Chat, _ channel: LiveChannel) async throws {
    // sample.begin
    let options = try await chat.call(GetConfiguration()).options
    let canMentionAll = options.isMentionAllEnabled && channel.hasPermission(.messageMention)
    print(canMentionAll, options.mentionsPerMessage, options.mentionNotifyCap)
    // sample.end
}

@MainActor private func walk(_ channel: LiveChannel, _ message: MessageID) async throws {
    // sample.begin
    let since = channel.history(from: .after(Timestamp(Date(timeIntervalSinceNow: -3600))), newestFirst: false)
    while since.hasNewer { for message in try await since.loadNewer() { print(message.text) } }
    // Both ways from a message that was found: the first page is around it, whichever is called first.
    let around = channel.history(from: .aroundMessage(message))
    print(try await around.loadOlder().count, try await around.loadNewer().count)
    // sample.end
}
