import RoostAPI
import RoostCore
import RoostTestSupport

/// The fields of channels, members and invitations that have a limit (§8.7).
extension LimitTests {
    static let memberCases: [Case] = [
        Case("channel.create data", Limits.channelDataLength) { n, _ in CreateChannel().with { $0.data = text(n) } },
        Case("channel.create customType", Limits.customTypeLength) { n, _ in CreateChannel().with { $0.customType = text(n) } },
        Case("channel.create coverUrl", Limits.coverURLLength) { n, _ in CreateChannel().with { $0.coverUrl = url(n) } },
        Case("channel.create operators", Limits.membersPerCall) { n, _ in CreateChannel().with { $0.operators = users(n) } },
        Case("channel.create idempotencyKey", Limits.identifierLength) { n, _ in
            CreateChannel().with { $0.idempotencyKey = text(n) }
        },
        Case("channel.create maxMembers", Limits.membersPerChannel) { n, _ in
            CreateChannel().with { $0.policy = PolicyChanges(maxMembers: n) }
        },
        Case("channel.update data", Limits.channelDataLength) { n, _ in
            UpdateChannel(channel: "general").with { $0.data = text(n) }
        },
        Case("channel.update customType", Limits.customTypeLength) { n, _ in
            UpdateChannel(channel: "general").with { $0.customType = text(n) }
        },
        Case("channel.update coverUrl", Limits.coverURLLength) { n, _ in
            UpdateChannel(channel: "general").with { $0.coverUrl = url(n) }
        },
        Case("channel.update maxMembers", Limits.membersPerChannel) { n, _ in
            UpdateChannel(channel: "general").with { $0.policy = PolicyChanges(maxMembers: n) }
        },
        Case("channel.silence seconds", Limits.durationSeconds) { n, _ in SilenceChannel(channel: "general", seconds: n) },
        Case("channel.setRateLimit messages", Limits.rateLimitMessages) { n, _ in
            SetRateLimit(channel: "general", messages: n, windowSeconds: 1)
        },
        Case("channel.setRateLimit windowSeconds", Limits.rateLimitWindowSeconds) { n, _ in
            SetRateLimit(channel: "general", messages: 1, windowSeconds: n)
        },
        Case("type.put type", Limits.typeNameLength) { n, _ in PutChannelType(type: ChannelType(rawValue: text(n))) },
        Case("role.put role", Limits.typeNameLength) { n, _ in
            PutRole(role: ChannelRole(rawValue: text(n)), rank: 1, permissions: [])
        },
        Case("member.add users", Limits.membersPerCall) { n, _ in AddMembers(channel: "general", users: users(n)) },
        Case("member.remove users", Limits.membersPerCall) { n, _ in RemoveMembers(channel: "general", users: users(n)) },
        Case("member.setRole users", Limits.membersPerCall) { n, _ in
            SetMemberRole(channel: "general", users: users(n), role: .operator)
        },
        Case("invitation.send users", Limits.membersPerCall) { n, _ in InviteMembers(channel: "general", users: users(n)) },
        Case("invitation.send welcome", Limits.welcomeLength) { n, _ in
            InviteMembers(channel: "general", users: ["u1"], welcome: text(n))
        },
        Case("invitation.withdraw users", Limits.membersPerCall) { n, _ in
            WithdrawInvitations(channel: "general", users: users(n))
        },
        Case("invitation.list limit", Limits.memberPage.max) { n, _ in ListInvitations(channel: "general", limit: n) },
        Case("invitation.mine limit", Limits.memberPage.max) { n, _ in ListMyInvitations(limit: n) },
    ]

    static let queryCases: [Case] = [
        Case("channel.query limit", Limits.channelPage.max) { n, _ in QueryChannels(limit: n) },
        Case("channel.query types", Limits.filterValues) { n, _ in
            QueryChannels(types: (0..<n).map { ChannelType(rawValue: "t\($0)") })
        },
        Case("channel.query ids", Limits.usersPerCall) { n, _ in
            QueryChannels().with { $0.ids = (0..<n).map { ChannelID("c\($0)") } }
        },
        Case("channel.query includingTags", Limits.filterValues) { n, _ in QueryChannels(includingTags: tags(n)) },
        Case("channel.query excludingTags", Limits.filterValues) { n, _ in QueryChannels(excludingTags: tags(n)) },
        Case("channel.query customTypes", Limits.filterValues) { n, _ in QueryChannels().with { $0.customTypes = tags(n) } },
        Case("channel.query nameContains", Limits.displayNameLength) { n, _ in QueryChannels().with { $0.nameContains = text(n) }
        },
        Case("channel.query exactUsers", Limits.usersPerCall) { n, _ in QueryChannels().with { $0.exactUsers = users(n) } },
        Case("channel.query includingUsers", Limits.usersPerCall) { n, _ in
            QueryChannels().with { $0.includingUsers = users(n) }
        },
        Case("member.list roles", Limits.rolesPerQuery) { n, _ in
            ListMembers(channel: "general", roles: (0..<n).map { ChannelRole(rawValue: "r\($0)") })
        },
        Case("member.search text", Limits.displayNameLength) { n, _ in SearchMembers(channel: "general", text: text(n)) },
        Case("member.search limit", Limits.memberPage.max) { n, _ in SearchMembers(channel: "general", text: "x", limit: n) },
    ]

    private static func url(_ count: Int) -> String { "https://" + text(count - 8) }
}
