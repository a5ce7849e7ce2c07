import RoostAPI
import RoostTestSupport

@testable import Roost
@testable import RoostClientModel

/// The SDK's own `Sync` with a cache, fed with a connection's bytes: an app's state.
///
/// It connects on request, and then fetches what it needs by itself.
struct Device {
    private var sync: Sync
    private(set) var store: MemoryStore
    /// Frames not yet delivered to the server.
    private var sent: [[UInt8]] = []

    init(user: UserID) {
        store = MemoryStore(user: user)
        sync = Sync(user: user, client: "test", random: SeededGenerator(seed: 1))
    }

    mutating func connect() {
        disconnect()
        feed(.start)
    }

    mutating func disconnect() {
        feed(.stop)
        sent = []
    }

    mutating func receive(_ frame: [UInt8]) { feed(.transport(sync.connection, .message(frame))) }

    /// Shows users as known, and waits until the client asks about them.
    mutating func show(_ users: Set<UserID>) {
        feed(.show(Dictionary(uniqueKeysWithValues: users.map { ($0, store.users[$0]?.version ?? 0) })))
        feed(.timer(.users))
    }

    /// Calls an operation as an app does.
    mutating func call(_ operation: some RoostAPI.Operation) { feed(.call(1, operation)) }

    mutating func takeSent() -> [[UInt8]] {
        defer { sent = [] }
        return sent
    }

    private mutating func feed(_ input: Sync.Input) {
        var inputs = [input]
        while !inputs.isEmpty {
            for output in sync.handle(inputs.removeFirst()) {
                switch output {
                case .store(let writes): store.apply(writes)
                case .send(let bytes), .sendBeforeStoring(let bytes): sent.append(bytes)
                case .fetchToken: inputs.append(.token("token"))
                case .open(let number): inputs.append(.transport(number, .opened))
                default: break
                }
            }
        }
    }
}

extension Device {
    /// The state as an app shows it. Lists of members and of invitations to a channel aren't cached whole.
    ///
    /// - Parameter deleted: Channels whose end isn't sent with the memberships.
    func view(deleted: Set<ChannelID>) -> View {
        var view = View()
        var total = TotalUnread(unreadCount: 0, unreadChannelCount: 0)
        for id in store.joined {
            guard let channel = store.channels[id], let membership = store.memberships[id] else { continue }
            let unread = store.unread(in: id) ?? 0
            if !membership.isNotificationsMuted, unread > 0 { total.add(unread) }
            view.add(
                channel, capabilities: store.capabilities[id]?.now(as: membership.role, isMuted: membership.isMuted(at: nil)) ?? [],
                unread: unread, hidden: membership.visibility(in: channel.counters),
                messages: Array((store.messages[id] ?? [:]).values), members: [], pending: [])
        }
        view.add(
            profile: store.profile, preferences: store.preferences, seq: store.saved.userCursor, total: total,
            memberships: store.memberships.values.filter { !deleted.contains($0.channelId) },
            invitations: Array(store.ownInvitations.values),
            drafts: store.drafts.values.filter { !deleted.contains($0.channelId) })
        view.forget(Self.isPartOfCache)
        return view
    }

    /// Facts that the cache holds only in part.
    static func isPartOfCache(_ fact: String) -> Bool {
        fact.hasSuffix(": members") || fact.hasSuffix(": pending") || fact == "leaked"
    }

    /// Where the cached messages of each channel begin.
    var windowStarts: [ChannelID: Seq] { store.saved.channels.mapValues(\.windowStart) }
}
