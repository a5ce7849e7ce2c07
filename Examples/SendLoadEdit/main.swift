// Messages as in Sendbird's SDK: sending, loading in both directions by time and by message, editing, deleting, and resetting one's own history.
import ExampleSupport
import Roost
import RoostAPI

let (ann, bob) = await Walk.begin("example-send-load-edit")

// Sending: the row appears at once, and shows its progress.
let log = try await ann.createChannel(displayName: "Log", users: ["bob"])
let list = log.messages()
let clientId = try await log.send("1")
for await update in list.updates where update.items.contains(where: { $0.clientId == clientId }) { break }
Walk.expect(list.items.last?.text == "1", "a message is shown at once, before the server has it")
for await update in list.updates where update.items.last?.state == .sent { break }
Walk.expect(list.items.last?.message != nil, "and is sent once the server has it on disk")
try await log.sendConfirmed(MessageDraft(text: "1", clientId: clientId))
Walk.expect(try await bob.call(ListMessages(channel: log.id)).messages.count == 1, "the same client id sends it once")
var sent: [Message] = []
for number in 2...9 { sent.append(try await log.sendConfirmed(MessageDraft(text: "\(number)"))) }
let announcement = MessageDraft(text: "", kind: .custom, customType: "poll", data: #"{"question":"Lunch?"}"#)
sent.append(try await log.sendConfirmed(announcement))

// Loading by time and by message: before, after and around, complete if several messages have the same time.
let (bobsLog, middle) = (bob.channel(log.id), sent[4])
let before = try await bob.call(ListMessages(channel: log.id, beforeTime: middle.createdAt, limit: 2)).messages
Walk.expect(!before.isEmpty && before.allSatisfy { $0.createdAt < middle.createdAt }, "messages before a time")
let after = try await bob.call(ListMessages(channel: log.id, afterTime: middle.createdAt, limit: 2)).messages
Walk.expect(!after.isEmpty && after.allSatisfy { $0.createdAt > middle.createdAt }, "messages after a time")
let around = try await bob.call(ListMessages(channel: log.id, aroundTime: middle.createdAt, limit: 4)).messages
Walk.expect(around.contains { $0.messageId == middle.messageId }, "messages on both sides of a time")
let place = bobsLog.messages(around: .message(middle.messageId), pageSize: 4)
try await place.loaded()
Walk.expect(place.items.map(\.text) == ["5", "6", "7", "8"], "a list that begins at a message")
try await place.loadOlder()
try await place.loadNewer()
Walk.expect(place.items.map(\.text).first == "1" && !place.hasNewer, "and extends in both directions")

// A query with its own position: one page at a time, and with filters.
let history = bobsLog.history(limit: 4)
var pages = [try await history.loadOlder().map(\.text)]
let (one, other) = (Task { try await history.loadOlder() }, Task { try await history.loadOlder() })
let results = [await one.result, await other.result]
for case .success(let page) in results { pages.append(page.map(\.text)) }
Walk.expect(pages == [["", "9", "8", "7"], ["6", "5", "4", "3"]], "a history goes back page by page, one at a time")
let polls = bobsLog.history(kinds: [.custom], customType: "poll")
Walk.expect(try await polls.loadOlder().map(\.data) == [announcement.data], "and finds messages by kind and custom type")

// Editing, and lists of texts that people add to.
let bobsList = bobsLog.messages()
try await log.edit(middle.messageId, text: "six")
for await update in bobsList.updates where update.items.contains(where: { $0.text == "six" && $0.message?.editedAt != nil }) {
    break
}
Walk.expect(bobsList.items.first { $0.text == "six" } != nil, "an edit reaches everybody, and is marked")
try await log.updateMetaArrays(of: middle.messageId, create: ["likes"], add: ["likes": ["bob", "ann"]])
for await update in bobsList.updates where update.items.contains(where: { $0.content.metaArrays != nil }) { break }
let likes = bobsList.items.first { $0.text == "six" }?.content.metaArrays
Walk.expect(likes == ["likes": ["ann", "bob"]], "lists of texts are sorted, and hold each once")
Walk.expect(
    await Walk.refusal { _ = try await bob.call(EditMessage(channel: log.id, message: middle.messageId, text: "mine")) }
        == .notMessageOwner, "others don't edit it")

// Deleting: the message's place stays, or nothing does; unread counts follow.
try await log.delete([sent[0].messageId, sent[1].messageId])
try await log.purge(sent[2].messageId)
for await update in bobsList.updates where update.items.count(where: \.isDeleted) == 2 && update.items.count == 9 { break }
Walk.expect(
    !bobsList.items.contains { ["2", "3", "4"].contains($0.text) },
    "deleted messages are places, and those deleted for good are gone")

// Resetting: only for bob, who has nothing unread afterwards.
try await bobsLog.resetHistory()
for await update in bobsList.updates where update.items.isEmpty { break }
for await _ in bobsLog.updates where bobsLog.unreadCount == 0 { break }
let ofAnn = try await ann.call(ListMessages(channel: log.id)).messages.count
Walk.expect(bobsList.items.isEmpty && ofAnn == 9, "a reset empties the channel for one user only")

await ann.disconnect()
await bob.disconnect()
