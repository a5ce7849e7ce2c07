import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport

/// Channels of one kind, one in each state, with a user in each relation, in which cells are tried without leaving a trace.
final class MatrixWorld {
    let world: CoreWorld
    let kind: Kind
    private var own: [String: MessageID] = [:]
    private var removed: [String: MessageID] = [:]
    private var others: [ChannelState: MessageID] = [:]

    private static let boss: UserID = "boss"

    init(_ kind: Kind) throws {
        world = try CoreWorld()
        (world.options.undeletionSeconds, world.options.versionSeconds) = (60, 60)
        self.kind = kind
        for user in [Self.boss, Rows.target, Rows.chief, Rows.outsider] { try world.user(user) }
        for relation in Relation.allCases {
            try world.user(relation.user)
            try world.device("phone", of: relation.user)
            // A user invited by another is asked.
            let invited = Self.invited(by: relation)
            try world.user(invited)
            for asked in [relation.user, invited] { try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: asked) }
        }
        let grants: [Permission] = [.memberRemove, .channelUpdate]
        try world.perform(PutRole(role: "guide", rank: 10, permissions: grants), as: "root", role: .admin)
        try world.perform(
            PutChannelType(type: "noticeboard", basedOn: .community, policy: Kind.noticeboardPolicy), as: "root", role: .admin)
        try world.deadEffect("test.dead", key: "1")
        for state in ChannelState.allCases { try populate(state) }
    }

    static func channel(in state: ChannelState) -> ChannelID { ChannelID(state.rawValue) }
    private static func invited(by relation: Relation) -> UserID { UserID("invited-by-\(relation.rawValue)") }

    func fixture(_ relation: Relation, _ state: ChannelState) -> Fixture {
        let nothing = MessageID(rawValue: 1)
        return Fixture(
            channel: Self.channel(in: state), own: own["\(relation) \(state)"] ?? nothing, others: others[state] ?? nothing,
            removed: removed["\(relation) \(state)"] ?? nothing, invited: Self.invited(by: relation))
    }

    /// Everybody joins and writes while the channel is a community, and it becomes one of its kind at the end: only this way can things that a kind
    /// forbids have been done before.
    private func populate(_ state: ChannelState) throws {
        let channel = Self.channel(in: state)
        let everybody = Relation.allCases.map(\.user)
        try world.perform(
            CreateChannel(channel: channel, users: everybody + [Rows.target, Rows.chief]), as: Self.boss)
        others[state] = try world.send("theirs", to: channel, as: Rows.target).messageId
        for relation in Relation.allCases {
            own["\(relation) \(state)"] = try world.send("mine", to: channel, as: relation.user).messageId
            let message = try world.send("mine too", to: channel, as: relation.user).messageId
            removed["\(relation) \(state)"] = message
            try world.perform(DeleteMessage(channel: channel, message: message), as: "root", role: .admin)
            try world.perform(InviteMembers(channel: channel, users: [Self.invited(by: relation)]), as: relation.user)
        }
        let until = world.now.after(seconds: 3600)
        for relation in Relation.allCases { try settle(relation, in: channel, until: until) }
        try world.setRole(.operator, of: Rows.chief, in: channel)

        switch state {
        case .active: break
        case .frozen: try world.perform(FreezeChannel(channel: channel), as: "root", role: .admin)
        case .silenced: try world.perform(SilenceChannel(channel: channel, seconds: 3600), as: "root", role: .admin)
        case .deleted: try world.perform(DeleteChannel(channel: channel), as: "root", role: .admin)
        }
        try world.execute(
            """
            UPDATE channels SET type = \(kind.type), discovery = \(kind.discovery), joining = \(kind.joining)
            WHERE channel_id = \(channel)
            """)
    }

    private func settle(_ relation: Relation, in channel: ChannelID, until: Timestamp?) throws {
        let user = relation.user
        switch relation {
        case .stranger: try world.execute("DELETE FROM members WHERE channel_id = \(channel) AND user_id = \(user)")
        case .left: try world.perform(LeaveChannel(channel: channel), as: user)
        case .invited:
            try world.execute("DELETE FROM members WHERE channel_id = \(channel) AND user_id = \(user)")
            try world.perform(InviteMembers(channel: channel, users: [user]), as: Self.boss)
        case .member: break
        case .muted:
            try world.execute("UPDATE members SET muted_until = \(until) WHERE channel_id = \(channel) AND user_id = \(user)")
        case .banned:
            try world.perform(LeaveChannel(channel: channel), as: user)
            try world.execute("UPDATE members SET banned_until = \(until) WHERE channel_id = \(channel) AND user_id = \(user)")
        case .guide: try world.setRole("guide", of: user, in: channel)
        case .operator: try world.setRole(.operator, of: user, in: channel)
        case .owner: try world.setRole(.owner, of: user, in: channel)
        }
    }

    // MARK: Trying

    /// Runs a body that tries operations, all in one transaction.
    func trying<T>(_ body: (Attempts) throws -> T) throws -> T {
        try world.database.write(lane: 0) {
            try body(try Attempts(transaction: $0, now: world.now, ids: world.ids, options: world.options))
        }
    }
}

