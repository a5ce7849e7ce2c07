import Foundation
import Roost

/// Whatever an app has to show rows.
@MainActor private final class Table {
    func apply<Item>(_ update: ListUpdate<Item>) {}
}

// sample.begin
@MainActor func otherUser(in item: ChannelItem, of chat: Chat) -> LiveUser? {
    guard case .string(let id) = item.channel.metadata?["with"]?[chat.user.rawValue] else { return nil }
    return chat.user(UserID(id))
}
// sample.end

@MainActor private func lists(chat: Chat, table: Table) async throws {
    // sample.begin
    let channels = chat.channels()
    try await channels.loaded()
    for item in channels.items {
        print(item.channel.displayName ?? "\(item.id)", item.unreadCount, item.lastMessage?.text ?? "")
    }
    // sample.end

    // sample.begin
    try await chat.createConversation(with: ["bob"], metadata: ["with": ["ann": "bob", "bob": "ann"]])
    // sample.end

    // sample.begin
    let following = channels.observe { update in table.apply(update) }
    // sample.end

    // sample.begin
    let watching = Task {
        for await update in channels.updates { table.apply(update) }
    }
    // sample.end
    following.invalidate()
    watching.cancel()

    // sample.begin
    let unread = chat.channels(
        matching: ChannelQuery(types: [.community, .group], unreadOnly: true, sort: .lastActivity), pageSize: 20)
    // sample.end

    // sample.begin
    unread.query.nameContains = "trip"
    // sample.end

    // sample.begin
    let members = chat.channel("general").members()
    try await members.loaded()
    let time = members.presenceAsOf.map { "at \($0.date)" } ?? "now"
    for item in members.items {
        let name = item.user.name
        print(item.isOnline == true ? "\(name), online \(time)" : name)
    }
    // sample.end
}
