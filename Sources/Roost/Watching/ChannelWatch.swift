import RoostAPI

/// Keeps a channel watched as long as it exists: it asks with each connection, and whenever a member may watch the channel again. No event tells others
/// that they may.
@MainActor
final class ChannelWatch {
    private let channel: ChannelID
    private let chat: Chat
    private let follower: Follower
    private let answer: ChannelAnswer
    private let hold: WatchHold
    private var following: ObservationToken?

    init(of channel: ChannelID, in chat: Chat) {
        self.channel = channel
        self.chat = chat
        follower = Follower(chat.driver)
        answer = ChannelAnswer(of: channel, chat.driver, needing: .channelWatch)
        hold = WatchHold(chat.driver)
        follower.follow(
            .channel(channel), connected: { [weak self] in await self?.watch() },
            changed: { [weak self] _ in
                // The watch has ended with the membership or with the right to watch.
                if await self?.answer.hasChannelRestarted() == true { self?.watchSoon() }
            })
        // Of the signals, only the end of the watch matters.
        following = chat.driver.signals.follow(channel, .presenceChanged) { [weak self] in self?.take($0) }
    }

    private func take(_ notice: SignalFeed.Notice) {
        guard !follower.hasEnded, case .unwatched = notice.news else { return }
        // The user may have got the right back by the time the server is asked.
        watchSoon()
    }

    private func watch() async {
        await follower.work { [weak self] in
            guard let self else { return }
            try await answer.ask()
            _ = try await hold.watch(channel)
        }
    }

    private func watchSoon() {
        answer.markOutdated()
        follower.soon { [weak self] in
            // A reconnect may have asked meanwhile.
            if self?.answer.isOutdated == true { await self?.watch() }
        }
    }
}

/// Watches a channel until it is released.
final class WatchHold: Sendable {
    private let driver: SyncDriver
    private let number = Int64.random(in: 1...Int64.max)

    init(_ driver: SyncDriver) { self.driver = driver }

    deinit {
        Task { [driver, number] in await driver.submit(.release(number)) }
    }

    func watch(_ channel: ChannelID) async throws -> WatchedChannel {
        try await driver.hold(channel, by: number).decoded()
    }
}
