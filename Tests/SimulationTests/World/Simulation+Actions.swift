import RoostAPI
import RoostTestSupport

@testable import Roost
@testable import RoostClientModel

/// The random actions of people.
extension Simulation {
    func act() throws {
        actionsLeft -= 1
        guard actionsLeft > 0 else { return }
        let wait = scheduler.random.once(in: 25) ? scheduler.random.number(5_000...40_000) : scheduler.random.number(0...400)
        scheduler.after(wait) { [unowned self] in try act() }
        let client = scheduler.random.pick(clients)
        if client.isRunning { act(on: client) }
    }

    private func act(on client: SimulatedClient) {
        guard !channels.isEmpty else { return create(by: client) }
        let joined = client.store.joined
        // A user without memberships mostly joins something: a refusal teaches little.
        if joined.isEmpty, !scheduler.random.once(in: 4) {
            return client.call(JoinChannel(channel: scheduler.random.pick(channels)))
        }
        let channel = joined.isEmpty || scheduler.random.once(in: 12) ? scheduler.random.pick(channels) : favourite(of: joined)
        if profile.editsMostly, !scheduler.random.once(in: 3) { return change(by: client, in: channel) }
        switch scheduler.random.number(1...132) {
        case 1...42: send(by: client, in: channel)
        case 43...55: change(by: client, in: channel)
        case 56...67:
            let head = Int(checker.heads[.channel(channel)] ?? 1)
            let seq = scheduler.random.once(in: 2) ? nil : Seq(scheduler.random.number(0...head + 2))
            request(.read(MarkRead(channel: channel, seq: seq)), by: client)
        case 68...78: client.call(JoinChannel(channel: scheduler.random.pick(channels)))
        case 79...82: request(.leave(LeaveChannel(channel: channel)), by: client)
        case 83...85: create(by: client)
        case 86...87: client.call(UpdateMe(displayName: "\(scheduler.random.number(1...3))"))
        case 88: client.call(UpdateChannel(channel: channel, displayName: "\(scheduler.random.number(1...3))"))
        case 89:
            // A channel now and then, but not the one with the history.
            if channel != channels[0] { client.call(DeleteChannel(channel: channel)) }
        case 90...93: client.loadMessages(in: channel)
        case 94...95: settle(by: client)
        case 96: sendAgain(by: client)
        case 97: client.call(WatchChannel(channel: channel))
        case 98: client.call(UnwatchChannel(channel: channel))
        case 99: client.cancelCall()
        case 100:
            client.disconnect()
            scheduler.after(scheduler.random.number(0...20_000)) { client.connect() }
        case 101...102: client.nudge()
        case 103...104: client.startReading(channel)
        case 105...106: client.stopReading(channel)
        case 123...130: report(by: client, in: channel)
        case 131...132:
            // One of the user's own devices; maybe the one that asks.
            let own = clients.filter { $0.user == client.user }
            client.call(SignOutDevice(device: scheduler.random.pick(own).device))
        default: changeMembership(by: client, of: channel)
        }
    }

    /// Invitations and roles, and what users decide for themselves. Much of it is refused, which is no fault.
    ///
    /// No user hides earlier messages: the checker holds every client to all of them.
    private func changeMembership(by client: SimulatedClient, of channel: ChannelID) {
        let other = scheduler.random.pick(Set(clients.map(\.user)).sorted())
        switch scheduler.random.number(1...22) {
        case 1...3: client.call(InviteMembers(channel: channel, users: [other]))
        case 4...5: answerInvitation(by: client)
        case 6: client.call(WithdrawInvitations(channel: channel, users: [other]))
        case 7...8: client.call(AddMembers(channel: channel, users: [other]))
        case 9: client.call(RemoveMembers(channel: channel, users: [other]))
        case 10...13:
            let role = scheduler.random.pick([ChannelRole.operator, .member, .owner])
            client.call(SetMemberRole(channel: channel, users: [other], role: role))
        case 14...15:
            request(.hide(HideChannel(channel: channel, allowAutoUnhide: scheduler.random.once(in: 2))), by: client)
        case 16: request(.unhide(UnhideChannel(channel: channel)), by: client)
        case 17 where scheduler.random.once(in: 2):
            request(.draft(SetDraft(channel: channel, text: scheduler.random.once(in: 3) ? "" : "so far")), by: client)
        case 18...19:
            let seq = Seq(scheduler.random.number(0...Int(client.store.channels[channel]?.counters.seq ?? 0)))
            request(.unread(MarkUnread(channel: channel, seq: seq)), by: client)
        case 21: request(.mute(MuteNotifications(channel: channel)), by: client)
        case 22: request(.unmute(UnmuteNotifications(channel: channel)), by: client)
        default:
            var update = UpdatePreferences()
            switch scheduler.random.number(1...5) {
            case 1: update.sharesTyping = scheduler.random.once(in: 2)
            case 2: update.sharesReading = scheduler.random.once(in: 2)
            case 3: update.sharesDelivery = scheduler.random.once(in: 2)
            case 4: update.sharesPresence = scheduler.random.once(in: 2)
            default: update.autoAcceptInvitations = scheduler.random.once(in: 2)
            }
            request(.preferences(update), by: client)
        }
    }

    /// Reports a delivery; now and then an earlier one, or one of a message that doesn't exist yet.
    private func report(by client: SimulatedClient, in channel: ChannelID) {
        let held = client.store.saved.channels[channel]?.cursor ?? 0
        let seq = scheduler.random.once(in: 4) ? Seq(scheduler.random.number(0...Int(held) + 2)) : held
        let mark = MarkDelivered(channel: channel, seq: seq)
        client.report(mark, membership: checker.reports(mark, by: client.user))
    }

