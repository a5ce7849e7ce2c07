import Roost
import RoostAPI

/// What a name that is typed after an "@" can mean: a member, or the whole channel.
enum MentionChoice: Hashable {
    case user(UserSummary)
    case channel

    /// What the text calls the channel.
    static let channelName = "all"

    var name: String {
        switch self {
        case .user(let user): user.name
        case .channel: Self.channelName
        }
    }

    /// Whether it can be the beginning of the channel's name.
    static func mayBeChannel(_ typed: String) -> Bool { channelName.hasPrefix(typed.lowercased()) }

    /// All that it can mean, the channel last. A name that is typed to its end means whoever has it, and not those whose names begin with it.
    static func all(for typed: String, among users: [UserSummary], withChannel: Bool) -> [MentionChoice] {
        let choices = users.map(MentionChoice.user) + (withChannel && mayBeChannel(typed) ? [.channel] : [])
        let whole = choices.filter { $0.name.lowercased() == typed.lowercased() }
        return whole.count == 1 ? whole : choices
    }
}
