import RoostAPI
import RoostCore
import RoostTestSupport

/// A channel in which one user, `bob`, has the rights that a way takes away, and the sockets of those who take them away.
struct RightsRoom: Sendable {
    typealias Way = RightsWalk.Way
    typealias Right = RightsWalk.Right
    typealias Cell = RightsWalk.Cell

    private let server: TestServer
    private let way: Way
    private let names: Names
    private let token: String
    private let root: RawSocket
    private let owner: RawSocket
    /// A socket that is open before and after.
    private let phone: RawSocket
    /// A message of the owner's and one of bob's, which are changed later.
    private let earlier: MessageID
    private let own: MessageID
    /// The channel's position before everything that is looked for.
    private let position: Seq
    /// The cursor of the members' second page, from before; nil if the user gets no first one.
    private let cursor: String?

    /// Names that differ in each way, since several are walked at a time.
    private struct Names: Sendable {
        let channel: ChannelID
        let bob, owner: UserID
        let type: ChannelType
        let role: ChannelRole

        init(_ way: Way) {
            let name = way.rawValue.lowercased()
            (channel, bob, owner) = (ChannelID("walk-\(name)"), UserID("bob-\(name)"), UserID("owner-\(name)"))
            role = ChannelRole("walk-\(name)")
            type =
                switch way {
                case .typeSettings, .typeSettingsForOthers: ChannelType("walk-\(name)")
                default: way.type
                }
        }

        /// The call with which bob creates the channel, each time.
        var creation: CreateChannel {
            CreateChannel(channel: channel, type: type, users: [owner], idempotencyKey: "once")
        }
        var path: String { "/v1/channels/\(channel)" }
    }

    // MARK: Making it

    /// Makes the channel, and fills it with things that can be seen before the right ends.
    static func make(_ way: Way, on server: TestServer) async throws -> RightsRoom {
        let names = Names(way)
        let root = try await server.socket("root", role: .admin)
        let owner = try await server.socket(names.owner)
        let token = try await server.token(names.bob)
        if way.standing == .guide {
            let shown = Permission.grantable.filter { permission in Right.allCases.contains { $0.permissions.contains(permission) }
            }
            try await root.call(PutRole(role: names.role, rank: 10, permissions: shown))
        }
        if names.type != way.type { try await root.call(PutChannelType(type: names.type, basedOn: way.type)) }

        let bob = Requests(server: server, token: token)
        try await bob.post("/v1/channels", names.creation)
        try await root.call(SetMemberRole(channel: names.channel, users: [names.owner], role: .owner))
        let earlier = try await owner.call(SendMessage(channel: names.channel, clientId: "earlier", text: "first"))
        let own: Message = try await bob.post("\(names.path)/messages", body: Self.ownMessage).decoded()
        try await settle(way.standing, names, root, owner, bob)

        let phone = try await RawSocket.connect(port: server.port, token: token)
        if way.standing != .invited { try await phone.call(WatchChannel(channel: names.channel)) }
        let position = try await root.call(GetChannel(channel: names.channel)).channel.counters.seq
        func room(_ cursor: String?) -> RightsRoom {
            RightsRoom(
                server: server, way: way, names: names, token: token, root: root, owner: owner, phone: phone,
                earlier: earlier.messageId, own: own.messageId, position: position, cursor: cursor)
        }
        try await room(nil).fill(.old)
        guard way.standing != .invited else { return room(nil) }
        let first: Page<MemberEntry> = try await bob.get("\(names.path)/members?limit=1").decoded()
        return room(first.nextCursor)
    }

    private static let ownMessage = #"{"clientId":"own","text":"mine"}"#

    /// Makes the users who are added, muted, banned and invited: the same in all channels of a server.
    static func introduceOthers(on server: TestServer) async throws {
        let root = try await server.socket("root", role: .admin)
        for age in RightsWalk.Age.allCases {
            for right in [Right.members, .muted, .banned, .invitations] {
                try await root.call(UpsertUser(user: UserID(right.mark(age))))
            }
            let invited = UserID(Right.invitations.mark(age))
            try await server.perform(UpdatePreferences(autoAcceptInvitations: false), as: invited)
        }
    }

    /// Gives bob, who has created the channel, his standing before the change.
    private static func settle(
        _ standing: RightsWalk.Standing, _ names: Names, _ root: RawSocket, _ owner: RawSocket, _ bob: Requests
    ) async throws {
        func give(_ role: ChannelRole) async throws {
            try await root.call(SetMemberRole(channel: names.channel, users: [names.bob], role: role))
        }
        switch standing {
        case .member: try await give(.member)
        case .operator, .guide:
            let role = standing == .guide ? names.role : .operator
            try await give(role)
            try await root.call(UpdateChannel(channel: names.channel, policy: PolicyChanges(read: .operators)))
        case .watcher: try await bob.post("\(names.path)/leave")
        case .invited:
            try await bob.post("\(names.path)/leave")
            try await bob.server.perform(UpdatePreferences(autoAcceptInvitations: false), as: names.bob)
            try await owner.call(InviteMembers(channel: names.channel, users: [names.bob]))
        }
    }

