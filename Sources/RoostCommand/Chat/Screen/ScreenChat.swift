import Foundation
import Roost
import RoostAPI
import UnixSignals

/// A chat on a full screen. Everything arrives as an event through one stream; events change the state, and the state is drawn.
@MainActor
final class ScreenChat {
    enum Event: Sendable {
        case typed([UInt8])
        /// The messages, the channel or the user's channels have changed: they are read when the event is handled, so none is from a
        /// channel left meanwhile.
        case messages, channel, channels, typing, outbox
        case status(ConnectionStatus)
        case watched(WatchedChannel)
        case answered(RoomAnswer)
        case notice(String)
        /// Something failed for lack of a connection.
        case outage(String)
        case online(Int, ChannelID)
        /// Nothing was typed for a moment after this number of pieces of input.
        case paused(Int)
        case tick, resized, suspended, continued, stop
        /// The input was changed by the program: the screen is drawn after an event.
        case changed
    }

    /// The state of the channel on the screen, and how far it is read. It is reset for another channel.
    struct Reading {
        /// The pending mark as read.
        var marking: Task<Void, Never>?
        /// The seq up to which it was marked as read here.
        var markedSeq: Seq = 0
        /// Whether entering it was already attempted.
        var hasBegun = false
        var hasEntered = false
        var marker = UnreadMarker()
        /// Whether the user last was a member, so that a removal is shown.
        var isMember = false
        /// The number of members online, which is shown to members.
        var onlineCount: Int?
        /// The requested position, until it is in view.
        var goal: MessageAnchor?
        /// Whether the newest messages were requested and aren't in view yet.
        var isReturning = false
    }

    private(set) var room: Room
    private(set) var list: MessageList
    var state: ScreenState
    let events: AsyncStream<Event>.Continuation
    private let incoming: AsyncStream<Event>
    let channels: ChannelList
    /// The other users typing in the channel.
    private(set) var typing: LiveTyping
    /// The number of members online.
    private(set) var presence: LivePresence
    /// How far the others have read.
    private(set) var receipts: LiveReceipts
    private let readerNames: FewNames
    private let unmentionedNames: FewNames
    private(set) var items: [MessageItem] = []
    private(set) var keys = KeyParser()
    /// The pieces of input so far, and at the last tick.
    private(set) var keyCount = 0
    private var keyCountAtTick = 0
    var reading = Reading() {
        didSet { state.marker = reading.marker.seq }
    }
    /// Whether the line above the first unread message is on the screen.
    private(set) var showsMarker = false
    /// The refused operations of the outbox already reported to the user.
    var reportedRefusals: Set<Int64> = []
    /// Whether the user knows what to do without a server: there has been one, or the screen has shown the advice.
    private var isAdvised = false
    /// What to do without a server.
    private let noServer: String
    private var observations: [ObservationToken] = []
    /// The text being typed, with its mentions.
    var composer = MentionComposer()
    /// The newest send: the next one waits for it.
    var sending: Task<Void, Never>?
    /// The pending requests to the server.
    var attempts: [Int: Task<Void, Never>] = [:]
    var attemptCount = 0
    /// Failures while the chat ended, when there is no longer a screen to show them.
    var lateFailures: [String]?

    /// - Parameters:
    ///   - memoryReason: Why messages are kept in memory; nil if they aren't.
    ///   - advice: What to do if no server is found.
    init(_ room: Room, memoryReason: String?, advice: String) {
        self.room = room
        noServer = advice
        list = room.channel.messages(pageSize: 50)
        typing = room.channel.typing()
        presence = room.channel.presence()
        receipts = room.channel.receipts()
        channels = room.chat.channels()
        let (incoming, events) = AsyncStream.makeStream(of: Event.self)
        (self.incoming, self.events) = (incoming, events)
        readerNames = FewNames(room.chat) { events.yield(.messages) }
        unmentionedNames = FewNames(room.chat) { events.yield(.messages) }
        state = ScreenState(channel: room.channel.id)
        state.isInMemory = memoryReason != nil
        if let memoryReason { events.yield(.notice("kept in memory: unsent messages are lost when you quit (\(memoryReason))")) }
    }

