import Roost
import RoostAPI

/// The screen's own requests to the server.
extension ScreenChat {
    /// Joins once; watches again on each connection, because a watch ends with it.
    func enter() {
        let (isFirst, room) = (!hasEntered, room)
        attempt { screen in
            if isFirst, try await room.enter() { screen.events.yield(.notice("the channel was new: it was made just now")) }
            guard room === screen.room else { return }
            screen.hasEntered = true
            screen.events.yield(.watched(try await room.channel.watch(limit: 1)))
        }
    }

    /// Marks messages in view at the bottom as read.
    func markRead() {
        guard state.isAtBottom, state.status == .online, !isMarkingRead, room.channel.unreadCount > 0,
            let newest = state.rows.last(where: { $0.seq != nil })?.seq, newest > leftUnread
        else { return }
        isMarkingRead = true
        Task {
            // Without a connection there is another occasion: the next event.
            _ = try? await room.channel.markRead(upTo: newest)
            isMarkingRead = false
        }
    }
}
