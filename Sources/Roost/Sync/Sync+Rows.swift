import RoostAPI

/// Turns rows into writes for the store. They depend on the rows alone, never on the kind of the event that brought them.
///
/// The user's permissions in a channel arrive for the user alone (`ownCapabilities`), or by role (`capabilities`) if a change of the channel changed
/// them for all members: see ``Capabilities``. They are deleted when a membership ends.
extension Sync {
    mutating func writes(for changes: IncomingChanges) -> [StoreWrite] {
        guard case .channel(let channel) = changes.stream else { return [] }
        let rows = changes.rows.rows
        var writes: [StoreWrite] = []
        let begins = changes.isFresh == true || ownPosition(in: channel) == nil
        if begins {
            // An ephemeral channel has no older messages to fetch.
            let isWhole = rows.channel.map { rows.messageCount(after: 0) >= $0.counters.messageCount || $0.isEphemeral } ?? false
            let lowest = rows.oldestMessage ?? changes.seq.addingWithSaturation(1)
            let counters = rows.channel.flatMap { $0.isEphemeral ? nil : $0.counters }
            saved.channels[channel] = Position(
                cursor: changes.seq, windowStart: isWhole ? 0 : lowest, messageCount: counters?.messageCount)
            forgetVisit(of: channel)
            resuming.toRefresh.remove(channel)
            // These changes include the user's own permissions.
            permissionsToRequest.remove(channel)
            invalidateLoads(in: channel)
            writes.append(.forget(channel))
        } else {
            let position = saved.channels[channel]?.cursor ?? 0
            let born = rows.messageCount(after: position)
            guard !mustRefresh(channel, rows, born: born) else {
                resuming.toRefresh.insert(channel)
                return []
            }
            saved.channels[channel]?.advance(to: changes.seq, rows.counters ?? rows.channel?.counters, rows)
        }
        writes += channelWrites(rows, of: channel)
        noteReading(rows, in: channel)
        writes += begins ? positionWrite(of: channel) : otherChatsWrites(rows, of: channel) + advanceWrite(of: channel)
        for membership in rows.memberships ?? [] { writes += membershipWrites(membership) }
        return writes + capabilityWrites(rows)
    }

    /// Returns the writes of a channel's own rows: everything but the position.
    mutating func channelWrites(_ rows: Rows, of channel: ChannelID) -> [StoreWrite] {
        meetUsers(of: rows)
        var writes: [StoreWrite] = []
        if let row = rows.channel {
            writes.append(.channel(row))
            if row.deletedAt != nil {
                saved.channels[channel]?.hasEnded = true
                endLiveness(of: channel)
            }
        }
        if let counters = rows.counters { writes.append(.counters(channel, counters)) }
        // Memberships are the user's: they are written after the channel's position.
        var own = rows.ofFeatures
        own.memberships = nil
        let position = saved.channels[channel]
        let kept = own.withoutRows(aboutMessagesExcept: { position?.holds($0) ?? false })
        if !kept.isEmptyOfFeatures { writes.append(.rows(kept, of: .channel(channel))) }
        // A page of history in flight may have been read before this change: the change is applied again after the page.
        if !loads.isEmpty { overtakeLoads(in: channel, own.rows(aboutMessages: { !(position?.holds($0) ?? false) })) }
        // Only for ordinary users: the permissions of admins, moderators and backends don't depend on the channel's state.
        if let capabilities = rows.capabilities, role == .user, let seq = saved.channels[channel]?.cursor {
            writes.append(.roleCapabilities(channel, Capabilities.ByRole(permissions: capabilities, channelSeq: seq)))
        }
        return writes
    }

    /// Ends the watching and reading of a deleted channel. Who is online, typing or watching is no longer updated here.
    private mutating func endLiveness(of channel: ChannelID) {
        if watched.contains(channel) || watches.holders.values.contains(channel) { emit(.unwatched(channel)) }
        endWatch(of: channel)
        forgetReading(channel)
    }

    /// Returns the writes of changes of messages that aren't cached as far as this client knows: another chat of the same files may have fetched
    /// them, and this one moves the position past the change.
    func otherChatsWrites(_ rows: Rows, of channel: ChannelID) -> [StoreWrite] {
        guard let position = saved.channels[channel] else { return [] }
        let others = rows.ofFeatures.rows(aboutMessages: { !position.holds($0) })
        return others.isEmptyOfFeatures ? [] : [.rowsOfCached(others, in: channel)]
    }

