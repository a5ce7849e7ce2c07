import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Changes of a channel's policy: nobody grants a permission that they don't hold, or takes one from a role at or above their own.
@Suite("Giving by a policy")
struct PolicyGivingTests {
    typealias Audience = ChannelPolicy.Audience

    /// The subjects of a policy that this test distinguishes.
    enum Subject: CaseIterable {
        case stranger, member, guide, `operator`, deputy, owner, moderator, admin

        /// The rank in the channel; nil for those outside it.
        var rank: Int? {
            switch self {
            case .member: 0
            case .guide: 10
            case .operator: 50
            case .deputy: 60
            case .owner: 100
            case .stranger, .moderator, .admin: nil
            }
        }
        var isMember: Bool { rank != nil }
    }

    /// The grants of two of the app's own roles.
    static let guideGrants: Set<Permission> = [.channelUpdate, .channelUpdatePolicy, .memberRemove, .messageSend, .historyRead]
    static let deputyGrants = Set(Permission.grantable)

    /// The fields, with the permissions that each decides, by hand.
    static let fields: [(name: String, path: any WritableKeyPath<PolicyChanges, Audience?> & Sendable, permissions: [Permission])] =
        [
            ("discovery", \.discovery, [.channelRead, .memberList]), ("join", \.join, [.memberJoin]),
            ("leave", \.leave, [.memberLeave]),
            ("add", \.add, [.memberAdd]), ("invite", \.invite, [.invitationSend]), ("remove", \.remove, [.memberRemove]),
            ("read", \.read, [.historyRead, .channelWatch, .messageDeleteOwn]), ("send", \.send, [.messageSend, .messageEditOwn]),
            ("mention", \.mention, [.messageMention]),
            ("update", \.update, [.channelUpdate]),
            (
                "moderate", \.moderate,
                [
                    .channelFreeze, .channelSilence, .channelSetRateLimit, .memberListMuted, .memberListBanned, .memberSearchBanned,
                    .memberSetRole, .messageSendWhileFrozen, .messageEditAny, .messageDeleteAny,
                ]
            ), ("delete", \.delete, [.channelDelete]),
        ]

    /// The holders of a permission given to an audience: the table of protocol.md, written down a second time.
    static func holders(of permission: Permission, _ audience: Audience) -> Set<Subject> {
        let members = Set(Subject.allCases.filter(\.isMember))
        var holders: Set<Subject>
        switch audience {
        case .everyone: holders = Set(Subject.allCases)
        case .invited: holders = members.union([.admin])
        case .members: holders = members.union([.moderator, .admin])
        case .membersOnly: holders = members
        case .operators:
            holders = [.moderator, .admin]
            // A role can't grant joining: its holder is a member already.
            if permission != .memberJoin { holders.formUnion([.operator, .owner]) }
            if guideGrants.contains(permission) { holders.insert(.guide) }
            if deputyGrants.contains(permission) { holders.insert(.deputy) }
        case .owners: holders = [.owner, .admin]
        case .admins: holders = [.admin]
        case .nobody: holders = []
        }
        if permission == .channelRead || permission == .memberList { holders.formUnion(members) }
        // Leaving without being a member changes nothing.
        if permission == .memberLeave, audience == .members || audience == .membersOnly {
            holders.formUnion([.stranger, .moderator, .admin])
        }
        return holders
    }

    static func isAllowed(_ caller: Subject, _ permissions: [Permission], from before: Audience, to after: Audience) -> Bool {
        switch caller {
        case .admin: return true
        case .owner, .deputy, .guide: break
        case .stranger, .member, .operator, .moderator: return false
        }
        return permissions.allSatisfy { permission in
            let (had, have) = (holders(of: permission, before), holders(of: permission, after))
            let isGiven = !have.subtracting(had).isEmpty
            let lost = had.subtracting(have)
            let isTakenFromAbove = lost.contains { $0 == .admin || $0.rank.map { $0 >= caller.rank ?? 0 } ?? false }
            return !(isGiven && !had.contains(caller)) && !isTakenFromAbove
        }
    }

    private static func world() throws -> CoreWorld {
        let world = try CoreWorld()
        for user in ["guide", "operator", "deputy", "owner", "member", "moderator", "root"] as [UserID] { try world.user(user) }
        try world.perform(PutRole(role: "guide", rank: 10, permissions: Array(guideGrants)), as: "root", role: .admin)
        try world.perform(PutRole(role: "deputy", rank: 60, permissions: Array(deputyGrants)), as: "root", role: .admin)
        try world.channel("room", owner: "owner", members: ["guide", "operator", "deputy", "member", "root"])
        for user in ["guide", "operator", "deputy"] as [UserID] {
            try world.setRole(ChannelRole(rawValue: user.rawValue), of: user, in: "room")
        }
        return world
    }

    /// The rules that a type alone decides, by hand. With `maxMembers`, a number that `publicity` changes, they are all that aren't fields.
    private static let ofTypes: Set<PolicyName> = [
        .create, .updatePolicy, .usersAtCreation, .invitationAudience, .distinct, .allowsEphemeral,
    ]

    @Test("R03 every audience that a channel's policy decides is a field of these tests")
    func everyRule() {
        let decidedByType = PolicyName.allCases.filter { $0.knob.isDecidedByType }
        #expect(Set(decidedByType) == Self.ofTypes)
        let others = PolicyName.allCases.filter {
            $0 == .maxMembers || $0.rawValue.hasPrefix("announces") || [.typingEvents, .readEvents, .deliveryEvents].contains($0)
        }
        let names = Self.fields.map { $0.name } + (Array(Self.ofTypes) + others).map(\.rawValue)
        #expect(names.sorted() == PolicyName.allCases.map(\.rawValue).sorted())
    }

