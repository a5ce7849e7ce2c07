public import Observation
public import RoostAPI

/// One row of a channel list.
public struct ChannelItem: Identifiable, Hashable, Sendable {
    /// The channel with its attributes and counters.
    public var channel: Channel
    /// What the user is in it.
    public var membership: Membership
    /// The newest message on this device.
    public var lastMessage: Message?
    /// Messages that the user hasn't read (AM-43).
    public var unreadCount: Int

    /// The channel's id.
    public var id: ChannelID { channel.channelId }

    init?(_ view: ChannelView) {
        guard let membership = view.membership else { return nil }
        channel = view.channel
        self.membership = membership
        lastMessage = view.lastMessage
        unreadCount = view.unreadCount
    }
}

/// The channels that the user is a member of as a live collection, the most lately active first (AM-30).
@MainActor @Observable
public final class ChannelList {
    /// The channels, the most lately active first.
    public private(set) var items: [ChannelItem] = []
    /// The sum of the unread messages over all channels (AM-44).
    public private(set) var totalUnreadCount = 0
    /// Whether the device's store has been asked: before that, empty means nothing.
    public private(set) var isLoaded = false

    @ObservationIgnored private let driver: SyncDriver
    @ObservationIgnored private var following: ObservationToken?
    @ObservationIgnored private var reads = ReadOrder()
    @ObservationIgnored private let observers = Observers<[ChannelItem]>()

    init(of chat: Chat) {
        driver = chat.driver
        following = ObservationToken(
            task: Task { [weak self, driver] in
                guard let signals = await driver.signals(for: .channels) else { return }
                for await _ in signals { await self?.reload() }
            })
    }

    /// The list after each change, with the difference to the one before; the first update inserts everything.
    public var updates: ListUpdates<ChannelItem> {
        ListUpdates(snapshots: observers.values(startingWith: isLoaded ? items : nil))
    }

    /// Calls back with the list and its difference after each change, until the token is invalidated or released.
    public func observe(_ callback: @escaping @MainActor (ListUpdate<ChannelItem>) -> Void) -> ObservationToken {
        var last: [ChannelItem] = []
        return observers.add(startingWith: isLoaded ? items : nil) { items in
            let update = ListUpdate(from: last, to: items)
            last = items
            callback(update)
        }
    }

    private func reload() async {
        let number = reads.begin()
        let views: [ChannelView]
        do {
            views = try await driver.prepare().store.read { try $0.joinedChannels() }
        } catch {
            return driver.logReadFailure(error)
        }
        guard reads.end(number) else { return }
        let items = views.compactMap(ChannelItem.init)
        guard !isLoaded || items != self.items else { return }
        isLoaded = true
        self.items = items
        totalUnreadCount = items.reduce(0) { $0 + $1.unreadCount }
        observers.notify(items)
    }
}