    mutating func userWrites(_ rows: Rows) -> [StoreWrite] {
        var writes: [StoreWrite] = []
        var own = rows.ofFeatures
        own.memberships = nil
        if !own.isEmptyOfFeatures { writes.append(.rows(own, of: .user(user))) }
        for membership in rows.memberships ?? [] {
            if membership.state == .member, let channel = rows.channel, channel.channelId == membership.channelId {
                // A membership that began after this client's cursor is a new one, so the earlier leave is applied first.
                if let cursor = ownPosition(in: channel.channelId)?.cursor, cursor < membership.joinedSeq {
                    writes += membershipWrites(membership.left)
                }
                writes += adopt(channel, with: own)
            }
            writes += membershipWrites(membership)
        }
        writes += summaryWrites(rows)
        return writes + capabilityWrites(rows)
    }

    private func capabilityWrites(_ rows: Rows) -> [StoreWrite] {
        (rows.ownCapabilities ?? [:]).sorted { $0.key < $1.key }.map { id, permissions in
            let membership = rows.memberships?.last { $0.channelId == ChannelID(id) }
            return .capabilities(
                ChannelID(id),
                Capabilities.Own(
                    permissions: permissions, userSeq: membership?.userSeq ?? saved.userCursor,
                    channelSeq: membership?.channelSeq ?? 0))
        }
    }

    private mutating func membershipWrites(_ membership: Membership) -> [StoreWrite] {
        // Only a state that says so ends a membership: one that this version doesn't know may be another kind of member.
        guard membership.state == .none else {
            channelRoles[membership.channelId] = membership.role
            return readingWrites(for: membership) + [.membership(membership)]
        }
        saved.channels[membership.channelId] = nil
        forgetVisit(of: membership.channelId)
        channelRoles[membership.channelId] = nil
        permissionsToRequest.remove(membership.channelId)
        askedPermissions[membership.channelId] = nil
        endWatch(of: membership.channelId)
        forgetReading(membership.channelId)
        return overlayWrite(of: membership.channelId) + [.membership(membership), .leave(membership.channelId)]
    }

    /// A channel that became the user's while connected: its stream begins here. A channel that is followed already isn't touched: its stream is more recent.
    ///
    /// - Parameter rows: The rows that came with it: its newest message, and what is stored of it besides messages.
    mutating func adopt(_ channel: Channel, with rows: Rows) -> [StoreWrite] {
        let id = channel.channelId
        let seq = channel.counters.seq
        if var position = saved.channels[id] {
            guard position.isVisit else { return [] }
            forgetVisit(of: id)
            if position.cursor >= seq, !position.hasHole {
                // The visit has all of it, and lists keep what they show.
                position.isVisit = false
                saved.channels[id] = position
                let kept = rows.withoutRows(aboutMessagesExcept: position.holds)
                let writes: [StoreWrite] = kept.isEmptyOfFeatures ? [] : [.rows(kept, of: .channel(id))]
                return (position.cursor == seq ? [.channel(channel)] : []) + writes + positionWrite(of: id)
            }
        }
        let isWhole = channel.counters.messageCount == 0 || channel.isEphemeral
        saved.channels[id] = Position(
            cursor: seq, windowStart: isWhole ? 0 : rows.oldestMessage ?? seq.addingWithSaturation(1),
            messageCount: channel.isEphemeral ? nil : channel.counters.messageCount)
        invalidateLoads(in: id)
        var writes: [StoreWrite] = [.forget(id), .channel(channel)]
        if !rows.isEmptyOfFeatures { writes.append(.rows(rows, of: .channel(id))) }
        return writes + positionWrite(of: id)
    }

    private func positionWrite(of channel: ChannelID) -> [StoreWrite] {
        saved.channels[channel].map { [.position(channel, $0)] } ?? []
    }

    func advanceWrite(of channel: ChannelID) -> [StoreWrite] { saved.channels[channel].map { [.advance(channel, $0)] } ?? [] }
}

extension Membership {
    /// The same membership after leaving.
    fileprivate var left: Membership {
        var membership = self
        membership.state = .none
        return membership
    }
}
