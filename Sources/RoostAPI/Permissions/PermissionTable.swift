/// The table of permissions, with a row for each.
///
/// The conditions of a permission, in addition to the channel's policy, which names an audience for most permissions. Fields have no
/// defaults, so a new permission can't omit one. The server's rules read it (`Permissions` in `RoostCore`); clients get the result.
extension Permission {
    package var row: PermissionRow {
        switch self {
        case .configRead: .init(.anyone, deleted: true, guests: true, frozen: true, role: .none, [])
        case .configManage: .init(.admins, deleted: true, guests: false, frozen: true, role: .none, [])
        case .effectManage: .init(.admins, deleted: true, guests: false, frozen: true, role: .none, [])
        case .userRead: .init(.anyone, deleted: true, guests: true, frozen: true, role: .none, [])
        case .userUpdateMe: .init(.anyone, deleted: true, guests: true, frozen: true, role: .none, [])
        case .userManage: .init(.admins, deleted: true, guests: false, frozen: true, role: .none, [])
        case .streamRead: .init(.anyone, deleted: true, guests: true, frozen: true, role: .none, [])
        case .channelCreate: .init(.creators, deleted: false, guests: false, frozen: true, role: .none, [])
        case .channelRead:
            .init(.policy(\.discovery), deleted: true, guests: true, frozen: true, role: .none, [.members, .invited])
        case .channelWatch: .init(.policy(\.read), deleted: false, guests: true, frozen: true, role: .operator, [.reading])
        case .channelUpdate: .init(.policy(\.update), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .channelUpdatePolicy: .init(.policy(\.updatePolicy), deleted: false, guests: false, frozen: true, role: .owner, [])
        case .channelSetPublic: .init(.policy(\.updatePolicy), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .channelDelete: .init(.policy(\.delete), deleted: true, guests: false, frozen: true, role: .operator, [])
        case .channelFreeze: .init(.policy(\.moderate), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .channelSilence: .init(.policy(\.moderate), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .channelSetRateLimit: .init(.policy(\.moderate), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .channelHide: .init(.membership, deleted: false, guests: false, frozen: true, role: .none, [])
        case .memberJoin: .init(.policy(\.join), deleted: false, guests: false, frozen: true, role: .none, [.byID])
        case .memberLeave: .init(.policy(\.leave), deleted: true, guests: true, frozen: true, role: .operator, [.banned, .outside])
        case .memberList: .init(.policy(\.discovery), deleted: true, guests: true, frozen: true, role: .none, [.members])
        case .memberListMuted: .init(.policy(\.moderate), deleted: true, guests: false, frozen: true, role: .operator, [])
        case .memberListBanned: .init(.policy(\.moderate), deleted: true, guests: false, frozen: true, role: .operator, [])
        case .memberSearchBanned: .init(.policy(\.moderate), deleted: true, guests: false, frozen: true, role: .operator, [])
        case .memberAdd: .init(.policy(\.add), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .memberRemove: .init(.policy(\.remove), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .memberSetRole: .init(.policy(\.moderate), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .invitationSend: .init(.policy(\.invite), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .invitationList: .init(.always(.members), deleted: false, guests: true, frozen: true, role: .none, [])
        case .invitationAnswer: .init(.invitation, deleted: false, guests: false, frozen: true, role: .none, [.afterwards])
        case .messageSend: .init(.policy(\.send), deleted: false, guests: false, frozen: false, role: .operator, [.sending])
        case .messageSendWhileFrozen: .init(.policy(\.moderate), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .messageSendAdmin: .init(.policy(\.send), deleted: false, guests: false, frozen: true, role: .none, [.admins])
        case .messageMention: .init(.policy(\.mention), deleted: false, guests: false, frozen: true, role: .operator, [])
        case .messageEditOwn: .init(.policy(\.send), deleted: false, guests: false, frozen: false, role: .operator, [.changing])
        case .messageEditAny: .init(.policy(\.moderate), deleted: false, guests: false, frozen: true, role: .operator, [.changing])
        case .messageDeleteOwn:
            .init(.policy(\.read), deleted: false, guests: false, frozen: true, role: .operator, [.reading, .changing])
        case .messageDeleteAny:
            .init(.policy(\.moderate), deleted: false, guests: false, frozen: true, role: .operator, [.changing])
        case .messageReadVersions:
            .init(.policy(\.moderate), deleted: false, guests: false, frozen: true, role: .operator, [.reading])
        case .historyRead: .init(.policy(\.read), deleted: true, guests: true, frozen: true, role: .operator, [.reading])
        case .readingMark: .init(.membership, deleted: false, guests: false, frozen: true, role: .none, [])
        }
    }
}

/// The conditions of one permission.
package struct PermissionRow: Sendable {
    package let rule: Rule
    /// Whether it applies in a deleted channel, for callers who can see one.
    package let whenDeleted: Bool
    /// Whether guests have it, as far as the rule gives it to everyone: they only look, and change only their own name and which channels
    /// they are in or watch.
    package let forGuests: Bool
    /// Whether it holds while the channel is frozen or silenced, or the member is muted.
    package let whileFrozen: Bool
    package let grantedBy: Grant
    package let traits: Traits

    init(_ rule: Rule, deleted: Bool, guests: Bool, frozen: Bool, role: Grant, _ traits: Traits) {
        self.rule = rule
        whenDeleted = deleted
        forGuests = guests
        whileFrozen = frozen
        grantedBy = role
        self.traits = traits
    }

    /// The callers who can have a permission at all.
    package enum Rule: Sendable {
        /// Any authenticated user.
        case anyone
        /// The app's admins and backends.
        case admins
        /// Callers whom a type allows to create channels.
        case creators
        /// The audience that the channel's policy names for it.
        case policy(any KeyPath<ChannelPolicy, ChannelPolicy.Audience> & Sendable)
        /// The same audience in channels of every type.
        case always(ChannelPolicy.Audience)
        /// Members only: it concerns one's own membership.
        case membership
        /// Invited users, and members, who have no invitation left to answer.
        case invitation
    }

    /// The lowest built-in role that grants a permission where the policy leaves it to `operators`. The app's own roles can grant the same
    /// permissions.
    package enum Grant: Sendable {
        case none, `operator`, owner
    }

    /// Further properties of a permission.
    package struct Traits: OptionSet, Sendable {
        package let rawValue: Int
        // derived: init
        package init(rawValue: Int) { self.rawValue = rawValue }

        /// It reveals messages, which an invitation, or knowing the id of a hidden channel, doesn't entitle to.
        package static let reading = Traits(rawValue: 1 << 0)
        /// Every member has it, whatever audience the policy names.
        package static let members = Traits(rawValue: 1 << 1)
        /// Invited users have it, whatever audience the policy names.
        package static let invited = Traits(rawValue: 1 << 2)
        /// It holds while the member is banned.
        package static let banned = Traits(rawValue: 1 << 3)
        /// Non-members have it if the policy's audience is the members: it changes nothing for them, so leaving can be repeated.
        package static let outside = Traits(rawValue: 1 << 4)
        /// A caller who knows the id of a joinable channel is informed how to join it, even if they can't find the channel (D-33, SB-19).
        package static let byID = Traits(rawValue: 1 << 5)
        /// A formerly invited caller gets `not_invited` instead of `not_found`.
        package static let afterwards = Traits(rawValue: 1 << 6)
        /// Its refusal by the policy has its own code, `send_not_allowed`.
        package static let sending = Traits(rawValue: 1 << 7)
        /// Only admins have it, in channels whose policy allows it.
        package static let admins = Traits(rawValue: 1 << 8)
        /// It changes a message, which also requires `history.read`.
        package static let changing = Traits(rawValue: 1 << 9)
    }

    /// Whether it concerns an existing channel.
    package var concernsChannel: Bool {
        switch rule {
        case .anyone, .admins, .creators: false
        case .policy, .always, .membership, .invitation: true
        }
    }
}
