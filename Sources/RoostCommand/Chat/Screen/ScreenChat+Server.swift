import Roost
import RoostAPI

/// The screen's own requests to the server.
extension ScreenChat {
    /// Joins once, and watches again on each connection, because a watch ends with its connection.
    func enter() {
        // Data kept from an earlier run may not match the current server, which may have started over.
        if reading.hasBegun { noteMembership(of: room.channel.view) }
        reading.hasBegun = true
        let (isFirst, room) = (!reading.hasEntered, room)
        attempt { screen in
            if isFirst, try await room.enter() { screen.events.yield(.notice("the channel was just created")) }
            guard room === screen.room else { return }
            screen.reading.hasEntered = true
            screen.events.yield(.watched(try await room.channel.watch(limit: 1)))
        }
    }

    /// A user who is a member while connected needn't join, and doesn't later either: being removed meanwhile was intended.
    func noteMembership(of view: ChannelView?) {
        if state.status == .online, view?.membership?.state == .member { reading.hasEntered = true }
    }

    /// Marks messages in view at the bottom as read.
    func markRead() {
        // The server may have been restored from a backup.
        if let seq = room.channel.channel?.counters.seq, seq < reading.markedSeq { reading.markedSeq = 0 }
        guard state.isAtBottom, state.status == .online, reading.marking == nil, !reading.marker.isRead,
            let newest = state.rows.last(where: { $0.seq != nil })?.seq, newest > max(reading.marker.leftUnread, reading.markedSeq)
        else { return }
        reading.marking = Task { [room] in
            // If it fails, the next event tries again. Otherwise once is enough: a second mark could arrive after another device has marked
            // the message as unread.
            let isDone = (try? await room.channel.markRead(upTo: newest)) != nil
            guard room === self.room else { return }
            reading.marking = nil
            if isDone { reading.markedSeq = newest }
        }
    }

    /// How long an ending chat waits for the server.
    private static let patience = Duration.seconds(2)

    /// Finishes pending work after the user quit: the last typed messages are put into the outbox, and the server has a moment to answer
    /// pending requests.
    ///
    /// - Returns: What to report to the user: failures and losses.
    func farewell() async -> [String] {
        lateFailures = []
        await sending?.value
        await Self.wait(within: Self.patience) { [self] in
            for task in attempts.values { await task.value }
            // Unsent messages are counted below, with or without a connection.
            try? await room.chat.outbox.loaded()
            guard state.status == .online else { return }
            for await entries in room.chat.outbox.updates where !entries.contains(where: { $0.state == .pending }) { break }
        }
        let failures = (lateFailures ?? []) + newRefusals()
        return failures + [wordOfUnsent()].compactMap { $0 }
    }

    /// What happens to unsent messages; nil if there are none.
    private func wordOfUnsent() -> String? {
        let unsent = room.chat.outbox.entries.filter { $0.operation == SendMessage.name }
        guard !state.isInMemory else {
            guard !unsent.isEmpty else { return nil }
            let lost = unsent.count == 1 ? "1 message wasn't sent and is" : "\(unsent.count) messages weren't sent and are"
            return "\(lost) lost: unsent messages were kept in memory."
        }
        // The others wait for the user's decision: they were refused, or are meant for another server.
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
