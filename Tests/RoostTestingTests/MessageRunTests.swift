import Foundation
import Roost
import RoostAPI
import RoostTestSupport
import RoostTesting
import Testing

/// The steps of each of the two seeds, 20,000 in all.
private let stepCount = ProcessInfo.processInfo.environment["ROOST_STEPS"].flatMap(Int.init) ?? 10_000

@MainActor @Suite("A long random run of messages with the SDK", .timeLimit(.minutes(5 * max(1, stepCount / 1000))))
struct MessageRunTests {
    @Test(
        "AM-43 AM-44 MN-16 R35 I5 I7 a device that is cut off at random agrees with a recount whenever it has caught up",
        arguments: Seeds.first(2))
    func cutOff(seed: UInt64) async throws {
        let server = try await RoostTestServer(options: AppOptions(undeletionSeconds: 3600))
        let devices = try await Devices(of: server, seed: seed)
        var run = try await MessageRun(seed: seed, undeletes: true, by: devices)
        try await devices.connectPhones(showing: run.channels)
        var steps: [String] = []
        for number in 1...stepCount {
            let step = try await run.step(by: devices)
            steps.append(step.text)
            if let wrong = step.wrongAnswer { Issue.record("seed \(seed), step \(number): \(wrong) answers \(step.text)") }
            var touched = step.channels
            if number.isMultiple(of: 250) {
                try await devices.restart(server, &run)
                touched = run.channels
            }
            let phone = run.random.pick(devices.phones)
            if phone.isConnected, run.random.once(in: 20) {
                await phone.cutOff()
                steps.append("\(phone.user) is cut off")
            } else if !phone.isConnected, run.random.once(in: 8) {
                try await phone.connect()
                try await phone.sendPending(&run, by: devices)
                touched = run.channels
                steps.append("\(phone.user) comes back")
            } else if !phone.isConnected {
                steps.append(try await phone.actOffline(&run))
            } else if phone.isConnected, run.random.once(in: 12) {
                try await phone.moveList(&run)
            }
            for phone in devices.phones where phone.isConnected {
                let found = await phone.settle(run.recount, touched)
                guard found.isEmpty else {
                    Issue.record("seed \(seed), step \(number): \(found) after \(steps.suffix(12).joined(separator: "\n"))")
                    return
                }
            }
        }
        // A run without news, or with empty lists, would prove nothing.
        #expect(devices.callCount > 100)
        for phone in devices.phones { #expect(phone.comparedMessagesCount > 200) }
        #expect((run.acceptedCounts["offline message.send"] ?? 0) > 5)
        #expect((run.acceptedCounts["offline reading.mark"] ?? 0) > 2)
        let changes = [
            DeleteMessagesForMe.name, EditMessage.name, UpdateMetaArrays.name, DeleteMessage.name, DeleteMessages.name,
            PurgeMessage.name, UndeleteMessage.name, ResetHistory.name,
        ]
        let counts = run.acceptedCounts
        #expect(changes.filter { counts["offline \($0)", default: 0] == 0 } == [])
        #expect((run.acceptedCounts[UndeleteMessage.name] ?? 0) > 0)
        #expect((run.acceptedCounts["member.left said"] ?? 0) > 2)
        await devices.disconnect()
        try await server.stop()
    }
}

/// All users' devices: one that is always connected, and the phones of two users.
@MainActor
private final class Devices: OperationPerformer {
    private let steady: [UserID: Chat]
    private(set) var phones: [Phone]
    /// How many operations went through a phone.
    private(set) var callCount = 0
    private var random: SeededGenerator

    init(of server: RoostTestServer, seed: UInt64) async throws {
        random = SeededGenerator(seed: seed + 5000)
        var steady = [MessageRun.admin: server.chat(as: MessageRun.admin, role: .admin)]
        for user in MessageRun.users { steady[user] = server.chat(as: user) }
        for chat in steady.values { try await chat.connect() }
        self.steady = steady
        phones = MessageRun.users.prefix(2).map { Phone(of: $0, server.chat(as: $0)) }
    }

