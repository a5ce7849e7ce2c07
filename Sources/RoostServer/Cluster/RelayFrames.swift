import RoostAPI
import RoostCore

extension EventFrames {
    /// Turns the relay's steps into the hub's, and collects the closures of waiting callers, to be called afterwards.
    static func steps(for decided: [Relay.Step]) -> (steps: [Step], waiting: [@Sendable () -> Void]) {
        var frames = EventFrames()
        var waiting: [@Sendable () -> Void] = []
        for step in decided {
            switch step {
            case .event(let item):
                if let isShared = item.sharesPresence, case .user(let user) = item.stream {
                    frames.change(.presenceShared(user, isShared))
                }
                frames.add(item, to: item.audience)
            case .past(let item, .member(let user)): frames.add(item, toNewcomers: .member(user))
            case .past(let item, .connection(let connection, _)): frames.add(item, toNewcomers: .connection(connection))
            case .past(let item, .watcher(let connection, _)): frames.add(item, toNewcomers: .watcher(connection))
            case .change(let notice): frames.change(notice)
            case .watches(let connection, let user, let channel, let seq, let online):
                frames.watches(connection, user, channel, at: seq, online: online)
            case .attach(let connection, let channel): frames.attach(connection, to: channel)
            case .attachWatcher(let connection, let channel): frames.attachWatcher(connection, to: channel)
            case .answer(.socket(let socket, let payload)): frames.reply(payload, to: socket)
            case .answer(.waiting(let resume)): waiting.append(resume)
            }
        }
        return (frames.steps, waiting)
    }

    private mutating func add(_ item: StreamItem, to audience: Audience) {
        add(
            item.json, of: item.stream, at: item.seq, oldestMessage: item.oldestMessage, isPartial: item.isPartial,
            readers: item.readers, to: audience)
    }

    private mutating func add(_ item: StreamItem, toNewcomers newcomers: Newcomers) {
        guard case .channel(let channel) = item.stream else { return }
        add(
            item.json, of: channel, at: item.seq, oldestMessage: item.oldestMessage, isPartial: item.isPartial,
            readers: item.readers, toNewcomers: newcomers)
    }
}

extension StreamItem {
    var audience: Audience {
        switch stream {
        case .channel(let channel): .channel(channel, readers)
        case .user(let user): .user(user)
        }
    }
}
