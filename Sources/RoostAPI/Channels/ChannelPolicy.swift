/// The rules of a channel's type: who finds, joins, reads, writes and moderates, and which limits apply (ledger §8.2).
///
/// Code never checks a type's name, only its policy. The policy is sent to clients as the `config` of a watched channel (ST-05) and by
/// `type.list`. A channel may differ from its type in everything that isn't fixed: see ``PolicyChanges``.
///
/// If a newer server names an audience that this version doesn't know, it is read as `nobody`, and another unknown value as that of the
/// first preset. What the caller may do is in the channel's `ownCapabilities`.
public struct ChannelPolicy: Codable, Hashable, Sendable {
    /// Who may do something in the channels of a type.
    public enum Audience: String, Codable, CaseIterable, Sendable, WireEnumeration {
        /// Everyone with a token.
        case everyone
        /// Members, users with an invitation, and admins. For joining.
        case invited
        /// Members and admins.
        case members
        /// Only members: admins neither see it nor do it (AM-17).
        case membersOnly
        /// Members whose role grants it, the app's moderators and admins.
        case operators
        /// The channel's owner, and admins.
        case owners
        /// The app's admins.
        case admins
        /// Nobody.
        case nobody
    }

    /// How the users named at a channel's creation join it (ledger §8.6).
    public enum Entry: String, Codable, CaseIterable, Sendable, WireEnumeration {
        /// They become members at once (AM-24).
        case added
        /// They are invited; those who accept automatically become members (SB-07, SB-18).
        case invited
    }

    /// Who is notified of an invitation and its outcome, besides the inviter and the invited user (D-36, ledger §8.10.7).
    public enum InvitationAudience: String, Codable, CaseIterable, Sendable, WireEnumeration {
        /// All members.
        case members
        /// Nobody else.
        case concerned
    }

    /// Whether there is at most one channel for a set of members (SB-05, AM-25).
    public enum Distinctness: String, Codable, CaseIterable, Sendable, WireEnumeration {
        /// Never, only for channels created so, or always.
        case never, optional, always
    }

    /// The type that has these rules.
    public var type: ChannelType
    /// Who may create such a channel.
    public var create: Audience
    /// Who can find the channel.
    public var discovery: Audience
    /// Who may become a member without being added.
    public var join: Audience
    /// Who may leave.
    public var leave: Audience
    /// Who may add members.
    public var add: Audience
    /// Who may invite.
    public var invite: Audience
    /// Who may remove members with a lower role.
    public var remove: Audience
    /// Who may read messages and watch.
    public var read: Audience
    /// Who may send messages.
    public var send: Audience
    /// Who may mention members, or the channel, in what they send (MN-02).
    public var mention: Audience
    /// Who may change the channel's attributes.
    public var update: Audience
    /// Who may make the channel differ from its type. The role `operator` grants changing whether the channel is public, but not the rest of the
    /// policy.
    public var updatePolicy: Audience
    /// Who may freeze, silence and rate-limit the channel and give roles.
    public var moderate: Audience
    /// Who may delete the channel.
    public var delete: Audience
    /// How users named when the channel is created join it.
    public var usersAtCreation: Entry
    /// Who is notified of an invitation.
    public var invitationAudience: InvitationAudience
    /// Whether a set of members may, or must, have only one channel.
    public var distinct: Distinctness
    /// Whether channels may be created whose messages aren't stored (SB-04).
    public var allowsEphemeral: Bool
    /// The most members, unless a channel sets another number; never above `Limits.membersPerChannel`.
    public var maxMembers: Int
    /// Whether the server sends a message when members join or are added (R19).
    public var announcesJoins: Bool = false
    /// Whether it sends one when members leave or are removed.
    public var announcesLeaves: Bool = false
    /// Whether it sends one when the channel is renamed.
    public var announcesNames: Bool = false
    /// Whether it also does so in channels with more than `Limits.largeChannelMembers` members.
    public var announcesInLargeChannels: Bool = false
    /// Whether others are notified who is typing (ST-05).
    public var typingEvents: Bool = true
    /// Whether others are notified, and may ask, how far each member has read (ST-05). In a channel with more than
    /// `Limits.largeChannelMembers` members nobody may ask.
    public var readEvents: Bool = true
    /// Whether members report, and others are notified, that messages have reached a device. Needs ``readEvents``. Never in a
    /// channel with more than `Limits.largeChannelMembers` members.
    public var deliveryEvents: Bool = false
    /// The rules that no channel may change from the type's.
    public var fixed: [PolicyName]