    nonisolated(nonsending) func perform<O: RoostAPI.Operation>(
        _ operation: O, as user: UserID, role: AppRole
    ) async throws -> O.Response {
        guard let chat = await device(of: user) else { throw Missed("a device of \(user)") }
        // An app sends a new message with the live channel, which replaces the run's number by an id of its own. An answer to a message deleted
        // since is refused, and would stay in the list.
        if let send = operation as? SendMessage, Int(send.clientId.rawValue) != nil, send.content.parentId == nil {
            let answer = try await chat.channel(send.channel).sendConfirmed(MessageDraft(content: send.content))
            if let answer = answer as? O.Response { return answer }
        }
        return try await chat.call(operation)
    }

    /// One of a user's connected devices.
    private func device(of user: UserID) -> Chat? {
        guard let phone = phones.first(where: { $0.user == user }), phone.isConnected, random.once(in: 2) else {
            return steady[user]
        }
        callCount += 1
        return phone.chat
    }

    func connectPhones(showing channels: [ChannelID]) async throws {
        for phone in phones {
            try await phone.connect()
            phone.show(channels)
        }
    }

    /// Takes the server away and brings it back. One of the connected phones acts meanwhile.
    func restart(_ server: RoostTestServer, _ run: inout MessageRun) async throws {
        let connected = phones.filter(\.isConnected)
        let chats = steady.values + connected.map(\.chat)
        try await server.startOutage()
        for chat in chats {
            for await status in chat.connection.updates where status != .online { break }
        }
        // If two phones acted in one channel, it couldn't be known which request the server accepted first.
        let acting = connected.isEmpty ? nil : run.random.pick(connected)
        _ = try await acting?.actOffline(&run)
        try await server.endOutage()
        for chat in chats {
            for await status in chat.connection.updates where status == .online { break }
        }
        try await acting?.sendPending(&run, by: self)
    }

    func disconnect() async {
        for chat in steady.values + phones.map(\.chat) { await chat.disconnect() }
    }
}

/// A user's device that is cut off now and then, with live objects for all channels and a list of the messages of one of them.
@MainActor
private final class Phone {
    let user: UserID
    let chat: Chat
    private(set) var isConnected = false
    private(set) var comparedMessagesCount = 0
    private var channels: [ChannelID: LiveChannel] = [:]
    private var list: MessageList?
    private var observations: [ObservationToken] = []
    private var listObservation: ObservationToken?
    /// Yields when anything shown has changed.
    private let changes: AsyncStream<Void>
    private let changed: AsyncStream<Void>.Continuation
    /// What was done while it was cut off.
    private var pending = MessageRun.Offline()
    /// How often each change was requested while it was cut off, refused or not.
    private var changeCounts: [Change: Int] = [:]

    /// The changes of messages while it is cut off, besides sending, reading, and deleting for the user alone.
    private enum Change: CaseIterable {
        case edit, updateLists, delete, deleteSeveral, purge, undelete, reset
    }

