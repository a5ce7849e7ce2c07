// Creating, querying and joining channels, the way of Amity's SDK: community, live and conversation channels, a live collection by type and
// tags, membership, metadata, and a check of permissions.
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
    FileHandle.standardError.write(Data("usage: example-create-query-join http://127.0.0.1:8080\n".utf8))
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
/// So that the program can be run again.
let run = UUID().uuidString.prefix(8).lowercased()
let tag = "run-\(run)"

// Create: a channel that everyone finds, one that only members find, and a talk of two.
let lobby = try await ann.createChannel(
    ChannelID("lobby-\(run)"), displayName: "Lobby", tags: [tag, "public"], metadata: ["topic": "all things"])
let stage = try await ann.createChannel(ChannelID("stage-\(run)"), type: .live, displayName: "Stage", tags: [tag])
let talk = try await ann.createConversation(with: ["bob"])
expect(try await bob.createConversation(with: ["ann"]).id == talk.id, "a conversation is one for its people, whoever begins it")
do {
    try await bob.createChannel(lobby.id)
    expect(false, "an id that is taken is refused")
} catch let error as RoostError {
    expect(error.code == .alreadyExists, "an id that is taken is refused")
}

// Query: what bob may find and isn't in; the live channel isn't among it.
var findable = ChannelQuery(membership: .notMember, types: [.community, .live], includingTags: [tag])
let found = try await bob.call(findable).items.map(\.channel.channelId)
expect(found == [lobby.id], "a community channel is found by everyone, a live channel by its members")
findable.excludingTags = ["public"]
expect(try await bob.call(findable).items.isEmpty, "excluded tags take channels out")

// A live collection of bob's own channels keeps itself current.
let mine = bob.channels(matching: ChannelQuery(includingTags: [tag], sort: .name))
for await update in mine.updates where update.items.isEmpty { break }
expect(mine.items.isEmpty, "bob is in none of them yet")

// Join: as often as one likes, also by users who only know the id.
try await bob.joinChannel(lobby.id)
try await bob.joinChannel(lobby.id)
try await bob.joinChannel(stage.id)
for await update in mine.updates where update.items.count == 2 { break }
expect(
    mine.items.map(\.channel.displayName) == ["Lobby", "Stage"], "the live collection follows joining, in the order of the names")

// Metadata: the last writer wins, and all members see it.
try await lobby.update(metadata: ["topic": "one thing"])
let bobsLobby = bob.channel(lobby.id)
for await view in bobsLobby.updates where view?.channel.metadata == ["topic": "one thing"] { break }
expect(bobsLobby.channel?.metadataVersion == 2, "metadata reaches every member, with its version")

// Permissions: known on the device, and explained by the server.
expect(!bobsLobby.hasPermission(.channelUpdate), "an ordinary member may not update the channel")
let refusal = try await bobsLobby.explain(.channelUpdate).refusal
expect(refusal?.code == .notPermitted && refusal?.rule != nil, "the server names the rule: \(refusal?.rule ?? "")")

// Unread: exact, for each channel and in all.
try await lobby.sendConfirmed(MessageDraft(text: "Hello, everyone!"))
for await view in bobsLobby.updates where view?.unreadCount == 1 { break }
expect(try await bob.call(GetTotalUnread()).unreadCount >= 1, "what ann sent is unread to bob")
try await bobsLobby.markRead()

// Members: live, with their roles.
let roles = try await bobsLobby.members(limit: nil).items.map { "\($0.member.userId) \($0.member.role)" }
expect(roles == ["ann owner", "bob member"], "the creator is the owner, the user who joined is a member")

await ann.disconnect()
await bob.disconnect()
