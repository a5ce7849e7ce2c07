import RoostAPI

extension LiveChannel {
    /// Marks the messages that a list holds as read, visible or not, and later ones as they arrive, until the token is released or invalidated: at
    /// once, then at most once per interval. The newest messages are marked when it ends, at the latest. To mark only what has been scrolled into
    /// view, use ``LiveChannel/markRead(upTo:)``.
    ///
    /// Keep the token as long as the channel is on the screen and the app is in the foreground. Once messages of the channel are marked as unread, on
    /// any of the user's devices (``LiveChannel/markUnread(from:)``), the token marks nothing more: make a new one when the user opens the channel
    /// again.
    ///
    /// - Parameters:
    ///   - messages: The list on the screen. Nil for all messages of the channel that have arrived.
    ///   - interval: The minimum time between two marks.
    public func markReadWhileVisible(_ messages: MessageList? = nil, every interval: Duration = .seconds(2)) -> ObservationToken {
        let marker = ReadMarker(self, messages, interval)
        return ObservationToken { Task { @MainActor in marker.end() } }
    }
}

/// Marks a channel as read while it is shown.
@MainActor
private final class ReadMarker {
    private let channel: LiveChannel
    private let messages: MessageList?
    private let interval: Duration
    private var observations: [ObservationToken] = []
    /// The seq up to which it was marked, or was read anyway.
    private var marked: Seq = 0
    /// The seq up to which it was marked. A mention in a message that was read anyway is still marked.
    private var sent: Seq = 0
    /// The seq up to which the channel was read at the last check.
    private var readSeq: Seq = 0
    /// The position of the user's own stream that belongs to it.
    private var userSeq: Seq = 0
    /// Whether messages were marked as unread, on any device: marking later ones as read would undo that, because there is only one position.
    private var isLeftUnread = false
    /// The mark on its way, and the wait after it.
    private var work: Task<Void, Never>?
    private var hasEnded = false

    init(_ channel: LiveChannel, _ messages: MessageList?, _ interval: Duration) {
        self.channel = channel
        self.messages = messages
        self.interval = interval
        observations = [channel.observe { [weak self] _ in self?.mark() }]
        if let messages { observations.append(messages.observe { [weak self] _ in self?.mark() }) }
    }

    /// The seq up to which there is something to mark; nil if there is nothing.
    private func due() -> Seq? {
        guard let membership = channel.membership, membership.state == .member else { return nil }
        // The server has started another history, from a backup or with other data. The newest message may be older because of a deletion, so the
        // counters decide. Marks alone move the user's own stream, which goes back with them.
        let isOfChannel = channel.channel.map { $0.counters.seq < marked } ?? false
        if isOfChannel || membership.userSeq < userSeq { (marked, sent, readSeq, isLeftUnread) = (0, 0, 0, false) }
        // A concealment that is refused or discarded also moves the position back, but without anything new in the user's own stream or a mark on
        // this device.
        if membership.readSeq < readSeq, membership.userSeq > userSeq || channel.isMarkedUnread { isLeftUnread = true }
        (readSeq, userSeq) = (membership.readSeq, membership.userSeq)
        guard !isLeftUnread else { return nil }
        guard channel.unreadCount > 0 else {
            // All messages were read, on any device, or are the user's own. Messages marked as unread later stay unread.
            marked = max(marked, channel.lastMessage?.seq ?? 0)
            return channel.hasMention ? mentionSeq().flatMap { $0 > max(membership.readSeq, sent) ? $0 : nil } : nil
        }
        let shown = messages.map { list in list.items.lazy.compactMap { $0.message?.seq }.last } ?? channel.lastMessage?.seq
        return shown.flatMap { $0 > max(membership.readSeq, marked) ? $0 : nil }
    }

    /// The seq up to which the mentions on the screen are read: a message that was read may mention the user after a later edit.
    private func mentionSeq() -> Seq? {
        guard let messages else { return channel.channel?.counters.seq }
        return messages.items.lazy.compactMap(\.message).filter { $0.mentionees?.isEmpty == false }.map(\.changeSeq).max()
    }

    private func mark() {
        let seq = due()
        guard work == nil, !hasEnded, let seq else { return }
        let (clock, interval) = (channel.chat.driver.environment.clock, interval)
        work = Task { [weak self] in
            await self?.send(seq)
            try? await clock.sleep(for: interval)
            guard !Task.isCancelled else { return }
            self?.work = nil
            // Marks what arrived meanwhile.
            self?.mark()
        }
    }

    /// A mark that this device can't store is due again after the interval. Without a connection it is stored, and sent later.
    private func send(_ seq: Seq) async {
        guard (try? await channel.markRead(upTo: seq)) != nil else { return }
        marked = max(marked, seq)
        sent = max(sent, seq)
    }

    func end() {
        guard !hasEnded else { return }
        hasEnded = true
        observations = []
        work?.cancel()
        if let seq = due() { Task { await send(seq) } }
    }
}
