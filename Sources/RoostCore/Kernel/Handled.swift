public import RoostAPI

/// An operation together with its behaviour: one function in the folder of the operation's feature.
///
/// A handler first checks everything that can be refused, then writes, then notifies. It throws `RoostError` for a refusal; its writes are
/// then rolled back, and its notices dropped.
public protocol Handled: Operation {
    /// Returns the streams that the operation may move. Empty for reads.
    func scope(for caller: Caller) -> Scope

    /// Who is connected or watches, as far as the answer says so; nothing for most operations.
    var presenceQuestion: PresenceQuestion { get }

    /// The query that finds the channels that the operation is about; nil for most. It is a read, however much it searches, and runs beside the writers
    /// before the rule takes its turn among them.
    var channelQuestion: QueryChannels? { get }

    /// Whether it tells what happens at this moment: such operations run one after another, so that nobody stops before they began.
    static var isTold: Bool { get }

    /// Whether it reads so little that an event loop may run it itself: a few rows by their keys, or a page of one channel's history as it is. It writes
    /// nothing, tells nothing, and asks nothing of presence.
    var isBrief: Bool { get }

    /// How many channels its connection watches from its answer on, at most.
    var watchCountMax: Int { get }

    /// How often each user may do what costs its caller nothing, and others something; nil for most operations.
    static var userRate: UserRate? { get }

    /// The same of what this call asks for. By default ``userRate``; nil only where that is.
    var rate: UserRate? { get }

    /// The client id of the message that it sends to its channel; nil for most operations. A batch asks beforehand whether those of its messages are taken.
    var sentClientId: ClientID? { get }

    func handle(in context: inout Context) throws -> Response
}

extension Handled {
    public func scope(for caller: Caller) -> Scope { Scope() }
    public var presenceQuestion: PresenceQuestion { .none }
    public var channelQuestion: QueryChannels? { nil }
    public var isBrief: Bool { false }
    public var watchCountMax: Int { 0 }
    public static var isTold: Bool { false }
    public static var userRate: UserRate? { nil }
    public var rate: UserRate? { Self.userRate }
    public var sentClientId: ClientID? { nil }
}

/// How often one user may do something, on one node.
public enum UserRate: Hashable, Sendable {
    /// ``Limits/signalsPerSecond``: what is told to many.
    case ofSignals
    /// ``Limits/signOutsPerMinute``: what all others wait for, who write at the same time.
    case ofSignOuts
    /// ``Limits/presenceChangesPerMinute``: what concerns each of a user's connections, in each of their channels.
    case ofPresenceChanges

    /// How many times.
    public var count: Int {
        switch self {
        case .ofSignals: Limits.signalsPerSecond
        case .ofSignOuts: Limits.signOutsPerMinute
        case .ofPresenceChanges: Limits.presenceChangesPerMinute
        }
    }

    /// Within how many seconds.
    public var seconds: Int {
        switch self {
        case .ofSignals: 1
        case .ofSignOuts, .ofPresenceChanges: 60
        }
    }
}

/// What an operation's answer says of who is connected or watches: collected over all nodes before the rule runs.
public enum PresenceQuestion: Hashable, Sendable {
    case none
    /// Who is online in a channel, and who watches it.
    case channel(ChannelID)
    /// Which of some users are connected. For operations that only read.
    case users([UserID])
    /// Who watches a channel, by name also beyond those whom every node names: as many as this of each. For operations that only read.
    case watchers(ChannelID, upTo: Int)
}

/// A state that a rule had ruled out: a fault in the server, which answers with an internal failure and logs this.
struct ImpossibleState: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Every operation with its behaviour.
public enum OperationTable {
    /// A type that is listed in `Operations.all` but has no behaviour makes this nil, and a test fail.
    public static let handled: [any Handled.Type] = Operations.all.compactMap { $0 as? any Handled.Type }

    private static let byName: [String: Entry] = Dictionary(
        handled.map { ($0.name, Entry($0)) }, uniquingKeysWith: { first, _ in first })

    /// An operation, and the fields that it knows.
    public struct Entry: Sendable {
        public let type: any Handled.Type
        public let schema: Schema
        public let fields: Set<String>

        init(_ type: any Handled.Type) {
            self.type = type
            schema = (try? Schema.of(type)) ?? .any
            fields = Set(schema.fields.map(\.name))
        }
    }

    public static func named(_ name: String) -> Entry? { byName[name] }
}
