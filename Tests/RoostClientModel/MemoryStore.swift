import RoostAPI

@testable import Roost

/// A client's cache as a value: what `Database+Writes` does to SQLite's rows, done to dictionaries. A test compares the two.
///
/// Kinds of rows with their own table are named here. Every other kind is held in the common shape, as in the cache.
struct MemoryStore {
    /// A row in the common shape (``CachedRow``).
    struct CommonRow: Hashable {
        let stamp: Int64
        let aboutMessage: Seq?
        let json: [UInt8]

        init(_ row: some StreamRow) {
            stamp = row.stamp
            aboutMessage = row.aboutMessage
            var json = JSONBytes()
            row.write(to: &json)
            self.json = json.bytes
        }
    }

    let user: UserID
    private let kinds: RowKinds
    /// Includes channels followed only while watched, which are left out when the app starts.
    private(set) var saved = SavedState()
    private(set) var channels: [ChannelID: Channel] = [:]
    private(set) var memberships: [ChannelID: Membership] = [:]
    private(set) var messages: [ChannelID: [Seq: Message]] = [:]
    private(set) var purged: [ChannelID: [Seq: PurgedMessage]] = [:]
    private(set) var deletions: [ChannelID: [Seq: OwnDeletion]] = [:]
    private(set) var drafts: [ChannelID: ChannelDraft] = [:]
    private(set) var members: [ChannelID: [UserID: Member]] = [:]
    private(set) var invitations: [String: Invitation] = [:]
    private(set) var preferences = Preferences()
    /// The user's own.
    private(set) var profile: User?
    private(set) var users: [UserID: UserSummary] = [:]
    private(set) var capabilities: [ChannelID: Capabilities] = [:]
    /// What is shown over the rows, which stay as the server has them.
    private(set) var overlays: [ChannelID?: Overlay] = [:]
    /// Rows in the common shape, by their channel, kind and key.
    private(set) var others: [ChannelID: [String: [String: CommonRow]]] = [:]

    /// The kinds that are named.
    static let named: Set<String> = [
        Message.kind, PurgedMessage.kind, Member.kind, Membership.kind, Invitation.kind, User.kind, Preferences.kind,
        OwnDeletion.kind, ChannelDraft.kind,
    ]

    /// - Parameter kinds: The kinds of rows that it keeps. Writes contain no others.
    init(user: UserID, kinds: RowKinds = .standard) {
        self.user = user
        self.kinds = kinds
    }

    /// The channels that a list of channels shows.
    var joined: [ChannelID] {
        channels.keys.filter { memberships[$0]?.state == .member && channels[$0]?.deletedAt == nil }.sorted()
    }

    /// The invitations to and by the user, which the user's own stream carries.
    var ownInvitations: [String: Invitation] { invitations.filter { $1.userId == user || $1.inviter == user } }

    func unread(in channel: ChannelID) -> Int? {
        guard let counters = channels[channel]?.counters, let membership = memberships[channel] else { return nil }
        return Unread.count(in: counters, for: membership)
    }

    mutating func apply(_ writes: [StoreWrite]) { for write in writes { apply(write) } }

