// Reading as in Amity's SDK: messages in an open channel are read as they arrive, on all of a user's devices, and messages that a disconnected
// device hasn't received stay unread.
import ExampleSupport
import Roost
import RoostAPI

let (ann, bob) = await Walk.begin("example-read-together")
let phone = Walk.second(deviceOf: bob)
try await phone.connect()

// Unread counts, per channel and in total.
let team = try await ann.createChannel(type: .community, displayName: "Team", users: ["bob"])
let (bobsTeam, onPhone) = (bob.channel(team.id), phone.channel(team.id))
try await team.sendConfirmed("Good morning!")
for await view in bobsTeam.updates where view?.unreadCount == 1 { break }
for await view in onPhone.updates where view?.unreadCount == 1 { break }
let badge = phone.unread
for await total in badge.updates where total.unreadCount >= 1 { break }
Walk.expect(badge.total.unreadChannelCount >= 1, "a message is unread on each device, and counts in the total")

// Opening the channel marks it as read, and messages that arrive while it is open are read too.
try await bobsTeam.startReading()
for await view in onPhone.updates where view?.unreadCount == 0 { break }
Walk.expect(bobsTeam.unreadCount == 0, "reading on one device counts on the others")
try await bobsTeam.startReading()
let news = try await team.sendConfirmed("The news of today …")
for await view in bobsTeam.updates where view?.lastMessage == news { break }
Walk.expect(bobsTeam.unreadCount == 0, "messages that arrive in an open channel are never unread")
for await view in onPhone.updates where view?.membership?.readSeq == news.seq { break }
Walk.expect(onPhone.unreadCount == 0, "and the other devices follow")

// Several channels at once.
let lunch = try await ann.createChannel(type: .community, displayName: "Lunch", users: ["bob"])
let bobsLunch = bob.channel(lunch.id)
for await view in bobsLunch.updates where view?.membership?.state == .member { break }
try await bobsLunch.startReading()
try await bobsTeam.stopReading()
let question = try await team.sendConfirmed("Where shall we eat?")
for await view in bobsTeam.updates where view?.lastMessage == question { break }
Walk.expect(bobsTeam.unreadCount == 1, "a channel that was closed has unread messages again")

// A disconnected device doesn't read: the server ends its reading, without a call by the app.
await bob.disconnect()
try await lunch.sendConfirmed("Pizza?")
let phonesLunch = phone.channel(lunch.id)
for await view in phonesLunch.updates where view?.unreadCount == 1 { break }
Walk.expect(phonesLunch.unreadCount == 1, "messages after the end of a connection stay unread")
await ann.disconnect()
await phone.disconnect()