    /// The policy of a preset; nil for an operator's own type and for one that doesn't exist.
    public static func preset(_ type: ChannelType) -> ChannelPolicy? { presets.first { $0.type == type } }
}

extension ChannelPolicy: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("type", type)
        json.member("create", create)
        json.member("discovery", discovery)
        json.member("join", join)
        json.member("leave", leave)
        json.member("add", add)
        json.member("invite", invite)
        json.member("remove", remove)
        json.member("read", read)
        json.member("send", send)
        json.member("mention", mention)
        json.member("update", update)
        json.member("updatePolicy", updatePolicy)
        json.member("moderate", moderate)
        json.member("delete", delete)
        json.member("usersAtCreation", usersAtCreation)
        json.member("invitationAudience", invitationAudience)
        json.member("distinct", distinct)
        json.member("allowsEphemeral", allowsEphemeral)
        json.member("maxMembers", maxMembers)
        json.member("announcesJoins", announcesJoins)
        json.member("announcesLeaves", announcesLeaves)
        json.member("announcesNames", announcesNames)
        json.member("announcesInLargeChannels", announcesInLargeChannels)
        json.member("typingEvents", typingEvents)
        json.member("readEvents", readEvents)
        json.member("deliveryEvents", deliveryEvents)
        json.member("fixed", fixed)
        json.endObject()
    }
}

extension ChannelPolicy {
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: PolicyKnob.Key.self)
        self = Self.base
        type = try values.decode(ChannelType.self, forKey: PolicyKnob.Key(stringValue: "type"))
        let stored = Set(PolicyName.allCases.filter { values.contains(PolicyKnob.Key(stringValue: $0.rawValue)) })
        let leavesOutNewer = NewerValues.areLeftOut(by: decoder)
        // A rule that is missing here didn't exist when the type was stored.
        for name in PolicyName.allCases where stored.contains(name) || !PolicyName.addedLater.contains(name) {
            do {
                try name.knob.decode(values, &self)
            } catch {
                guard leavesOutNewer, stored.contains(name) else { throw error }
                // An unknown audience must not look like one to which the user belongs.
                if let path = name.knob.path as? WritableKeyPath<ChannelPolicy, Audience> { self[keyPath: path] = .nobody }
            }
        }
        // Until this rule existed, operators had the right, or nobody where nobody may change attributes.
        if !stored.contains(.updatePolicy) { updatePolicy = update == .nobody ? .nobody : .operators }
        // Until this rule existed, senders could mention, except in conversations.
        if !stored.contains(.mention) { mention = send == .membersOnly ? .nobody : send }
        fixed = try values.decode(KnownNames<PolicyName>.self, forKey: PolicyKnob.Key(stringValue: "fixed")).value
    }

    /// The values of rules that aren't given; ``init(from:)`` replaces all of them.
    static let base = presets[0]
}

extension ChannelPolicy {
    private static let everything = PolicyName.allCases