    private mutating func apply(_ write: StoreWrite) {
        switch write {
        case .erase(let epoch):
            self = MemoryStore(user: user, kinds: kinds)
            saved.epoch = epoch
        case .userPosition(let seq): saved.userCursor = seq
        case .appRole(let role): saved.role = role
        case .position(let channel, let position): saved.channels[channel] = position
        case .advance(let channel, let position):
            saved.channels[channel]?.cursor = position.cursor
            saved.channels[channel]?.messageCount = position.messageCount
            saved.channels[channel]?.hasHole = position.hasHole
        case .page(let channel, let range): saved.channels[channel]?.add(range)
        case .forget(let channel): forget(channel)
        case .forgetMessages(let channel, let range):
            for gone in saved.channels[channel]?.remove(range) ?? [] { forget(messagesOf: channel, gone.contains) }
        case .leave(let channel), .endVisit(let channel):
            forget(channel)
            saved.channels[channel] = nil
        case .keepVisits(let kept):
            for (channel, position) in saved.channels where position.isVisit && !kept.contains(channel) {
                apply(.endVisit(channel))
            }
        case .visit(let channel, let position):
            forget(channel)
            saved.channels[channel] = position
        case .channel(let channel):
            let counters = channels[channel.channelId]?.counters
            channels[channel.channelId] = channel
            if let counters, counters.seq > channel.counters.seq { channels[channel.channelId]?.counters = counters }
        case .counters(let channel, let counters):
            if let held = channels[channel]?.counters, held.seq <= counters.seq { channels[channel]?.counters = counters }
        case .add(let rows, let channel): channels[channel]?.counters.add(rows)
        case .users(let users): apply(users)
        case .rows(let rows, let stream): apply(rows, of: stream)
        case .rowsOfCached(let rows, let channel):
            let position = saved.channels[channel]
            apply(rows.rows(aboutMessages: { position?.holds($0) ?? false }), of: .channel(channel))
        case .count(let channel, let rows): memberships[channel] = memberships[channel].map { $0.counting(rows, as: user) }
        case .overlay(let channel, let overlay): overlays[channel] = overlay
        case .keepOverlays(let channels): overlays = overlays.filter { channels.contains($0.key) }
        case .capabilities(let channel, let own):
            if capabilities[channel]?.own.isNewer(than: own) != true { capabilities[channel, default: Capabilities()].own = own }
        case .roleCapabilities(let channel, let byRole):
            if byRole.channelSeq >= capabilities[channel]?.byRole.channelSeq ?? 0 {
                capabilities[channel, default: Capabilities()].byRole = byRole
            }
        }
    }

    private mutating func apply(_ rows: Rows, of stream: StreamID) {
        func count<Row: StreamRow>(of kind: Row.Type) -> Int { rows[kind]?.count ?? 0 }
        let known = kinds.all.reduce(0) { $0 + count(of: $1) }
        precondition(known == rows.count, "There are rows of a kind that this model wasn't made for.")

        for row in rows.messages ?? [] where messages[row.channelId]?[row.seq].map({ row.changeSeq >= $0.changeSeq }) ?? true {
            guard mayHold(rowsAbout: row.seq, in: row.channelId) else { continue }
            messages[row.channelId, default: [:]][row.seq] = shown(row)
        }
        for row in rows.ownDeletions ?? [] where deletions[row.channelId]?[row.seq] == nil {
            deletions[row.channelId, default: [:]][row.seq] = row
            let concealed = messages[row.channelId]?[row.seq].map(shown)
            messages[row.channelId]?[row.seq] = concealed
        }
        for row in rows.drafts ?? [] where drafts[row.channelId].map({ row.userSeq >= $0.userSeq }) ?? true {
            drafts[row.channelId] = row
        }
        if case .channel(let channel) = stream {
            for row in rows.purged ?? [] { purged[channel, default: [:]][row.seq] = row }
            for row in rows.members ?? [] where members[channel]?[row.userId].map({ row.changeSeq >= $0.changeSeq }) ?? true {
                members[channel, default: [:]][row.userId] = row
            }
        }
        for incoming in rows.memberships ?? [] { apply(incoming) }
        for row in rows.invitations ?? [] where invitations[row.key].map({ row.revision >= $0.revision }) ?? true {
            invitations[row.key] = row
        }
        for row in rows.users ?? [] where row.version >= profile?.version ?? 0 { profile = row }
        apply((rows.users ?? []).map(\.summary))
        preferences = rows.preferences ?? preferences
        for kind in kinds.all where !Self.named.contains(kind.kind) { hold(kind, of: rows, from: stream) }

        for membership in rows.memberships ?? [] where membership.historyFloor > 0 {
            forget(messagesOf: membership.channelId) { $0 <= membership.historyFloor }
        }
        guard case .channel(let channel) = stream else { return }
        let gone = Set(rows.purgedMessages)
        if !gone.isEmpty { forget(messagesOf: channel) { gone.contains($0) } }
    }

    private mutating func apply(_ incoming: [UserSummary]) {
        for user in incoming where users[user.userId].map({ user.version > $0.version }) ?? true { users[user.userId] = user }
    }

