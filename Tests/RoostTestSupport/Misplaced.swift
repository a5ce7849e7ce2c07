public import RoostAPI
public import RoostCore

/// Operations for tests that move streams missing from their scope, as a mistake in a rule's scope would.
public struct Misplaced: Handled {
    public typealias Response = Done
    public static let name = "test.misplaced"
    public static let method = HTTPMethod.post
    public static let path = "/v1/test/misplaced"
    public static let permission = Permission.streamRead
    public static let summary = "Moves what its scope doesn't name."

    /// The fault. Each of them first also moves a stream that it may move, if there is one.
    public enum Work: String, Codable, Sendable {
        /// Sends to the channel.
        case send
        /// Marks the channel read: a stream of the caller's own.
        case read
        /// Adds the user `bob`, who is only named in the request.
        case add
        /// Deletes the channel, which moves the streams of the invited users it finds.
        case delete
    }

    public var work: Work
    public var channel: ChannelID
    /// The channels and users that its scope names.
    public var channels: [ChannelID]
    public var users: [UserID]

    public init(_ work: Work, in channel: ChannelID, channels: [ChannelID] = [], users: [UserID] = []) {
        self.work = work
        self.channel = channel
        self.channels = channels
        self.users = users
    }

    public func validate() throws(RoostError) {}

    public func scope(for caller: Caller) -> Scope { Scope(channels: Set(channels), users: Set(users)) }

    public func handle(in context: inout Context) throws -> Done {
        switch work {
        case .send: _ = try SendMessage(channel: channel, clientId: "misplaced", text: "misplaced").handle(in: &context)
        case .read: _ = try MarkRead(channel: channel).handle(in: &context)
        case .add: _ = try AddMembers(channel: channel, users: ["bob"]).handle(in: &context)
        case .delete: _ = try DeleteChannel(channel: channel).handle(in: &context)
        }
        return Done()
    }
}
