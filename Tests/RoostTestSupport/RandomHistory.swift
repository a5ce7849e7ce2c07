public import RoostAPI
import RoostCore

/// Several users who do random things, some of which are refused. A seed repeats it.
public struct RandomHistory {
    public var random: SeededGenerator
    public private(set) var users: [UserID]
    public private(set) var channels: [ChannelID]
    /// Messages that were sent, with their senders' client ids.
    private var sent: [(channel: ChannelID, id: MessageID, sender: UserID, clientId: ClientID)] = []
    private var lastNumber = 0

    /// Makes the users, and a channel of the first of them that the others join.
    public init(seed: UInt64, in world: CoreWorld, users: [UserID] = ["ann", "bob", "cid", "dan"]) throws {
        random = SeededGenerator(seed: seed)
        self.users = users
        channels = []
        for user in users { try world.user(user) }
        try createChannel(in: world, by: users[0], with: [])
        for user in users.dropFirst() { try world.perform(JoinChannel(channel: channels[0]), as: user) }
        world.options.undeletionSeconds = 3600
        // Half of them have to accept an invitation before they are members.
        for user in users.suffix(users.count / 2) { try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: user) }
    }

    /// Performs one random operation. Returns what was tried, for the text of a failure.
    @discardableResult
    public mutating func step(in world: CoreWorld) throws -> String {
        world.advance(milliseconds: random.once(in: 20) ? -500 : Int64(random.number(0...40)))
        let user = random.pick(users)
        let channel = random.pick(channels)
        do {
            switch random.number(1...140) {
            case 101...140: return try changeMembership(in: world, of: channel, as: user)
            case 1...38: return try send(in: world, to: channel, as: user, role: .user)
            case 39...42: return try send(in: world, to: channel, as: "root", role: .admin)
            case 43...46: return try sendAgain(in: world)
            case 47...64: return try changeMessage(in: world, as: user)
            case 65...76: return try mark(in: world, channel, as: user)
            case 77...84: return try did("join \(channel)", user) { _ = try world.perform(JoinChannel(channel: channel), as: user) }
            case 85...90:
                return try did("leave \(channel)", user) { _ = try world.perform(LeaveChannel(channel: channel), as: user) }
            case 91...93:
                let update = UpdateChannel(
                    channel: channel, displayName: "\(random.number(1...3))", tags: ["\(random.number(1...3))"])
                return try did("update \(channel)", user) { _ = try world.perform(update, as: user) }
            case 94...96:
                let update = UpdateMe(displayName: "\(random.number(1...3))")
                return try did("update me", user) { _ = try world.perform(update, as: user) }
            case 97...98 where channels.count < 8:
                let others = users.filter { _ in random.once(in: 2) }
                try createChannel(in: world, by: user, with: others)
                return "\(user) creates \(channels.last ?? "nothing")"
            default:
                // A channel now and then, but never the first one.
                guard let channel = channels.dropFirst().randomElement(using: &random) else { return "nothing" }
                let admin: UserID? = random.once(in: 2) ? "root" : nil
                return try did("delete \(channel)", admin ?? user) {
                    _ = try world.perform(DeleteChannel(channel: channel), as: admin ?? user, role: admin == nil ? .user : .admin)
                }
            }
        } catch is RoostError {
            return "a refusal"
        }
    }

    /// Sends a message, mostly a new one.
    public mutating func sendSomething(in world: CoreWorld) throws {
        do {
            if random.once(in: 12) {
                _ = try sendAgain(in: world)
            } else {
                _ = try send(in: world, to: random.pick(channels), as: random.pick(users), role: .user)
            }
        } catch is RoostError {}
    }

    /// Changes or deletes a message, mostly as its sender.
    public mutating func changeSomething(in world: CoreWorld) throws {
        do { _ = try changeMessage(in: world, as: random.pick(users)) } catch is RoostError {}
    }

    /// Invitations, roles, states of the channel and of the user's own membership.
    private mutating func changeMembership(in world: CoreWorld, of channel: ChannelID, as user: UserID) throws -> String {
        let other = random.pick(users)
        func attempt(_ operation: some Handled) throws -> String {
            try did("\(type(of: operation).name) \(channel) \(other)", user) { _ = try world.perform(operation, as: user) }
        }
        // Mostly a user who may, or a freeze would hardly ever end.
        let (moderated, moderator) = random.once(in: 3) ? (channel, user) : (channels[0], users[0])
        func moderate(_ operation: some Handled) throws -> String {
            try did("\(type(of: operation).name) \(moderated)", moderator) { _ = try world.perform(operation, as: moderator) }
        }
        switch random.number(1...22) {
        case 1...2: return try attempt(InviteMembers(channel: channel, users: [other], welcome: "come"))
        case 3...4:
            // Mostly an answer to an existing invitation.
            let invitations = try world.perform(ListMyInvitations(), as: user).items
            let invited = invitations.first?.invitation.channelId ?? channel
            return random.once(in: 2)
                ? try attempt(AcceptInvitation(channel: invited)) : try attempt(DeclineInvitation(channel: invited))
        case 5: return try attempt(WithdrawInvitations(channel: channel, users: users))
        case 6: return try attempt(AddMembers(channel: channel, users: users, hideHistory: random.once(in: 3)))
        case 7: return try attempt(RemoveMembers(channel: channel, users: [other]))
        case 8: return try attempt(SetMemberRole(channel: channel, users: [other], role: .operator))
        case 9: return try attempt(SetMemberRole(channel: channel, users: [other], role: random.once(in: 2) ? .owner : .member))
        case 10: return try moderate(FreezeChannel(channel: moderated))
        case 11: return try moderate(UnfreezeChannel(channel: moderated))
        case 12:
            let hide = HideChannel(
                channel: channel, hidePreviousMessages: random.once(in: 2), allowAutoUnhide: random.once(in: 2))
            // Most hidden channels are brought back by a message, some at once.
            guard random.once(in: 3) else { return try attempt(hide) }
            return try attempt(hide) + ", " + attempt(UnhideChannel(channel: channel))
        case 13 where random.once(in: 2): return try attempt(MarkUnread(channel: channel, seq: Seq(random.number(0...20))))
        case 13:
            return random.once(in: 3)
                ? try attempt(ResetHistory(channel: channel)) : try attempt(UnhideChannel(channel: channel))
        case 15 where random.once(in: 2):
            // It is ended at once now and then, or few would be.
            let muted = random.once(in: 3) ? "" : try attempt(MuteNotifications(channel: channel)) + ", "
            return random.once(in: 2) ? try muted + attempt(UnmuteNotifications(channel: channel)) : muted + "nothing"
        case 14 where random.once(in: 2):
            return try attempt(SetDraft(channel: channel, text: random.once(in: 3) ? "" : "\(random.number(1...3))"))
        case 14: return try attempt(UpdatePreferences(autoAcceptInvitations: random.once(in: 3)))
        case 15: return try attempt(UpdateChannel(channel: channel, metadata: ["n": .integer(Int64(random.number(1...3)))]))
        // Nothing expires during a history: that changes what a member may do without an event.
        case 16:
            return try attempt(SetRateLimit(channel: channel, messages: random.number(1...3), windowSeconds: 5, seconds: 86_400))
        case 17: return try attempt(RemoveRateLimit(channel: channel))
        case 18...20: return try attempt(randomUpdate(of: channel))
        case 21: return try moderate(SilenceChannel(channel: moderated))
        default: return try moderate(UnsilenceChannel(channel: moderated))
        }
    }

    /// Attributes that change rarely, and what members may do.
    private mutating func randomUpdate(of channel: ChannelID) -> UpdateChannel {
        var update = UpdateChannel(channel: channel)
        switch random.number(1...6) {
        case 1: update.coverUrl = random.once(in: 2) ? "" : "https://example.com/\(random.number(1...3))"
        case 2: update.customType = "\(random.number(1...3))"
        case 3: update.data = "\(random.number(1...3))"
        case 4: update.isPublic = random.once(in: 2)
        case 5: update.isDistinct = random.once(in: 2)
        default:
            update.policy = PolicyChanges(
                send: random.once(in: 2) ? .operators : .members, maxMembers: random.number(3...9),
                announcesJoins: random.once(in: 2), announcesLeaves: random.once(in: 2), announcesNames: random.once(in: 2))
        }
        return update
    }

    private func did(_ what: String, _ user: UserID, _ body: () throws -> Void) throws -> String {
        try body()
        return "\(user): \(what)"
    }

    private mutating func createChannel(in world: CoreWorld, by user: UserID, with others: [UserID]) throws {
        let id = ChannelID("channel-\(channels.count)")
        // The first is public; some of the others are groups, whose members get invitations.
        let types: [ChannelType] = [.group, .group, .community, .live, .messaging, .conversation, .livestream]
        let type = channels.isEmpty ? .community : random.pick(types)
        var create = CreateChannel(channel: id, type: type, users: others)
        if type == .group || type == .messaging { create.isDistinct = random.once(in: 2) }
        if type == .group || type == .livestream { create.isEphemeral = random.once(in: 3) }
        if type == .group, random.once(in: 2), let other = others.first { create.operators = [other] }
        let view = try world.perform(create, as: user)
        if view.channel.channelId == id { channels.append(id) }
    }

    private mutating func send(in world: CoreWorld, to channel: ChannelID, as user: UserID, role: AppRole) throws -> String {
        lastNumber += 1
        let clientId = ClientID("\(lastNumber)")
        var content = MessageContent(text: "text \(lastNumber)")
        switch random.number(1...8) {
        case 1: content.isSilent = true
        case 2...3: content.mentionees = randomMentionees()
        case 4: content.metaArrays = ["votes": ["a"]]
        default: break
        }
        let message = try world.perform(
            SendMessage(channel: channel, clientId: clientId, content: content), as: user, role: role)
        sent.append((channel, message.messageId, user, clientId))
        return "\(user): send \(message.seq) to \(channel)"
    }

    /// Users, members or not, or the channel, or both, or none.
    private mutating func randomMentionees() -> [Mentionee] {
        let named = users.filter { _ in random.once(in: 2) }
        return (named.isEmpty ? [] : [.users(named)]) + (random.once(in: 2) ? [.channel] : [])
    }

    private mutating func sendAgain(in world: CoreWorld) throws -> String {
        guard !sent.isEmpty else { return "nothing" }
        let old = random.pick(sent)
        try world.perform(SendMessage(channel: old.channel, clientId: old.clientId, text: "again"), as: old.sender)
        return "\(old.sender): send \(old.clientId) again to \(old.channel)"
    }

    private mutating func changeMessage(in world: CoreWorld, as user: UserID) throws -> String {
        guard !sent.isEmpty else { return "nothing" }
        let old = random.once(in: 3) ? random.pick(sent) : random.pick(Array(sent.suffix(6)))
        let user = random.once(in: 3) ? user : old.sender
        let text = "edit \(random.number(1...3))"
        if random.once(in: 6) {
            return try did("purge \(old.id) of \(old.sender) in \(old.channel)", "root") {
                _ = try world.perform(PurgeMessage(channel: old.channel, message: old.id), as: "root", role: .admin)
            }
        }
        if random.once(in: 6) {
            return try did("undelete \(old.id) in \(old.channel)", user) {
                _ = try world.perform(UndeleteMessage(channel: old.channel, message: old.id), as: user)
            }
        }
        if random.once(in: 12) {
            let several = Array(Set(sent.suffix(5).filter { $0.channel == old.channel }.map(\.id)))
            return try did("delete \(several.count) in \(old.channel)", user) {
                _ = try world.perform(
                    DeleteMessages(channel: old.channel, messages: several.sorted { $0.rawValue < $1.rawValue }), as: user)
            }
        }
        if random.once(in: 8) {
            let several = Array(Set(sent.suffix(4).filter { $0.channel == old.channel }.map(\.id)))
            return try did("delete \(several.count) for oneself in \(old.channel)", user) {
                _ = try world.perform(
                    DeleteMessagesForMe(channel: old.channel, messages: several.sorted { $0.rawValue < $1.rawValue }), as: user)
            }
        }
        if random.once(in: 4) {
            let mentionees = randomMentionees()
            return try did("mention in \(old.id)", user) {
                _ = try world.perform(EditMessage(channel: old.channel, message: old.id, mentionees: mentionees), as: user)
            }
        }
        if random.once(in: 12) {
            return try did("vote in \(old.id)", user) {
                _ = try world.perform(
                    UpdateMetaArrays(channel: old.channel, message: old.id, create: ["votes"], add: ["votes": [text]]), as: user)
            }
        }
        return try random.once(in: 3)
            ? did("delete \(old.id)", user) {
                _ = try world.perform(DeleteMessage(channel: old.channel, message: old.id), as: user)
            }
            : did("edit \(old.id)", user) {
                _ = try world.perform(EditMessage(channel: old.channel, message: old.id, text: text), as: user)
            }
    }

    private mutating func mark(in world: CoreWorld, _ channel: ChannelID, as user: UserID) throws -> String {
        let seq: Seq? = random.once(in: 3) ? nil : Seq(random.number(0...(lastNumber * 2 + 10)))
        return try did("mark \(channel) \(seq ?? -1)", user) {
            _ = try world.perform(MarkRead(channel: channel, seq: seq), as: user)
        }
    }
}