    // MARK: What happens in it

    /// Makes one of everything that can be seen.
    func fill(_ age: RightsWalk.Age) async throws {
        let channel = names.channel
        func mark(_ right: Right) -> String { right.mark(age) }
        let (muted, banned) = (UserID(mark(.muted)), UserID(mark(.banned)))
        // They mention bob if he is a member who may read them.
        let mentionees: [Mentionee] = [.users([names.bob])]
        let clientId = ClientID(age.rawValue)
        try await root.call(SendMessage(channel: channel, clientId: clientId, text: mark(.history), mentionees: mentionees))
        try await root.call(EditMessage(channel: channel, message: earlier, text: mark(.versions)))
        try await root.call(
            EditMessage(channel: channel, message: earlier, text: mark(.earlierHistory), mentionees: mentionees))
        try await root.call(EditMessage(channel: channel, message: own, text: "\(mark(.earlierHistory)), and mine"))
        try await root.call(UpdateChannel(channel: channel, data: mark(.attributes)))
        try await root.call(AddMembers(channel: channel, users: [UserID(mark(.members)), muted, banned]))
        try await root.call(RemoveMembers(channel: channel, users: [banned]))
        try await root.call(InviteMembers(channel: channel, users: [UserID(mark(.invitations))]))
        try await owner.call(MarkRead(channel: channel))
        try await server.perform { context in
            let until = context.now.after(seconds: 3600)
            try context.transaction.execute(
                "UPDATE members SET muted_until = \(until) WHERE channel_id = \(channel) AND user_id = \(muted)")
        }
        try await ban(banned)
    }

    /// No operation bans yet.
    private func ban(_ user: UserID) async throws {
        let channel = names.channel
        try await server.perform { context in
            let until = context.now.after(seconds: 3600)
            try context.transaction.execute(
                "UPDATE members SET banned_until = \(until) WHERE channel_id = \(channel) AND user_id = \(user)")
        }
    }

