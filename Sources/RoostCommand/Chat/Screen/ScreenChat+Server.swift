import Roost
import RoostAPI

/// The screen's own requests to the server.
extension ScreenChat {
    /// Joins once; watches again on each connection, because a watch ends with it.
    func enter() {
        // What was kept from an earlier run says nothing of the server that answers now: it may have begun anew.
        if reading.hasBegun { noteMembership(of: room.channel.view) }
        reading.hasBegun = true
        let (isFirst, room) = (!reading.hasEntered, room)
        attempt { screen in
            if isFirst, try await room.enter() { screen.events.yield(.notice("the channel was new: it was made just now")) }
            guard room === screen.room else { return }
            screen.reading.hasEntered = true
            screen.events.yield(.watched(try await room.channel.watch(limit: 1)))
        }
    }

    /// Whoever is a member while there is a connection needn't join, and doesn't later: whoever removes them meanwhile means it.
    func noteMembership(of view: ChannelView?) {
        if state.status == .online, view?.membership?.state == .member { reading.hasEntered = true }
    }

    /// Marks messages in view at the bottom as read.
    func markRead() {
        // The server may have begun anew, from a backup.
        if let seq = room.channel.channel?.counters.seq, seq < reading.markedSeq { reading.markedSeq = 0 }
        guard state.isAtBottom, state.status == .online, reading.marking == nil, !reading.marker.isRead,
            let newest = state.rows.last(where: { $0.seq != nil })?.seq, newest > max(reading.marker.leftUnread, reading.markedSeq)
        else { return }
        reading.marking = Task { [room] in
            // If it fails there is another occasion: the next event. Once is enough otherwise: a second one could come after another device has marked
            // the message as unread.
            let isDone = (try? await room.channel.markRead(upTo: newest)) != nil
            guard room === self.room else { return }
            reading.marking = nil
            if isDone { reading.markedSeq = newest }
        }
    }

    /// How long a chat that ends waits for the server.
    private static let patience = Duration.seconds(2)

    /// Finishes what was begun before the user quit: what was typed last is in the outbox, and the server has a moment to answer what was asked of it.
    ///
    /// - Returns: What the user has to know: what failed, and what is lost.
    func farewell() async -> [String] {
        lateFailures = []
        await sending?.value
        await Self.wait(within: Self.patience) { [self] in
            for task in attempts.values { await task.value }
            // What isn't sent is counted below, with a connection or without.
            try? await room.chat.outbox.loaded()
            guard state.status == .online else { return }
            for await entries in room.chat.outbox.updates where !entries.contains(where: { $0.state == .pending }) { break }
        }
        let failures = (lateFailures ?? []) + newRefusals()
        return failures + [wordOfUnsent()].compactMap { $0 }
    }

    /// What becomes of messages that aren't sent; nil if there are none.
    private func wordOfUnsent() -> String? {
        let unsent = room.chat.outbox.entries.filter { $0.operation == SendMessage.name }
        guard !state.isInMemory else {
            guard !unsent.isEmpty else { return nil }
            let lost = unsent.count == 1 ? "1 message wasn't sent and is" : "\(unsent.count) messages weren't sent and are"
            return "\(lost) lost: unsent messages were kept in memory."
        }
        // Others wait for the user: they were refused, or are meant for another server.
        switch unsent.count(where: { $0.state == .pending }) {
        case 0: return nil
        case 1: return "1 message is unsent: it goes out the next time you chat."
        case let count: return "\(count) messages are unsent: they go out the next time you chat."
        }
    }

    private static func wait(within limit: Duration, for work: @escaping @MainActor () async -> Void) async {
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let tasks = [
            Task {
                await work()
                end.yield()
            },
            Task {
                try? await Task.sleep(for: limit)
                end.yield()
            },
        ]
        for await _ in ends { break }
        for task in tasks { task.cancel() }
    }
}
