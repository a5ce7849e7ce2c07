import Roost
import RoostAPI

/// Channels in readable form. Text by others is made safe for a terminal.
enum ChannelText {
    /// A list in columns.
    static func table(_ views: [ChannelView], _ names: UserNames) -> [String] {
        let rows = views.map { view in
            [
                view.channel.channelId.rawValue.safe(), view.channel.type.rawValue, "\(view.channel.counters.memberCount)",
                "\(view.unreadCount)", lastMessage(of: view, names), view.channel.displayName?.safe() ?? "-",
                states(of: view).joined(separator: ", "),
            ]
        }
        return Output.table([["channel", "type", "members", "unread", "last message", "name", "state"]] + rows)
    }

    private static func lastMessage(of view: ChannelView, _ names: UserNames) -> String {
        guard let moment = view.channel.counters.lastMessageAt.map({ MessageTime.moment(of: $0.date) }) else { return "-" }
        return moment + (view.lastMessage.map { " by \(names.name(of: $0.sender))" } ?? "")
    }

    /// One channel, an attribute on each line.
    static func details(_ view: ChannelView) -> [String] {
        var rows = attributes(view.channel)
        if let membership = view.membership, membership.state == .member {
            rows.append(("you are", membership.role.rawValue))
            rows.append(("unread", "\(view.unreadCount)"))
        } else {
            rows.append(("you are", view.invitation == nil ? "not a member" : "invited"))
        }
        return lines(rows, states(of: view))
    }

    static func details(_ channel: Channel) -> [String] { lines(attributes(channel), states(of: channel)) }

    /// Returns a channel's unusual states, in words.
    private static func states(of view: ChannelView) -> [String] {
        var states = states(of: view.channel)
        switch view.hiddenState {
        case .unhidden: break
        case .hiddenAllowAutoUnhide, .unknown: states.append("hidden")
        case .hiddenPreventAutoUnhide: states.append("archived")
        }
        if let membership = view.membership, membership.isNotificationsMuted {
            states.append("muted for you \(end(membership.notificationsMutedUntil))")
        }
        return states
    }

    private static func states(of channel: Channel) -> [String] {
        var states: [String] = []
        if channel.deletedAt != nil { states.append("deleted") }
        if channel.isFrozen { states.append("frozen") }
        if channel.isMuted { states.append("silenced \(end(channel.mutedUntil))") }
        if channel.isRateLimited { states.append("rate-limited \(end(channel.rateLimitedUntil))") }
        if channel.isEphemeral { states.append("ephemeral") }
        if channel.isDistinct { states.append("distinct") }
        return states
    }

    private static func end(_ until: Timestamp?) -> String {
        guard let until, until != .forever else { return "forever" }
        return "until \(MessageTime.moment(of: until.date))"
    }

    private static func attributes(_ channel: Channel) -> [(String, String)] {
        var rows = [("channel", channel.channelId.rawValue.safe()), ("type", channel.type.rawValue)]
        rows.append(("name", channel.displayName?.safe() ?? "-"))
        rows.append(("public", channel.isPublic ? "yes" : "no"))
        rows.append(("members", "\(channel.counters.memberCount)"))
        rows.append(("messages", "\(channel.counters.messageCount)"))
        rows.append(("last message", channel.counters.lastMessageAt.map { MessageTime.moment(of: $0.date) } ?? "-"))
        rows.append(
            (
                "created",
                MessageTime.moment(of: channel.createdAt.date) + (channel.createdBy.map { " by \($0.rawValue.safe())" } ?? "")
            ))
        if let customType = channel.customType { rows.append(("custom type", customType.safe())) }
        if let cover = channel.coverUrl { rows.append(("cover", cover.safe())) }
        if !channel.tags.isEmpty { rows.append(("tags", channel.tags.map { $0.safe() }.joined(separator: ", "))) }
        if let metadata = channel.metadata {
            rows.append(("metadata", "\(metadata.sizeBytes) bytes, version \(channel.metadataVersion)"))
        }
        return rows
    }

    private static func lines(_ rows: [(String, String)], _ states: [String]) -> [String] {
        let all = rows + (states.isEmpty ? [] : [("state", states.joined(separator: ", "))])
        return Output.table(all.map { [$0.0, $0.1] })
    }

    /// Returns every type with the parts of its policy about joining and writing.
    static func types(_ policies: [ChannelPolicy]) -> [String] {
        let rows = policies.map { policy in
            [
                policy.type.rawValue, policy.create.rawValue, policy.discovery.rawValue, policy.join.rawValue,
                policy.invite.rawValue,
                policy.read.rawValue, policy.send.rawValue, policy.moderate.rawValue, "\(policy.maxMembers)",
            ]
        }
        return Output.table([["type", "create", "find", "join", "invite", "read", "send", "moderate", "max members"]] + rows)
    }
}
