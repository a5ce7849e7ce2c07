import RoostAPI
import RoostTestSupport

@testable import Roost
@testable import RoostClientModel

/// What clients hold and show.
extension Checker {
    /// A client's store after a transaction that touched these channels.
    ///
    /// - Parameter isExact: Whether the network delivered every event, so each moment has to be exact. If it dropped some, only the
    ///   state at rest has to be.
    mutating func stored(_ store: MemoryStore, by client: String, touching channels: Set<ChannelID>, isExact: Bool) {
        for channel in channels.sorted() {
            checkWindow(of: channel, in: store, client)
            if isExact { checkUnread(of: channel, in: store, client) }
            checkReading(of: channel, in: store, client)
        }
    }

    /// The cached messages are those of the stream from the beginning of the window up to the position, each at least as new as there.
    private mutating func checkWindow(of channel: ChannelID, in store: MemoryStore, _ client: String) {
        let held = store.messages[channel] ?? [:]
        guard let position = store.saved.channels[channel] else {
            if !held.isEmpty { fail("I9", "\(client) has messages of \(channel), which it doesn't follow") }
            return
        }
        if position.cursor > heads[.channel(channel)] ?? 0 { fail("I3", "\(client) is ahead of \(channel)") }
        let expected = (births[channel] ?? []).filter { position.holds($0.seq) && $0.seq <= position.cursor }
        for (seq, _) in expected {
            guard let message = held[seq] else {
                fail("I3", "\(client) lacks \(channel) \(seq) between \(position.windowStart) and \(position.cursor)")
                continue
            }
            let known = versions[channel]?[seq] ?? []
            if !known.contains(where: { message.isAsSeen(of: $0) }) {
                fail("I3", "\(client) has \(channel) \(seq) with content it never had")
            }
            if store.deletions[channel]?[seq] != nil, !message.isDeletedForMe {
                fail("I3", "\(client) shows \(channel) \(seq), which its user has deleted for themselves")
            }
            let newest = known.last { $0.changeSeq <= position.cursor }
            if let newest, message.changeSeq < newest.changeSeq {
                fail("I3", "\(client) at \(position.cursor) has \(channel) \(seq)/\(message.changeSeq), not \(newest.changeSeq)")
            }
        }
        if held.count > expected.count {
            fail("I3", "\(client) has more messages of \(channel) than its window up to its position allows")
        }
    }

    /// The definition: messages of others after the read position.
    private mutating func checkUnread(of channel: ChannelID, in store: MemoryStore, _ client: String) {
        guard store.saved.channels[channel] != nil, let counters = store.channels[channel]?.counters,
            let membership = store.memberships[channel], membership.state == .member, let unread = store.unread(in: channel)
        else { return }
        let defined = (births[channel] ?? []).filter {
            $0.seq > membership.readSeq && $0.seq <= counters.seq && $0.sender != store.user
        }.count
        if unread != defined {
            fail(
                "I7",
                "\(client) has \(unread) unread in \(channel) at \(counters.seq), read to \(membership.readSeq); the correct count is \(defined)"
            )
        }
    }

    private mutating func checkReading(of channel: ChannelID, in store: MemoryStore, _ client: String) {
        let membership = store.memberships[channel]
        defer { memberships[client, default: [:]][channel] = membership }
        guard let before = memberships[client]?[channel], let membership, before.joinedAt == membership.joinedAt else { return }
        let unmarked = unmarks[store.user]?[channel]?.contains { $0 > before.userSeq && $0 <= membership.userSeq } ?? false
        if !unmarked, membership.readSeq < before.readSeq || membership.readCount < before.readCount {
            fail("I8", "\(client)'s read position in \(channel) goes back from \(before.readSeq) to \(membership.readSeq)")
        }
    }

    /// A list of a channel's messages as the client shows it now.
    ///
    /// - Parameter isRenewed: Whether the list started over: the channel was left, or fetched again.
    mutating func showed(_ names: Set<Name>, of channel: ChannelID, on client: String, isRenewed: Bool) {
        if !isRenewed {
            for name in (shown[client]?[channel] ?? []).subtracting(names).subtracting(discarded) {
                fail("I6", "\(client) showed \(name) and no longer does")
            }
        }
        shown[client, default: [:]][channel] = names
    }

    /// A client at rest next to a fresh one of the same user.
    mutating func atRest(_ store: MemoryStore, beside fresh: MemoryStore, _ client: String) {
        func differ(_ what: String, _ ours: some Equatable, _ theirs: some Equatable) {
            fail("I5", "\(client) differs in \(what): it has \(ours), a fresh client \(theirs)")
        }
        if store.saved.userCursor != fresh.saved.userCursor {
            differ("its own position", store.saved.userCursor, fresh.saved.userCursor)
        }
        if store.users[store.user] != fresh.users[store.user] {
            differ("its profile", store.users[store.user], fresh.users[store.user])
        }
        if !store.overlays.isEmpty { fail("I5", "\(client) still shows \(store.overlays) after everything has settled") }
        if store.preferences != fresh.preferences { differ("its preferences", store.preferences, fresh.preferences) }
        func isShown(_ draft: ChannelDraft) -> Bool { !draft.isRemoved && !deleted.contains(draft.channelId) }
        let (drafts, freshDrafts) = (store.drafts.filter { isShown($0.value) }, fresh.drafts.filter { isShown($0.value) })
        if drafts != freshDrafts { differ("its drafts", drafts, freshDrafts) }
        if store.ownInvitations != fresh.ownInvitations {
            differ("its invitations", store.ownInvitations, fresh.ownInvitations)
        }
        if store.joined != fresh.joined { differ("its channels", store.joined, fresh.joined) }
        for channel in fresh.joined where store.joined.contains(channel) {
            let (ours, theirs) = (store.channels[channel], fresh.channels[channel])
            if ours != theirs { differ("\(channel)", ours, theirs) }
            if store.memberships[channel]?.comparable != fresh.memberships[channel]?.comparable {
                differ("its membership of \(channel)", store.memberships[channel], fresh.memberships[channel])
            }
            let (window, freshWindow) = (store.saved.channels[channel], fresh.saved.channels[channel])
            if window?.cursor != freshWindow?.cursor { differ("its position in \(channel)", window?.cursor, freshWindow?.cursor) }
            let start = max(window?.windowStart ?? 0, freshWindow?.windowStart ?? 0)
            let common = store.messages[channel]?.filter { $0.key >= start } ?? [:]
            let freshCommon = fresh.messages[channel]?.filter { $0.key >= start } ?? [:]
            if common != freshCommon { differ("messages of \(channel)", common.keys.sorted(), freshCommon.keys.sorted()) }
        }
        for (channel, membership) in fresh.memberships where membership.state == .none && store.channels[channel]?.deletedAt == nil
        {
            // A client that never learnt of an ended membership has nothing to forget.
            guard let ours = store.memberships[channel], ours.comparable != membership.comparable else { continue }
            differ("its past membership of \(channel)", ours, membership)
        }
    }

    /// Compares the members and unread counts of a client at rest with the server's.
    mutating func atRest(_ store: MemoryStore, in channel: ChannelID, members: [Member], unread: Int, _ client: String) {
        let rows = Dictionary(uniqueKeysWithValues: members.map { ($0.userId, $0) })
        for (user, member) in store.members[channel] ?? [:] where rows[user] != member {
            fail("I5", "\(client) has \(user) in \(channel) as \(member), the server as \(String(describing: rows[user]))")
        }
        if store.unread(in: channel) != unread {
            fail("I7", "\(client) has \(store.unread(in: channel) ?? -1) unread in \(channel), the server \(unread)")
        }
    }
}
