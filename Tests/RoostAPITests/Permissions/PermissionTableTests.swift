import Foundation
import RoostAPI
import Testing

@Suite("The table of permissions")
struct PermissionTableTests {
    @Test("the table of docs/protocol.md is the table of permissions")
    func documented() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/protocol.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "\n### Permissions\n").dropFirst().first)
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("| `") }.prefix(Permission.allCases.count)
        #expect(rows.map(String.init) == Permission.allCases.map(Self.line))
    }

    private static func line(of permission: Permission) -> String {
        let row = permission.row
        let who =
            switch row.rule {
            case .anyone: "anyone"
            case .admins: "admins"
            case .creators: "`create` of the type"
            case .policy(let audience): "`\("\(audience)".split(separator: ".").last ?? "")`"
            case .always(let audience): audience.rawValue
            case .membership: "members themselves"
            case .invitation: "the invited"
            }
        let role =
            switch row.grantedBy {
            case .none: ""
            case .operator: "operator"
            case .owner: "owner"
            }
        func yes(_ flag: Bool) -> String { flag ? "yes" : "" }
        let cells = ["`\(permission.rawValue)`", who, yes(row.whenDeleted), yes(row.forGuests), yes(!row.whileFrozen), role]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    @Test("R33 the owner's role grants whatever a role can grant, the operator's all of it but changing the policy")
    func builtIn() throws {
        let owner = try #require(RoleDefinition.builtIn(.owner))
        let `operator` = try #require(RoleDefinition.builtIn(.operator))
        #expect(owner.permissions == Permission.grantable)
        #expect(Set(owner.permissions).subtracting(`operator`.permissions) == [.channelUpdatePolicy])
        #expect(RoleDefinition.builtIn(.member)?.permissions == [])
        // Permissions that a role can grant concern a channel, and are ones that a policy can leave to operators.
        #expect(Permission.grantable.filter { !Permission.ofChannel.contains($0) } == [])
        for permission in Permission.grantable {
            guard case .policy = permission.row.rule else {
                Issue.record("\(permission.rawValue) isn't decided by a policy")
                continue
            }
        }
    }

    @Test("permissions that concern no channel are blocked by no channel's state, and granted by no role")
    func apart() {
        let apart = Permission.allCases.filter { !$0.row.concernsChannel }
        #expect(
            apart == [
                .configRead, .configManage, .effectManage, .userRead, .userUpdateMe, .userManage, .streamRead, .channelCreate,
            ])
        #expect(apart.allSatisfy { $0.row.whileFrozen && $0.row.grantedBy == .none && $0.row.traits == [] })
    }
}
