public import Observation
public import RoostAPI

/// A channel as a live object: it shows what this device knows, and follows every change (AM-29).
///
/// `channel` is nil until the channel is known here: it is for channels that the user is or was a member of. Join it to have it.
@MainActor @Observable
public final class LiveChannel: Identifiable {
    /// The id by which the channel was asked for.
    public nonisolated let id: ChannelID
    /// The channel with its attributes and counters; nil while it is unknown here.
    public private(set) var channel: Channel?
    /// What the user is in the channel (AM-31); `state` is `.none` after leaving.
    public private(set) var membership: Membership?
    /// The newest message on this device.
    public private(set) var lastMessage: Message?
    /// Messages that the user hasn't read (AM-43), exact at every moment.
    public private(set) var unreadCount = 0
    /// Whether the device's store has been asked: before that, nil means nothing.
    public private(set) var isLoaded = false

    @ObservationIgnored let chat: Chat
    @ObservationIgnored private var following: ObservationToken?
    @ObservationIgnored private var reads = ReadOrder()
    @ObservationIgnored private let observers = Observers<ChannelView?>()

    init(_ id: ChannelID, of chat: Chat) {
        self.id = id
        self.chat = chat
        let driver = chat.driver
        following = ObservationToken(
            task: Task { [weak self] in
                guard let signals = await driver.signals(for: .channel(id)) else { return }
                for await _ in signals { await self?.reload() }
            })
    }

    /// The channel with the membership and the newest message; nil until the channel is known here.
    public var view: ChannelView? {
        channel.map { ChannelView(channel: $0, membership: membership, lastMessage: lastMessage) }
    }

    /// Every state of the channel from now on, the current one first.
    public var updates: AsyncStream<ChannelView?> { observers.values(startingWith: isLoaded ? .some(view) : nil) }

    /// Calls back with the channel, and again on every change, until the token is invalidated or released (AM-29).
    public func observe(_ callback: @escaping @MainActor (ChannelView?) -> Void) -> ObservationToken {
        observers.add(startingWith: isLoaded ? .some(view) : nil, callback)
    }

    private func reload() async {
        let (id, number) = (id, reads.begin())
        let view: ChannelView?
        do {
            view = try await chat.driver.prepare().store.read { try $0.channelView(id) }
        } catch {
            return chat.driver.logReadFailure(error)
        }
        guard reads.end(number) else { return }
        guard !isLoaded || view != self.view else { return }
        isLoaded = true
        channel = view?.channel
        membership = view?.membership
        lastMessage = view?.lastMessage
        unreadCount = view?.unreadCount ?? 0
        observers.notify(view)
    }
}
