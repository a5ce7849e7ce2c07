public import RoostAPI
public import RoostCore

/// Performs the operations of a run: the rules in isolation, or a server.
public protocol OperationPerformer {
    nonisolated(nonsending) func perform<O: Handled>(_ operation: O, as user: UserID, role: AppRole) async throws -> O.Response
}

/// Five users who do random things with messages in twenty channels, together with a recount of what each of them sees. A seed repeats it.
public struct MessageRun: Sendable {
    public static let users: [UserID] = ["ann", "bob", "cid", "dan", "eve"]
    /// An administrator of the app, who is a member of no channel.
    public static let admin: UserID = "root"

    /// What happened, and where.
    public struct Step: Sendable {
        public var channels: [ChannelID] = []
        /// The user who tried something; nil if there was nothing to try.
        public var user: UserID?
        /// The answer, if it differs from the recount.
        public var wrongAnswer: String?
        fileprivate var operation: (any Handled)?
        fileprivate var refusal: RoostError.Code?

        /// For the text of a failure.
        public var text: String {
            guard let user, let operation else { return "nothing" }
            return "\(channels.map(\.rawValue)) \(user): \(operation)\(refusal.map { " is refused: \($0.rawValue)" } ?? "")"
        }
    }

    public var random: SeededGenerator
    public let channels: [ChannelID]
    public private(set) var recount = MessageRecount()
    /// How often each operation was carried out, by its name.
    public private(set) var acceptedCounts: [String: Int] = [:]
    /// The newest messages with their senders, to be sent again. Some of them have been deleted since.
    private var sent: [(user: UserID, operation: SendMessage)] = []
    private var lastNumber = 0
    private let undeletes: Bool

    /// Makes the channels. The users have to exist.
    ///
    /// - Parameter undeletes: Whether deleted messages are restored, which the server must allow for long enough.
    public nonisolated(nonsending) init(
        seed: UInt64, undeletes: Bool = false, by performer: some OperationPerformer
    ) async throws {
        self.undeletes = undeletes
        random = SeededGenerator(seed: seed)
        channels = (1...20).map { ChannelID("channel-\($0)") }
        // Everyone joins the first three; into the fourth, others bring them; and the fifth is open to non-members.
        let types: [ChannelType] = [.community, .community, .live, .messaging, .livestream]
        for (index, channel) in channels.enumerated() {
            let owner = Self.users[index / 4]
            let others = Self.users.filter { $0 != owner && random.once(in: 2) }
            // In every fourth the server announces joins and leaves.
            let announces = index.isMultiple(of: 4)
            let create = CreateChannel(
                channel: channel, type: types[index % 5], users: others,
                policy: announces ? PolicyChanges(announcesJoins: true, announcesLeaves: true) : nil)
            _ = try await performer.perform(create, as: owner, role: .user)
            recount.created(channel, isOpen: types[index % 5] == .livestream, announces: announces, members: [owner] + others)
        }
    }

    /// Performs one random operation.
    public nonisolated(nonsending) mutating func step(by performer: some OperationPerformer) async throws -> Step {
        let channel = random.pick(channels)
        let members = Self.users.filter { recount.isMember($0, of: channel) }
        let user = members.isEmpty || random.once(in: 12) ? random.pick(Self.users) : random.pick(members)
        switch random.number(1...100) {
        case 1...38: return try await send(randomContent(in: channel), to: channel, as: user, performer)
        case 39...41: return try await sendAgain(performer)
        case 42...44: return try await sendAdmin(performer)
        case 45...67: return try await changeMessage(in: channel, as: user, performer)
        case 68...70:
            let unmark = MarkUnread(channel: channel, seq: Seq(random.number(0...Int(recount.seq(of: channel)) + 2)))
            return try await attempt(unmark, as: user, in: [channel], performer) { recount, answer in
                recount.unmarked(unmark, by: user)
                return answer == recount.unread(of: user, in: channel)
            }
        case 71...82:
            let seq: Seq? = random.once(in: 3) ? nil : Seq(random.number(0...Int(recount.seq(of: channel)) + 2))
            let mark = MarkRead(channel: channel, seq: seq)
            return try await attempt(mark, as: user, in: [channel], performer) { recount, answer in
                recount.marked(mark, by: user)
                return answer == recount.unread(of: user, in: channel)
            }
        case 83...88: return try await conceal(channel, as: user, performer)
        default: return try await changeMembers(of: channel, as: user, performer)
        }
    }

