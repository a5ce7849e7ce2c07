// Reading, the way of Amity's SDK: what is open on a screen is read as it comes, on all of a user's devices, and what a device that is gone hasn't received stays unread.
import ExampleSupport
import Roost
import RoostAPI

let (ann, bob) = await Walk.begin("example-read-together")
let phone = Walk.second(deviceOf: bob)
try await phone.connect()

// Unread counts, of a channel and of all.
let team = try await ann.createChannel(type: .community, displayName: "Team", users: ["bob"])
let (bobsTeam, onPhone) = (bob.channel(team.id), phone.channel(team.id))
try await team.sendConfirmed("Good morning!")
for await view in bobsTeam.updates where view?.unreadCount == 1 { break }
for await view in onPhone.updates where view?.unreadCount == 1 { break }
let badge = phone.unread
for await total in badge.updates where total.unreadCount >= 1 { break }
Walk.expect(badge.total.unreadChannelCount >= 1, "a message is unread on each device, and counts in the total")

// Opening the channel: it is read, and so is what comes while it is open.
try await bobsTeam.startReading()
for await view in onPhone.updates where view?.unreadCount == 0 { break }
Walk.expect(bobsTeam.unreadCount == 0, "whoever reads on one device has read on the others")
try await bobsTeam.startReading()
let news = try await team.sendConfirmed("The news of today …")
for await view in bobsTeam.updates where view?.lastMessage == news { break }
Walk.expect(bobsTeam.unreadCount == 0, "what arrives while a channel is read is never unread")
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

// A device that is gone doesn't read: the server ends it, without a word of the app.
await bob.disconnect()
try await lunch.sendConfirmed("Pizza?")
let phonesLunch = phone.channel(lunch.id)
for await view in phonesLunch.updates where view?.unreadCount == 1 { break }
Walk.expect(phonesLunch.unreadCount == 1, "what comes after the end of a connection stays unread")
await ann.disconnect()
await phone.disconnect()
