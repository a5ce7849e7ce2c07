import RoostAPI

extension LiveChannel {
    /// Marks what is on the screen as read, and what is shown later, until the token is released or invalidated: at once, then at most once per
    /// interval. The newest messages are marked when it ends, at the latest.
    ///
    /// Keep the token as long as the channel is on the screen and the app is in the foreground. Once messages of the channel are marked as unread, on any of the
    /// user's devices (``LiveChannel/markUnread(from:)``), the token marks nothing more: make a new one when the user opens the channel again.
    ///
    /// - Parameters:
    ///   - messages: The list that is on the screen: the messages that it holds are read. Nil for the newest messages of the channel.
    ///   - interval: The least time between two marks.
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
    /// Up to where it was marked, or was read anyway.
    private var marked: Seq = 0
    /// Up to where it was marked. A mention in a message that was read anyway is marked all the same.
    private var sent: Seq = 0
    /// Up to where the channel was read when it was looked at last.
    private var readSeq: Seq = 0
    /// The position of the user's own stream with which that came.
    private var userSeq: Seq = 0
    /// Whether messages were marked as unread, on whatever device: marking later ones as read would undo that, for there is one position.
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
        // The server has begun anew, from a backup or with other data. The newest message may be older for being deleted: the counters tell it. Marks alone move the
        // user's own stream, which goes back with them.
        let isOfChannel = channel.channel.map { $0.counters.seq < marked } ?? false
        if isOfChannel || membership.userSeq < userSeq { (marked, sent, readSeq, isLeftUnread) = (0, 0, 0, false) }
        // A concealment that is refused or given up moves the position back too: without anything new in the user's own stream or a mark of this device.
        if membership.readSeq < readSeq, membership.userSeq > userSeq || channel.isMarkedUnread { isLeftUnread = true }
        (readSeq, userSeq) = (membership.readSeq, membership.userSeq)
        guard !isLeftUnread else { return nil }
        guard channel.unreadCount > 0 else {
            // All of it was read, on whatever device, or is the user's own. What of it is marked as unread later stays so.
            marked = max(marked, channel.lastMessage?.seq ?? 0)
            return channel.hasMention ? mentionSeq().flatMap { $0 > max(membership.readSeq, sent) ? $0 : nil } : nil
        }
        let shown = messages.map { list in list.items.lazy.compactMap { $0.message?.seq }.last } ?? channel.lastMessage?.seq
        return shown.flatMap { $0 > max(membership.readSeq, marked) ? $0 : nil }
    }

    /// Up to where the mentions on the screen are read: a message that was read may mention the user since it was edited.
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
            // What came meanwhile.
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
