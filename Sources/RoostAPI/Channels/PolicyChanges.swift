/// Differences from a policy: a channel's from its type's, or a custom type's from that of the preset it is based on. Absent rules stay unchanged.
///
/// It has an optional property for each rule of a policy, nil until set:
///
///     create.policy = PolicyChanges(send: .operators)
///
/// A rule or a value that a newer server has added is left out of a channel's row.
@dynamicMemberLookup
public struct PolicyChanges: Hashable, Sendable {
    /// The given values. The others are those of the first preset, so equal changes are equal values.
    private var values: ChannelPolicy = .base
    private var given: Set<PolicyName> = []

    // derived: optional init of ChannelPolicy, without type and fixed
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        create: ChannelPolicy.Audience? = nil, discovery: ChannelPolicy.Audience? = nil, join: ChannelPolicy.Audience? = nil,
        leave: ChannelPolicy.Audience? = nil, add: ChannelPolicy.Audience? = nil, invite: ChannelPolicy.Audience? = nil,
        remove: ChannelPolicy.Audience? = nil, read: ChannelPolicy.Audience? = nil, send: ChannelPolicy.Audience? = nil,
        mention: ChannelPolicy.Audience? = nil, update: ChannelPolicy.Audience? = nil, updatePolicy: ChannelPolicy.Audience? = nil,
        moderate: ChannelPolicy.Audience? = nil, delete: ChannelPolicy.Audience? = nil, usersAtCreation: ChannelPolicy.Entry? = nil,
        invitationAudience: ChannelPolicy.InvitationAudience? = nil, distinct: ChannelPolicy.Distinctness? = nil,
        allowsEphemeral: Bool? = nil, maxMembers: Int? = nil, announcesJoins: Bool? = nil, announcesLeaves: Bool? = nil,
        announcesNames: Bool? = nil, announcesInLargeChannels: Bool? = nil, typingEvents: Bool? = nil, readEvents: Bool? = nil,
        deliveryEvents: Bool? = nil
    ) {
        self.create = create
        self.discovery = discovery
        self.join = join
        self.leave = leave
        self.add = add
        self.invite = invite
        self.remove = remove
        self.read = read
        self.send = send
        self.mention = mention
        self.update = update
        self.updatePolicy = updatePolicy
        self.moderate = moderate
        self.delete = delete
        self.usersAtCreation = usersAtCreation
        self.invitationAudience = invitationAudience
        self.distinct = distinct
        self.allowsEphemeral = allowsEphemeral
        self.maxMembers = maxMembers
        self.announcesJoins = announcesJoins
        self.announcesLeaves = announcesLeaves
        self.announcesNames = announcesNames
        self.announcesInLargeChannels = announcesInLargeChannels
        self.typingEvents = typingEvents
        self.readEvents = readEvents
        self.deliveryEvents = deliveryEvents
    }

    /// The given value of a rule; nil if it stays unchanged.
    public subscript<Value: PolicyValue>(dynamicMember path: WritableKeyPath<ChannelPolicy, Value>) -> Value? {
        get { PolicyKnob.named(path).map(given.contains) == true ? values[keyPath: path] : nil }
        set {
            guard let name = PolicyKnob.named(path) else { return }
            values[keyPath: path] = newValue ?? ChannelPolicy.base[keyPath: path]
            if newValue == nil { given.remove(name) } else { given.insert(name) }
        }
    }

    /// The changes that make a channel public: everyone finds and joins it (SB-03).
    package static let makingPublic = PolicyChanges(discovery: .everyone, join: .everyone)
    /// The changes that make a channel private: only members find it, and joining needs an invitation (SB-03).
    package static let makingPrivate = PolicyChanges(discovery: .members, join: .invited)

    /// The names of the given rules.
    public var names: [PolicyName] { PolicyName.allCases.filter(given.contains) }

    /// Throws if a number is outside its limits.
    public func validate(field: String) throws(RoostError) {
        guard let maxMembers = self.maxMembers else { return }
        guard maxMembers >= 1 else { throw .invalidArgument("\(field).maxMembers", "must be 1 or more") }
        guard maxMembers <= Limits.membersPerChannel else {
            throw .limitExceeded("\(field).maxMembers", limit: Limits.membersPerChannel, unit: "members")
        }
    }

    /// Throws `immutable_field` if the type fixes a changed rule, and `invalid_argument` if only types decide it.
    public func validate(forChannelOf policy: ChannelPolicy, field: String) throws(RoostError) {
        try validate(forChannelOf: policy, naming: { "\(field).\($0.rawValue)" })
    }

    /// The same for changes that another field stands for, such as `isPublic`.
    package func validate(forChannelOf policy: ChannelPolicy, givenBy field: String) throws(RoostError) {
        try validate(forChannelOf: policy, naming: { _ in field })
    }

    private func validate(forChannelOf policy: ChannelPolicy, naming field: (PolicyName) -> String) throws(RoostError) {
        for name in names {
            if name.knob.isDecidedByType {
                throw .invalidArgument(field(name), "is decided by the type, not by a channel")
            }
            guard !policy.fixed.contains(name) else {
                throw RoostError(
                    .immutableField, "Channels of the type \(policy.type) can't have another \(name.rawValue).",
                    field: field(name), rule: "\(name.rawValue) is fixed for \(policy.type)")
            }
        }
    }

    /// Returns these changes with newer ones applied.
    public func merging(_ newer: PolicyChanges) -> PolicyChanges {
        var merged = self
        merged.values = merged.values.applying(newer)
        merged.given.formUnion(newer.given)
        return merged
    }

    fileprivate func apply(to policy: inout ChannelPolicy) {
        for name in given { name.knob.copy(values, &policy) }
    }
}

extension ChannelPolicy {
    /// Returns the policy with changes applied.
    public func applying(_ changes: PolicyChanges) -> ChannelPolicy {
        var policy = self
        changes.apply(to: &policy)
        return policy
    }
}

extension PolicyChanges: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: PolicyKnob.Key.self)
        let leavesOutNewer = NewerValues.areLeftOut(by: decoder)
        for name in PolicyName.allCases {
            do {
                if try name.knob.decodeIfPresent(container, &values) { given.insert(name) }
            } catch {
                // A client leaves out a rule that it can't read, like one of an unknown name: the channel has to arrive.
                guard leavesOutNewer else { throw error }
            }
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: PolicyKnob.Key.self)
        for name in names { try name.knob.encode(values, &container) }
    }
}

extension PolicyChanges: WireWritable {
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        for name in names { name.knob.write(values, &json) }
        json.endObject()
    }
}

extension PlainJSON {
    /// Reads `null`. A channel's own policy is left to Foundation, since few channels have one.
    mutating func read(into place: inout PolicyChanges?) -> Bool { read(into: &place) { _ in nil } }
}