    init(of user: UserID, _ chat: Chat) {
        (self.user, self.chat) = (user, chat)
        (changes, changed) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    func show(_ ids: [ChannelID]) {
        let changed = changed
        for id in ids {
            let channel = chat.channel(id)
            channels[id] = channel
            observations.append(channel.observe { _ in changed.yield() })
        }
        observations.append(chat.unread.observe { _ in changed.yield() })
        observations.append(chat.outbox.observe { _ in changed.yield() })
        showMessages(of: ids[0])
    }

    private func showMessages(of id: ChannelID) {
        let changed = changed
        let list = chat.channel(id).messages(pageSize: 10)
        listObservation = list.observe { _ in changed.yield() }
        self.list = list
    }

    /// Moves back in the shown history, or to another channel.
    func moveList(_ run: inout MessageRun) async throws {
        let joined = run.channels.filter { run.recount.isMember(user, of: $0) }
        if let list, joined.contains(list.channelId), run.random.once(in: 2) {
            try await list.loadOlder()
        } else if !joined.isEmpty {
            showMessages(of: run.random.pick(joined))
            try await list?.loaded()
        }
    }

    // MARK: Connecting

    func connect() async throws {
        try await chat.connect(timeout: .seconds(20))
        isConnected = true
    }

    func cutOff() async {
        await chat.disconnect()
        isConnected = false
    }

    /// Sends, reads, changes or conceals messages of a channel without a connection.
    func actOffline(_ run: inout MessageRun) async throws -> String {
        let id = run.random.pick(run.channels)
        guard run.recount.isMember(user, of: id) else { return "nothing" }
        let share = run.random.number(1...12)
        if share <= 3 {
            let mark = MarkRead(channel: id, seq: Seq(run.random.number(0...Int(run.recount.seq(of: id)))))
            // What this device shows as read isn't marked: another device may have marked it as unread since.
            if mark.seq ?? 0 > channels[id]?.membership?.readSeq ?? 0 { pending.marks.append(mark) }
            try await chat.channel(id).markRead(upTo: mark.seq)
            return "\(user) offline: \(mark)"
        }
        if share <= 5, let message = messages(of: id, run).last {
            let deletion = DeleteMessagesForMe(channel: id, messages: [message.messageId])
            try await chat.channel(id).deleteForMe(deletion.messages)
            pending.deletions.append(deletion)
            return "\(user) offline: \(deletion)"
        }
        if share <= 10 {
            // The rarest kinds come first, so a short run covers each kind too.
            let kinds = Change.allCases.shuffled(using: &run.random).sorted {
                changeCounts[$0, default: 0] < changeCounts[$1, default: 0]
            }
            for kind in kinds {
                guard let change = try await changeOffline(kind, id, &run) else { continue }
                changeCounts[kind, default: 0] += 1
                return "\(user) offline: \(change)"
            }
        }
        let content = run.randomContent(in: id)
        let clientId = try await chat.channel(id).send(MessageDraft(content: content))
        pending.messages.append(SendMessage(channel: id, clientId: clientId, content: content))
        return "\(user) offline: \(content)"
    }

    /// The messages that the user sees in a channel and hasn't changed while cut off.
    private func messages(of id: ChannelID, _ run: MessageRun) -> [Message] {
        let changed = pending.changedMessages
        return (run.recount.messages(of: id, visibleTo: user) ?? []).filter { !changed.contains($0.messageId) }
    }

    /// Changes messages of the user's, or conceals all that this device has of a channel. Returns nil if nothing can be changed in this way.
    private func changeOffline(
        _ kind: Change, _ id: ChannelID, _ run: inout MessageRun
    ) async throws -> (any RoostAPI.Operation)? {
        let channel = chat.channel(id)
        if kind == .reset {
            // Messages that the user has sent or changed meanwhile would be concealed too, and their fate couldn't be looked up. A device that
            // doesn't know of the membership has nothing of the channel to conceal.
            guard !pending.isActive(in: id), let view = channels[id]?.view, view.membership?.state == .member else { return nil }
            try await channel.resetHistory()
            // Messages that had arrived when it was cut off may be shown a little later: all that this device has by now is concealed.
            try await channel.loaded()
            let seq = channel.view?.channel.counters.seq ?? 0
            let reset = ResetHistory(channel: id, upTo: seq)
            pending.resets.append(reset)
            return reset
        }
        let own = messages(of: id, run).filter {
            $0.sender == user && $0.kind == .text && !$0.isDeletedForMe && ($0.deletedAt != nil) == (kind == .undelete)
        }
        guard let message = own.last?.messageId else { return nil }
        switch kind {
        case .reset: return nil
        case .edit:
            let edit = EditMessage(channel: id, message: message, text: "offline \(run.random.number(1...3))")
            try await channel.edit(message, text: edit.text)
            pending.edits.append(edit)
            return edit
        case .updateLists:
            let update = UpdateMetaArrays(
                channel: id, message: message, create: ["votes"], add: ["votes": ["\(run.random.number(1...3))"]])
            try await channel.updateMetaArrays(of: message, create: update.create, add: update.add)
            pending.listUpdates.append(update)
            return update
        case .delete:
            try await channel.delete(message)
            let removal = DeleteMessage(channel: id, message: message)
            pending.removals.append(removal)
            return removal
        case .deleteSeveral:
            let removal = DeleteMessages(channel: id, messages: own.suffix(2).map(\.messageId))
            try await channel.delete(removal.messages)
            pending.removalsOfSeveral.append(removal)
            return removal
        case .purge:
            try await channel.purge(message)
            let purge = PurgeMessage(channel: id, message: message)
            pending.purges.append(purge)
            return purge
        case .undelete:
            try await channel.undelete(message)
            let undeletion = UndeleteMessage(channel: id, message: message)
            pending.undeletions.append(undeletion)
            return undeletion
        }
    }

    /// Waits until offline operations were carried out or refused, and counts them.
    func sendPending(_ run: inout MessageRun, by devices: Devices) async throws {
        let isSent = await wait { self.chat.outbox.entries.allSatisfy { if case .failed = $0.state { true } else { false } } }
        guard isSent else { throw Missed("an answer to \(chat.outbox.entries)") }
        for entry in chat.outbox.entries { await chat.outbox.discard(entry) }
        try await run.arrived(pending, of: user, by: devices)
        pending = MessageRun.Offline()
    }

    // MARK: Comparing

    /// Waits until everything shown of some channels agrees with the recount. Returns the differences at the deadline.
    func settle(_ recount: MessageRecount, _ ids: [ChannelID]) async -> [String] {
        if await wait({ self.differences(from: recount, ids).isEmpty }) {
            if let list, ids.contains(list.channelId) { comparedMessagesCount += list.items.count }
            return []
        }
        return differences(from: recount, ids)
    }

    private func wait(_ isTrue: () -> Bool) async -> Bool {
        let changed = changed
        let end = ContinuousClock.now + .seconds(45)
        let alarm = Task {
            try await Task.sleep(until: end, clock: .continuous)
            changed.yield()
        }
        defer { alarm.cancel() }
        while !isTrue() {
            guard ContinuousClock.now < end else { return false }
            for await _ in changes { break }
        }
        return true
    }

    private func differences(from recount: MessageRecount, _ ids: [ChannelID]) -> [String] {
        var found = ids.compactMap { id -> String? in
            let standing = recount.standing(of: user, in: id)
            let channel = channels[id]
            var shown = channel?.view.flatMap(MessageRecount.Standing.init(showing:))
            if let channel {
                shown?.unreadCount = channel.unreadCount
                shown?.hasMention = channel.hasMention
            }
            // A user who joins while connected gets later events. Earlier messages are fetched by the lists that show them.
            if let last = standing?.lastMessage, last.seq < channel?.membership?.joinedSeq ?? 0, shown?.lastMessage == nil {
                shown?.lastMessage = last
            }
            return shown == standing ? nil : "\(user) in \(id): \(shown as Any) instead of \(standing as Any)"
        }
        let (total, counted) = (chat.unread.total, recount.total(of: user))
        if total != counted { found.append("total of \(user): \(total) instead of \(counted)") }
        guard let list, ids.contains(list.channelId), recount.isMember(user, of: list.channelId) else { return found }
        let visible = recount.messages(of: list.channelId, visibleTo: user) ?? []
        let shown = list.items.map { $0.message?.comparable }
        // It shows the newest messages; how many, depends on how far it was scrolled.
        if shown != visible.suffix(shown.count).map(Optional.some) || (shown.count < visible.count && !list.hasOlder) {
            found.append("list of \(user) in \(list.channelId): \(shown) instead of \(visible.suffix(shown.count))")
        }
        return found
    }
}
