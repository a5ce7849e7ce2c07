import Foundation
import RoostAPI
import RoostTestSupport

/// All that a user can see, each fact as the bytes that it has on the wire: what a client holds is compared with what a fetch gives.
struct View: Sendable {
    private(set) var facts: [String: String] = [:]

    mutating func add(_ name: String, _ value: some Encodable) {
        let bytes = try? JSONWriter.bytes(of: [value])
        facts[name] = bytes.map { String(decoding: $0, as: UTF8.self) } ?? "\(value)"
    }

    mutating func add(_ name: String, of channel: ChannelID, _ value: some Encodable) { add("\(channel): \(name)", value) }

    /// Facts that are as they are for a reason that a test knows.
    mutating func forget(_ isForgotten: (String) -> Bool) { facts = facts.filter { !isForgotten($0.key) } }

    /// Where two views differ, for the text of a failure.
    func differences(from other: View) -> [String] {
        Set(facts.keys).union(other.facts.keys).sorted().compactMap { name in
            let (own, theirs) = (facts[name], other.facts[name])
            // Swift takes texts for equal that are written with other code points.
            if let own, let theirs, Data(own.utf8) == Data(theirs.utf8) { return nil }
            return "\(name): \(own ?? "missing") != \(theirs ?? "nothing")"
        }
    }
}

extension View {
    /// What concerns the user alone.
    mutating func add(
        profile: User?, preferences: Preferences?, seq: Seq, total: TotalUnread, memberships: [Membership],
        invitations: [Invitation], drafts: [ChannelDraft]
    ) {
        add("profile", profile)
        add("preferences", preferences)
        add("seq", seq)
        add("total", total)
        for membership in memberships { add("membership", of: membership.channelId, membership.comparable) }
        for invitation in invitations {
            add("invitation of \(invitation.userId) by \(invitation.inviter)", of: invitation.channelId, invitation)
        }
        for draft in drafts where !draft.isRemoved { add("draft", of: draft.channelId, draft) }
    }

    /// A channel that the user is a member of.
    mutating func add(
        _ channel: Channel, capabilities: [Permission], unread: Int, hidden: HiddenState, messages: [Message], members: [Member],
        pending: [Invitation]
    ) {
        let id = channel.channelId
        add("channel", of: id, channel)
        add("capabilities", of: id, capabilities)
        add("unread", of: id, unread)
        add("hidden", of: id, hidden.rawValue)
        // Nothing of an ephemeral channel is kept, so that each client holds what it happened to hear.
        add("messages", of: id, channel.isEphemeral ? [] : messages.sorted { $0.seq < $1.seq })
        add("members", of: id, members.sorted { $0.userId < $1.userId })
        // Where members don't hear of invitations, each knows of those that concern them alone.
        let shown = channel.invitationAudience == .members ? pending : []
        add("pending", of: id, shown.sorted { ($0.userId, $0.inviter) < ($1.userId, $1.inviter) })
    }
}

extension Channel {
    /// Who hears of invitations into the channel; only for the built-in types.
    var invitationAudience: ChannelPolicy.InvitationAudience? {
        policy?.invitationAudience ?? ChannelPolicy.preset(type)?.invitationAudience
    }
}

extension TotalUnread {
    /// Adds a channel with something unread.
    mutating func add(_ unread: Int) {
        unreadCount += unread
        unreadChannelCount += 1
    }
}

extension ReferenceClient {
    /// - Parameter deleted: Channels whose end isn't sent with the memberships.
    func view(deleted: Set<ChannelID>) -> View {
        var view = View()
        var total = TotalUnread(unreadCount: 0, unreadChannelCount: 0)
        for (id, held) in channels {
            guard let membership = memberships[id] else { continue }
            let unread = Unread.count(in: held.channel.counters, for: membership)
            if !membership.isNotificationsMuted, unread > 0 { total.add(unread) }
            view.add(
                held.channel, capabilities: held.capabilities.now(as: membership.role), unread: unread,
                hidden: membership.visibility(in: held.channel.counters), messages: Array(held.messages.values),
                members: (held.members ?? [:]).values.filter { $0.state == .member },
                pending: invitations.values.filter { $0.channelId == id && $0.state == .pending })
        }
        view.add(
            profile: profile, preferences: preferences, seq: seq, total: total,
            memberships: memberships.values.filter { !deleted.contains($0.channelId) },
            invitations: invitations.values.filter { $0.userId == user || $0.inviter == user },
            drafts: drafts.values.filter { !deleted.contains($0.channelId) })
        view.add("leaked", leaked)
        return view
    }
}