    /// What a client did while it was cut off. Each message is in at most one of the changes, or in one of the user's own deletions.
    public struct Offline: Sendable {
        public var messages: [SendMessage] = []
        public var marks: [MarkRead] = []
        public var deletions: [DeleteMessagesForMe] = []
        public var resets: [ResetHistory] = []
        public var edits: [EditMessage] = []
        public var listUpdates: [UpdateMetaArrays] = []
        public var removals: [DeleteMessage] = []
        public var removalsOfSeveral: [DeleteMessages] = []
        public var purges: [PurgeMessage] = []
        public var undeletions: [UndeleteMessage] = []

        public init() {}

        /// The channel and the messages of each change.
        private var changes: [(ChannelID, [MessageID])] {
            var changes = edits.map { ($0.channel, [$0.message]) }
            changes += listUpdates.map { ($0.channel, [$0.message]) }
            changes += removals.map { ($0.channel, [$0.message]) }
            changes += removalsOfSeveral.map { ($0.channel, $0.messages) }
            changes += purges.map { ($0.channel, [$0.message]) }
            changes += undeletions.map { ($0.channel, [$0.message]) }
            return changes
        }

        /// The messages that must be left alone.
        public var changedMessages: Set<MessageID> { Set(changes.flatMap { $0.1 } + deletions.flatMap(\.messages)) }

        /// Whether it sends or changes a message of a channel.
        public func isActive(in channel: ChannelID) -> Bool {
            messages.contains { $0.channel == channel } || changes.contains { $0.0 == channel }
        }
    }

    /// A change of a channel's stream that a client requested while it was cut off, and that was made.
    private struct Arrived {
        /// Its place in the stream.
        let seq: Seq
        /// The operation's name.
        let name: String
        let count: @Sendable (inout MessageRecount) -> Void
    }

    /// Finds out what became of the changes that a client requested while it was cut off.
    private nonisolated(nonsending) func changes(
        of offline: Offline, by user: UserID, _ performer: some OperationPerformer
    ) async throws -> [Arrived] {
        var arrived: [Arrived] = []
        nonisolated(nonsending) func ask<O: Handled>(
            _ operation: O, _ count: @escaping @Sendable (inout MessageRecount, Message) -> Void
        ) async throws where O.Response == Message {
            do {
                let message = try await performer.perform(operation, as: user, role: .user)
                arrived.append(Arrived(seq: message.changeSeq, name: O.name) { count(&$0, message) })
            } catch let error as RoostError where Self.expected.contains(error.code) {}
        }
        // Repeating a request answers with the stored result, and is refused if the first one was.
        for send in offline.messages { try await ask(send) { $0.sent(send.content, answer: $1) } }
        for edit in offline.edits { try await ask(edit) { $0.edited(edit, answer: $1) } }
        for update in offline.listUpdates { try await ask(update) { recount, _ in recount.updated(update) } }
        for removal in offline.removals { try await ask(removal) { $0.deleted(answer: $1) } }
        for undeletion in offline.undeletions {
            try await ask(undeletion) { recount, _ in _ = recount.undeleted(undeletion.message, in: undeletion.channel) }
        }
        for removal in offline.removalsOfSeveral {
            do {
                let answer = try await performer.perform(removal, as: user, role: .user)
                for message in answer.messages {
                    arrived.append(Arrived(seq: message.changeSeq, name: DeleteMessages.name) { $0.deleted(answer: message) })
                }
            } catch let error as RoostError where Self.expected.contains(error.code) {}
        }
        for purge in offline.purges {
            // A purged message has no answer. The channel's changes show whether it is purged.
            let place = recount.messages(of: purge.channel).first { $0.messageId == purge.message }?.seq
            let changes = GetChannelChanges(channel: purge.channel, after: recount.seq(of: purge.channel))
            let purged = try await performer.perform(changes, as: Self.admin, role: .admin).rows.purged ?? []
            for row in purged where row.seq == place {
                arrived.append(
                    Arrived(seq: row.changeSeq, name: PurgeMessage.name) { $0.purged(purge.message, in: purge.channel) })
            }
        }
        return arrived.sorted { $0.seq < $1.seq }
    }

