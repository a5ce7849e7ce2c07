// Distinct groups, invitations, frozen and hidden channels as in Sendbird's SDK.
import ExampleSupport
import Roost
import RoostAPI

let (ann, bob) = await Walk.begin("example-distinct-invite-hide")

// Distinct: the same people get the same channel, until somebody is invited or leaves.
var draft = CreateChannel(type: .group, displayName: "Plans", users: ["bob"])
draft.isDistinct = true
// These calls wait for the server, since ann continues from here.
_ = try await bob.call(UpdatePreferences(autoAcceptInvitations: true))
let group = try await ann.createChannel(draft)
Walk.expect(try await ann.createChannel(draft).id == group.id, "creating with the same people returns the same channel")

// Invitations: bob wants to be asked from now on.
_ = try await bob.call(UpdatePreferences(autoAcceptInvitations: false))
let asked = try await ann.createChannel(type: .group, displayName: "Asked")
Walk.expect(
    await Walk.refusal { try await bob.joinChannel(asked.id) } == .inviteRequired, "joining a private group needs an invitation")
let results = try await asked.invite(["bob"], welcome: "Come in!")
Walk.expect(results.map(\.outcome) == [.invited], "a user who wants to be asked is invited")
let invitations = bob.invitations()
for await update in invitations.updates where update.items.contains(where: { $0.invitation.channelId == asked.id }) { break }
let invitation = invitations.items.first { $0.invitation.channelId == asked.id }
Walk.expect(invitation?.invitation.welcome == "Come in!", "an invitation shows the inviter and the welcome text")
try await bob.channel(asked.id).declineInvitation()
Walk.expect(
    await Walk.refusal { try await bob.channel(asked.id).acceptInvitation() } != nil, "a declined invitation can't be accepted")
_ = try await asked.invite(["bob"])
try await bob.channel(asked.id).acceptInvitation()

// Freeze: operators still send.
try await asked.freeze()
Walk.expect(
    await Walk.refusal { _ = try await bob.call(SendMessage(channel: asked.id, clientId: "frozen", text: "Hello?")) } == .frozen,
    "members can't send in a frozen channel")
try await asked.sendConfirmed(MessageDraft(text: "Only operators now."))
try await asked.unfreeze()

// Hide and archive: a new message brings back a hidden channel, but not an archived one.
var visible = ChannelQuery(hidden: .unhiddenOnly)
visible.ids = [group.id, asked.id]
let list = bob.channels(matching: visible)
for await update in list.updates where Set(update.items.map(\.id)) == [group.id, asked.id] { break }
_ = try await bob.call(HideChannel(channel: group.id))
_ = try await bob.call(HideChannel(channel: asked.id, allowAutoUnhide: false))
for await update in list.updates where update.items.isEmpty { break }
Walk.expect(list.items.isEmpty, "a hidden channel is in no list")
try await group.sendConfirmed(MessageDraft(text: "New!"))
try await asked.sendConfirmed(MessageDraft(text: "New!"))
for await update in list.updates where update.items.map(\.id) == [group.id] { break }
Walk.expect(list.items.first?.unreadCount == 1, "a message brings the hidden channel back, unread")
var archived = visible
archived.hidden = .hiddenPreventAutoUnhide
Walk.expect(try await bob.call(archived).items.map(\.channel.channelId) == [asked.id], "a filter finds the archived channel")

// Filters: by exactly these people, and by some of them.
var exact = ChannelQuery(hidden: .all)
exact.ids = [group.id, asked.id]
exact.exactUsers = ["ann"]
Walk.expect(try await bob.call(exact).items.count == 2, "both are channels of exactly bob and ann")

// Once somebody leaves, the channel is no longer distinct.
_ = try await bob.call(UpdatePreferences(autoAcceptInvitations: true))
_ = try await bob.call(LeaveChannel(channel: group.id))
Walk.expect(try await ann.createChannel(draft).id != group.id, "after somebody left, the same people get a new channel")

await ann.disconnect()
await bob.disconnect()
