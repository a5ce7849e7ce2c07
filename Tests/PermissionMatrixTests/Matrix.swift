import RoostAPI
import RoostCore

/// How a caller stands to the channel.
enum Relation: String, CaseIterable, Sendable {
    /// Never was a member.
    case stranger
    /// Was a member and left while the channel was there.
    case left
    case member, `operator`, owner
}

enum ChannelState: String, CaseIterable, Sendable {
    case active, deleted
}

/// What comes of an operation: the code of its refusal, or nothing.
enum Outcome: Hashable, Sendable, CustomStringConvertible {
    case allowed
    case refused(RoostError.Code)

    var description: String {
        switch self {
        case .allowed: "allowed"
        case .refused(let code): code.rawValue
        }
    }
}

/// What comes of an operation for each relation, in one state of the channel: one line of the table.
struct Line: Sendable {
    var outcomes: [Relation: Outcome]

    /// In the order of ``Relation``.
    init(_ stranger: Outcome, _ left: Outcome, _ member: Outcome, _ operator: Outcome, _ owner: Outcome) {
        outcomes = [.stranger: stranger, .left: left, .member: member, .operator: `operator`, .owner: owner]
    }

    init(everyone outcome: Outcome) { self.init(outcome, outcome, outcome, outcome, outcome) }
}

/// What comes of one operation in all cases.
struct Row: Sendable {
    /// Whose message the operation is about, where it is about one.
    enum Message: String, Sendable { case none, own, others }

    let name: String
    let message: Message
    let make: @Sendable (Fixture) -> any Handled
    let lines: [AppRole: [ChannelState: Line]]

    init(
        _ name: String, _ message: Message = .none, active: Line, deleted: Line, adminActive: Line = Line(everyone: .allowed),
        adminDeleted: Line, _ make: @escaping @Sendable (Fixture) -> any Handled
    ) {
        self.name = name
        self.message = message
        self.make = make
        lines = [.user: [.active: active, .deleted: deleted], .admin: [.active: adminActive, .deleted: adminDeleted]]
    }

    /// An operation that concerns no channel, or asks for nothing that depends on one.
    init(_ name: String, user: Outcome = .allowed, admin: Outcome = .allowed, _ make: @escaping @Sendable (Fixture) -> any Handled)
    {
        self.init(
            name, active: Line(everyone: user), deleted: Line(everyone: user), adminActive: Line(everyone: admin),
            adminDeleted: Line(everyone: admin), make)
    }
}

/// What an operation is made of.
struct Fixture: Sendable {
    var channel: ChannelID = "general"
    /// The message that the row is about.
    var message = MessageID(rawValue: 0)
}

private let yes = Outcome.allowed
private let no = Outcome.refused(.notPermitted)
private let notMember = Outcome.refused(.notMember)
private let notOwner = Outcome.refused(.notMessageOwner)
/// The answer for a channel that doesn't exist: the caller doesn't learn of this one.
private let hidden = Outcome.refused(.notFound)

/// Who may do what in a channel of the type `community`.
///
/// The columns of a line: a stranger, one who left, a member, an operator, the owner.
enum Matrix {
    static let types: [ChannelType] = [.community]

    static let rows: [Row] = userRows + channelRows + memberRows + messageRows + readingRows

    private static let userRows: [Row] = [
        Row("users.upsert", user: no) { _ in UpsertUser(user: "eve", displayName: "Eve") },
        Row("users.get") { _ in GetUser(user: "someone") },
        Row("users.getMany") { _ in GetUsers(users: ["someone"]) },
        Row("users.me") { _ in GetMe() },
        Row("users.updateMe") { _ in UpdateMe(displayName: "Me") },
    ]

    private static let channelRows: [Row] = [
        Row("channels.create") { _ in CreateChannel(channel: "new", users: ["someone"]) },
        Row(
            "channels.get", active: Line(yes, yes, yes, yes, yes), deleted: Line(hidden, hidden, yes, yes, yes),
            adminDeleted: Line(everyone: yes)
        ) { GetChannel(channel: $0.channel) },
        Row(
            "channels.update", active: Line(notMember, notMember, no, yes, yes), deleted: Line(hidden, hidden, no, no, no),
            adminDeleted: Line(everyone: no)
        ) { UpdateChannel(channel: $0.channel, displayName: "x") },
        Row(
            "channels.delete", active: Line(notMember, notMember, no, no, yes), deleted: Line(hidden, hidden, no, no, yes),
            adminDeleted: Line(everyone: yes)
        ) { DeleteChannel(channel: $0.channel) },
        Row("channels.mine") { _ in ListMyChannels() },
    ]

