public import RoostAPI

extension WatchChannel: Handled {
    public func scope(for caller: Caller) -> Scope {
        var scope = Scope.channel(channel)
        // Only the transaction knows which of the two applies.
        for creation in [creation, creationOfNamedType].compactMap(\.self) { scope.formUnion(creation.scope(for: caller)) }
        return scope
    }

    public var requiredPresence: PresenceRequirement { .channel(channel) }
    public var watchCountMax: Int { 1 }

    /// The operation that creates the channel if there is none, with the whole id.
    private var creation: CreateChannel? {
        var creation = create
        creation?.channel = channel
        return creation
    }

    /// The same for the type that the id names, without that prefix; nil if `create` gives the type.
    private var creationOfNamedType: CreateChannel? {
        guard var creation = create, creation.type == nil, let alias = channel.alias else { return nil }
        (creation.type, creation.channel) = (alias.type, alias.channel)
        return creation
    }

    /// Returns the operation that creates the channel: of the type that its id names, if there is such a type. Other ids may contain a colon too.
    private func chosenCreation(in transaction: any Transaction) throws -> CreateChannel? {
        guard let named = creationOfNamedType, let type = named.type, try transaction.policy(of: type) != nil else {
            return creation
        }
        return named
    }

    public func handle(in context: inout Context) throws -> WatchedChannel {
        let connection = try context.requireConnection("Watching")
        var channel = channel
        var mayBeNew = false
        if create != nil, try context.transaction.access(to: channel, of: context.caller.user) == nil,
            let creation = try chosenCreation(in: context.transaction)
        {
            // The call may name an older channel with an id that new ones can't get.
            try creation.channel?.validateNew(field: "channel")
            // For a type with one channel per set of members, this may be an existing channel.
            do {
                channel = try creation.handle(in: &context, needing: .channelWatch).channel.channelId
                mayBeNew = true
            } catch let refusal as RoostError {
                throw refusal.field == "channel" ? refusal : refusal.inside("create")
            }
        }
        let access = try context.require(.channelWatch, in: channel)
        let caller = context.caller.user
        channel = access.channelId
        // The online members of a new channel aren't known before its first event is delivered. An existing channel may have some on other nodes.
        let known = context.presence.onlineMemberCount(of: channel)
        let online = try mayBeNew ? max(known, context.connectedMemberCount(of: channel)) : known
        if access.isMember, context.refusal(of: .historyRead, in: access) == nil { context.notify(.mayRead(connection, channel)) }
        context.notify(.watching(connection, caller, channel, at: access.counters.seq, online: online))

        // The caller watches from this answer on, and counts as a watcher; a user who doesn't share presence never does.
        let isKnown = try context.presence.isWatching(caller, channel) || !context.transaction.sharesPresence(caller)
        var watched = WatchedChannel(
            config: access.policy, channel: try context.channel(channel), membership: access.membership,
            online: online,
            watcherCount: context.presence.watcherCount(of: channel) + (isKnown ? 0 : 1), watchers: [:], members: [:], read: [:],
            messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: access.counters.seq),
            ownCapabilities: context.capabilities(in: access))
        guard limit != 0 else {
            watched.messages.hasOlder = try context.transaction.hasMoreMessages(
                than: 0, after: context.readingFloor(in: access), in: access.channelId)
            return watched
        }
        let watchersMax = try watchersLimit == 0 ? 0 : Limits.page(watchersLimit, Limits.watcherPage, field: "watchersLimit")
        let watchers = context.presence.watchers(of: channel, offset: 0, limit: watchersMax, elsewhere: nil)
        var sizeBytes = 0
        for id in (isKnown ? watchers : [caller] + watchers).prefix(watchersMax) {
            guard watched.watchers[id.rawValue] == nil, let user = try context.transaction.user(id) else { continue }
            sizeBytes += user.contentSizeBytes
            guard sizeBytes <= Limits.pageContentBytes else { break }
            watched.watchers[id.rawValue] = user
        }
        let members = try context.someMembers(of: access)
        (watched.members, watched.read) = (members.mapValues(\.member), members.compactMapValues(\.read))
        watched.users = try context.summaries(of: Set(members.values.map(\.member.userId)))
        watched.messages = try context.newestMessages(try Limits.page(limit, Limits.historyPage), in: access)
        return watched
    }
}

