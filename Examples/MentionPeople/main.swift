// Mentions as in Amity's SDK: suggested while typing, highlighted in the text, delivered to the mentioned users, and cleared by reading.
import ExampleSupport
import Roost
import RoostAPI

let (ann, bob) = await Walk.begin("example-mention-people")

// Writing: the text after an "@" finds members, and the chosen member's name is inserted.
let lobby = try await ann.createChannel(displayName: "Lobby", users: ["bob"])
var composer = MentionComposer(text: "Lunch, @bo")
let typed = composer.query(at: composer.text.utf16.count)
Walk.expect(typed == "bo", "the text after an @ is the query")
let found = try await ann.call(SearchMembers(channel: lobby.id, text: typed ?? "")).items.compactMap(\.user)
Walk.expect(found.map(\.userId) == ["bob"], "and finds members")
let cursor = composer.choose(found[0].summary, at: composer.text.utf16.count)
composer.text += "?"
Walk.expect(
    cursor == composer.text.utf16.count - 1 && composer.mentions.count == 1,
    "the chosen name is in the text, which continues after it")

// Sending and showing: the positions of mentions are sent with the message, and become ranges of the text.
let bobsLobby = bob.channel(lobby.id)
let news = bob.events
let sent = try await lobby.sendConfirmed(composer.draft)
for await event in news {
    if case .happened(let happening) = event, happening.kind == .mentionReceived, happening.channel == lobby.id { break }
}
Walk.expect(sent.mentionees == [.users(["bob"])], "the message mentions the user")
for await view in bobsLobby.updates where view?.hasMention == true { break }
Walk.expect(bobsLobby.hasMention && bobsLobby.unreadCount == 1, "the channel has an unread mention")
let mention = MentionMapper.mentions(from: sent.metadata).first
let range = mention?.range(in: sent.text)
Walk.expect(range.map { String(sent.text[$0]) } == "@\(found[0].summary.name)", "and the text says where")
Walk.expect(try await bob.mentions().items.first?.messageId == sent.messageId, "all mentions are one list across channels")
try await bobsLobby.markRead()
for await view in bobsLobby.updates where view?.hasMention == false { break }
Walk.expect(!bobsLobby.hasMention, "reading clears it")

// Mentioning the channel, and an edit that adds a mention.
var everyone = MentioneesBuilder()
everyone.mentionChannel()
let toAll = try await lobby.sendConfirmed(MessageDraft(text: "@all: it is served", mentionees: everyone.mentionees))
for await view in bobsLobby.updates where view?.hasMention == true { break }
Walk.expect(toAll.mentionees == [.channel], "a message mentions the whole channel")
try await bobsLobby.markRead()
for await view in bobsLobby.updates where view?.hasMention == false { break }
try await lobby.edit(sent.messageId, text: "Lunch, Bob!", mentionees: [.users(["bob"])])
Walk.expect(!bobsLobby.hasMention, "an edit that mentions the same people is no new mention")
let later = try await lobby.sendConfirmed("Coffee?")
for await view in bobsLobby.updates where view?.lastMessage?.messageId == later.messageId { break }
try await bobsLobby.markRead()
try await lobby.edit(later.messageId, text: "Coffee, Bob?", mentionees: [.users(["bob"])])
for await view in bobsLobby.updates where view?.hasMention == true { break }
Walk.expect(bobsLobby.unreadCount == 0, "an edit can add a mention to a message that was read")

// Non-members aren't mentioned, and the answer says so.
let dropped = try await lobby.sendConfirmed(MessageDraft(text: "@zoe", mentionees: [.users(["zoe", "bob"])]))
Walk.expect(
    dropped.droppedMentions == ["zoe"] && dropped.mentionees == [.users(["bob"])], "the answer names users it can't mention")

await ann.disconnect()
await bob.disconnect()
