public import RoostAPI

extension UpdateChannel: Handled {
    /// Making a channel distinct involves the users of its set, who are found in the rows.
    public func scope(for caller: Caller) -> Scope { isDistinct == true ? .channel(channel).findingUsers : .channel(channel) }

    public func handle(in context: inout Context) throws -> Channel {
        var access = try context.require(.channelUpdate, in: channel)
        let before = try context.channel(access.channelId)
        if let ifMetadataVersion, ifMetadataVersion != before.metadataVersion {
            throw RoostError(
                .conflictVersion, "The metadata is at version \(before.metadataVersion).", field: "ifMetadataVersion",
                limit: Int64(before.metadataVersion))
        }
        var after = before
        after.attributes = before.attributes.applying(attributes)
        after.tags = tags ?? before.tags
        after.metadata = metadata ?? before.metadata
        let distinctKey = try newDistinctness(of: &after, in: context, access)
        if isPublic != nil { try context.require(.channelSetPublic, in: access) }
        if policy != nil { try context.require(.channelUpdatePolicy, in: access) }
        let discovery = access.policy.discovery
        let policyChanges = try newPolicy(of: &after, in: context, &access)
        guard try !StoredJSON.isSame(after, before) || policyChanges else { return before }

        try context.takeNames(
            .channelName, id: access.channelId.rawValue,
            before: NameSkeletons.names(ofChannelFoundBy: discovery, before.attributes.displayName).map(\.text),
            after: NameSkeletons.names(
                ofChannelFoundBy: access.policy.discovery, after.attributes.displayName, field: fieldOfFoundName))
        // An update of metadata alone sends `channel.metadataUpdated` (AM-35).
        var onlyMetadata = before
        onlyMetadata.metadata = after.metadata
        let isMetadata = try !StoredJSON.isSame(before.metadata, after.metadata)
        let kind: Event.Kind = try isMetadata && StoredJSON.isSame(onlyMetadata, after) ? .channelMetadataUpdated : .channelUpdated
        if isMetadata {
            after.metadataVersion += 1
            after.metadataUpdatedBy = context.caller.user
        }
        let seq = access.counters.advance(at: context.now)
        after.updatedAt = context.now
        after.counters = access.counters
        try write(before, after, distinctKey, access, seq: seq, in: context)
        try context.notify(
            kind, in: access, seq: seq,
            Rows(channel: after, capabilities: policyChanges ? try context.capabilitiesByRole(in: access) : nil))
        if try !StoredJSON.isSame(after.attributes.displayName, before.attributes.displayName) {
            try context.announce(SystemEvent(.channelRenamed, displayName: after.attributes.displayName), in: &access)
        }
        return after
    }

    /// The field that gives the channel a name, or that lets everyone find its existing one.
    private var fieldOfFoundName: String {
        if attributes.displayName != nil { return "displayName" }
        return isPublic != nil ? "isPublic" : "policy.discovery"
    }

    private func write(
        _ before: Channel, _ after: Channel, _ distinctKey: String?, _ access: ChannelAccess, seq: Seq, in context: Context
    ) throws {
        try context.transaction.perform(
            """
            UPDATE channels
            SET (\(Channel.boundColumns)) = (\(row: after)), name_key = \(NameSearch.key(of: after.attributes.displayName)),
                distinct_key = \(distinctKey), discovery = \(access.policy.discovery), joining = \(access.policy.join),
                change_seq = \(seq)
            WHERE channel_id = \(access.channelId)
            """)
        try context.moveStream(of: access.channelId, to: access.counters)
        try context.setDiscovery(access.policy.discovery, of: access.channelId)
        try context.transaction.indexName(
            .channel, id: access.channelId.rawValue, before: before.attributes.displayName, after: after.attributes.displayName)
        try context.transaction.indexTags(of: access.channelId, before: before.tags, after: after.tags)
    }