    private mutating func apply(_ incoming: Membership) {
        let cursor = saved.channels[incoming.channelId]?.cursor ?? 0
        let own = (messages[incoming.channelId] ?? [:]).values.filter { $0.sender == user && $0.seq <= cursor }
        let purged = (purged[incoming.channelId] ?? [:]).values.filter { $0.changeSeq <= cursor }
        let membership = Unread.advancing(incoming, as: user, with: own, purged)
        guard memberships[membership.channelId]?.isNewer(than: membership) != true else { return }
        memberships[membership.channelId] = membership
        if membership.state != .member { capabilities[membership.channelId] = nil }
    }

    /// Holds the rows of a kind in the common shape.
    private mutating func hold<Row: StreamRow>(_ kind: Row.Type, of rows: Rows, from stream: StreamID) {
        guard case .channel(let channel) = stream else { return }
        for row in rows[kind] ?? [] {
            if let message = row.aboutMessage, !mayHold(rowsAbout: message, in: channel) { continue }
            if let held = others[channel]?[kind.kind]?[row.key], held.stamp > row.stamp { continue }
            others[channel, default: [:]][kind.kind, default: [:]][row.key] = CommonRow(row)
        }
    }

    /// A message as the user sees it, possibly deleted for themselves.
    private func shown(_ message: Message) -> Message {
        deletions[message.channelId]?[message.seq].map { message.deletedForMe(at: $0.deletedAt) } ?? message
    }

    /// Whether a message is neither concealed from the user nor deleted for good.
    private func mayHold(rowsAbout message: Seq, in channel: ChannelID) -> Bool {
        message > floor(of: channel) && purged[channel]?[message] == nil
    }

    /// The seq up to which a channel's messages are concealed from the user, which happens only to members.
    func floor(of channel: ChannelID) -> Seq {
        guard let membership = memberships[channel], membership.state == .member else { return 0 }
        return membership.historyFloor
    }

    private mutating func forget(messagesOf channel: ChannelID, _ isForgotten: (Seq) -> Bool) {
        messages[channel] = messages[channel]?.filter { !isForgotten($0.key) }
        others[channel] = others[channel]?.mapValues { rows in
            rows.filter { !($0.value.aboutMessage.map(isForgotten) ?? false) }
        }
    }

    private mutating func forget(_ channel: ChannelID) {
        messages[channel] = nil
        purged[channel] = nil
        members[channel] = nil
        others[channel] = nil
        invitations = invitations.filter { $1.channelId != channel || $1.userId == user || $1.inviter == user }
        channels[channel]?.counters.seq = 0
    }
}

/// The outbox of a client as a value.
struct MemoryOutbox: Hashable {
    private var rows: [Int64: OutboxItem] = [:]
    private(set) var server: String?

    var items: [OutboxItem] { rows.values.sorted { $0.number < $1.number } }
    var saved: SavedOutbox { SavedOutbox(items: items, server: server) }

    mutating func apply(_ write: OutboxWrite) {
        switch write {
        case .put(let item): rows[item.id] = item
        case .update(let item, let hasContent):
            guard let former = rows[item.id] else { return }
            rows[item.id] = item
            rows[item.id]?.number = former.number
            guard !hasContent else { return }
            rows[item.id]?.operation = former.operation
            rows[item.id]?.concealedSeq = former.concealedSeq
            rows[item.id]?.epoch = former.epoch
        case .change(let id, _, let item): rows[id] = item
        case .sending(let id, _, let time, let server):
            guard var item = rows[id] else { return }
            item.firstSentAt = item.failure == nil ? item.firstSentAt ?? time : time
            (item.server, item.failure, item.isWaiting) = (server, nil, false)
            rows[id] = item
        case .remove(let id, _), .done(let id, _): rows[id] = nil
        case .arrived(let id, let key, let message):
            rows[id] = nil
            for (id, item) in rows where item.channel == key.channel && item.operation.changed == [.sent(key.clientId)] {
                rows[id]?.operation = item.operation.resolved(message)
            }
        case .server(let server):
            for (id, item) in rows where item.server == nil { rows[id]?.server = self.server ?? server }
            self.server = server
        }
    }
}
