public import RoostAPI

/// Muting a channel for the caller alone (D-29): a change of the caller's row, sent only to the caller's devices. No rule
/// checks the time: the channel is muted while the row has an end, and an effect removes the end once it has passed.

extension MuteNotifications: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Membership {
        var access = try context.require(.channelHide, in: channel)
        var member = try access.requireMember()
        let end = context.now.after(seconds: seconds)
        // A channel that a message has brought back stays visible.
        if member.row.visibility(in: access.counters) == .unhidden {
            (member.row.hiddenState, member.row.hiddenOrdinal) = (.unhidden, 0)
        }
        member.row.notificationsMutedUntil = end
        let membership = try context.write(member, of: context.caller.user, in: &access, .channelNotificationsMuted)
        if end < .forever { try context.unmute(MutedMember(access.channelId, context.caller.user), at: end) }
        return membership
    }
}

extension UnmuteNotifications: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Membership {
        var access = try context.require(.channelHide, in: channel)
        var member = try access.requireMember()
        member.row.notificationsMutedUntil = nil
        return try context.write(member, of: context.caller.user, in: &access, .channelNotificationsUnmuted)
    }
}

// MARK: Expiry

/// The member that an effect is about.
private struct MutedMember: Codable {
    var channelId: ChannelID
    var userId: UserID

    init(_ channel: ChannelID, _ user: UserID) { (channelId, userId) = (channel, user) }

    init(of effect: Effect) throws { self = try StoredJSON.decode(Self.self, from: effect.payload) }
}

extension EffectKind.Name {
    static let unmuteNotifications = Self(rawValue: "notifications.unmute")
}

extension EffectKind {
    /// Ends a member's muting of a channel.
    static let unmuteNotifications = EffectKind(
        .unmuteNotifications,
        scope: { effect in
            guard let member = try? MutedMember(of: effect) else { return Scope() }
            return .channel(member.channelId, user: member.userId)
        },
        run: { effect, _, context in try context.unmute(try MutedMember(of: effect)) })
}

extension Context {
    fileprivate mutating func unmute(_ member: MutedMember, at end: Timestamp) throws {
        let subject = "\(member.channelId.rawValue)\n\(member.userId.rawValue)"
        try schedule(
            .unmuteNotifications, key: Fingerprint.of(subject), payload: try StoredJSON.encode(member) ?? "", at: end)
    }

    fileprivate mutating func unmute(_ muted: MutedMember) throws {
        // A member who has left, and perhaps rejoined, has no mute to end.
        guard var access = try transaction.access(to: muted.channelId, of: muted.userId), access.isMember,
            var member = access.member, let end = member.row.notificationsMutedUntil
        else { return }
        // The clock may have gone back, or the member may have muted it indefinitely in the meantime.
        guard end <= now else {
            if end < .forever { try unmute(muted, at: end) }
            return
        }
        member.row.notificationsMutedUntil = nil
        _ = try write(member, of: muted.userId, in: &access, .channelNotificationsUnmuted)
    }
}