    /// Counts what a client did while it was cut off, now that it was carried out or refused.
    public nonisolated(nonsending) mutating func arrived(
        _ offline: Offline, of user: UserID, by performer: some OperationPerformer
    ) async throws {
        for change in try await changes(of: offline, by: user, performer) {
            change.count(&recount)
            acceptedCounts["offline \(change.name)", default: 0] += 1
        }
        for reset in offline.resets {
            do {
                _ = try await performer.perform(reset, as: user, role: .user)
                recount.concealed(reset.channel, upTo: reset.upTo, from: user)
                acceptedCounts["offline \(ResetHistory.name)", default: 0] += 1
            } catch let error as RoostError where Self.expected.contains(error.code) {}
        }
        for mark in offline.marks where recount.isMember(user, of: mark.channel) {
            recount.marked(mark, by: user)
            acceptedCounts["offline \(MarkRead.name)", default: 0] += 1
        }
        for deletion in offline.deletions {
            do {
                let answer = try await performer.perform(deletion, as: user, role: .user)
                recount.deletedForOneself(answer.messages, by: user)
                acceptedCounts["offline \(DeleteMessagesForMe.name)", default: 0] += 1
            } catch let error as RoostError where Self.expected.contains(error.code) {}
        }
    }

    /// Refusals that a run naturally meets. Others are faults.
    private static let expected: Set<RoostError.Code> = [
        .notMember, .notFound, .notMessageOwner, .inviteRequired, .notPermitted, .invalidArgument,
    ]

    /// Performs an operation, and counts it unless it is refused, in which case it must change nothing.
    ///
    /// - Parameter count: Returns whether the answer agrees with the recount.
    private nonisolated(nonsending) mutating func attempt<O: Handled>(
        _ operation: O, as user: UserID, role: AppRole = .user, in channels: [ChannelID], _ performer: some OperationPerformer,
        _ count: (inout MessageRecount, O.Response) -> Bool
    ) async throws -> Step {
        do {
            let answer = try await performer.perform(operation, as: user, role: role)
            let isExpected = count(&recount, answer)
            acceptedCounts[O.name, default: 0] += 1
            let wrong = isExpected ? nil : "\(answer)"
            return Step(channels: channels, user: user, wrongAnswer: wrong, operation: operation)
        } catch let error as RoostError where Self.expected.contains(error.code) {
            return Step(channels: channels, user: user, operation: operation, refusal: error.code)
        }
    }

    // MARK: Messages

    /// Content for a new message.
    public mutating func randomContent(in channel: ChannelID) -> MessageContent {
        lastNumber += 1
        var content = MessageContent(text: "text \(lastNumber)")
        switch random.number(1...10) {
        case 1: content.isSilent = true
        case 2...4: content.mentionees = randomMentionees()
        case 5: (content.kind, content.customType, content.text) = (.custom, "card", "")
        case 6: content.metaArrays = ["votes": ["b", "a", "b"]]
        default: break
        }
        let messages = recount.messages(of: channel)
        if random.once(in: 8), !messages.isEmpty { content.parentId = random.pick(messages).messageId }
        return content
    }

    /// Users, members or not, or the channel, or both, or none.
    private mutating func randomMentionees() -> [Mentionee] {
        let named = Self.users.filter { _ in random.once(in: 2) }
        return (named.isEmpty ? [] : [.users(named)]) + (random.once(in: 3) ? [.channel] : [])
    }

    private nonisolated(nonsending) mutating func send(
        _ content: MessageContent, to channel: ChannelID, as user: UserID, _ performer: some OperationPerformer
    ) async throws -> Step {
        var operation = SendMessage(channel: channel, clientId: ClientID("\(lastNumber)"), content: content)
        var isAccepted = false
        let step = try await attempt(operation, as: user, in: [channel], performer) { recount, answer in
            recount.sent(content, answer: answer)
            // A client gives its messages their own ids.
            operation.clientId = answer.clientId
            isAccepted = true
            return recount.holds(answer, for: user, naming: content.mentionees)
        }
        if isAccepted { sent.append((user, operation)) }
        if sent.count > 50 { sent.removeFirst() }
        return step
    }

    private nonisolated(nonsending) mutating func sendAgain(_ performer: some OperationPerformer) async throws -> Step {
        guard !sent.isEmpty else { return Step() }
        var (user, operation) = random.pick(sent)
        operation.text = "again"
        return try await attempt(operation, as: user, in: [operation.channel], performer) { _, _ in true }
    }

