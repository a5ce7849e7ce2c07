import RoostAPI

@testable import Roost

// The lines of a history.

extension StoreWrite {
    var summary: String {
        switch self {
        case .erase(let epoch): "erase(\(epoch))"
        case .userPosition(let seq): "me:\(seq)"
        case .appRole(let role): "role(\(role?.rawValue ?? "unknown"))"
        case .position(let channel, let position):
            "\(channel):\(position.windowStart)...\(position.cursor)" + (position.stretches.isEmpty ? "" : " \(position.stretches)")
        case .advance(let channel, let position): "\(channel):...\(position.cursor)"
        case .page(let channel, let range): "page(\(channel) \(range))"
        case .forget(let channel): "forget(\(channel))"
        case .forgetMessages(let channel, let range): "forget(\(channel) \(range))"
        case .leave(let channel): "leave(\(channel))"
        case .visit(let channel, let position): "visit(\(channel):\(position.windowStart)...\(position.cursor))"
        case .endVisit(let channel): "endVisit(\(channel))"
        case .keepVisits(let channels): "visits(\(channels.count))"
        case .channel(let channel): "channel(\(channel.channelId)@\(channel.counters.seq))"
        case .counters(let channel, let counters): "counters(\(channel)@\(counters.seq) \(counters.messageCount))"
        case .add(let rows, let channel): "add(\(channel): \(rows.summary))"
        case .users(let users): "users(\(users.map { "\($0.userId)@\($0.version)" }.joined(separator: " ")))"
        case .rows(let rows, let stream): "rows of \(stream): \(rows.summary)"
        case .rowsOfCached(let rows, let channel): "rows of cached messages of \(channel): \(rows.summary)"
        case .count(let channel, let rows): "count(\(channel): \(rows.summary))"
        case .overlay(let channel, let overlay): "overlay(\(channel?.rawValue ?? "own") \(overlay.map { "\($0)" } ?? "none"))"
        case .keepOverlays(let channels): "overlays(\(channels.count))"
        case .capabilities(let channel, let own): "capabilities(\(channel)@\(own.channelSeq) \(own.permissions.count))"
        case .roleCapabilities(let channel, let byRole): "capabilities(\(channel)@\(byRole.channelSeq) by role)"
        }
    }
}

extension Rows {
    fileprivate var summary: String {
        var parts = (memberships ?? []).map {
            "membership(\($0.channelId) \($0.state.rawValue) read \($0.readSeq) count \($0.readCount))"
        }
        if let members { parts.append("members(\(members.map { "\($0.userId):\($0.state.rawValue)" }))") }
        if let messages { parts.append("messages(\(messages.map { "\($0.seq)/\($0.changeSeq)" }.joined(separator: ",")))") }
        if let purged { parts.append("purged(\(purged.map(\.seq)))") }
        if let users { parts.append("users(\(users.map(\.userId.rawValue)))") }
        parts += (invitations ?? []).map { "invitation(\($0.channelId) \($0.userId) by \($0.inviter) \($0.state.rawValue))" }
        if let preferences { parts.append("preferences(\(preferences.autoAcceptInvitations))") }
        return parts.joined(separator: " ")
    }
}

extension OutboxWrite {
    var summary: String {
        switch self {
        case .put(let item), .update(let item, _):
            "\(item.number) \(item.operation.summary)\(item.firstSentAt == nil ? "" : ", sent")\(item.failure.map { ", \($0.code.rawValue)" } ?? "")"
        case .change(let id, let channel, let item): (item.map(OutboxWrite.put) ?? .remove(id, of: channel)).summary
        case .sending(let id, _, _, _): "\(id) is sent"
        case .remove(let id, _): "without \(id)"
        case .done(let id, _), .arrived(let id, _, _): "done with \(id)"
        case .server(let server): "for \(server)"
        }
    }
}

extension OutboxOperation {
    var summary: String { "\(type(of: operation).name) \(sent?.clientId.rawValue ?? "")" }
}

extension Sync.Status {
    var summary: String {
        switch self {
        case .offline: "offline"
        case .connecting: "connecting"
        case .online: "online"
        case .waiting(let delay, _): "waiting \(delay.components.seconds) s"
        case .refused(let error): "refused: \(error.code.rawValue)"
        case .failed(let error): "failed: \(error.code.rawValue)"
        }
    }
}
