import Foundation
import RoostAPI
import RoostCore

/// News that a node sends to the others and that is never stored. It travels on the topic of its channel, to the nodes that follow it, and may be lost.
enum NodeSignal: Codable, Hashable, Sendable {
    case typing(UserID, ChannelID)
    case stoppedTyping(UserID, ChannelID)
    case read(ReadPosition, ChannelID)
    case signal(Signal)
    /// A user who marks a channel as unread stops reading it on other nodes, unless they began there later: this may arrive late, and twice.
    case markedUnread(UserID, ChannelID, at: Seq)
    /// A user's name or picture, as shown in a channel, has changed.
    case profileShown(UserSummary, ChannelID)

    /// Nil for notices that are sent differently, or not at all.
    init?(_ notice: Notice) {
        switch notice {
        case .typing(let user, let channel): self = .typing(user, channel)
        // A user who leaves a channel no longer types in it.
        case .stoppedTyping(let user, let channel), .left(let user, let channel, _, _): self = .stoppedTyping(user, channel)
        case .read(let position, let channel): self = .read(position, channel)
        case .signal(let signal, _): self = .signal(signal)
        case .markedUnread(let user, let channel, let userSeq): self = .markedUnread(user, channel, at: userSeq)
        case .profileShown(let user, let channel): self = .profileShown(user, channel)
        default: return nil
        }
    }

    /// Nil if it can't be read, or is about a different stream than the one that it arrived on.
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

    /// The notice for this node's rules. Each node determines for itself who may have a signal.
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

    /// Whether a payload on a stream's topic is such news: it is JSON, while packets of events begin with their version number.
    static func isIn(_ payload: [UInt8]) -> Bool { payload.first == UInt8(ascii: "{") }
}
