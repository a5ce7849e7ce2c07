import RoostAPI

@testable import Roost

// What the lines of a history say.

extension StoreWrite {
    var summary: String {
        switch self {
        case .erase(let epoch): "erase(\(epoch))"
        case .userPosition(let seq): "me:\(seq)"
        case .position(let channel, let position): "\(channel):\(position.windowStart)...\(position.cursor)"
        case .forget(let channel): "forget(\(channel))"
        case .leave(let channel): "leave(\(channel))"
        case .channel(let channel): "channel(\(channel.channelId)@\(channel.counters.seq))"
        case .counters(let channel, let counters): "counters(\(channel)@\(counters.seq) \(counters.messageCount))"
        case .membership(let row): "membership(\(row.channelId) \(row.state.rawValue) read \(row.readSeq) count \(row.readCount))"
        case .countOwn(let message): "own(\(message.channelId) \(message.seq))"
        case .members(let channel, let rows): "members(\(channel) \(rows.map { "\($0.userId):\($0.state.rawValue)" }))"
        case .messages(let rows): "messages(\(rows.map { "\($0.seq)/\($0.changeSeq)" }.joined(separator: ",")))"
        case .users(let rows): "users(\(rows.map(\.userId.rawValue)))"
        case .invitation(let row): "invitation(\(row.channelId) \(row.userId) by \(row.inviter) \(row.state.rawValue))"
        case .preferences(let row): "preferences(\(row.autoAcceptInvitations))"
        case .capabilities(let channel, let own): "capabilities(\(channel)@\(own.channelSeq) \(own.permissions.count))"
        case .roleCapabilities(let channel, let byRole): "capabilities(\(channel)@\(byRole.channelSeq) by role)"
        }
    }
}

extension OutboxWrite {
    var summary: String {
        switch self {
        case .remove(let key): "without \(key.clientId)"
        case .fail(let key, let error): "\(key.clientId) is refused: \(error.code.rawValue)"
        case .retry(let key): "\(key.clientId) once more"
        }
    }

    var key: MessageKey {
        switch self {
        case .remove(let key), .fail(let key, _), .retry(let key): key
        }
    }
}

extension ConnectionStatus {
    var summary: String {
        switch self {
        case .offline: "offline"
        case .connecting: "connecting"
        case .online: "online"
        case .waiting(let delay): "waiting \(delay.components.seconds) s"
        case .refused(let error): "refused: \(error.code.rawValue)"
        }
    }
}
