import Foundation
import Roost
import RoostAPI
import UnixSignals

/// A chat on a full screen. Whatever happens comes as an event through one stream: it changes the state, and the state is drawn.
@MainActor
final class ScreenChat {
    enum Event: Sendable {
        case typed([UInt8])
        /// The messages, the channel or the user's channels have changed: they are read when the event's turn comes, so that none is of a
        /// channel that was left meanwhile.
        case messages, channel, channels, typing
        case status(ConnectionStatus)
        case watched(WatchedChannel)
        case answered(RoomAnswer)
        case notice(String)
        case online(Int, ChannelID)
        case tick, resized, stop
    }

    private(set) var room: Room
    private(set) var list: MessageList
    var state: ScreenState
    let events: AsyncStream<Event>.Continuation
    private let incoming: AsyncStream<Event>
    let channels: ChannelList
    /// Who else types in the channel.
    private(set) var typing: LiveTyping
    /// How many members are online.
    private(set) var presence: LivePresence
    /// How far the others have read.
    private(set) var receipts: LiveReceipts
    private(set) var items: [MessageItem] = []
    private var keys = KeyParser()
    var isMarkingRead = false
    var hasEntered = false
    /// Whether new messages are read as they come. Before the first are read and after the connection was away, they are not: what came
    /// meanwhile gets the marker.
    private var isFollowing = false
    private var isRead = true
    /// Whether the user knows what to do without a server: there has been one, or the screen has said it.
    private var isAdvised = false
    /// Whether the user last was a member, so that a removal is shown.
    private var isMember = false
    private var observations: [ObservationToken] = []
    /// What is being written, with the mentions in it.
    var composer = MentionComposer()
    /// What was marked as unread, up to where: reading begins after it.
    var leftUnread: Seq = 0
    /// The place that was asked for and isn't in view yet.
    var goal: MessageAnchor?
    /// The newest send: the next one waits for it.
    var sending: Task<Void, Never>?

    init(_ room: Room) {
        self.room = room
        list = room.channel.messages(pageSize: 50)
        typing = room.channel.typing()
        presence = room.channel.presence()
        receipts = room.channel.receipts()
        channels = room.chat.channels()
        state = ScreenState(channel: room.channel.id)
        (incoming, events) = AsyncStream.makeStream(of: Event.self)
    }

    /// Runs until the user quits. The terminal is as it was before, however it ends.
    func run() async throws {
        var terminal = try RawTerminal()
        let producers = produceEvents()
        defer { for producer in producers { producer.cancel() } }
        observations = observe()
        defer { for observation in observations { observation.invalidate() } }
        room.chat.start()
        draw(on: &terminal)
        for await event in incoming {
            if case .stop = event { break }
            if case .resized = event { terminal.invalidate() }
            guard handle(event, terminal: &terminal) else { break }
            draw(on: &terminal)
            markRead()
        }
    }

    private func draw(on terminal: inout RawTerminal) {
        let size = RawTerminal.size
        let frame = ScreenLayout(width: size.width).frame(of: state, height: size.height, now: .now)
        (state.scroll, state.panel.scroll) = (frame.scroll, frame.panelScroll)
        terminal.show(frame.lines, cursorColumn: frame.cursorColumn)
    }

    // MARK: What they do

    /// Whether to continue.
    private func handle(_ event: Event, terminal: inout RawTerminal) -> Bool {
        switch event {
        case .typed(let bytes):
            for key in keys.parse(bytes) {
                if key == .redraw { terminal.invalidate() }
                guard press(key) else { return false }
            }
        case .messages:
            items = list.items
            showMessages()
        case .channel: show(room.channel.view)
        case .channels: showUnreadElsewhere()
        case .typing: (state.typing, state.moreType) = (typing.users.map { $0.name.safe() }, typing.hasMore)
        case .status(let status): show(status)
        case .answered(let answer): show(answer)
        case .watched(let watched):
            guard watched.channel.channelId == state.channel else { break }
            state.onlineCount = watched.online
            state.memberCount = watched.channel.counters.memberCount
        case .notice(let text): state.tell([text], width: RawTerminal.size.width)
        case .online(let count, let channel): if channel == state.channel, isMember { state.onlineCount = count }
        case .tick, .resized, .stop: break
        }
        return true
    }

    /// Shows another channel instead of this one.
    private func go(into id: ChannelID) {
        for observation in observations { observation.invalidate() }
        let left = room
        Task { try? await left.channel.unwatch() }
        room = room.next(id)
        list = room.channel.messages(pageSize: 50)
        typing = room.channel.typing()
        receipts = room.channel.receipts()
        presence = room.channel.presence()
        items = []
        (goal, leftUnread) = (nil, 0)
        (hasEntered, isMember, isMarkingRead, isFollowing, isRead) = (false, false, false, false, true)
        state = state.moved(to: id)
        observations = observe()
        showUnreadElsewhere()
        if state.status == .online { enter() }
    }

