import Foundation
import RoostAPI
import RoostTestSupport

/// Everything that a user can see, each fact as its bytes on the wire: a client's state is compared with a fetch.
struct View: Sendable {
    private(set) var facts: [String: String] = [:]

    mutating func add(_ name: String, _ value: some Encodable) {
        let bytes = try? JSONWriter.bytes(of: [value])
        facts[name] = bytes.map { String(decoding: $0, as: UTF8.self) } ?? "\(value)"
    }

    mutating func add(_ name: String, of channel: ChannelID, _ value: some Encodable) { add("\(channel): \(name)", value) }

    /// Removes facts that differ for a reason known to the test.
    mutating func forget(_ isForgotten: (String) -> Bool) { facts = facts.filter { !isForgotten($0.key) } }

    /// Where two views differ, for the text of a failure.
    func differences(from other: View) -> [String] {
        Set(facts.keys).union(other.facts.keys).sorted().compactMap { name in
            let (own, theirs) = (facts[name], other.facts[name])
            // Swift regards texts with different code points as equal.
            if let own, let theirs, Data(own.utf8) == Data(theirs.utf8) { return nil }
            return "\(name): \(own ?? "missing") != \(theirs ?? "nothing")"
        }
    }
}

extension View {
    /// Adds the facts that concern only the user.
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
        // Nothing of an ephemeral channel is stored, so each client holds the messages that it happened to receive.
        add("messages", of: id, channel.isEphemeral ? [] : messages.sorted { $0.seq < $1.seq })
        add("members", of: id, members.sorted { $0.userId < $1.userId })
        // If members aren't notified of invitations, each knows only those that concern them.
        let shown = channel.invitationAudience == .members ? pending : []
        add("pending", of: id, shown.sorted { ($0.userId, $0.inviter) < ($1.userId, $1.inviter) })
    }
}

extension Channel {
    /// The audience of invitations into the channel; only for the built-in types.
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