    /// Returns the key of a distinct channel for its current members (SB-11).
    private func newDistinctness(of after: inout Channel, in context: Context, _ access: ChannelAccess) throws -> String? {
        let stored: String?? = try context.transaction.first(
            "SELECT distinct_key FROM channels WHERE channel_id = \(access.channelId)"
        ) { $0.optionalString() }
        guard let isDistinct, isDistinct != after.isDistinct else { return stored ?? nil }
        guard access.policy.distinct == .optional else {
            throw RoostError(
                .kindForbids, "Channels of the type \(access.type) can't change whether they are distinct.", field: "isDistinct",
                rule: "isDistinct: \(access.policy.distinct.rawValue) for \(access.type)")
        }
        after.isDistinct = isDistinct
        guard isDistinct else { return nil }
        guard access.counters.memberCount <= Limits.membersPerGroup else {
            throw RoostError.limitExceeded("isDistinct", limit: Limits.membersPerGroup, unit: "members of a distinct channel")
        }
        // Invited users belong to the set, as when the channel is created with them.
        let users = try context.transaction.membersAndInvited(of: access.channelId)
        // Locked as for a creation: no other writer can create this set's channel in the meantime.
        try Scope(users: Set(users)).lock(in: context.transaction)
        let key = DistinctKey.of(access.type, members: users)
        guard try context.transaction.distinctChannel(key) == nil else {
            throw RoostError(.alreadyExists, "These members already have a distinct channel.", field: "isDistinct")
        }
        return key
    }

    /// Applies the request's differences from the type.
    ///
    /// - Returns: Whether the policy changed.
    private func newPolicy(of after: inout Channel, in context: Context, _ access: inout ChannelAccess) throws -> Bool {
        guard let typePolicy = try context.transaction.policy(of: access.type) else {
            throw DamagedDatabase(what: "the channel type \(access.type)")
        }
        let before = access.policy
        if let isPublic {
            let changes = isPublic ? PolicyChanges.makingPublic : .makingPrivate
            try changes.validate(forChannelOf: typePolicy, givenBy: "isPublic")
            access.policy = access.policy.applying(changes)
            // It replaces the channel's own discovery and joining.
            after.policy?.discovery = nil
            after.policy?.join = nil
        }
        if let policy {
            try policy.validate(forChannelOf: typePolicy, field: "policy")
            after.policy = (after.policy ?? PolicyChanges()).merging(policy)
            access.policy = access.policy.applying(policy)
        }
        if after.policy?.names.isEmpty == true { after.policy = nil }
        try context.requireGrantable(access.policy, over: before, in: access.facts, field: policy == nil ? "isPublic" : "policy")
        after.isPublic = access.policy.discovery == .everyone && access.policy.join == .everyone
        return access.policy != before
    }
}

extension DeleteChannel: Handled {
    /// Invited users are notified that nothing is left to accept.
    public func scope(for caller: Caller) -> Scope { .channel(channel).findingUsers }

    public func handle(in context: inout Context) throws -> Done {
        var access = try context.require(.channelDelete, in: channel)
        guard access.deletedAt == nil else { return Done() }
        let id = access.channelId
        _ = try context.end(try context.transaction.pendingInvitations(to: id), as: .withdrawn, in: &access)

        let seq = access.counters.advance(at: context.now)
        access.counters.memberCount = 0
        // The set of members may have another channel now.
        try context.transaction.perform(
            """
            UPDATE channels
            SET deleted_at = \(context.now), updated_at = \(context.now), change_seq = \(seq), is_distinct = \(false), distinct_key = NULL
            WHERE channel_id = \(id)
            """)
        try context.moveStream(of: id, to: access.counters)
        try context.endStream(of: id)
        // Another channel may take its name now; its id stays taken.
        try context.transaction.freeNames(.channelName, of: id.rawValue)
        // Nothing is written per member yet: the deletion ends all memberships.
        try context.scheduleMarking(ofMembershipsIn: id)
        try context.notify(.channelDeleted, in: access, seq: seq, Rows(channel: try context.channel(id)))
        context.notify(.channelDeleted(id))
        return Done()
    }
}