    /// The built-in types in display order (AM-14 to AM-19, SB-03, ST-08).
    public static let presets: [ChannelPolicy] = [
        ChannelPolicy(
            type: .community, create: .everyone, discovery: .everyone, join: .everyone, leave: .members, add: .operators,
            invite: .members, remove: .operators, read: .members, send: .members, mention: .members, update: .operators,
            updatePolicy: .operators, moderate: .operators,
            delete: .owners, usersAtCreation: .added, invitationAudience: .concerned, distinct: .never, allowsEphemeral: false,
            maxMembers: Limits.membersPerChannel, fixed: []),
        ChannelPolicy(
            type: .live, create: .everyone, discovery: .members, join: .everyone, leave: .members, add: .operators,
            invite: .members, remove: .operators, read: .members, send: .members, mention: .members, update: .operators,
            updatePolicy: .operators, moderate: .operators,
            delete: .owners, usersAtCreation: .added, invitationAudience: .concerned, distinct: .never, allowsEphemeral: false,
            maxMembers: Limits.membersPerChannel, fixed: [.discovery]),
        ChannelPolicy(
            type: .broadcast, create: .admins, discovery: .everyone, join: .everyone, leave: .members, add: .operators,
            invite: .members, remove: .operators, read: .members, send: .admins, mention: .nobody, update: .operators,
            updatePolicy: .operators, moderate: .admins,
            delete: .owners, usersAtCreation: .added, invitationAudience: .concerned, distinct: .never, allowsEphemeral: false,
            maxMembers: Limits.membersPerChannel, fixed: [.send, .moderate]),
        ChannelPolicy(
            type: .conversation, create: .everyone, discovery: .membersOnly, join: .nobody, leave: .nobody, add: .nobody,
            invite: .nobody, remove: .nobody, read: .membersOnly, send: .membersOnly, mention: .nobody, update: .membersOnly,
            updatePolicy: .nobody, moderate: .nobody,
            delete: .nobody, usersAtCreation: .added, invitationAudience: .concerned, distinct: .always, allowsEphemeral: false,
            maxMembers: Limits.membersPerGroup, fixed: everything),
        ChannelPolicy(
            type: .standard, create: .nobody, discovery: .everyone, join: .nobody, leave: .nobody, add: .nobody, invite: .nobody,
            remove: .nobody, read: .members, send: .nobody, mention: .nobody, update: .nobody,
            updatePolicy: .nobody, moderate: .nobody, delete: .admins,
            usersAtCreation: .added, invitationAudience: .concerned, distinct: .never, allowsEphemeral: false,
            maxMembers: Limits.membersPerChannel, fixed: everything),
        ChannelPolicy(
            type: .private, create: .nobody, discovery: .members, join: .nobody, leave: .nobody, add: .nobody, invite: .nobody,
            remove: .nobody, read: .members, send: .nobody, mention: .nobody, update: .nobody,
            updatePolicy: .nobody, moderate: .nobody, delete: .admins,
            usersAtCreation: .added, invitationAudience: .concerned, distinct: .never, allowsEphemeral: false,
            maxMembers: Limits.membersPerChannel, fixed: everything),
        ChannelPolicy(
            type: .group, create: .everyone, discovery: .members, join: .invited, leave: .members, add: .operators,
            invite: .members, remove: .operators, read: .members, send: .members, mention: .members, update: .operators,
            updatePolicy: .operators, moderate: .operators,
            delete: .operators, usersAtCreation: .invited, invitationAudience: .members, distinct: .optional,
            allowsEphemeral: true, maxMembers: Limits.membersPerGroup, fixed: []),
        ChannelPolicy(
            type: .messaging, create: .everyone, discovery: .members, join: .invited, leave: .members, add: .operators,
            invite: .members, remove: .operators, read: .members, send: .members, mention: .members, update: .operators,
            updatePolicy: .operators, moderate: .operators,
            delete: .owners, usersAtCreation: .added, invitationAudience: .concerned, distinct: .optional,
            allowsEphemeral: false, maxMembers: Limits.membersPerGroup, fixed: []),
        ChannelPolicy(
            type: .livestream, create: .everyone, discovery: .everyone, join: .everyone, leave: .members, add: .operators,
            invite: .members, remove: .operators, read: .everyone, send: .everyone, mention: .everyone, update: .operators,
            updatePolicy: .operators, moderate: .operators,
            delete: .owners, usersAtCreation: .added, invitationAudience: .concerned, distinct: .never, allowsEphemeral: true,
            maxMembers: Limits.membersPerChannel, fixed: []),
    ]
}
