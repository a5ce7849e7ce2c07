public import RoostAPI

extension CreateChannel: Handled {
    /// An id made by the server is new, so there is nothing to lock yet. An id chosen by the caller is also looked up under its other name.
    public func scope(for caller: Caller) -> Scope {
        let users = Set(users ?? []).union(operators ?? []).union([caller.user])
        guard let channel else { return Scope(users: users) }
        var scope = Scope.channel(channel, users: users)
        scope.channels.insert(ChannelID("\(effectiveType):\(channel)"))
        return scope
    }

    public func handle(in context: inout Context) throws -> ChannelView { try handle(in: &context, needing: nil) }

    /// Creates the channel for an operation that continues with it.
    ///
    /// - Parameter permission: The permission that the caller needs in a newly created channel; without it nothing is created.
    ///   For an existing channel the calling function has to check it.
    func handle(in context: inout Context, needing permission: Permission?) throws -> ChannelView {
        // A request without a type is equivalent to one that names the default type.
        var typed = self
        typed.type = effectiveType
        return try typed.create(in: &context, needing: permission)
    }

    private var effectiveType: ChannelType { type ?? .community }

    private func create(in context: inout Context, needing permission: Permission?) throws -> ChannelView {
        // A channel created by an earlier call is returned whatever the caller may do by now.
        if let created = try context.channelCreated(by: self) { return created }
        let type = effectiveType
        guard let typePolicy = try context.transaction.policy(of: type) else {
            throw RoostError.invalidArgument("type", "is \(type), which isn't a channel type: see type.list")
        }
        try context.require(.channelCreate, creating: typePolicy)
        try context.requireRoomForKey(of: self)

        let (policy, others) = (try policy(over: typePolicy), others(than: context.caller.user))
        try context.requireGrantable(policy, ofNewChannelOver: typePolicy, field: self.policy == nil ? "isPublic" : "policy")
        let distinctKey = try distinctKey(policy, others: others, in: context)
        if let distinctKey, let existing = try existingChannel(distinctKey, in: &context) { return existing }
        let plan = try plan(policy, distinctKey, others: others, in: context)
        let new = channel ?? context.ids.nextChannelID(at: context.now)
        try refuseTakenAlias(of: new, in: context.transaction)
        if let permission { try context.require(permission, inNewChannelWith: policy, as: plan.owner?.role) }
        guard try insert(new, plan, in: &context) else {
            // Another node has made the set's channel in the meantime.
            if let key = plan.distinctKey, let existing = try existingChannel(key, in: &context) { return existing }
            guard try context.transaction.type(of: new) == nil else { throw RoostError.channelExists }
            // That one isn't the set's any more: the whole transaction is run again.
            throw StreamCreatedConcurrently(stream: .channel(new))
        }
        try context.remember(self, new)
        return try context.viewCreated(new)
    }

    /// Returns the distinct channel of a set of members, and stores it for the request's key; nil if there is none.
    ///
    /// Its head isn't locked: after it is found, another node can still delete it or change its members. So it counts only if
    /// it is still the set's channel when its row is read, by a single statement. Otherwise the caller stores another.
    private func existingChannel(_ distinctKey: String, in context: inout Context) throws -> ChannelView? {
        guard let id = try context.transaction.distinctChannel(distinctKey) else { return nil }
        try context.remember(self, id)
        let found = try context.transaction.accessWithAttributes(to: id, of: context.caller.user, now: context.now)
        guard let (access, channel) = found, access.isDistinct, access.deletedAt == nil else { return nil }
        context.recordCallerSeq(of: access)
        return try context.view(of: access, channel)
    }

    /// The result of applying the type's rules to the request.
    private struct Plan {
        var policy: ChannelPolicy
        var distinctKey: String?
        /// The first member, unless a backend creates the channel in no user's name.
        var owner: Newcomer?
        /// Members from the start.
        var members: [Newcomer] = []
        /// Invited users, with the roles that they get by accepting.
        var invited: [(user: UserID, role: ChannelRole)] = []
    }

    // MARK: Checking

    /// Returns the channel's policy: the type's, with the request's differences.
    private func policy(over typePolicy: ChannelPolicy) throws -> ChannelPolicy {
        var policy = typePolicy
        if let isPublic {
            let changes = isPublic ? PolicyChanges.makingPublic : .makingPrivate
            try changes.validate(forChannelOf: typePolicy, givenBy: "isPublic")
            policy = policy.applying(changes)
        }
        if let changes = self.policy {
            try changes.validate(forChannelOf: typePolicy, field: "policy")
            policy = policy.applying(changes)
        }
        if isEphemeral == true, !policy.allowsEphemeral { throw forbidden("isEphemeral", "can't be ephemeral") }
        if operators?.isEmpty == false, policy.moderate == .nobody { throw forbidden("operators", "have no operators") }
        return policy
    }