    private nonisolated(nonsending) mutating func sendAdmin(_ performer: some OperationPerformer) async throws -> Step {
        let targets = Array(channels.shuffled(using: &random).prefix(random.number(1...3)))
        var content = randomContent(in: targets[0])
        if content.kind == .custom { content = MessageContent(text: "admin") }
        content.parentId = nil
        let operation = SendAdminMessage(channels: targets, clientId: ClientID("admin \(lastNumber)"), content: content)
        content.kind = .admin
        return try await attempt(operation, as: Self.admin, role: .admin, in: targets, performer) { recount, answer in
            for message in answer.messages { recount.sent(content, answer: message) }
            return answer.messages.allSatisfy { recount.holds($0, for: Self.admin, naming: content.mentionees) }
        }
    }

    /// Edits, deletes or purges a message, mostly a new one and mostly as its sender.
    private nonisolated(nonsending) mutating func changeMessage(
        in channel: ChannelID, as user: UserID, _ performer: some OperationPerformer
    ) async throws -> Step {
        let messages = recount.messages(of: channel)
        guard !messages.isEmpty else { return Step() }
        let message = random.once(in: 4) ? random.pick(messages) : random.pick(Array(messages.suffix(8)))
        let (caller, role): (UserID, AppRole) =
            random.once(in: 5) || message.sender == Self.admin
            ? (Self.admin, .admin) : (random.once(in: 6) ? user : message.sender, .user)
        let id = message.messageId
        nonisolated(nonsending) func attempt<O: Handled>(
            _ run: inout MessageRun, _ operation: O, _ count: (inout MessageRecount, O.Response) -> Bool
        ) async throws -> Step {
            try await run.attempt(operation, as: caller, role: role, in: [channel], performer, count)
        }
        switch random.number(1...29) {
        case 1...5:
            let edit = EditMessage(channel: channel, message: id, text: "edit \(random.number(1...3))")
            return try await attempt(&self, edit) { recount, answer in
                recount.edited(edit, answer: answer)
                return recount.holds(answer, for: caller)
            }
        case 6...12:
            let edit = EditMessage(channel: channel, message: id, mentionees: randomMentionees())
            return try await attempt(&self, edit) { recount, answer in
                recount.edited(edit, answer: answer)
                return recount.holds(answer, for: caller, naming: edit.mentionees)
            }
        case 13...14:
            let vote = "\(random.number(1...3))"
            let update =
                random.once(in: 2)
                ? UpdateMetaArrays(channel: channel, message: id, create: ["votes"], add: ["votes": [vote]])
                : UpdateMetaArrays(
                    channel: channel, message: id, removeValues: ["votes": [vote]], remove: random.once(in: 3) ? ["votes"] : nil)
            return try await attempt(&self, update) { recount, answer in
                recount.updated(update)
                return recount.holds(answer, for: caller)
            }
        case 15...17:
            return try await attempt(&self, DeleteMessage(channel: channel, message: id)) { recount, answer in
                recount.deleted(answer: answer)
                return recount.holds(answer, for: caller)
            }
        case 18:
            let own = messages.suffix(12).filter { role == .admin || $0.sender == caller }.map(\.messageId)
            let ids = own.isEmpty ? [id] : Array(own.suffix(3))
            return try await attempt(&self, DeleteMessages(channel: channel, messages: ids)) { recount, answer in
                for message in answer.messages { recount.deleted(answer: message) }
                return answer.messages.allSatisfy { recount.holds($0, for: caller) }
            }
        case 19...21: return try await deleteForOneself(message, in: channel, as: user, performer)
        case 22...24 where undeletes:
            return try await attempt(&self, UndeleteMessage(channel: channel, message: id)) { recount, answer in
                let mentionees = recount.undeleted(id, in: channel)
                // A user who sees nothing of it isn't told whom it no longer mentions.
                return recount.holds(answer, for: caller, naming: answer.isDeletedForMe ? nil : mentionees)
            }
        default:
            return try await attempt(&self, PurgeMessage(channel: channel, message: id)) { recount, _ in
                recount.purged(id, in: channel)
                return true
            }
        }
    }

    private nonisolated(nonsending) mutating func deleteForOneself(
        _ message: Message, in channel: ChannelID, as user: UserID, _ performer: some OperationPerformer
    ) async throws -> Step {
        let newest = (recount.messages(of: channel, visibleTo: user) ?? []).suffix(4).map(\.messageId)
        let ids = random.once(in: 3) || newest.isEmpty ? [message.messageId] : newest
        let deletion = DeleteMessagesForMe(channel: channel, messages: ids)
        return try await attempt(deletion, as: user, in: [channel], performer) { recount, answer in
            recount.deletedForOneself(answer.messages, by: user)
            return answer.messages.allSatisfy { recount.holds($0, for: user) }
        }
    }