extension Context {
    /// The number of a new channel's members who are online here: they are known for the channel once its first event is delivered.
    fileprivate func connectedMemberCount(of channel: ChannelID) throws -> Int {
        let sharing: SQL = """
            SELECT m.user_id FROM members m JOIN users u ON u.user_id = m.user_id
            WHERE m.channel_id = \(channel) AND m.state = \(MembershipState.member) AND u.shares_presence = 1
            LIMIT \(2 * Limits.membersPerCall + 1)
            """
        let members: [UserID] = try transaction.rows(sharing) { $0.identifier() }
        return members.count { presence.isConnected($0) }
    }
}

extension QueryAndWatchChannels: Handled {
    /// It moves nothing, but takes its turn among commits: a watch begins at a seq.
    public func scope(for caller: Caller) -> Scope { Scope() }

    public var channelQuery: QueryChannels? { query }
    public var watchCountMax: Int { min(max(0, query.limit ?? Limits.channelPage.standard), Limits.channelPage.max) }

    /// Each watch begins at the seq of its channel in the answer. So nothing is missed in between, and nothing is sent twice.
    public func handle(in context: inout Context) throws -> Page<ChannelView> {
        let connection = try context.requireConnection("Watching")
        try context.require(.streamRead)
        guard let found = context.foundChannels else { throw ImpossibleState("The channels to watch weren't looked up.") }
        let page = try query.page(of: found, in: &context)
        for view in page.items where view.ownCapabilities.contains(.channelWatch) {
            let channel = view.channel.channelId
            context.recordCallerSeq(of: view.membership)
            if view.membership?.state == .member, view.ownCapabilities.contains(.historyRead) {
                context.notify(.mayRead(connection, channel))
            }
            context.notify(.watching(connection, context.caller.user, channel, at: view.channel.counters.seq))
        }
        return page
    }
}

extension UnwatchChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Done {
        let connection = try context.requireConnection("Watching")
        try context.require(.streamRead)
        let watched = try context.transaction.access(to: channel, of: context.caller.user)?.channelId ?? channel
        context.notify(.stoppedWatching(connection, context.caller.user, watched))
        return Done()
    }
}

extension ListWatchers: Handled {
    public var requiredPresence: PresenceRequirement {
        let passed = min(max(0, offset ?? 0), Limits.watcherOffset)
        return .watchers(channel, upTo: passed + min(max(0, limit ?? Limits.watcherPage.standard), Limits.watcherPage.max))
    }

    public func handle(in context: inout Context) throws -> WatcherPage {
        let access = try context.require(.channelWatch, in: channel)
        let limit = try Limits.page(limit, Limits.watcherPage)
        let users = context.presence.watchers(
            of: access.channelId, offset: offset ?? 0, limit: limit, elsewhere: context.watchersElsewhere[access.channelId])
        let names = Dictionary(
            (try context.summaries(of: Set(users)) ?? []).map { ($0.userId, $0) }, uniquingKeysWith: { first, _ in first })
        return WatcherPage(
            watchers: users.map { names[$0] ?? UserSummary(userId: $0) },
            watcherCount: context.presence.watcherCount(of: access.channelId))
    }
}

extension Context {
    fileprivate func newestMessages(_ limit: Int, in access: ChannelAccess) throws -> MessagePage {
        let newest = try transaction.messages(
            before: .max, above: readingFloor(in: access), in: access.channelId, limit: limit)
        let messages = try shown(newest.messages, in: access)
        return MessagePage(
            messages: messages, hasOlder: newest.hasMore, hasNewer: false, seq: access.counters.seq,
            users: try summaries(for: messages))
    }

