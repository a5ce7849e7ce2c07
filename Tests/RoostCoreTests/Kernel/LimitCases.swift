import RoostAPI
import RoostCore
import RoostTestSupport

/// The fields of channels, members and invitations that have a limit (§8.7).
extension LimitTests {
    static let memberCases: [LimitedField] = [
        LimitedField("channel.create data", Limits.channelDataLength) { n, _ in CreateChannel().with { $0.data = text(n) } },
        LimitedField("channel.create customType", Limits.customTypeLength) { n, _ in
            CreateChannel().with { $0.customType = text(n) }
        },
        LimitedField("channel.create coverUrl", Limits.coverURLLength) { n, _ in CreateChannel().with { $0.coverUrl = url(n) } },
        LimitedField("channel.create operators", Limits.membersPerCall) { n, _ in CreateChannel().with { $0.operators = users(n) }
        },
        LimitedField("channel.create idempotencyKey", Limits.identifierLength) { n, _ in
            CreateChannel().with { $0.idempotencyKey = text(n) }
        },
        LimitedField("channel.create maxMembers", Limits.membersPerChannel) { n, _ in
            CreateChannel().with { $0.policy = PolicyChanges(maxMembers: n) }
        },
        LimitedField("channel.update data", Limits.channelDataLength) { n, _ in
            UpdateChannel(channel: "general").with { $0.data = text(n) }
        },
        LimitedField("channel.update customType", Limits.customTypeLength) { n, _ in
            UpdateChannel(channel: "general").with { $0.customType = text(n) }
        },
        LimitedField("channel.update coverUrl", Limits.coverURLLength) { n, _ in
            UpdateChannel(channel: "general").with { $0.coverUrl = url(n) }
        },
        LimitedField("channel.update maxMembers", Limits.membersPerChannel) { n, _ in
            UpdateChannel(channel: "general").with { $0.policy = PolicyChanges(maxMembers: n) }
        },
        LimitedField("channel.silence seconds", Limits.durationSeconds) { n, _ in SilenceChannel(channel: "general", seconds: n) },
        LimitedField("channel.setRateLimit messages", Limits.rateLimitMessages) { n, _ in
            SetRateLimit(channel: "general", messages: n, windowSeconds: 1)
        },
        LimitedField("channel.setRateLimit windowSeconds", Limits.rateLimitWindowSeconds) { n, _ in
            SetRateLimit(channel: "general", messages: 1, windowSeconds: n)
        },
        LimitedField("type.put type", Limits.typeNameLength) { n, _ in PutChannelType(type: ChannelType(rawValue: text(n))) },
        LimitedField("role.put role", Limits.typeNameLength) { n, _ in
            PutRole(role: ChannelRole(rawValue: text(n)), rank: 1, permissions: [])
        },
        LimitedField("member.add users", Limits.membersPerCall) { n, _ in AddMembers(channel: "general", users: users(n)) },
        LimitedField("member.remove users", Limits.membersPerCall) { n, _ in RemoveMembers(channel: "general", users: users(n)) },
        LimitedField("member.setRole users", Limits.membersPerCall) { n, _ in
            SetMemberRole(channel: "general", users: users(n), role: .operator)
        },
        LimitedField("invitation.send users", Limits.membersPerCall) { n, _ in InviteMembers(channel: "general", users: users(n)) },
        LimitedField("invitation.send welcome", Limits.welcomeLength) { n, _ in
            InviteMembers(channel: "general", users: ["u1"], welcome: text(n))
        },
        LimitedField("invitation.withdraw users", Limits.membersPerCall) { n, _ in
            WithdrawInvitations(channel: "general", users: users(n))
        },
        LimitedField("invitation.list limit", Limits.memberPage.max) { n, _ in ListInvitations(channel: "general", limit: n) },
        LimitedField("invitation.mine limit", Limits.memberPage.max) { n, _ in ListMyInvitations(limit: n) },
    ]

    static let queryCases: [LimitedField] = [
        LimitedField("channel.query limit", Limits.channelPage.max) { n, _ in QueryChannels(limit: n) },
        LimitedField("channel.query types", Limits.filterValues) { n, _ in
            QueryChannels(types: (0..<n).map { ChannelType(rawValue: "t\($0)") })
        },
        LimitedField("channel.query ids", Limits.usersPerCall) { n, _ in
            QueryChannels().with { $0.ids = (0..<n).map { ChannelID("c\($0)") } }
        },
        LimitedField("channel.query includingTags", Limits.filterValues) { n, _ in QueryChannels(includingTags: tags(n)) },
        LimitedField("channel.query excludingTags", Limits.filterValues) { n, _ in QueryChannels(excludingTags: tags(n)) },
        LimitedField("channel.query customTypes", Limits.filterValues) { n, _ in QueryChannels().with { $0.customTypes = tags(n) }
        },
        LimitedField("channel.query nameContains", Limits.displayNameLength) { n, _ in
            QueryChannels().with { $0.nameContains = text(n) }
        },
        LimitedField("channel.query exactUsers", Limits.usersPerCall) { n, _ in QueryChannels().with { $0.exactUsers = users(n) } },
        LimitedField("channel.query includingUsers", Limits.usersPerCall) { n, _ in
            QueryChannels().with { $0.includingUsers = users(n) }
        },
        LimitedField("member.list roles", Limits.rolesPerQuery) { n, _ in
            ListMembers(channel: "general", roles: (0..<n).map { ChannelRole(rawValue: "r\($0)") })
        },
        LimitedField("member.search roles", Limits.rolesPerQuery) { n, _ in
            SearchMembers(channel: "general", text: "x", roles: (0..<n).map { ChannelRole(rawValue: "r\($0)") })
        },
        LimitedField("member.search text", Limits.displayNameLength) { n, _ in SearchMembers(channel: "general", text: text(n)) },
        LimitedField("member.search limit", Limits.memberPage.max) { n, _ in SearchMembers(channel: "general", text: "x", limit: n)
        },
    ]

    private static func url(_ count: Int) -> String { "https://" + text(count - 8) }
}
