import Foundation
import Roost
import RoostAPI

@MainActor private func createNews(_ chat: Chat) async throws {
    // sample.begin
    var create = CreateChannel(channel: "news", type: .community, displayName: "News")
    create.policy = PolicyChanges(send: .operators)
    let news = try await chat.createChannel(create)
    // sample.end
    _ = news
}

@MainActor private func createTrip(_ chat: Chat) async throws {
    // sample.begin
    var create = CreateChannel(type: .group, displayName: "Trip to Rome", users: ["bob", "cem"])
    create.operators = ["bob"]
    create.customType = "trip"
    let trip = try await chat.createChannel(create)
    // sample.end
    _ = trip
}

@MainActor private func talk(_ chat: Chat) async throws {
    // sample.begin
    let talk = try await chat.createConversation(with: ["bob"])
    let again = try await chat.createConversation(with: ["bob"])
    assert(talk.id == again.id)
    // sample.end
}

@MainActor private func rename(_ trip: LiveChannel) async throws {
    // sample.begin
    try await trip.update(displayName: "Rome in May", coverUrl: "")
    // sample.end
}

@MainActor private func lists(_ chat: Chat, _ show: ([ChannelItem]) -> Void) async {
    // sample.begin
    let all = chat.channels()  // the user's own, the newest message first, hidden ones left out

    var unread = ChannelQuery(types: [.group])
    unread.unreadOnly = true
    let groups = chat.channels(matching: unread)  // groups with unread messages
    for await update in groups.updates { show(update.items) }

    // Channels about cooking that anyone may join and the user isn't in; loadMore() adds a page.
    let found = chat.channels(matching: ChannelQuery(membership: .notMember, includingTags: ["cooking"], isPublic: true))
    // sample.end
    _ = (all, found)
}

@MainActor private func join(_ trip: LiveChannel) async throws {
    // sample.begin
    try await trip.join()
    try await trip.leave()
    // sample.end
}

@MainActor private func addMembers(_ chat: Chat) async throws {
    // sample.begin
    let general = chat.channel("general")
    let results = try await general.addMembers(["cem", "dora"])
    for result in results where result.outcome == .refused { print(result.userId, result.error?.code as Any) }
    try await general.removeMembers(["dora"])
    // sample.end
}

private func askFirst(_ chat: Chat) async throws {
    // sample.begin
    try await chat.setAutoAcceptInvitations(false)
    // sample.end
}

@MainActor private func invite(_ trip: LiveChannel, _ chat: Chat) async throws {
    // sample.begin
    try await trip.invite(["dora"], welcome: "Come along!")

    // On Dora's device, a live list:
    let waiting = chat.invitations()
    for item in waiting.items { print(item.invitation.inviter, "invites to", item.channel?.displayName ?? "") }
    if let first = waiting.items.first { try await waiting.accept(first) }  // or decline(_:)
    // sample.end
}

@MainActor private func hide(_ trip: LiveChannel, _ chat: Chat) async throws {
    // sample.begin
    try await trip.hide()  // until the next message
    try await trip.hide(allowAutoUnhide: false)  // archived
    try await trip.hide(hidePreviousMessages: true)  // and earlier messages stay hidden
    try await trip.unhide()

    let archived = chat.channels(matching: ChannelQuery(hidden: .hiddenPreventAutoUnhide))
    // sample.end
    _ = archived
}

@MainActor private func mute(_ trip: LiveChannel) async throws {
    // sample.begin
    try await trip.muteNotifications(for: .seconds(3600))  // or without a time, forever
    try await trip.unmuteNotifications()
    // sample.end
}

@MainActor private func members(_ trip: LiveChannel) {
    // sample.begin
    let keepers = trip.members(roles: [.owner, .operator])  // both are live lists
    let anns = trip.searchMembers("ann")
    // sample.end
    _ = (keepers, anns)
}

@MainActor private func promote(_ trip: LiveChannel) async throws {
    // sample.begin
    try await trip.setRole(.operator, of: ["bob"])
    // sample.end
}

@MainActor private func mayWrite(_ trip: LiveChannel, _ showTextField: () -> Void) {
    // sample.begin
    if trip.hasPermission(.messageSend) { showTextField() }
    // sample.end
}

@MainActor private func explain(_ trip: LiveChannel) async throws {
    // sample.begin
    let answer = try await trip.explain(.messageSend)
    if let refusal = answer.refusal { print(refusal.message, refusal.until as Any) }
    // sample.end
}

@MainActor private func calm(_ trip: LiveChannel) async throws {
    // sample.begin
    try await trip.freeze()
    try await trip.silence(for: .seconds(600))
    try await trip.setRateLimit(messages: 10, per: .seconds(1))
    // sample.end
}
