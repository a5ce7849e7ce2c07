import Roost
import RoostAPI

/// A possible meaning of a name typed after an "@": a member, or the whole channel.
enum MentionChoice: Hashable {
    case user(UserSummary)
    case channel

    /// The channel's name in the text.
    static let channelName = "all"

    var name: String {
        switch self {
        case .user(let user): user.name
        case .channel: Self.channelName
        }
    }

    /// Whether it can be the beginning of the channel's name.
    static func mayBeChannel(_ typed: String) -> Bool { channelName.hasPrefix(typed.lowercased()) }

    /// All possible meanings, the channel last. A completely typed name means the user with that name, not those whose names begin with it.
    static func all(for typed: String, among users: [UserSummary], withChannel: Bool) -> [MentionChoice] {
        let choices = users.map(MentionChoice.user) + (withChannel && mayBeChannel(typed) ? [.channel] : [])
        let whole = choices.filter { $0.name.lowercased() == typed.lowercased() }
        return whole.count == 1 ? whole : choices
    }
}
