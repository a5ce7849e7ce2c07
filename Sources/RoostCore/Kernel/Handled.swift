public import RoostAPI

/// An operation together with its behaviour: one function in the folder of the operation's feature.
///
/// A handler first checks for every possible refusal, then writes, then notifies. It throws `RoostError` for a refusal; its
/// writes are then rolled back, and its notices dropped.
public protocol Handled: Operation {
    /// Returns the streams that the operation may move. Empty for reads.
    func scope(for caller: Caller) -> Scope

    /// The presence that the answer reports: connected users or watchers. None for most operations.
    var requiredPresence: PresenceRequirement { get }

    /// The query for the channels that the operation is about; nil for most. However much it searches, it only reads, and runs
    /// beside the writers before the rule takes its turn among them.
    var channelQuery: QueryChannels? { get }

    /// Whether it only sends something momentary, such as typing. These operations run one after another, so a stop can't overtake its start.
    static var isSignal: Bool { get }

    /// Whether it may wait a few milliseconds in a busy lane's queue, to share a commit with other operations.
    static var toleratesDelay: Bool { get }

    /// Whether it reads so little that an event loop may run it: a few rows by their keys, or a page of one channel's history
    /// as it is. It writes nothing, notifies nobody, and needs no presence.
    var isBrief: Bool { get }

    /// The maximum number of channels that its connection watches from the answer on.
    var watchCountMax: Int { get }

    /// The rate limit per user, for operations that cost their caller nothing but others something; nil for most operations.
    static var userRate: UserRate? { get }

    /// The rate limit for this particular call. By default ``userRate``; nil only if that is.
    var rate: UserRate? { get }

    /// The client id of the message that it sends to its channel; nil for most operations. A batch checks beforehand which of
    /// its messages' ids are taken.
    var sentClientId: ClientID? { get }

    func handle(in context: inout Context) throws -> Response
}

extension Handled {
    public func scope(for caller: Caller) -> Scope { Scope() }
    public var requiredPresence: PresenceRequirement { .none }
    public var channelQuery: QueryChannels? { nil }
    public var isBrief: Bool { false }
    public var watchCountMax: Int { 0 }
    public static var isSignal: Bool { false }
    public static var toleratesDelay: Bool { false }
    public static var userRate: UserRate? { nil }
    public var rate: UserRate? { Self.userRate }
    public var sentClientId: ClientID? { nil }
}

/// A rate limit for one user, on one node.
public enum UserRate: Hashable, Sendable {
    /// ``Limits/signalsPerSecond``: operations that notify many users.
    case signals
    /// ``Limits/signOutsPerMinute``: operations that block all other writers.
    case signOuts
    /// ``Limits/presenceChangesPerMinute``: operations that affect each of a user's connections, in each of their channels.
    case presenceChanges

    /// The number of times.
    public var count: Int {
        switch self {
        case .signals: Limits.signalsPerSecond
        case .signOuts: Limits.signOutsPerMinute
        case .presenceChanges: Limits.presenceChangesPerMinute
        }
    }

    /// The period, in seconds.
    public var seconds: Int {
        switch self {
        case .signals: 1
        case .signOuts, .presenceChanges: 60
        }
    }
}

/// The presence that an operation's answer reports: collected over all nodes before the rule runs.
public enum PresenceRequirement: Hashable, Sendable {
    case none
    /// The users online in a channel, and its watchers.
    case channel(ChannelID)
    /// Which of these users are connected. For operations that only read.
    case users([UserID])
    /// The watchers of a channel, named even beyond those that every node names: up to this many from each. For operations that only read.
    case watchers(ChannelID, upTo: Int)
}

/// A state that a rule had ruled out: a fault in the server, which answers with an internal error and logs this.
struct ImpossibleState: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// All operations with their behaviour.
public enum OperationTable {
    /// A type that is listed in `Operations.all` but has no behaviour is left out here, and fails a test.
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