    private func others(than user: UserID) -> [UserID] {
        Set(users ?? []).union(operators ?? []).subtracting([user]).sorted()
    }

    private func plan(_ policy: ChannelPolicy, _ distinctKey: String?, others: [UserID], in context: Context) throws -> Plan {
        var plan = Plan(policy: policy, distinctKey: distinctKey)
        if context.caller.role != .service {
            plan.owner = Newcomer(user: context.caller.user, role: .owner)
            try requireRoom(for: context.caller.user, field: nil, in: context)
        }
        for user in others { try place(user, in: &plan, context) }
        let count = plan.members.count + (plan.owner == nil ? 0 : 1)
        guard count <= policy.maxMembers else {
            throw RoostError.memberLimit(policy.maxMembers, field: plan.members.last.map { field(naming: $0.user) })
        }
        return plan
    }

    /// Adds a user to the members or to the invited users (SB-07, SB-18, AM-24).
    private func place(_ user: UserID, in plan: inout Plan, _ context: Context) throws {
        guard let acceptsAutomatically = try context.transaction.acceptsInvitationsAutomatically(user) else {
            throw RoostError.notFound("user: \(user)", field: field(naming: user))
        }
        var newcomer = Newcomer(user: user, role: operators?.contains(user) == true ? .operator : .member)
        let isAdded = plan.policy.usersAtCreation == .added
        if isAdded {
            try requireRoom(for: user, field: field(naming: user), in: context)
            plan.members.append(newcomer)
        } else if try !context.transaction.hasRoomForChannel(user, max: context.options.channelsPerUser) {
            // Users at their channel limit are left out: an invitation would be declined for them (X-20). As after any decline,
            // the channel isn't the one of its set.
            plan.distinctKey = nil
        } else if acceptsAutomatically {
            newcomer.invitation = .immediate(from: context.caller.user)
            plan.members.append(newcomer)
        } else {
            guard try context.transaction.pendingInvitationCount(of: user) < Limits.pendingInvitationsPerUser else {
                throw RoostError.limitExceeded(
                    field(naming: user), limit: Limits.pendingInvitationsPerUser, unit: "pending invitations of a user")
            }
            plan.invited.append((user, newcomer.role))
        }
    }

    /// - Parameter field: The request field that names the user; nil for the caller.
    private func requireRoom(for user: UserID, field: String?, in context: Context) throws {
        guard try context.transaction.hasRoomForChannel(user, max: context.options.channelsPerUser) else {
            throw RoostError.channelLimit(of: user, context.options.channelsPerUser, field: field)
        }
    }

    /// The request field that names one of the other users.
    private func field(naming user: UserID) -> String { users?.contains(user) == true ? "users" : "operators" }

    /// Returns the key of the set of members, for a distinct channel (AM-25, SB-05, D-14).
    private func distinctKey(_ policy: ChannelPolicy, others: [UserID], in context: Context) throws -> String? {
        switch policy.distinct {
        case .always:
            if isDistinct == false { throw forbidden("isDistinct", "are always distinct") }
            // A service isn't one of the members.
            guard others.count > (context.caller.role == .service ? 1 : 0) else {
                throw RoostError.invalidArgument("users", "must name another user: a conversation needs two people")
            }
        case .optional:
            guard isDistinct == true else { return nil }
        case .never:
            if isDistinct == true { throw forbidden("isDistinct", "can't be distinct") }
            return nil
        }
        let members = context.caller.role == .service ? others : others + [context.caller.user]
        return DistinctKey.of(effectiveType, members: members)
    }

    private func forbidden(_ field: String, _ reason: String) -> RoostError {
        RoostError(
            .kindForbids, "Channels of the type \(effectiveType) \(reason).", field: field,
            rule: "\(field): channels of \(effectiveType) \(reason)")
    }

    /// `general` of the type `messaging` and `messaging:general` are one name (ST-03): a channel can't take another one's name.
    private func refuseTakenAlias(of id: ChannelID, in transaction: any Transaction) throws {
        if let alias = id.alias, try transaction.policy(of: alias.type) != nil {
            guard alias.type == effectiveType else {
                throw RoostError.invalidArgument("channel", "begins with the name of a type other than \(effectiveType)")
            }
            if try transaction.type(of: alias.channel) == effectiveType { throw RoostError.channelExists }
        }
        if try transaction.type(of: ChannelID("\(effectiveType):\(id)")) != nil { throw RoostError.channelExists }
    }

    // MARK: Writing