    private static let starts: [Audience] = [.everyone, .members, .operators, .nobody]
    private static let callers: [Subject] = [.member, .guide, .operator, .deputy, .owner, .moderator, .admin]

    @Test("R03 R33 AM-48 changing a field of a channel's policy needs the permissions given, and a rank above those who lose them")
    func updates() throws {
        let world = try Self.world()
        var wrong: [String] = []
        for field in Self.fields {
            for start in Self.starts where field.name != "update" || start != .nobody {
                var reset = UpdateChannel(channel: "room")
                reset.policy = PolicyChanges()
                reset.policy?[keyPath: field.path] = start
                try world.perform(reset, as: "root", role: .admin)
                for target in Audience.allCases {
                    // This can't be undone: only a type could.
                    if field.name == "update", target == .nobody { continue }
                    var update = UpdateChannel(channel: "room")
                    update.policy = PolicyChanges()
                    update.policy?[keyPath: field.path] = target
                    for caller in Self.callers {
                        // Whether a user may update at all is tested separately from the policy that they may set.
                        if field.name == "update", !Self.holders(of: .channelUpdate, start).contains(caller) { continue }
                        let (user, role) = Self.identity(of: caller)
                        let code = try world.code(update, as: user, role: role)
                        let expected: RoostError.Code? =
                            Self.isAllowed(caller, field.permissions, from: start, to: target) ? nil : .notPermitted
                        let found = code == .notMember ? .notPermitted : code
                        if found != expected { wrong.append("\(caller) \(field.name) \(start) → \(target): \(found as Any)") }
                        if code == nil { try world.perform(reset, as: "root", role: .admin) }
                    }
                }
                reset.policy?[keyPath: field.path] = Self.usual(field.name)
                try world.perform(reset, as: "root", role: .admin)
            }
        }
        #expect(wrong.count == 0, "\(wrong.prefix(30).joined(separator: "\n"))")
    }

    @Test("R03 SB-09 a channel may be created with a policy other than its type's if its owner could change it")
    func creation() throws {
        let world = try Self.world()
        var wrong: [String] = []
        for field in Self.fields {
            for start in Self.starts {
                var type = PutChannelType(type: "own", basedOn: .community, policy: PolicyChanges())
                type.policy?[keyPath: field.path] = start
                try world.perform(type, as: "root", role: .admin)
                for target in Audience.allCases {
                    var create = CreateChannel(type: "own")
                    create.policy = PolicyChanges()
                    create.policy?[keyPath: field.path] = target
                    let code = try world.code(create, as: "member")
                    let expected: RoostError.Code? =
                        Self.isAllowed(.owner, field.permissions, from: start, to: target) ? nil : .notPermitted
                    if code != expected { wrong.append("\(field.name) \(start) → \(target): \(code as Any)") }
                }
            }
        }
        #expect(wrong.count == 0, "\(wrong.prefix(30).joined(separator: "\n"))")
    }

    @Test("SB-03 operators and the owner set whether a channel is public; channel.update alone changes neither that nor the policy")
    func publicity() throws {
        let world = try Self.world()
        try world.perform(PutRole(role: "guide", rank: 10, permissions: [.channelUpdate]), as: "root", role: .admin)
        func codes(_ operation: UpdateChannel) throws -> [RoostError.Code?] {
            try [Subject.member, .guide, .moderator, .operator, .owner].map { subject in
                let (user, role) = Self.identity(of: subject)
                return try world.code(operation, as: user, role: role)
            }
        }
        #expect(
            try codes(UpdateChannel(channel: "room").with { $0.isPublic = false }) == [.notPermitted, .notPermitted, nil, nil, nil])
        #expect(
            try codes(UpdateChannel(channel: "room").with { $0.isPublic = true }) == [.notPermitted, .notPermitted, nil, nil, nil])
        let size = UpdateChannel(channel: "room").with { $0.policy = PolicyChanges(maxMembers: 50) }
        #expect(try codes(size) == [.notPermitted, .notPermitted, .notPermitted, .notPermitted, nil])
        #expect(try codes(UpdateChannel(channel: "room", displayName: "x")) == [.notPermitted, nil, nil, nil, nil])
        let refusal = try world.refusal(size, as: "guide")
        #expect(refusal?.rule == "channel.updatePolicy needs a role that grants it")
    }

    @Test("R33 nobody gives a role that grants more than their own, and the app's moderators can't give ownership")
    func roles() throws {
        let world = try Self.world()
        func code(_ role: ChannelRole, by user: UserID, _ appRole: AppRole = .user) throws -> RoostError.Code? {
            try world.code(SetMemberRole(channel: "room", users: ["member"], role: role), as: user, role: appRole)
        }
        // The guide's role ranks below an operator's, and grants what theirs doesn't.
        #expect(try code("guide", by: "operator") == .notPermitted)
        #expect(try code(.owner, by: "moderator", .moderator) == .notPermitted)
        #expect(try code(.owner, by: "deputy") == .notPermitted)
        #expect(try code(.operator, by: "moderator", .moderator) == nil)
        #expect(try code(.member, by: "deputy") == nil)
        #expect(try code("guide", by: "deputy") == nil)
    }

    /// The audience in the type community.
    private static func usual(_ field: String) -> Audience {
        switch field {
        case "discovery", "join": .everyone
        case "leave", "invite", "read", "send": .members
        case "delete": .owners
        default: .operators
        }
    }

    private static func identity(of subject: Subject) -> (UserID, AppRole) {
        switch subject {
        case .moderator: ("moderator", .moderator)
        case .admin: ("root", .admin)
        default: (UserID("\(subject)"), .user)
        }
    }
}
