// Distinct groups, invitations, frozen and hidden channels, the way of Sendbird's SDK.
import Foundation
import Roost
import RoostAPI

/// Ends the program with a message when something isn't as the text beside it says.
@MainActor func expect(_ condition: Bool, _ what: String) {
    guard condition else {
        FileHandle.standardError.write(Data("failed: \(what)\n".utf8))
        exit(1)
    }
    print("✓ \(what)")
}

/// The tokens come from the app's own backend, which here is the environment.
func chat(as user: UserID, at url: URL) -> Chat {
    let name = "\(user.rawValue.uppercased())_TOKEN"
    // This program has nothing to keep for its next run. An app leaves the storage as it is.
    return Chat(url: url, user: user, configuration: .init(storage: .inMemory)) {
        guard let token = ProcessInfo.processInfo.environment[name] else {
            throw RoostError(.unauthenticated, "\(name) is missing.")
        }
        return token
    }
}

guard CommandLine.arguments.count == 2, let url = URL(string: CommandLine.arguments[1]) else {
    FileHandle.standardError.write(Data("usage: example-distinct-invite-hide http://127.0.0.1:8080\n".utf8))
    exit(64)
}
let (ann, bob) = (chat(as: "ann", at: url), chat(as: "bob", at: url))
/// Connecting goes on until there is a server. Whoever waits is told which one.
let notice = Task {
    try await Task.sleep(for: .seconds(3))
    FileHandle.standardError.write(Data("Waiting for a server at \(url). Is one running there?\n".utf8))
}
do {
    try await ann.connect()
    try await bob.connect()
} catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(1)
}
notice.cancel()

/// The code of a refusal; nil when there was none.
@MainActor func refusal(_ body: () async throws -> Void) async -> RoostError.Code? {
    do { try await body() } catch { return (error as? RoostError)?.code }
    return nil
}

// Distinct: the same people get the same channel, until somebody is invited or leaves.
var draft = CreateChannel(type: .group, displayName: "Plans", users: ["bob"])
draft.isDistinct = true
// Calls that wait for the server, since ann goes on from here.
_ = try await bob.call(UpdatePreferences(autoAcceptInvitations: true))
let group = try await ann.createChannel(draft)
expect(try await ann.createChannel(draft).id == group.id, "creating with the same people answers the same channel")

// Invitations: bob wants to be asked from now on.
_ = try await bob.call(UpdatePreferences(autoAcceptInvitations: false))
let asked = try await ann.createChannel(type: .group, displayName: "Asked")
expect(await refusal { try await bob.joinChannel(asked.id) } == .inviteRequired, "joining a private group needs an invitation")
let results = try await asked.invite(["bob"], welcome: "Come in!")
expect(results.map(\.outcome) == [.invited], "a user who wants to be asked is invited")
let invitations = bob.invitations()
for await update in invitations.updates where update.items.contains(where: { $0.invitation.channelId == asked.id }) { break }
let invitation = invitations.items.first { $0.invitation.channelId == asked.id }
expect(invitation?.invitation.welcome == "Come in!", "the invited see who invites, and the welcome")
try await bob.channel(asked.id).declineInvitation()
expect(
    await refusal { try await bob.channel(asked.id).acceptInvitation() } != nil, "what was declined takes another invitation")
_ = try await asked.invite(["bob"])
try await bob.channel(asked.id).acceptInvitation()

// Freeze: operators still send.
try await asked.freeze()
expect(
    await refusal { _ = try await bob.call(SendMessage(channel: asked.id, clientId: "frozen", text: "Hello?")) } == .frozen,
    "in a frozen channel members don't send")
try await asked.sendConfirmed(MessageDraft(text: "Only operators now."))
try await asked.unfreeze()

// Hide and archive: a new message brings back what was hidden, and not what was archived.
var visible = ChannelQuery(hidden: .unhiddenOnly)
visible.ids = [group.id, asked.id]
let list = bob.channels(matching: visible)
for await update in list.updates where Set(update.items.map(\.id)) == [group.id, asked.id] { break }
_ = try await bob.call(HideChannel(channel: group.id))
_ = try await bob.call(HideChannel(channel: asked.id, allowAutoUnhide: false))
for await update in list.updates where update.items.isEmpty { break }
expect(list.items.isEmpty, "what is hidden is in no list")
try await group.sendConfirmed(MessageDraft(text: "New!"))
try await asked.sendConfirmed(MessageDraft(text: "New!"))
for await update in list.updates where update.items.map(\.id) == [group.id] { break }
expect(list.items.first?.unreadCount == 1, "a message brings the hidden channel back, unread")
var archived = visible
archived.hidden = .hiddenPreventAutoUnhide
expect(try await bob.call(archived).items.map(\.channel.channelId) == [asked.id], "the archived one is found when asked for")

// Filters: by exactly these people, and by some of them.
var exact = ChannelQuery(hidden: .all)
exact.ids = [group.id, asked.id]
exact.exactUsers = ["ann"]
expect(try await bob.call(exact).items.count == 2, "both are channels of exactly bob and ann")

// Leaving ends that a channel is the one of its people.
_ = try await bob.call(UpdatePreferences(autoAcceptInvitations: true))
_ = try await bob.call(LeaveChannel(channel: group.id))
expect(try await ann.createChannel(draft).id != group.id, "after somebody left, the same people get a new channel")

await ann.disconnect()
await bob.disconnect()