    // MARK: Members

    private nonisolated(nonsending) mutating func conceal(
        _ channel: ChannelID, as user: UserID, _ performer: some OperationPerformer
    ) async throws -> Step {
        switch random.number(1...8) {
        case 7:
            return try await attempt(MuteNotifications(channel: channel), as: user, in: [channel], performer) { recount, answer in
                recount.muted(channel, by: user, true)
                return answer.isNotificationsMuted && recount.holds(answer, of: user)
            }
        case 8:
            return try await attempt(UnmuteNotifications(channel: channel), as: user, in: [channel], performer) { recount, answer in
                recount.muted(channel, by: user, false)
                return !answer.isNotificationsMuted && recount.holds(answer, of: user)
            }
        case 1...3:
            let hide = HideChannel(
                channel: channel, hidePreviousMessages: random.once(in: 3), allowAutoUnhide: !random.once(in: 3))
            return try await attempt(hide, as: user, in: [channel], performer) { recount, answer in
                recount.hid(hide, by: user)
                return recount.holds(answer, of: user)
            }
        case 4...5:
            return try await attempt(UnhideChannel(channel: channel), as: user, in: [channel], performer) { recount, answer in
                recount.unhid(channel, by: user)
                return recount.holds(answer, of: user)
            }
        default:
            return try await attempt(ResetHistory(channel: channel), as: user, in: [channel], performer) { recount, answer in
                recount.concealed(channel, from: user)
                return recount.holds(answer, of: user)
            }
        }
    }

    private nonisolated(nonsending) mutating func changeMembers(
        of channel: ChannelID, as user: UserID, _ performer: some OperationPerformer
    ) async throws -> Step {
        let strangers = Self.users.filter { !recount.isMember($0, of: channel) }
        let stranger = strangers.isEmpty ? user : random.pick(strangers)
        var concerned: [UserID] = []
        switch random.number(1...12) {
        case 1...3:
            let step = try await attempt(LeaveChannel(channel: channel), as: user, in: [channel], performer) { recount, _ in
                concerned = recount.left([user], channel)
                return true
            }
            return try await announced(step, .memberLeft, concerned, by: user, performer)
        case 4...7:
            var view: ChannelView?
            var step = try await attempt(JoinChannel(channel: channel), as: stranger, in: [channel], performer) { recount, answer in
                concerned = recount.joined([stranger], channel)
                view = answer
                return true
            }
            step = try await announced(step, .memberJoined, concerned, by: stranger, performer)
            if let view, MessageRecount.Standing(showing: view) != recount.standing(of: stranger, in: channel) {
                step.wrongAnswer = "\(view)"
            }
            return step
        case 8...11:
            let added = Self.users.filter { $0 == stranger || random.once(in: 3) }
            let add = AddMembers(channel: channel, users: added, hideHistory: random.once(in: 3))
            let step = try await attempt(add, as: Self.admin, role: .admin, in: [channel], performer) { recount, _ in
                concerned = recount.joined(added, channel, hidesHistory: add.hideHistory == true)
                return true
            }
            return try await announced(step, .memberJoined, concerned, by: Self.admin, performer)
        default:
            let remove = RemoveMembers(channel: channel, users: [random.pick(Self.users)])
            let step = try await attempt(remove, as: Self.admin, role: .admin, in: [channel], performer) { recount, _ in
                concerned = recount.left(remove.users, channel)
                return true
            }
            return try await announced(step, .memberLeft, concerned, by: Self.admin, performer)
        }
    }

    /// Counts the server's announcement of users who joined or left, if it makes one.
    private nonisolated(nonsending) mutating func announced(
        _ step: Step, _ kind: SystemEvent.Kind, _ users: [UserID], by actor: UserID, _ performer: some OperationPerformer
    ) async throws -> Step {
        guard let channel = step.channels.first, !users.isEmpty, recount.announces(channel) else { return step }
        let list = ListMessages(channel: channel, after: recount.seq(of: channel))
        let messages = try await performer.perform(list, as: Self.admin, role: .admin).messages
        var step = step
        let isExpected = messages.map { recount.announced($0, kind, users, by: actor) } == [true]
        if isExpected { acceptedCounts["\(kind.rawValue) said", default: 0] += 1 } else { step.wrongAnswer = "\(messages)" }
        return step
    }
}