    /// Runs until the user quits. The terminal is restored, however it ends.
    ///
    /// - Returns: What to report to the user afterwards.
    func run() async throws -> [String] {
        var terminal = try RawTerminal()
        let producers = produceEvents()
        defer { for producer in producers { producer.cancel() } }
        observations = observe()
        defer { for observation in observations { observation.invalidate() } }
        room.chat.start()
        try draw(on: &terminal)
        for await event in incoming {
            if case .stop = event { break }
            guard try handle(event, terminal: &terminal) else { break }
            try draw(on: &terminal)
            markRead()
        }
        return await farewell()
    }

    private func draw(on terminal: inout RawTerminal) throws {
        let size = RawTerminal.size
        let frame = ScreenLayout(width: size.width).frame(of: state, height: size.height, now: .now)
        (state.scroll, state.panel.scroll) = (frame.scroll, frame.panelScroll)
        showsMarker = frame.showsMarker
        try terminal.show(frame.lines, cursorColumn: frame.cursorColumn)
    }

    // MARK: What they do

    /// Whether to continue.
    private func handle(_ event: Event, terminal: inout RawTerminal) throws -> Bool {
        switch event {
        case .typed(let bytes):
            keyCount += 1
            guard try press(keys.parse(bytes), terminal: &terminal) else { return false }
            watchForPause()
        case .paused(let count): if count == keyCount { return try press(keys.endEscape(), terminal: &terminal) }
        case .tick:
            state.tick()
            // A sequence that began a second ago and got no byte since won't continue.
            let isQuiet = keyCount == keyCountAtTick
            keyCountAtTick = keyCount
            if isQuiet, keys.isWaiting { return try press(keys.end(), terminal: &terminal) }
        case .messages:
            items = list.items
            showMessages()
        case .channel: show(room.channel.view)
        case .channels: showUnreadElsewhere()
        case .typing: (state.typing, state.moreType) = (typing.users.map { $0.name.safe() }, typing.hasMore)
        case .outbox: reportRefusals()
        case .status(let status): show(status)
        case .answered(let answer): show(answer)
        case .watched(let watched):
            guard watched.channel.channelId == state.channel else { break }
            reading.onlineCount = watched.online
            // Membership and permissions arrive only with the channel: its header isn't shown before.
            if reading.isMember { (state.onlineCount, state.memberCount) = (watched.online, watched.channel.counters.memberCount) }
        case .notice(let text): state.showResult([text], width: RawTerminal.size.width)
        case .outage(let text): state.showOutage(text, width: RawTerminal.size.width)
        case .online(let count, let channel):
            guard channel == state.channel else { break }
            reading.onlineCount = count
            if reading.isMember { state.onlineCount = count }
        case .resized: terminal.invalidate()
        case .suspended: try terminal.suspend()
        case .continued: try terminal.resume()
        case .changed, .stop: break
        }
        return true
    }

