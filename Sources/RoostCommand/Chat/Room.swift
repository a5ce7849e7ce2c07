import Roost
import RoostAPI

/// A channel in which a user chats: how it is entered, and the names of its users.
@MainActor
final class Room {
    let chat: Chat
    let channel: LiveChannel
    private let createsChannel: Bool
    private var names: [UserID: String] = [:]

    init(_ channel: ChannelID, in chat: Chat, createsChannel: Bool) {
        self.chat = chat
        self.channel = chat.channel(channel)
        self.createsChannel = createsChannel
    }

    /// Another channel of the same user, with the same known names.
    func next(_ channel: ChannelID) -> Room {
        let room = Room(channel, in: chat, createsChannel: false)
        room.names = names
        return room
    }

    /// Enters the channel, joining or creating it first if necessary.
    ///
    /// - Returns: Whether it had to be created.
    func enter() async throws -> Bool {
        do {
            _ = try await joined(channel.id)
            return false
        } catch let error as RoostError where error.code == .notFound && createsChannel {
            do {
                try await chat.createChannel(channel.id)
                return true
            } catch let error as RoostError where error.code == .alreadyExists {
                // Someone else created it meanwhile.
                _ = try await joined(channel.id)
                return false
            }
        }
    }

    /// Returns a channel that the user is a member of, joining it if they aren't one yet.
    ///
    /// Members don't call join: the server refuses it for types without joining, such as `conversation`.
    func joined(_ id: ChannelID) async throws -> ChannelView {
        do {
            let view = try await chat.call(GetChannel(channel: id))
            if view.membership?.state == .member { return view }
        } catch let error as RoostError where !error.isRetryable {
            // Some channels can be joined by id but are only visible to members: the response to joining decides.
        }
        return try await chat.call(JoinChannel(channel: id))
    }

    /// Returns a user's name: their display name if it is known, otherwise their id.
    func name(of user: UserID) -> String { names[user] ?? user.rawValue.safe() }

    /// Notes the names of users known on this device.
    func note(_ users: some Sequence<UserSummary>) {
        for user in users where user.version > 0 { names[user.userId] = user.name.safe() }
    }

    /// Fetches unknown names. Without a connection, ids are shown instead.
    ///
    /// - Returns: Whether there is something new.
    func learnNames(of users: some Sequence<UserID>) async -> Bool {
        let unknown = Set(users).filter { names[$0] == nil }.sorted().prefix(Limits.usersPerCall)
        guard !unknown.isEmpty, let found = try? await chat.users(Array(unknown)) else { return false }
        for user in unknown { names[user] = user.rawValue.safe() }
        note(found.lazy.map(\.summary))
        return true
    }
}
