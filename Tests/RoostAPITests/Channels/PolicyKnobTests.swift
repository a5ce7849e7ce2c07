import Foundation
import RoostAPI
import Testing

@Suite("What a policy decides")
struct PolicyKnobTests {
    /// Changes that set everything, each to another value than the first preset.
    private static let everything = PolicyChanges(
        create: .admins, discovery: .members, join: .invited, leave: .nobody, add: .owners, invite: .operators, remove: .admins,
        read: .everyone, send: .operators, mention: .admins, update: .owners, updatePolicy: .owners, moderate: .admins,
        delete: .admins,
        usersAtCreation: .invited, invitationAudience: .members, distinct: .optional, allowsEphemeral: true, maxMembers: 7,
        announcesJoins: true, announcesLeaves: true, announcesNames: true, announcesInLargeChannels: true, typingEvents: false,
        readEvents: false, deliveryEvents: true)

    @Test("AM-14 every property of a policy but its type and what is fixed has a name in the table, and every name a property")
    func complete() {
        let properties = Mirror(reflecting: ChannelPolicy.presets[0]).children.compactMap(\.label)
        #expect(Set(properties) == Set(PolicyName.allCases.map(\.rawValue) + ["type", "fixed"]))
        for name in PolicyName.allCases { #expect("\(name.knob.path)".hasSuffix(".\(name.rawValue)"), "\(name.rawValue)") }
        #expect(Self.everything.names == PolicyName.allCases)
    }

    @Test("AM-14 given values are applied, merged, written and read, by either writer, and can be taken back")
    func roundTrips() throws {
        let first = ChannelPolicy.presets[0]
        let applied = first.applying(Self.everything)
        for name in PolicyName.allCases { #expect(Self.text(of: name, applied) != Self.text(of: name, first), "\(name.rawValue)") }
        #expect(applied.type == first.type && applied.fixed == first.fixed)
        #expect(PolicyChanges().merging(Self.everything) == Self.everything)
        #expect(Self.everything.merging(PolicyChanges()) == Self.everything)

        let written = try [JSONEncoder().encode(Self.everything), Data(JSONWriter.bytes(of: Self.everything))]
        for json in written {
            #expect(try JSONDecoder().decode(PolicyChanges.self, from: json) == Self.everything)
            let fields = try JSONDecoder().decode([String: JSONValue].self, from: json)
            #expect(Set(fields.keys) == Set(PolicyName.allCases.map(\.rawValue)))
        }
        #expect(String(decoding: try JSONWriter.bytes(of: PolicyChanges(maxMembers: 7)), as: UTF8.self) == #"{"maxMembers":7}"#)

        var changes = Self.everything
        changes.send = nil
        changes.maxMembers = nil
        #expect(changes.names == PolicyName.allCases.filter { $0 != .send && $0 != .maxMembers })
        #expect(changes.send == nil && changes.read == .everyone)
        // Equal changes are equal values, however they were made.
        var same = PolicyChanges(send: .operators)
        same.send = nil
        #expect(same == PolicyChanges())
    }

    @Test("AM-14 a policy is read back as it was; without a field it can't be read, except for fields added later")
    func policies() throws {
        for policy in ChannelPolicy.presets {
            let json = try JSONWriter.bytes(of: policy)
            #expect(try JSONDecoder().decode(ChannelPolicy.self, from: Data(json)) == policy)
        }
        let group = try #require(ChannelPolicy.preset(.group))
        let whole = try JSONDecoder().decode([String: JSONValue].self, from: Data(JSONWriter.bytes(of: group)))
        for name in whole.keys.sorted() {
            let json = Data(try JSONWriter.bytes(of: JSONValue.object(whole.filter { $0.key != name })))
            if name == PolicyName.updatePolicy.rawValue {
                #expect(try JSONDecoder().decode(ChannelPolicy.self, from: json).updatePolicy == .operators)
            } else if name == PolicyName.mention.rawValue {
                // Users who could send then can mention now, except in conversations.
                #expect(try JSONDecoder().decode(ChannelPolicy.self, from: json).mention == .members)
            } else if name.hasPrefix("announces") || name.hasSuffix("Events") {
                #expect(try JSONDecoder().decode(ChannelPolicy.self, from: json) == group)
            } else {
                #expect(throws: DecodingError.self) { try JSONDecoder().decode(ChannelPolicy.self, from: json) }
            }
        }
    }

    private static func text(of name: PolicyName, _ policy: ChannelPolicy) -> String {
        "\(Mirror(reflecting: policy).children.first { $0.label == name.rawValue }.map { "\($0.value)" } ?? "")"
    }
}