    /// Whether to continue.
    private func press(_ keys: [Key], terminal: inout RawTerminal) throws -> Bool {
        for key in keys {
            if key == .redraw { terminal.invalidate() }
            if key == .suspend { try terminal.suspendForeground() } else if !press(key) { return false }
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
        reading = Reading()
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
        state.showResult(answer.lines + answer.refusals, width: RawTerminal.size.width)
    }

    private func showUnreadElsewhere() {
        // Channels muted by the user aren't counted.
        let others = channels.items.filter { $0.id != state.channel && $0.membership?.isNotificationsMuted != true }
        state.unreadElsewhere = others.filter { $0.unreadCount > 0 }
            .map { (($0.channel.displayName ?? $0.id.rawValue).safe(), $0.unreadCount) }
    }

    private func show(_ view: ChannelView?) {
        noteMembership(of: view)
        state.displayName = view?.channel.displayName?.safe()
        guard let view, let membership = view.membership, membership.state == .member else {
            (state.memberCount, state.onlineCount) = (nil, nil)
            if reading.isMember {
                state.hasLeft = true
                showLine(room.absence)
            }
            (reading.isMember, reading.marker) = (false, UnreadMarker())
            return
        }
        if !reading.isMember { state.takeBack(room.absence) }
        (reading.isMember, state.hasLeft) = (true, false)
        (state.memberCount, state.onlineCount) = (view.channel.counters.memberCount, reading.onlineCount)
        reading.marker.take(
            unreadCount: view.unreadCount, readSeq: membership.readSeq, newest: newestSeq, isOnline: state.status == .online,
            isAtBottom: state.isAtBottom)
    }

    private func show(_ status: ConnectionStatus) {
        if state.status == .online, status != .online {
            reading.marker.lostConnection(isAtBottom: state.isAtBottom)
        }
        let advice = Panel([noServer])
        if status.isWithoutServer, !isAdvised {
            isAdvised = true
            state.panel = advice
        } else if status == .online {
            isAdvised = true
            if state.panel == advice { state.panel = Panel() }
        }
        if status == .online, state.status != .online { state.outageEnded() }
        state.status = status
        // Presence isn't updated without a connection.
        if status != .online { (state.onlineCount, reading.onlineCount) = (nil, nil) }
        if status == .online { enter() }
    }

    /// The seq of the newest message here, up to which messages can be read.
    var newestSeq: Seq { items.compactMap { $0.message?.seq }.max() ?? 0 }

    private func mentionsUser(_ item: MessageItem) -> Bool {
        guard let mentionees = item.mentionees, item.id.sender != room.chat.user else { return false }
        return mentionees.mentionsChannel || mentionees.mentionedUsers.contains(room.chat.user)
    }

    /// Shows another part of the channel.
    func show(around anchor: MessageAnchor) {
        for observation in observations { observation.invalidate() }
        list = room.channel.messages(around: anchor, pageSize: 50)
        state.scroll = 0
        reading.marker.remove()
        (reading.goal, reading.isReturning) = (anchor, false)
        observations = observe()
        let list = list
        attempt { screen in
            do { try await list.loaded() } catch {
                // Continues at the newest messages, unless another position was requested meanwhile.
                if screen.list === list { screen.reading.goal = nil }
                await list.showNewest()
                throw error
            }
        }
    }

    private func showMessages() {
        state.hasOlder = list.hasOlder
        var rows = items.map { item in
            let (text, marksUser) = MentionMarks.text(of: item.content, named: item.mentionedUsers, for: room.chat.user)
            return ScreenState.Row(
                id: item.id, seq: item.message?.seq, name: item.sender.name.safe(), text: text, date: item.createdAt.date,
                state: item.state, change: item.change, isMine: item.id.sender == room.chat.user,
                isEdited: item.message?.editedAt != nil, isDeleted: item.isDeleted,
                sort: item.message.flatMap(MessageText.sort(of:)), isForUser: mentionsUser(item) && !marksUser)
        }
        if let last = items.lastIndex(where: { isOwn($0) && $0.message?.deletedAt == nil && $0.message != nil }) {
            rows[last].readers = readers(of: items[last])
        }
        nameUnmentioned(in: &rows)
        let size = RawTerminal.size
        state.show(rows, keepsPlace: !reading.isReturning, width: size.width)
        state.hasNewer = list.hasNewer
        if !list.hasNewer { reading.isReturning = false }
        if let index = reading.goal.flatMap(place) {
            state.scroll(to: index, width: size.width, height: size.height)
            reading.goal = nil
        }
    }

    /// Adds to rows the users that their messages name but don't mention.
    private func nameUnmentioned(in rows: inout [ScreenState.Row]) {
        let users = Array(Set(items.filter { !$0.isDeleted }.flatMap(\.droppedMentions))).sorted()
        let names = Dictionary(zip(users, unmentionedNames.names(of: users))) { first, _ in first }
        for (index, item) in items.enumerated() where !item.isDeleted {
            rows[index].unmentioned = item.droppedMentions.compactMap { names[$0] }
        }
    }

    /// The readers of a message.
    private func readers(of item: MessageItem) -> [String] {
        guard let message = item.message else { return [] }
        return readerNames.names(of: receipts.readers(of: message))
    }

    /// The index of an anchor's row, once loaded.
    private func place(of anchor: MessageAnchor) -> Int? {
        switch anchor {
        case .message(let id): items.firstIndex { $0.message?.messageId == id }
        case .time(let time): items.firstIndex { $0.createdAt >= time } ?? items.indices.last
        case .newest, .firstUnread: nil
        }
    }
}