    private static let memberRows: [Row] = [
        Row(
            "members.join", active: Line(yes, yes, yes, yes, yes), deleted: Line(hidden, hidden, no, no, no),
            adminDeleted: Line(everyone: no)
        ) { JoinChannel(channel: $0.channel) },
        Row(
            "members.leave", active: Line(yes, yes, yes, yes, yes), deleted: Line(hidden, hidden, yes, yes, yes),
            adminDeleted: Line(everyone: yes)
        ) { LeaveChannel(channel: $0.channel) },
        Row(
            "members.list", active: Line(yes, yes, yes, yes, yes), deleted: Line(hidden, hidden, yes, yes, yes),
            adminDeleted: Line(everyone: yes)
        ) { ListMembers(channel: $0.channel) },
    ]

    private static let messageRows: [Row] = [
        Row(
            "messages.send", active: Line(notMember, notMember, yes, yes, yes), deleted: Line(hidden, hidden, no, no, no),
            adminDeleted: Line(everyone: no)
        ) { SendMessage(channel: $0.channel, clientId: "new", text: "x") },
        Row(
            "messages.list", active: Line(notMember, notMember, yes, yes, yes), deleted: Line(hidden, hidden, yes, yes, yes),
            adminDeleted: Line(everyone: yes)
        ) { ListMessages(channel: $0.channel) },
        Row(
            "messages.edit", .own, active: Line(notMember, notMember, yes, yes, yes), deleted: Line(hidden, hidden, no, no, no),
            adminDeleted: Line(everyone: no)
        ) { EditMessage(channel: $0.channel, message: $0.message, text: "y") },
        Row(
            "messages.edit", .others, active: Line(notMember, notMember, notOwner, yes, yes),
            deleted: Line(hidden, hidden, no, no, no),
            adminDeleted: Line(everyone: no)
        ) { EditMessage(channel: $0.channel, message: $0.message, text: "y") },
        Row(
            "messages.delete", .own, active: Line(notMember, notMember, yes, yes, yes), deleted: Line(hidden, hidden, no, no, no),
            adminDeleted: Line(everyone: no)
        ) { DeleteMessage(channel: $0.channel, message: $0.message) },
        Row(
            "messages.delete", .others, active: Line(notMember, notMember, notOwner, yes, yes),
            deleted: Line(hidden, hidden, no, no, no),
            adminDeleted: Line(everyone: no)
        ) { DeleteMessage(channel: $0.channel, message: $0.message) },
    ]

    private static let readingRows: [Row] = [
        Row(
            "reading.mark", active: Line(notMember, notMember, yes, yes, yes), deleted: Line(hidden, hidden, no, no, no),
            adminActive: Line(notMember, notMember, yes, yes, yes), adminDeleted: Line(everyone: no)
        ) { MarkRead(channel: $0.channel) },
        Row(
            "reading.unread", active: Line(notMember, notMember, yes, yes, yes), deleted: Line(hidden, hidden, no, no, no),
            adminActive: Line(notMember, notMember, yes, yes, yes), adminDeleted: Line(everyone: no)
        ) { GetUnread(channel: $0.channel) },
        Row("reading.total") { _ in GetTotalUnread() },
        Row(
            "watching.watch", active: Line(notMember, notMember, yes, yes, yes), deleted: Line(hidden, hidden, no, no, no),
            adminDeleted: Line(everyone: no)
        ) { WatchChannel(channel: $0.channel) },
        Row("watching.unwatch") { UnwatchChannel(channel: $0.channel) },
        Row(
            "streams.channelChanges", active: Line(notMember, notMember, yes, yes, yes),
            deleted: Line(hidden, hidden, yes, yes, yes),
            adminDeleted: Line(everyone: yes)
        ) { GetChannelChanges(channel: $0.channel, after: 0) },
        Row("streams.myChanges") { _ in GetMyChanges(after: 0) },
        Row("streams.resume") { Resume(after: 0, channels: [$0.channel.rawValue: 0]) },
    ]
}
