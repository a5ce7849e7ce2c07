// Creating, querying and joining channels as in Amity's SDK: community, live and conversation channels, a live collection by type and tags,
// membership, metadata, and a permission check.
import ExampleSupport
import Foundation
import Roost
import RoostAPI

let (ann, bob) = await Walk.begin("example-create-query-join")

/// Makes the ids unique, so the program can be run again.
let run = UUID().uuidString.prefix(8).lowercased()
let tag = "run-\(run)"

// Create: a channel that everyone finds, one that only members find, and a conversation of two.
let lobby = try await ann.createChannel(
    ChannelID("lobby-\(run)"), displayName: "Lobby", tags: [tag, "public"], metadata: ["topic": "all things"])
let stage = try await ann.createChannel(ChannelID("stage-\(run)"), type: .live, displayName: "Stage", tags: [tag])
let talk = try await ann.createConversation(with: ["bob"])
Walk.expect(
    try await bob.createConversation(with: ["ann"]).id == talk.id, "two people have one conversation, whoever starts it")
do {
    try await bob.createChannel(lobby.id)
    Walk.expect(false, "an id that is taken is refused")
} catch let error as RoostError {
    Walk.expect(error.code == .alreadyExists, "an id that is taken is refused")
}

// Query: channels that bob may find but isn't in; the live channel isn't among them.
var findable = ChannelQuery(membership: .notMember, types: [.community, .live], includingTags: [tag])
let found = try await bob.call(findable).items.map(\.channel.channelId)
Walk.expect(found == [lobby.id], "a community channel is found by everyone, a live channel by its members")
findable.excludingTags = ["public"]
Walk.expect(try await bob.call(findable).items.isEmpty, "excluded tags filter channels out")

// A live collection of bob's own channels stays up to date.
let mine = bob.channels(matching: ChannelQuery(includingTags: [tag], sort: .name))
for await update in mine.updates where update.items.isEmpty { break }
Walk.expect(mine.items.isEmpty, "bob is in none of them yet")

// Join: idempotent, and open to users who only know the id.
try await bob.joinChannel(lobby.id)
try await bob.joinChannel(lobby.id)
try await bob.joinChannel(stage.id)
for await update in mine.updates where update.items.count == 2 { break }
Walk.expect(
    mine.items.map(\.channel.displayName) == ["Lobby", "Stage"], "the live collection follows joins, ordered by name")

// Metadata: the last writer wins, and all members see it.
try await lobby.update(metadata: ["topic": "one thing"])
let bobsLobby = bob.channel(lobby.id)
for await view in bobsLobby.updates where view?.channel.metadata == ["topic": "one thing"] { break }
Walk.expect(bobsLobby.channel?.metadataVersion == 2, "metadata reaches every member, with its version")

// Permissions: known on the device, and explained by the server.
Walk.expect(!bobsLobby.hasPermission(.channelUpdate), "an ordinary member may not update the channel")
let refusal = try await bobsLobby.explain(.channelUpdate).refusal
Walk.expect(refusal?.code == .notPermitted && refusal?.rule != nil, "the server names the rule: \(refusal?.rule ?? "")")

// Unread: exact, for each channel and in total.
try await lobby.sendConfirmed(MessageDraft(text: "Hello, everyone!"))
for await view in bobsLobby.updates where view?.unreadCount == 1 { break }
Walk.expect(try await bob.call(GetTotalUnread()).unreadCount >= 1, "ann's message is unread for bob")
try await bobsLobby.markRead()

// Members: live, with their roles.
let roles = try await bobsLobby.members(after: nil).items.map { "\($0.member.userId) \($0.member.role)" }
Walk.expect(roles == ["ann owner", "bob member"], "the creator is the owner, the user who joined is a member")

await ann.disconnect()
await bob.disconnect()
