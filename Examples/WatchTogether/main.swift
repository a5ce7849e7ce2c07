// Watching as in Stream's SDK: the state of a channel when it is opened, its other watchers, typing users and readers, and an app's own signals.
import ExampleSupport
import Roost
import RoostAPI

let (ann, bob) = await Walk.begin("example-watch-together")

// Opening: the answer has the channel's rules, its watchers and the newest messages. Non-members may watch if the rules say so.
let show = try await ann.createChannel(type: .livestream, displayName: "The show")
try await show.sendConfirmed("We begin.")
let opened = try await show.watch()
Walk.expect(opened.config.type == .livestream && opened.config.read == .everyone, "the channel's rules come with it")
Walk.expect(opened.messages.messages.map(\.text) == ["We begin."] && opened.watcherCount == 1, "and its newest messages")
let bobsShow = bob.channel(show.id)
let seen = try await bobsShow.watch()
Walk.expect(seen.membership == nil && seen.watcherCount == 2, "a non-member can watch too")
let shown = bobsShow.messages()
try await shown.loaded()
Walk.expect(shown.items.map(\.text) == ["We begin."], "and sees its messages while watching")

// Watchers: a live list, in the order in which they began.
let watchers = show.watchers(pageSize: 25)
try await watchers.loaded()
Walk.expect(watchers.items.map(\.id) == ["ann", "bob"] && watchers.watcherCount == 2, "the watchers are a list")
try await bobsShow.unwatch()
for await update in watchers.updates where update.items.map(\.id) == ["ann"] { break }
Walk.expect(watchers.watcherCount == 1, "which drops users who stop")
try await bobsShow.watch()
for await update in watchers.updates where update.items.count == 2 { break }
Walk.expect(watchers.items.last?.id == "bob", "and adds users who begin")

// Signals: typing users, and an app's own.
let typing = show.typing()
bobsShow.startTyping()
for await users in typing.updates where users.map(\.id) == ["bob"] { break }
Walk.expect(typing.users.count == 1, "a typing user is shown")
let applause = show.signals
try await bobsShow.sendSignal("applause", metadata: ["claps": 3])
for await signal in applause {
    Walk.expect(signal.sender == "bob" && signal.metadata == ["claps": 3], "an app sends its own signals to watchers")
    break
}
try await bobsShow.sendConfirmed("Bravo!")
for await view in show.updates where view?.lastMessage?.text == "Bravo!" { break }
for await update in shown.updates where update.items.last?.text == "Bravo!" && update.items.last?.state == .sent { break }
Walk.expect(shown.items.map(\.text) == ["We begin.", "Bravo!"], "new messages are in the lists of all watchers, members or not")
for await users in typing.updates where users.isEmpty { break }
Walk.expect(typing.users.isEmpty, "a user who has sent a message isn't typing")

// Members of a channel get its messages without watching, and see who has read theirs.
let team = try await ann.createChannel(type: .messaging, displayName: "Team", users: ["bob"])
let bobsTeam = bob.channel(team.id)
for await view in bobsTeam.updates where view?.membership?.state == .member { break }
let receipts = team.receipts()
try await receipts.loaded()
let question = try await team.sendConfirmed("Did you see it?")
for await view in bobsTeam.updates where view?.unreadCount == 1 { break }
Walk.expect(receipts.readers(of: question).isEmpty, "a member who isn't watching gets the message, and hasn't read it")
try await bobsTeam.markRead()
for await _ in receipts.updates where receipts.readers(of: question) == ["bob"] { break }
Walk.expect(receipts.positions["bob"]?.readSeq == question.seq, "read positions are shown to others")

// Ending: a watch ends with its connection.
await bob.disconnect()
for await update in watchers.updates where update.items.map(\.id) == ["ann"] { break }
Walk.expect(watchers.watcherCount == 1, "a disconnected user doesn't watch")
await ann.disconnect()