    private func show(_ answer: RoomAnswer) {
        if let id = answer.enters {
            // A user who rejoins the channel on the screen has to watch it again.
            if id == state.channel { enter() } else { go(into: id) }
        }
        state.tell(answer.lines, width: RawTerminal.size.width)
    }

    private func showUnreadElsewhere() {
        state.unreadElsewhere = channels.items.filter { $0.unreadCount > 0 && $0.id != state.channel }
            .map { (($0.channel.displayName ?? $0.id.rawValue).safe(), $0.unreadCount) }
    }

    private func show(_ view: ChannelView?) {
        state.displayName = view?.channel.displayName?.safe()
        guard let view, let membership = view.membership, membership.state == .member else {
            (state.memberCount, state.onlineCount) = (nil, nil)
            if isMember { state.tell([room.absence], width: RawTerminal.size.width) }
            isMember = false
            return
        }
        isMember = true
        state.memberCount = view.channel.counters.memberCount
        if view.unreadCount == 0 {
            (isRead, isFollowing) = (true, state.status == .online)
        } else if isRead {
            isRead = false
            // Reading stopped here, unless these are on the screen as they come.
            if !isFollowing || !state.isAtBottom { state.marker = membership.readSeq }
        }
    }

    private func show(_ status: ConnectionStatus) {
        if state.status == .online, status != .online {
            isFollowing = false
            if state.isAtBottom { state.marker = nil }
        }
        let advice = Panel([StatusLine.noServer])
        if status.isWithoutServer, !isAdvised {
            isAdvised = true
            state.panel = advice
        } else if status == .online {
            isAdvised = true
            if state.panel == advice { state.panel = Panel() }
        }
        state.status = status
        // Nobody tells who comes and goes now.
        if status != .online { state.onlineCount = nil }
        if status == .online { enter() }
    }

    private func mentionsUser(_ message: Message) -> Bool {
        guard let mentionees = message.content.mentionees, message.sender != room.chat.user else { return false }
        return mentionees.mentionsChannel || mentionees.mentionedUsers.contains(room.chat.user)
    }

    /// Shows another part of the channel.
    func show(around anchor: MessageAnchor) {
        for observation in observations { observation.invalidate() }
        list = room.channel.messages(around: anchor, pageSize: 50)
        (state.scroll, state.marker) = (0, nil)
        goal = anchor
        observations = observe()
        let list = list
        attempt { _ in
            do { try await list.loaded() } catch {
                // It goes on at the newest messages.
                self.goal = nil
                await list.showNewest()
                throw error
            }
        }
    }

    private func showMessages() {
        state.hasOlder = list.hasOlder
        var rows = items.map { item in
            ScreenState.Row(
                id: item.id, seq: item.message?.seq, name: item.sender.name.safe(), text: item.text.safe(keepsNewlines: true),
                date: item.createdAt.date, state: item.state, isMine: item.id.sender == room.chat.user,
                isEdited: item.message?.editedAt != nil, isDeleted: item.isDeleted,
                sort: item.message.flatMap(MessageText.sort(of:)),
                mentionsUser: item.message.map { mentionsUser($0) } ?? false)
        }
        if let last = items.lastIndex(where: { $0.id.sender == room.chat.user && $0.message?.deletedAt == nil && $0.message != nil }
        ) {
            rows[last].readers = readers(of: items[last])
        }
        let size = RawTerminal.size
        state.show(rows, width: size.width)
        state.hasNewer = list.hasNewer
        if let index = goal.flatMap(place) {
            state.scroll(to: index, width: size.width, height: size.height)
            goal = nil
        }
    }

    /// Who has read a message, by the names that the messages here have.
    private func readers(of item: MessageItem) -> [String] {
        guard let message = item.message else { return [] }
        let names = Dictionary(items.map { ($0.id.sender, $0.sender.name) }, uniquingKeysWith: { _, last in last })
        return receipts.readers(of: message).map { (names[$0] ?? $0.rawValue).safe() }
    }

    /// The row that an anchor means, once it is there.
    private func place(of anchor: MessageAnchor) -> Int? {
        switch anchor {
        case .message(let id): items.firstIndex { $0.message?.messageId == id }
        case .time(let time): items.firstIndex { $0.createdAt >= time } ?? items.indices.last
        case .newest, .firstUnread: nil
        }
    }
}
