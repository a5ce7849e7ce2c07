/// What differs from a policy: for one channel from its type, or for an operator's own type from the one that it is based on.
/// What is left out stays.
public struct PolicyChanges: Codable, Hashable, Sendable {
    public var create: ChannelPolicy.Audience?
    public var discovery: ChannelPolicy.Audience?
    public var join: ChannelPolicy.Audience?
    public var leave: ChannelPolicy.Audience?
    public var add: ChannelPolicy.Audience?
    public var invite: ChannelPolicy.Audience?
    public var remove: ChannelPolicy.Audience?
    public var read: ChannelPolicy.Audience?
    public var send: ChannelPolicy.Audience?
    public var update: ChannelPolicy.Audience?
    public var updatePolicy: ChannelPolicy.Audience?
    public var moderate: ChannelPolicy.Audience?
    public var delete: ChannelPolicy.Audience?
    public var usersAtCreation: ChannelPolicy.Entry?
    public var invitationAudience: ChannelPolicy.InvitationAudience?
    public var distinct: ChannelPolicy.Distinctness?
    public var allowsEphemeral: Bool?
    /// 1 to `Limits.membersPerChannel`.
    public var maxMembers: Int?

    public init(
        discovery: ChannelPolicy.Audience? = nil, join: ChannelPolicy.Audience? = nil, invite: ChannelPolicy.Audience? = nil,
        read: ChannelPolicy.Audience? = nil, send: ChannelPolicy.Audience? = nil, maxMembers: Int? = nil
    ) {
        self.discovery = discovery
        self.join = join
        self.invite = invite
        self.read = read
        self.send = send
        self.maxMembers = maxMembers
    }

    /// What makes a channel public: everyone finds and joins it (SB-03).
    public static let isPublic = PolicyChanges(discovery: .everyone, join: .everyone)
    /// What makes a channel private: members find it, and an invitation is the way in (SB-03).
    public static let isPrivate = PolicyChanges(discovery: .members, join: .invited)

    /// What only a type decides, not a channel: what matters at its creation, whom pending invitations were told to, and who may change all this.
    private static let ofTypes: Set<PolicyName> = [
        .create, .updatePolicy, .usersAtCreation, .invitationAudience, .distinct, .allowsEphemeral,
    ]

    /// The names of what is given.
    public var names: [PolicyName] {
        let given: [(PolicyName, Bool)] = [
            (.create, create != nil), (.discovery, discovery != nil), (.join, join != nil), (.leave, leave != nil),
            (.add, add != nil), (.invite, invite != nil), (.remove, remove != nil), (.read, read != nil), (.send, send != nil),
            (.update, update != nil), (.updatePolicy, updatePolicy != nil), (.moderate, moderate != nil), (.delete, delete != nil),
            (.usersAtCreation, usersAtCreation != nil), (.invitationAudience, invitationAudience != nil),
            (.distinct, distinct != nil), (.allowsEphemeral, allowsEphemeral != nil), (.maxMembers, maxMembers != nil),
        ]
        return given.filter(\.1).map(\.0)
    }

    /// Throws when a number is outside its limits.
    public func validate(field: String) throws(RoostError) {
        guard let maxMembers else { return }
        guard maxMembers >= 1 else { throw .invalidArgument("\(field).maxMembers", "must be 1 or more") }
        guard maxMembers <= Limits.membersPerChannel else {
            throw .limitExceeded("\(field).maxMembers", limit: Limits.membersPerChannel, unit: "members")
        }
    }

    /// Throws `immutable_field` when a channel of a type may not differ in this, and `invalid_argument` when only types decide it.
    public func validate(forChannelOf policy: ChannelPolicy, field: String) throws(RoostError) {
        for name in names {
            if Self.ofTypes.contains(name) {
                throw .invalidArgument("\(field).\(name.rawValue)", "is decided by the type, not by a channel")
            }
            guard !policy.fixed.contains(name) else {
                throw RoostError(
                    .immutableField, "Channels of the type \(policy.type) can't have another \(name.rawValue).",
                    field: "\(field).\(name.rawValue)", rule: "\(name.rawValue) is fixed for \(policy.type)")
            }
        }
    }

    /// These changes, and others over them.
    public func merging(_ newer: PolicyChanges) -> PolicyChanges {
        var merged = self
        merged.create = newer.create ?? create
        merged.discovery = newer.discovery ?? discovery
        merged.join = newer.join ?? join
        merged.leave = newer.leave ?? leave
        merged.add = newer.add ?? add
        merged.invite = newer.invite ?? invite
        merged.remove = newer.remove ?? remove
        merged.read = newer.read ?? read
        merged.send = newer.send ?? send
        merged.update = newer.update ?? update
        merged.updatePolicy = newer.updatePolicy ?? updatePolicy
        merged.moderate = newer.moderate ?? moderate
        merged.delete = newer.delete ?? delete
        merged.usersAtCreation = newer.usersAtCreation ?? usersAtCreation
        merged.invitationAudience = newer.invitationAudience ?? invitationAudience
        merged.distinct = newer.distinct ?? distinct
        merged.allowsEphemeral = newer.allowsEphemeral ?? allowsEphemeral
        merged.maxMembers = newer.maxMembers ?? maxMembers
        return merged
    }
}

extension ChannelPolicy {
    /// The policy with changes applied.
    public func applying(_ changes: PolicyChanges) -> ChannelPolicy {
        var policy = self
        policy.create = changes.create ?? create
        policy.discovery = changes.discovery ?? discovery
        policy.join = changes.join ?? join
        policy.leave = changes.leave ?? leave
        policy.add = changes.add ?? add
        policy.invite = changes.invite ?? invite
        policy.remove = changes.remove ?? remove
        policy.read = changes.read ?? read
        policy.send = changes.send ?? send
        policy.update = changes.update ?? update
        policy.updatePolicy = changes.updatePolicy ?? updatePolicy
        policy.moderate = changes.moderate ?? moderate
        policy.delete = changes.delete ?? delete
        policy.usersAtCreation = changes.usersAtCreation ?? usersAtCreation
        policy.invitationAudience = changes.invitationAudience ?? invitationAudience
        policy.distinct = changes.distinct ?? distinct
        policy.allowsEphemeral = changes.allowsEphemeral ?? allowsEphemeral
        policy.maxMembers = changes.maxMembers ?? maxMembers
        return policy
    }
}
