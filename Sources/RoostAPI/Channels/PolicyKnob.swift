/// The names of a policy's rules.
public enum PolicyName: String, Codable, CaseIterable, Sendable, WireEnumeration {
    // derived: cases of ChannelPolicy, without type and fixed
    case create, discovery, join, leave, add, invite, remove, read, send, mention, update, updatePolicy, moderate, delete
    case usersAtCreation, invitationAudience, distinct, allowsEphemeral, maxMembers, announcesJoins, announcesLeaves
    case announcesNames, announcesInLargeChannels, typingEvents, readEvents, deliveryEvents
}

extension PolicyName {
    // derived: row of ChannelPolicy as PolicyKnob, without type and fixed
    /// The table: the property of ``ChannelPolicy`` for each name. Reading, writing, changing and comparing policies go through it, so a
    /// new rule is a property, and a name below if only a type decides it.
    private var row: PolicyKnob {
        switch self {
        case .create: PolicyKnob(self, \.create)
        case .discovery: PolicyKnob(self, \.discovery)
        case .join: PolicyKnob(self, \.join)
        case .leave: PolicyKnob(self, \.leave)
        case .add: PolicyKnob(self, \.add)
        case .invite: PolicyKnob(self, \.invite)
        case .remove: PolicyKnob(self, \.remove)
        case .read: PolicyKnob(self, \.read)
        case .send: PolicyKnob(self, \.send)
        case .mention: PolicyKnob(self, \.mention)
        case .update: PolicyKnob(self, \.update)
        case .updatePolicy: PolicyKnob(self, \.updatePolicy)
        case .moderate: PolicyKnob(self, \.moderate)
        case .delete: PolicyKnob(self, \.delete)
        case .usersAtCreation: PolicyKnob(self, \.usersAtCreation)
        case .invitationAudience: PolicyKnob(self, \.invitationAudience)
        case .distinct: PolicyKnob(self, \.distinct)
        case .allowsEphemeral: PolicyKnob(self, \.allowsEphemeral)
        case .maxMembers: PolicyKnob(self, \.maxMembers)
        case .announcesJoins: PolicyKnob(self, \.announcesJoins)
        case .announcesLeaves: PolicyKnob(self, \.announcesLeaves)
        case .announcesNames: PolicyKnob(self, \.announcesNames)
        case .announcesInLargeChannels: PolicyKnob(self, \.announcesInLargeChannels)
        case .typingEvents: PolicyKnob(self, \.typingEvents)
        case .readEvents: PolicyKnob(self, \.readEvents)
        case .deliveryEvents: PolicyKnob(self, \.deliveryEvents)
        }
    }

    /// Rules about a channel's creation, about who learns of invitations, and about who may change the policy.
    fileprivate static let decidedByType: Set<PolicyName> = [
        .create, .updatePolicy, .usersAtCreation, .invitationAudience, .distinct, .allowsEphemeral,
    ]

    /// Rules that older stored policies lack.
    static let addedLater: Set<PolicyName> = [
        .updatePolicy, .mention, .announcesJoins, .announcesLeaves, .announcesNames, .announcesInLargeChannels, .typingEvents,
        .readEvents, .deliveryEvents,
    ]

    private static let rows = Dictionary(uniqueKeysWithValues: allCases.map { ($0, $0.row) })

    package var knob: PolicyKnob { Self.rows[self] ?? row }
}

/// A value of a policy.
public protocol PolicyValue: Codable, Hashable, Sendable {}

extension ChannelPolicy.Audience: PolicyValue {}
extension ChannelPolicy.Entry: PolicyValue {}
extension ChannelPolicy.InvitationAudience: PolicyValue {}
extension ChannelPolicy.Distinctness: PolicyValue {}
extension Bool: PolicyValue {}
extension Int: PolicyValue {}

/// One rule of a policy, whatever the type of its values.
package struct PolicyKnob: Sendable {
    package let name: PolicyName
    /// Whether only types decide it, not channels.
    package let isDecidedByType: Bool
    package let path: any PartialKeyPath<ChannelPolicy> & Sendable
    let copy: @Sendable (_ from: ChannelPolicy, _ to: inout ChannelPolicy) -> Void
    let decode: @Sendable (KeyedDecodingContainer<Key>, _ to: inout ChannelPolicy) throws -> Void
    /// Returns whether the value was present.
    let decodeIfPresent: @Sendable (KeyedDecodingContainer<Key>, _ to: inout ChannelPolicy) throws -> Bool
    let encode: @Sendable (_ from: ChannelPolicy, inout KeyedEncodingContainer<Key>) throws -> Void
    let write: @Sendable (_ from: ChannelPolicy, inout JSONBytes) -> Void

    fileprivate init<Value: PolicyValue>(_ name: PolicyName, _ path: any WritableKeyPath<ChannelPolicy, Value> & Sendable) {
        self.name = name
        self.path = path
        isDecidedByType = PolicyName.decidedByType.contains(name)
        let key = Key(stringValue: name.rawValue)
        copy = { $1[keyPath: path] = $0[keyPath: path] }
        decode = { container, policy in policy[keyPath: path] = try container.decode(Value.self, forKey: key) }
        decodeIfPresent = { container, policy in
            guard let value = try container.decodeIfPresent(Value.self, forKey: key) else { return false }
            policy[keyPath: path] = value
            return true
        }
        encode = { policy, container in try container.encode(policy[keyPath: path], forKey: key) }
        write = { policy, json in
            json.key(name.rawValue)
            // Names, numbers and flags always encode.
            try? json.append(policy[keyPath: path])
        }
    }

    /// Returns the name of a policy's property.
    static func named(_ path: PartialKeyPath<ChannelPolicy>) -> PolicyName? { PolicyName.allCases.first { $0.knob.path == path } }

    struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
