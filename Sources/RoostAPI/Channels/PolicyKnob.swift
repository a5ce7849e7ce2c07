/// The names of what a policy decides.
public enum PolicyName: String, Codable, CaseIterable, Sendable, WireEnumeration {
    case create, discovery, join, leave, add, invite, remove, read, send, update, updatePolicy, moderate, delete
    case usersAtCreation, invitationAudience, distinct, allowsEphemeral, maxMembers
}

extension PolicyName {
    /// The table: for each name the property of ``ChannelPolicy`` that it stands for. Reading, writing, changing and comparing policies go
    /// through it, so that what a policy decides is named here and as a property, and in no other list.
    private var row: PolicyKnob {
        switch self {
        case .create: PolicyKnob(self, \.create, isDecidedByType: true)
        case .discovery: PolicyKnob(self, \.discovery)
        case .join: PolicyKnob(self, \.join)
        case .leave: PolicyKnob(self, \.leave)
        case .add: PolicyKnob(self, \.add)
        case .invite: PolicyKnob(self, \.invite)
        case .remove: PolicyKnob(self, \.remove)
        case .read: PolicyKnob(self, \.read)
        case .send: PolicyKnob(self, \.send)
        case .update: PolicyKnob(self, \.update)
        // A policy that was written before this existed leaves it to those whom it leaves changes of attributes to.
        case .updatePolicy:
            PolicyKnob(self, \.updatePolicy, isDecidedByType: true, whenAbsent: { $0.update == .nobody ? .nobody : .operators })
        case .moderate: PolicyKnob(self, \.moderate)
        case .delete: PolicyKnob(self, \.delete)
        case .usersAtCreation: PolicyKnob(self, \.usersAtCreation, isDecidedByType: true)
        case .invitationAudience: PolicyKnob(self, \.invitationAudience, isDecidedByType: true)
        case .distinct: PolicyKnob(self, \.distinct, isDecidedByType: true)
        case .allowsEphemeral: PolicyKnob(self, \.allowsEphemeral, isDecidedByType: true)
        case .maxMembers: PolicyKnob(self, \.maxMembers)
        }
    }

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

/// One of the things that a policy decides, whatever the type of its values.
package struct PolicyKnob: Sendable {
    package let name: PolicyName
    /// Whether only a type decides it, not a channel: what matters at its creation, whom pending invitations were told to, and who may change all
    /// this.
    package let isDecidedByType: Bool
    package let path: any PartialKeyPath<ChannelPolicy> & Sendable
    let copy: @Sendable (_ from: ChannelPolicy, _ to: inout ChannelPolicy) -> Void
    let decode: @Sendable (KeyedDecodingContainer<Key>, _ to: inout ChannelPolicy) throws -> Void
    /// Tells whether it was there.
    let decodeIfPresent: @Sendable (KeyedDecodingContainer<Key>, _ to: inout ChannelPolicy) throws -> Bool
    let encode: @Sendable (_ from: ChannelPolicy, inout KeyedEncodingContainer<Key>) throws -> Void
    let write: @Sendable (_ from: ChannelPolicy, inout JSONBytes) -> Void

    fileprivate init<Value: PolicyValue>(
        _ name: PolicyName, _ path: any WritableKeyPath<ChannelPolicy, Value> & Sendable, isDecidedByType: Bool = false,
        whenAbsent: (@Sendable (ChannelPolicy) -> Value)? = nil
    ) {
        self.name = name
        self.path = path
        self.isDecidedByType = isDecidedByType
        let key = Key(stringValue: name.rawValue)
        copy = { $1[keyPath: path] = $0[keyPath: path] }
        decode = { container, policy in
            if let whenAbsent, !container.contains(key) {
                policy[keyPath: path] = whenAbsent(policy)
            } else {
                policy[keyPath: path] = try container.decode(Value.self, forKey: key)
            }
        }
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

    /// The name of what a property of a policy decides.
    static func named(_ path: PartialKeyPath<ChannelPolicy>) -> PolicyName? { PolicyName.allCases.first { $0.knob.path == path } }

    struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