/// Tries operations and rolls each of them back.
final class Attempts {
    private let transaction: any WriteTransaction
    private let now: Timestamp
    private let ids: IDGenerator
    private let options: AppOptions
    private let before: [String]
    private var refusalCount = 0
    /// Refused operations that wrote or sent something, for a sample of them.
    private(set) var traces: [String] = []

    init(transaction: any WriteTransaction, now: Timestamp, ids: IDGenerator, options: AppOptions) throws {
        self.transaction = transaction
        // Nobody else writes: no heads are locked.
        transaction.heldStreams?.holdAll()
        self.now = now
        self.ids = ids
        self.options = options
        before = try CoreTables.dump(in: transaction)
    }

    private struct Undone: Error {}

    /// Returns an operation's answer, or the refusal that it throws or returns for its one user.
    func result<O: Handled>(
        of operation: O, as user: UserID, _ role: AppRole
    ) throws -> Result<O.Response, RoostError> {
        try operation.validate()
        let caller = Caller(user: user, role: role, connection: ConnectionID(rawValue: 1))
        var result: Result<O.Response, RoostError>?
        do {
            try transaction.attempt {
                var context = Context(
                    transaction: transaction, caller: caller, now: now, ids: ids, options: options,
                    scope: operation.scope(for: caller))
                do {
                    context.foundChannels = try operation.channelQuery.map { try FoundChannels($0, in: &context) }
                    let response = try operation.handle(in: &context)
                    if let results = response as? MemberResults, let error = results.results.first?.error {
                        result = .failure(error)
                    } else {
                        result = .success(response)
                    }
                } catch let error as RoostError {
                    result = .failure(error)
                }
                if case .failure(let error) = result {
                    try lookForTraces(of: "\(operation) by \(role) \(user): \(error.code)", context)
                }
                // All writes are rolled back, so the next one finds everything unchanged.
                throw Undone()
            }
        } catch is Undone {
        }
        guard let result else { throw Undone() }
        return result
    }

    func refusal(of operation: some Handled, as user: UserID, _ role: AppRole) throws -> RoostError? {
        if case .failure(let error) = try result(of: operation, as: user, role) { return error }
        return nil
    }

    /// A refusal sends nothing, and leaves the tables unchanged even before the rollback.
    private func lookForTraces(of operation: String, _ context: Context) throws {
        refusalCount += 1
        if !context.notices.isEmpty { traces.append("\(operation) told \(context.notices.count)") }
        guard refusalCount % 50 == 0 else { return }
        if try CoreTables.dump(in: transaction) != before { traces.append("\(operation) wrote") }
    }
}
