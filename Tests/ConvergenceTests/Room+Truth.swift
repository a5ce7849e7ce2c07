import RoostAPI
import RoostCore
import RoostTestSupport

/// The state of a user who fetches everything again.
extension Room {
    func allMembers(of channel: ChannelID, as user: UserID) throws -> [Member] {
        try all { try world.perform(ListMembers(channel: channel, limit: 100, cursor: $0), as: user) }.map(\.member)
    }

    func allPending(into channel: ChannelID, as user: UserID) throws -> [Invitation] {
        try all { try world.perform(ListInvitations(channel: channel, limit: 100, cursor: $0), as: user) }
    }

    func all<Item: Codable & Hashable & Sendable>(_ page: (String?) throws -> Page<Item>) throws -> [Item] {
        var items: [Item] = []
        var cursor: String?
        repeat {
            let page = try page(cursor)
            items += page.items
            cursor = page.nextCursor
        } while cursor != nil
        return items
    }

    private func allMessages(of channel: ChannelID, from start: Seq, as user: UserID) throws -> [Message] {
        var messages: [Message] = []
        var place = max(0, start - 1)
        var hasNewer = true
        while hasNewer {
            let page = try world.perform(ListMessages(channel: channel, after: place, limit: 100), as: user)
            messages += page.messages
            place = page.messages.last?.seq ?? place
            hasNewer = page.hasNewer
        }
        return messages
    }

    /// The state of a user who fetches everything now, with the messages of each channel from where another one's window starts.
    private func fetched(as user: UserID, from starts: [ChannelID: Seq], deleted: Set<ChannelID>) throws -> View {
        var view = View()
        let channels = try all { try world.perform(QueryChannels(hidden: .all, limit: 100, cursor: $0), as: user) }
        for shown in channels {
            let id = shown.channel.channelId
            view.add(
                shown.channel, capabilities: shown.ownCapabilities,
                unread: try world.perform(GetUnread(channel: id), as: user).unreadCount, hidden: shown.hiddenState,
                messages: try allMessages(of: id, from: starts[id] ?? 0, as: user),
                members: try allMembers(of: id, as: user), pending: try allPending(into: id, as: user))
        }
        let own = try world.perform(GetMyChanges(after: 0, limit: 1000), as: user)
        view.add(
            profile: try world.perform(GetMe(), as: user), preferences: try world.perform(GetPreferences(), as: user), seq: own.seq,
            total: try world.perform(GetTotalUnread(), as: user),
            memberships: (own.rows.memberships ?? []).filter { !deleted.contains($0.channelId) },
            invitations: own.rows.invitations ?? [],
            drafts: try all { try world.perform(ListDrafts(limit: 100, cursor: $0), as: user) })
        view.add("leaked", [String]())
        return view
    }

    /// Where clients differ from a fetch, except for expected differences. Each line begins with the number of its seat.
    func differences(of indices: some Sequence<Int>, except isExpected: (String) -> Bool = { _ in false }) throws -> [String] {
        let deleted = Set(
            try world.rows("SELECT channel_id FROM channels WHERE deleted_at IS NOT NULL") { $0.identifier(ChannelID.self) })
        // Devices of one user that hold as much of the history are compared with one fetch.
        var truths: [Window: View] = [:]
        func compare(
            _ held: View, of user: UserID, from starts: [ChannelID: Seq], except isLeftOut: (String) -> Bool
        ) throws -> [String] {
            let window = Window(user: user, starts: starts)
            var (held, truth) = (held, try truths[window] ?? fetched(as: user, from: starts, deleted: deleted))
            truths[window] = truth
            held.forget(isLeftOut)
            truth.forget(isLeftOut)
            return held.differences(from: truth)
        }
        return try indices.flatMap { index in
            let client = seats[index].client
            let user = client.user
            var found = try compare(
                client.view(deleted: deleted), of: user, from: client.channels.mapValues(\.windowStart), except: isExpected
            ).map { "\(index) \(user): \($0)" }
            found += try readerDifferences(of: index, except: isExpected).map { "\(index) \(user): \($0)" }
            guard let device = seats[index].device else { return found }
            found += try compare(device.view(deleted: deleted), of: user, from: device.windowStarts) { fact in
                isExpected(fact) || Device.isPartOfCache(fact)
            }.map { "\(index) \(user)'s device: \($0)" }
            return found
        }
    }

    private struct Window: Hashable {
        var user: UserID
        var starts: [ChannelID: Seq]
    }
}
