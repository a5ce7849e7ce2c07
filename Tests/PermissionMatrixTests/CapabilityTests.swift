import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// The capabilities that the server sends match what its operations then do.
@Suite("Capabilities")
struct CapabilityTests {
    @Test("AM-48 R33 every channel permission that an operation names is refused by its name in some case")
    func everyPermissionDecides() throws {
        var named: Set<Permission> = []
        for kind in [Kind.group, .conversation] {
            let matrix = try MatrixWorld(kind)
            let inKind: [Permission] = try matrix.trying { attempts in
                try Rows.inChannels.flatMap { row in
                    // A member lacks what the role or the kind doesn't grant, a guest everything but reading.
                    try [(Relation.member, AppRole.user), (.member, .guest), (.banned, .user)].flatMap { relation, role in
                        let operation = row.make(matrix.fixture(relation, .active))
                        let refusal = try attempts.refusal(of: operation, as: relation.user, role)
                        return row.permissions.filter { refusal?.rule?.isOf($0) ?? false }
                    }
                }
            }
            named.formUnion(inKind)
        }
        let ofOperations = Set(Operations.all.map { $0.permission }).intersection(Permission.ofChannel)
        #expect(ofOperations.subtracting(named) == [])
    }

    @Test("AM-48 R33 a user's own capabilities are exactly what explain allows", arguments: Kind.all)
    func capabilitiesAreExplained(kind: Kind) throws {
        let matrix = try MatrixWorld(kind)
        let wrong = try matrix.trying { attempts in
            var wrong: [String] = []
            for state in ChannelState.allCases {
                for relation in kind.relations {
                    for role in AppRole.allCases {
                        let channel = MatrixWorld.channel(in: state)
                        let view = try attempts.result(of: GetChannel(channel: channel), as: relation.user, role)
                        guard case .success(let view) = view else { continue }
                        let allowed = try Permission.ofChannel.filter { permission in
                            let explain = ExplainPermission(channel: channel, permission: permission)
                            return try attempts.result(of: explain, as: relation.user, role).foretold == nil
                        }
                        if view.ownCapabilities != allowed {
                            let differing = Set(view.ownCapabilities).symmetricDifference(allowed).map(\.rawValue).sorted()
                            wrong.append("\(relation) \(role) in \(state) \(kind.name): \(differing)")
                        }
                    }
                }
            }
            return wrong
        }
        #expect(wrong == [])
    }
}

extension Result<PermissionExplanation, RoostError> {
    /// The predicted refusal of an operation.
    var foretold: RoostError? {
        switch self {
        case .success(let explanation): explanation.refusal
        case .failure(let error): error
        }
    }
}

extension Row {
    /// Whether a refusal begins with the name of a permission that the operation checks. Things that don't exist have no rule, and a member
    /// has no invitation to decline whatever the rules are.
    func names(_ refusal: RoostError) -> Bool {
        guard let rule = refusal.rule else { return refusal.code == .notFound || right == .decline }
        return permissions.contains { rule.isOf($0) }
    }
}

extension String {
    /// Whether the text is a rule of a permission.
    fileprivate func isOf(_ permission: Permission) -> Bool {
        hasPrefix("\(permission.rawValue) ") || hasPrefix("\(permission.rawValue):")
    }
}
