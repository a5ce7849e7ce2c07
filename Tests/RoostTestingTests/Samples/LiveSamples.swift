import Foundation
import Roost
import RoostAPI

@MainActor private func show(_ channel: LiveChannel) async {
    // sample.begin
    let watching = channel.watching()
    let watchers = channel.watchers()
    for await update in watchers.updates { print(update.items.map(\.name), watchers.watcherCount) }
    watching.invalidate()
    // sample.end
}

@MainActor private func watch(_ channel: LiveChannel) async throws {
    // sample.begin
    let state = try await channel.watch()
    print(state.online, state.watcherCount)
    try await channel.unwatch()
    // sample.end
}

@MainActor private func notify(_ chat: Chat) async throws {
    // sample.begin
    for await event in chat.events {
        guard case .happened(let news) = event, news.kind == .messageNew, let message = news.message else { continue }
        if news.isWatched || news.isOwn || message.isSilent || message.kind == .system { continue }
        let channel = chat.channel(message.channelId)
        try await channel.loaded()
        let isMuted = channel.membership?.isNotificationsMuted ?? false
        switch message.pushOption {
        case .force: print(message.sender, message.text)
        case .suppress: break
        default: if !isMuted { print(message.sender, message.text) }
        }
    }
    // sample.end
}

@MainActor private func showPresence(_ channel: LiveChannel) async throws {
    // sample.begin
    let presence = channel.presence()
    try await presence.loaded()
    let members = channel.members()
    try await members.loaded()
    print(presence.onlineCount, members.items.filter { $0.isOnline == true }.map(\.user.name))
    // sample.end
}

private func hide(_ chat: Chat) async throws {
    // sample.begin
    try await chat.setSharing(presence: false)
    // sample.end
}

private func contacts(_ chat: Chat) async throws {
    // sample.begin
    let contacts = try await chat.presence(of: ["ann", "bob"])
    for user in contacts.users { print(user.userId, user.isOnline, user.lastActiveAt as Any) }
    try await Task.sleep(for: contacts.pollInterval)
    // sample.end
}

@MainActor private func showRecipients(_ receipts: LiveReceipts, _ message: Message, _ chat: Chat) async throws {
    // sample.begin
    print(receipts.recipients(of: message))
    try await chat.setSharing(delivery: false)
    // sample.end
}

private func sayAway(_ chat: Chat) async throws {
    // sample.begin
    try await chat.updateMe(status: "on holiday")
    // sample.end
}

@MainActor private func showTyping(_ channel: LiveChannel) async {
    // sample.begin
    let typing = channel.typing()
    for await users in typing.updates { print(users.map(\.name), typing.hasMore) }
    // sample.end
}

@MainActor private func type(_ channel: LiveChannel) {
    // sample.begin
    channel.startTyping()
    channel.stopTyping()
    // sample.end
}

@MainActor private func showReceipts(_ channel: LiveChannel, _ item: MessageItem) async throws {
    // sample.begin
    let receipts = channel.receipts()
    try await receipts.loaded()
    // A row of a message list, or a message.
    print("seen by", receipts.readers(of: item).map { receipts.user($0).name })
    // sample.end
}

@MainActor private func read(_ channel: LiveChannel) async throws {
    // sample.begin
    try await channel.startReading()
    try await channel.stopReading()
    // sample.end
}

@MainActor private func answerLater(_ channel: LiveChannel, _ message: Message) async throws {
    // sample.begin
    try await channel.markUnread(from: message.seq)
    // sample.end
}

private func share(_ chat: Chat) async throws {
    // sample.begin
    try await chat.setSharing(typing: false, reading: false)
    // sample.end
}

@MainActor private func signal(_ channel: LiveChannel) async throws {
    // sample.begin
    try await channel.sendSignal("wave", metadata: ["hand": "left"])
    for await signal in channel.signals { print(signal.sender, signal.type, signal.metadata ?? [:]) }
    // sample.end
}