    /// Mostly through the outbox, and now and then as a plain call.
    private func request(_ operation: OutboxOperation, by client: SimulatedClient) {
        if scheduler.random.once(in: 4) { client.call(operation.operation) } else { client.enqueue(operation) }
    }

    /// Answers an invitation that exists, or one that doesn't.
    private func answerInvitation(by client: SimulatedClient) {
        let pending = client.store.ownInvitations.values.filter { $0.userId == client.user && $0.state == .pending }
        let channel = scheduler.random.pick(pending.isEmpty ? channels : pending.map(\.channelId).sorted())
        if scheduler.random.once(in: 3) {
            client.call(DeclineInvitation(channel: channel))
        } else {
            client.call(AcceptInvitation(channel: channel))
        }
    }

    /// Mostly the same channel, to give it a history.
    private func favourite(of joined: [ChannelID]) -> ChannelID {
        scheduler.random.once(in: 2) ? joined[0] : scheduler.random.pick(joined)
    }

    private func create(by client: SimulatedClient) {
        guard channels.count < profile.channelsMax else { return }
        channels.append(ChannelID("channel-\(channels.count)"))
        let others = Set(clients.map(\.user)).sorted().filter { _ in scheduler.random.once(in: 2) }
        client.call(CreateChannel(channel: channels.last, type: SimulatedServer.channelType, users: others))
    }

    private func send(by client: SimulatedClient, in channel: ChannelID) {
        // Now and then several at once: they leave one after another.
        for _ in 0..<(scheduler.random.once(in: 10) ? 4 : 1) where client.isRunning {
            lastClientId += 1
            send("text \(lastClientId)", ClientID("c\(lastClientId)"), by: client, in: channel)
        }
    }

    private func send(_ text: String, _ clientId: ClientID, by client: SimulatedClient, in channel: ChannelID) {
        checker.sent(Checker.Name(sender: client.user, channel: channel, clientId: clientId), text)
        client.send(text, clientId: clientId, in: channel)
    }

    /// An app that lost its own memory sends with a client id that it has used before, maybe with another text.
    private func sendAgain(by client: SimulatedClient) {
        let names = checker.texts.keys.filter { $0.sender == client.user && !checker.discarded.contains($0) }
            .sorted { ($0.channel, $0.clientId) < ($1.channel, $1.clientId) }
        guard !names.isEmpty else { return }
        let name = scheduler.random.pick(names)
        send("again", name.clientId, by: client, in: name.channel)
    }

    private func change(by client: SimulatedClient, in channel: ChannelID) {
        if scheduler.random.once(in: 3), changePending(by: client, in: channel) { return }
        let held = (client.store.messages[channel] ?? [:]).values.sorted { $0.seq < $1.seq }
        if !held.isEmpty, scheduler.random.once(in: 8) {
            let message = scheduler.random.pick(held).messageId
            return request(.deleteForMe(DeleteMessagesForMe(channel: channel, messages: [message])), by: client)
        }
        let own = (client.store.messages[channel] ?? [:]).values.filter { $0.sender == client.user }.sorted { $0.seq < $1.seq }
        guard !own.isEmpty else { return }
        let message = (profile.editsMostly ? own[own.count - 1] : scheduler.random.pick(own)).messageId
        if scheduler.random.once(in: profile.editsMostly ? 20 : 3) {
            request(.delete(DeleteMessage(channel: channel, message: message)), by: client)
        } else if scheduler.random.once(in: 3) {
            client.call(EditMessage(channel: channel, message: message, text: "edit \(scheduler.random.number(1...3))"))
        } else {
            client.enqueue(.edit(EditMessage(channel: channel, message: message, text: queuedText())))
        }
    }

    /// A text that no other edit has, so the checker detects an edit that is made twice.
    private func queuedText() -> String {
        lastEdit += 1
        return "\(Checker.queuedEdit) \(lastEdit)"
    }

    /// Edits or deletes a pending message. Returns false if there is none.
    private func changePending(by client: SimulatedClient, in channel: ChannelID) -> Bool {
        let pending = client.outbox.items.compactMap(\.message).filter { $0.channel == channel }
        guard !pending.isEmpty else { return false }
        let (key, none) = (scheduler.random.pick(pending), MessageID(rawValue: 0))
        let name = Checker.Name(sender: client.user, channel: channel, clientId: key.clientId)
        if scheduler.random.once(in: 3) {
            checker.gaveUp(name, on: client.name)
            client.enqueue(.delete(DeleteMessage(channel: channel, message: none), of: key.clientId))
        } else {
            let text = queuedText()
            checker.sent(name, text)
            client.enqueue(.edit(EditMessage(channel: channel, message: none, text: text), of: key.clientId))
        }
        return true
    }

    /// Retries a refused operation, or gives it up.
    private func settle(by client: SimulatedClient) {
        guard let item = client.outbox.items.first(where: { $0.failure != nil }) else { return }
        if scheduler.random.once(in: 2) { return client.retry(item) }
        scheduler.note("\(client.name) gives up \(item.operation.summary)")
        if let key = item.message {
            checker.gaveUp(Checker.Name(sender: client.user, channel: key.channel, clientId: key.clientId), on: client.name)
        }
        client.discard(item)
    }
}
