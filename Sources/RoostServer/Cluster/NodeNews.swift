import Foundation
import RoostAPI
import RoostCore

/// What a node tells the others that is never stored. It travels on the topic of its channel, to the nodes with somebody there, and may be lost.
enum NodeNews: Codable, Hashable, Sendable {
    case typing(UserID, ChannelID)
    case stoppedTyping(UserID, ChannelID)
    case read(ReadPosition, ChannelID)
    case signal(Signal)
    /// Whoever marks a channel as unread doesn't go on reading it on another node, unless they began there later: this may come late, and twice.
    case markedUnread(UserID, ChannelID, at: Seq)
    /// What is shown of a user in a channel has changed.
    case profileShown(UserSummary, ChannelID)

    /// Nil for notices that travel otherwise, or not at all.
    init?(_ notice: Notice) {
        switch notice {
        case .typing(let user, let channel): self = .typing(user, channel)
        // Whoever leaves a channel doesn't type in it any more.
        case .stoppedTyping(let user, let channel), .left(let user, let channel, _): self = .stoppedTyping(user, channel)
        case .read(let position, let channel): self = .read(position, channel)
        case .signal(let signal, _): self = .signal(signal)
        case .markedUnread(let user, let channel, let userSeq): self = .markedUnread(user, channel, at: userSeq)
        case .profileShown(let user, let channel): self = .profileShown(user, channel)
        default: return nil
        }
    }

    /// Nil if it can't be read, or is about another stream than the one that it came on.
    init?(_ payload: [UInt8], of stream: StreamID) {
        guard let news = try? JSONDecoder().decode(Self.self, from: Data(payload)), stream == news.stream else {
            return nil
        }
        self = news
    }

    var stream: StreamID {
        switch self {
        case .typing(_, let channel), .stoppedTyping(_, let channel), .read(_, let channel), .markedUnread(_, let channel, _),
            .profileShown(_, let channel):
            .channel(channel)
        case .signal(let signal): .channel(signal.channel)
        }
    }

    /// The same for this node's rules. Who may have a signal, each node finds for itself.
    var notice: Notice {
        switch self {
        case .typing(let user, let channel): .typing(user, channel)
        case .stoppedTyping(let user, let channel): .stoppedTyping(user, channel)
        case .read(let position, let channel): .read(position, channel)
        case .markedUnread(let user, let channel, let userSeq): .markedUnread(user, channel, at: userSeq)
        case .profileShown(let user, let channel): .profileShown(user, channel)
        case .signal(let signal): .signal(signal, .watchers(signal.channel))
        }
    }

    var payload: [UInt8]? { (try? JSONEncoder().encode(self)).map(Array.init) }

    /// Whether a packet of a stream's topic is such news: JSON, while packets of events begin with the number of their version.
    static func isIn(_ payload: [UInt8]) -> Bool { payload.first == UInt8(ascii: "{") }
}
