import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport

/// A channel `room` with everybody who could hear of something in it, and what reaches each of their devices.
///
/// The devices get events as a server's connections do: a notice says who, and other notices say who gets a channel's events from then on.
///
/// - `ann` owns the channel, on two devices; `oda` is an operator; `bob`, on two devices, and `cid` are members.
/// - `ida` is invited by ann and hasn't answered; `fay` was a member and left; `sam` never was one, and accepts no invitation by himself.
/// - `wes` is one of the app's admins: not a member, and watching.
final class AudienceWorld {
    static let devices = ["ann/1", "ann/2", "oda/1", "bob/1", "bob/2", "cid/1", "ida/1", "fay/1", "sam/1", "wes/1"]
    static let groups: [String: [String]] = [
        "members": ["ann/1", "ann/2", "oda/1", "bob/1", "bob/2", "cid/1"],
        "ann": ["ann/1", "ann/2"], "oda": ["oda/1"], "bob": ["bob/1", "bob/2"], "cid": ["cid/1"], "ida": ["ida/1"],
        "fay": ["fay/1"], "sam": ["sam/1"], "wes": ["wes/1"],
    ]

    let core: CoreWorld
    /// A message of bob's.
    let message: MessageID
    /// What reached each device, in its order.
    private(set) var received: [String: [String]] = [:]

    private struct Connection {
        let user: UserID
        var joined: Set<ChannelID> = []
        var watched: Set<ChannelID> = []
        var appRole = AppRole.user
        var roles: [ChannelID: ChannelRole] = [:]

        func isReader(of channel: ChannelID, _ readers: Readers) -> Bool {
            readers.contain(appRole, as: joined.contains(channel) ? roles[channel] ?? .member : nil)
        }
    }
    private var connections: [ConnectionID: Connection] = [:]

    init(type: ChannelType) throws {
        core = try CoreWorld()
        for user in ["ann", "oda", "bob", "cid", "ida", "fay", "sam", "wes"] as [UserID] { try core.user(user) }
        for user in ["ida", "sam"] as [UserID] { try core.perform(UpdatePreferences(autoAcceptInvitations: false), as: user) }
        try core.perform(CreateChannel(channel: "room", type: type, users: ["oda", "bob", "cid", "fay"]), as: "ann")
        try core.perform(SetMemberRole(channel: "room", users: ["oda"], role: .operator), as: "ann")
        try core.perform(LeaveChannel(channel: "room"), as: "fay")
        try core.perform(InviteMembers(channel: "room", users: ["ida"]), as: "ann")
        message = try core.send("hi", to: "room", as: "bob").messageId
        try core.deadEffect("test.dead", key: "1")
        for number in Self.devices.indices { try connect(number) }
        try perform(WatchChannel(channel: "room"), on: "wes/1", role: .admin)
        received = [:]
    }

    private func connect(_ number: Int) throws {
        let user = Self.user(of: Self.devices[number])
        let notices = try core.database.read { transaction in
            let caller = Caller(user: user, role: user == "wes" ? .admin : .user)
            var context = Context(transaction: transaction, caller: caller, now: core.now, ids: core.ids)
            try context.connect(ConnectionID(rawValue: Int64(number)))
            return context.notices
        }
        notices.forEach(deliver)
    }

    private static func user(of device: String) -> UserID { UserID(String(device.prefix { $0 != "/" })) }

    /// Performs an operation on a device, and delivers what it tells. Answers with the code of its refusal.
    @discardableResult
    func perform(_ operation: any Handled, on device: String, role: AppRole = .user) throws -> RoostError.Code? {
        var code: RoostError.Code?
        let connection = Self.devices.firstIndex(of: device).map(Int64.init)
        let notices = try core.told {
            code = try core.code(operation, as: Self.user(of: device), role: role, connection: connection)
        }
        notices.forEach(deliver)
        return code
    }

    func forget() { received = [:] }

    private func deliver(_ notice: Notice) {
        switch notice {
        case .event(let event, .channel(let channel, let readers)):
            let heard = "\(event.kind.rawValue) \(event.stream)"
            for (id, connection) in connections where connection.joined.contains(channel) || connection.watched.contains(channel) {
                let isReader = connection.isReader(of: channel, readers)
                if !isReader { connections[id]?.watched.remove(channel) }
                guard isReader || connection.joined.contains(channel) else { continue }
                let hides = !isReader && event.rows.messages != nil
                received[Self.devices[Int(id.rawValue)], default: []].append(heard + (hides ? " without its message" : ""))
            }
        case .event(let event, .user(let user)):
            let heard = "\(event.kind.rawValue) \(event.stream)"
            for (id, connection) in connections where connection.user == user {
                received[Self.devices[Int(id.rawValue)], default: []].append(heard)
            }
        case .joined(let user, let channel, _, let role):
            change(of: user) { connection in
                connection.joined.insert(channel)
                connection.roles[channel] = role
            }
        case .role(let user, let channel, let role, _): change(of: user) { $0.roles[channel] = role }
        case .left(let user, let channel):
            change(of: user) { connection in
                connection.joined.remove(channel)
                connection.watched.remove(channel)
            }
        case .destroyed(let channel):
            change(of: nil) { connection in
                connection.joined.remove(channel)
                connection.watched.remove(channel)
            }
        case .connected(let id, let user, let streams):
            connections[id] = Connection(
                user: user, joined: Set(streams.channels.keys), appRole: streams.appRole, roles: streams.roles)
        case .watching(let id, _, let channel, _): connections[id]?.watched.insert(channel)
        case .stoppedWatching(let id, _, let channel): connections[id]?.watched.remove(channel)
        case .accessChanged(let changes):
            for case .user(let user, true, _) in changes { connections = connections.filter { $0.value.user != user } }
        case .floor: break
        }
    }

    private func change(of user: UserID?, _ apply: (inout Connection) -> Void) {
        for (id, connection) in connections where user == nil || connection.user == user {
            var changed = connection
            apply(&changed)
            connections[id] = changed
        }
    }
}