    /// Ends the right.
    func end() async throws {
        let (channel, bob) = (names.channel, Requests(server: server, token: token))
        let narrowed = PolicyChanges(read: way.standing == .watcher ? .members : .owners)
        switch way {
        case .policy, .policyForOthers: try await root.call(UpdateChannel(channel: channel, policy: narrowed))
        case .typeSettings, .typeSettingsForOthers:
            try await root.call(PutChannelType(type: names.type, basedOn: way.type, policy: narrowed))
        case .leaving: try await bob.post("\(names.path)/leave")
        case .removal: try await owner.call(RemoveMembers(channel: channel, users: [names.bob]))
        case .ban:
            try await owner.call(RemoveMembers(channel: channel, users: [names.bob]))
            try await ban(names.bob)
        case .deactivation: try await root.call(DeactivateUser(user: names.bob))
        case .revocation: try await root.call(RevokeUserTokens(user: names.bob))
        case .hidingOfTheHistory: try await bob.post("\(names.path)/hide", body: #"{"hidePreviousMessages":true}"#)
        case .loweredRole: try await owner.call(SetMemberRole(channel: channel, users: [names.bob], role: .member))
        case .changedRole: try await root.call(PutRole(role: names.role, rank: 10, permissions: []))
        case .deletedRole: try await root.call(DeleteRole(role: names.role))
        case .endOfDiscovery:
            try await root.call(UpdateChannel(channel: channel, policy: PolicyChanges(discovery: .members)))
        case .endOfPublicity: try await root.call(UpdateChannel(channel: channel, isPublic: false))
        case .deletion: try await root.call(DeleteChannel(channel: channel))
        case .withdrawal: try await owner.call(WithdrawInvitations(channel: channel, users: [names.bob]))
        case .decline: try await bob.post("\(names.path)/invitation/decline")
        }
        if way != .deletion { try await fill(.new) }
    }

    func close() async { for socket in [root, owner, phone] { await socket.close() } }

    // MARK: What bob sees

    /// A request, made once however many cells it answers.
    private enum Request: Hashable {
        case heard, resume, watch
        case get(String)
        case post(String, body: String)
    }

    /// Returns everything that bob receives in each cell since the last call.
    func answers(in cells: [Cell]) async throws -> [Cell: String] {
        var known: [Request: String] = [.heard: await phone.heard()]
        var answers: [Cell: String] = [:]
        for cell in cells {
            var texts: [String] = []
            for request in try requests(of: cell) {
                let text: String
                if let answer = known[request] { text = answer } else { text = try await answer(to: request) }
                known[request] = text
                texts.append(text)
            }
            answers[cell] = texts.joined(separator: "\n")
        }
        return answers
    }

    private func answer(to request: Request) async throws -> String {
        switch request {
        case .heard: ""
        case .resume: try await ask(Resume(after: 0, channels: [names.channel.rawValue: position]))
        case .watch: try await ask(WatchChannel(channel: names.channel))
        case .get(let path): try await server.request("GET", path, token: token).body
        case .post(let path, let body): try await server.request("POST", path, token: token, body: body).body
        }
    }

    /// Returns everything that a new connection receives, up to the reply or to the end.
    private func ask(_ operation: some RoostAPI.Operation) async throws -> String {
        let socket = try await RawSocket.open(port: server.port)
        try await socket.connection.send(
            RawSocket.frame(opcode: 1, try JSONWriter.bytes(of: AuthenticateFrame(token: token)))
                + RawSocket.frame(opcode: 1, try JSONWriter.bytes(of: CallFrame(call: 1, with: operation))))
        let text = await socket.frames(untilReplyTo: 1)
        await socket.close()
        return text
    }

    private func requests(of cell: Cell) throws -> [Request] {
        switch cell.path {
        case .live: [.heard]
        case .resume: [.resume]
        case .changes: [.get("\(names.path)/changes?after=\(position)")]
        case .watch: [.watch]
        case .repeated:
            cell.right == .earlierHistory
                ? [.post("\(names.path)/messages", body: Self.ownMessage)]
                : [.post("/v1/channels", body: String(decoding: try JSONWriter.bytes(of: names.creation), as: UTF8.self))]
        case .single: single(cell.right).map { .get($0) }
        case .page: pages(cell.right).map { .get($0) }
        case .mentions: ["limit=100", "channel=\(names.channel)&limit=100"].map { .get("/v1/me/mentions?\($0)") }
        }
    }

    private func single(_ right: Right) -> [String] {
        switch right {
        // A channel has only its newest message.
        case .earlierHistory: ["\(names.path)/messages/\(earlier)"]
        case .members: RightsWalk.Age.allCases.map { "\(names.path)/members/\(right.mark($0))" }
        case .unread: ["\(names.path)/unread"]
        case .versions: ["\(names.path)/messages/\(earlier)/versions"]
        default: [names.path]
        }
    }

    private func pages(_ right: Right) -> [String] {
        let query = "/v1/channels?membership=all&ids=\(names.channel)"
        let members = "\(names.path)/members?limit=100"
        func searches(_ more: String = "") -> [String] {
            RightsWalk.Age.allCases.map { "\(names.path)/member-search?text=\($0.rawValue)-\(more)" }
        }
        return switch right {
        case .history: ["\(names.path)/messages?limit=100", query]
        case .earlierHistory: ["\(names.path)/messages?limit=100"]
        case .attributes: [query, "/v1/me/invitations"]
        case .members: [members] + searches() + (cursor.map { ["\(members)&cursor=\($0)"] } ?? [])
        case .muted, .banned: ["\(members)&states=\(right.rawValue)"] + searches("&states=\(right.rawValue)")
        case .invitations: ["\(names.path)/invitations"]
        case .readPositions: ["\(names.path)/readers?limit=100"]
        case .unread, .versions: []
        }
    }

    /// Returns the names of the operations that read something of a channel over HTTP and that no request of these cells calls.
    func unasked(in cells: [Cell]) throws -> Set<String> {
        let asked = try cells.flatMap { try requests(of: $0) }.compactMap { request -> [Substring]? in
            guard case .get(let path) = request else { return nil }
            return path.prefix { $0 != "?" }.split(separator: "/")
        }
        let reading = Operations.all.filter { $0.method == .get && $0.path.hasPrefix("/v1/channels/{channel}") }
        let unasked = reading.filter { operation in
            let pattern = operation.path.split(separator: "/")
            return !asked.contains { path in
                path.count == pattern.count && zip(path, pattern).allSatisfy { $1.hasPrefix("{") || $0 == $1 }
            }
        }
        return Set(unasked.map { $0.name })
    }
}

/// Bob's requests over HTTP.
private struct Requests: Sendable {
    let server: TestServer
    let token: String

    func get(_ path: String) async throws -> TestServer.Answer { try fine(await server.request("GET", path, token: token), path) }

    @discardableResult
    func post(_ path: String, body: String = "") async throws -> TestServer.Answer {
        try fine(await server.request("POST", path, token: token, body: body), path)
    }

    func post(_ path: String, _ operation: some RoostAPI.Operation) async throws {
        try await post(path, body: String(decoding: try JSONWriter.bytes(of: operation), as: UTF8.self))
    }

    private func fine(_ answer: TestServer.Answer, _ path: String) throws -> TestServer.Answer {
        guard answer.status == 200 else { throw Missed("a 200 of \(path): \(answer.status) \(answer.body)") }
        return answer
    }
}

extension RightsWalk.Way {
    /// The type of the channel, or the one that its own is based on: in a group members learn of invitations, and a livestream is everyone's.
    fileprivate var type: ChannelType { standing == .watcher ? .livestream : .group }
}

extension RawSocket {
    /// Returns the frames received by now, or before the socket ends.
    fileprivate func heard() async -> String {
        // The socket of a user who is shut out has ended, and takes no call.
        await frames(untilReplyTo: (try? await post(GetMe())) ?? 0)
    }

    fileprivate func frames(untilReplyTo number: Int64) async -> String {
        var frames: [String] = []
        reading: while true {
            switch await next() {
            case .text(let frame):
                frames.append(frame)
                if frame.hasPrefix(#"{"reply":\#(number),"#) { break reading }
            case .ping: continue
            case .close, .end: break reading
            }
        }
        return frames.joined(separator: "\n")
    }
}