    /// Inserts the channel and its first members as one change, the first of its stream.
    ///
    /// - Returns: Whether it was inserted; false if a distinct one wasn't, because another node has made the set's channel in the
    ///   meantime, or because the id is taken.
    private func insert(_ id: ChannelID, _ plan: Plan, in context: inout Context) throws -> Bool {
        let now = context.now
        let made = Channel(
            channelId: id, type: effectiveType, isDistinct: plan.distinctKey != nil, isEphemeral: isEphemeral ?? false,
            attributes: ChannelAttributes().applying(attributes), metadata: metadata, metadataVersion: metadata == nil ? 0 : 1,
            metadataUpdatedBy: metadata == nil ? nil : context.caller.user, tags: tags ?? [], policy: policy,
            counters: ChannelCounters(seq: 1, memberCount: 0, messageCount: 0, lastActivity: now), createdBy: context.caller.user,
            createdAt: now, updatedAt: now)
        let ids =
            channel == nil ? [] : [id.rawValue, "\(effectiveType):\(id)"].map { NameSkeletons.Name(text: $0, field: "channel") }
        let names = NameSkeletons.names(ofChannelFoundBy: plan.policy.discovery, made.attributes.displayName)
        try context.refuseConfusableNames(.channel, id: id.rawValue, of: ids)
        try context.refuseConfusableNames(.channelName, id: id.rawValue, of: names)
        // The channel's own policy; discovery and joining have their own columns, see `OwnPolicy`.
        let created = try context.transaction.execute(
            """
            INSERT INTO channels (\(Channel.boundColumns), name_key, distinct_key, discovery, joining, change_seq)
            VALUES (\(row: made), \(NameSearch.key(of: made.attributes.displayName)), \(plan.distinctKey), \(plan.policy.discovery),
                    \(plan.policy.join), \(made.counters.seq))
            ON CONFLICT DO NOTHING
            """)
        if created == 0, plan.distinctKey != nil { return false }
        guard created == 1, try context.transaction.takeNames(of: id, plan.policy.type) else { throw RoostError.channelExists }
        try context.beginStream(of: id, at: made.counters, discovery: plan.policy.discovery)
        try context.takeNames(.channel, id: id.rawValue, before: [], after: ids)
        try context.takeNames(.channelName, id: id.rawValue, before: [], after: names)
        try context.transaction.indexName(.channel, id: id.rawValue, before: nil, after: made.attributes.displayName)
        try context.transaction.indexTags(of: id, before: [], after: made.tags)

        var access = try context.accessCreated(id)
        try context.addFounders([plan.owner].compactMap { $0 } + plan.members, to: &access)
        if !plan.invited.isEmpty {
            // Invited users belong to the set that the channel was made for.
            access.isDistinct = false
            try context.invite(plan.invited, welcome: nil, to: &access)
        }
        return true
    }
}

extension Context {
    /// Adds the first members, as part of the change that creates the channel.
    fileprivate mutating func addFounders(_ founders: [Newcomer], to access: inout ChannelAccess) throws {
        let (id, seq) = (access.channelId, access.counters.seq)
        access.counters.memberCount = founders.count
        try moveStream(of: id, to: access.counters)
        let whole = try channel(id)
        for founder in founders {
            let member = try writeMember(founder.user, as: try transaction.role(founder.role), of: access)
            let accepted = try founder.invitation.map {
                try accept($0, of: founder.user, in: access, seq: seq, userSeq: member.row.userSeq)
            }
            var updated = access
            updated.member = member
            notify(.joined(founder.user, id, at: seq, as: founder.role))
            notify(
                .channelCreated, user: founder.user, seq: member.row.userSeq,
                Rows(
                    channel: whole, ownCapabilities: [id.rawValue: capabilities(of: founder.user, in: updated)],
                    updated.membership.map { [$0] }, accepted.map { [$0] }))
            if let accepted { try notifyInviter(of: accepted, .invitationAccepted) }
        }
    }

    /// Returns a channel as its creator sees it, even if it existed before, or if the creator is a backend and not a member.
    mutating func viewCreated(_ id: ChannelID) throws -> ChannelView {
        let access = try accessCreated(id)
        recordCallerSeq(of: access)
        return try view(of: access)
    }

    fileprivate func accessCreated(_ id: ChannelID) throws -> ChannelAccess {
        guard let access = try transaction.access(to: id, of: caller.user) else {
            throw ImpossibleState("The channel \(id) was created, but doesn't exist.")
        }
        return access
    }
}

extension Transaction {
    /// Takes a channel's names. Returns false if another channel has one of them, for example one created at the same moment on another node.
    fileprivate func takeNames(of channel: ChannelID, _ type: ChannelType) throws -> Bool {
        try execute(
            """
            INSERT INTO channel_names (name, channel_id) VALUES (\(channel), \(channel)), (\("\(type):\(channel)"), \(channel))
            ON CONFLICT (name) DO NOTHING
            """) == 2
    }

    /// The type of a channel by its own id; nil if there is none.
    fileprivate func type(of channel: ChannelID) throws -> ChannelType? {
        try first("SELECT type FROM channels WHERE channel_id = \(channel)") { ChannelType(rawValue: $0.string()) }
    }
}

extension RoostError {
    static let channelExists = RoostError(.alreadyExists, "A channel with this id exists.", field: "channel")
}