    /// Returns some members, each with their read position if they share it. The caller is one of them, if a member, and the only one if others may not
    /// be listed to them.
    ///
    /// The answer's keys are strings: of members whose ids are equal as strings, and differ in their bytes alone, it has one.
    fileprivate func someMembers(of access: ChannelAccess) throws -> [String: (member: Member, read: ReadState?)] {
        let mayList = refusal(of: .memberList, in: access) == nil
        let own: SQL = " AND m.user_id = \(caller.user)"
        // Along the index of current members: by their ids, rows of former ones would be passed too, of whom there may be any number.
        var found = try members(of: access, mayList ? " ORDER BY m.joined_seq, m.user_id" : own)
        if found.count == Limits.watchMembers, !found.contains(where: { $0.member.userId == caller.user }),
            let member = try members(of: access, own).first
        {
            found[found.count - 1] = member
        }
        // Of two with one key, the first is kept.
        if let place = found.firstIndex(where: { $0.member.userId == caller.user }) { found.swapAt(0, place) }
        var members = Dictionary(found.map { ($0.member.userId.rawValue, $0) }, uniquingKeysWith: { first, _ in first })
        // Many share the same read position.
        let newest = try transaction.newestMessages(
            upTo: Set(members.values.compactMap(\.read?.readSeq)), in: access.channelId, above: readingFloor(in: access))
        for (user, member) in members { members[user]?.read?.lastReadMessageId = member.read.flatMap { newest[$0.readSeq] } }
        return members
    }

    /// - Parameter selection: The end of the condition, and the order.
    private func members(of access: ChannelAccess, _ selection: SQL) throws -> [(member: Member, read: ReadState?)] {
        let (purgedSeq, isOwn): (SQL, SQL) = ("\(access.purgedSeq)", "m.user_id = \(caller.user)")
        let isReader = try transaction.readers(of: access.policy).containing(role: "m.role")
        // Callers who may not read don't get others' positions, as with `reading.listReaders`.
        let mayRead = refusal(of: .historyRead, in: access) == nil
        // In larger channels others' positions can't be queried either.
        let isSmall = access.counters.memberCount <= Limits.largeChannelMembers
        let sql: SQL = """
            SELECT \(Member.columns), CASE WHEN \(isOwn) THEN m.read_seq ELSE \(Unread.receiptSeq(of: "m")) END, m.last_read_at,
                CASE WHEN \(isOwn) THEN \(Unread.readCount(of: "m", purgedSeq: purgedSeq))
                ELSE \(Unread.receiptCount(of: "m", purgedSeq: purgedSeq)) END,
                CASE WHEN \(isReader) THEN (SELECT u.shares_reading FROM users u WHERE u.user_id = m.user_id) ELSE 0 END,
                m.delivered_seq, m.delivered_at, (SELECT u.shares_delivery FROM users u WHERE u.user_id = m.user_id)
            FROM members m
            WHERE m.channel_id = \(access.channelId) AND m.state = \(MembershipState.member)\(selection)
            LIMIT \(Limits.watchMembers)
            """
        return try transaction.rows(sql) { row in
            let member = try Member(reading: &row)
            let readSeq = row.int64()
            let lastReadAt = row.optionalTimestamp()
            let unread = max(0, access.counters.ordinal - row.int())
            let isShared = row.bool() && isSmall && access.policy.readEvents || member.userId == caller.user
            var read = isShared && mayRead ? ReadState(readSeq: readSeq, lastReadAt: lastReadAt, unreadCount: unread) : nil
            let (deliveredSeq, deliveredAt, isReported) = (row.int64(), row.optionalTimestamp(), row.bool())
            if isReported, isSmall, access.policy.deliveryEvents, deliveredSeq > readSeq {
                read?.deliveredSeq = deliveredSeq
                read?.lastDeliveredAt = deliveredAt
            }
            return (member, read)
        }
    }
}
