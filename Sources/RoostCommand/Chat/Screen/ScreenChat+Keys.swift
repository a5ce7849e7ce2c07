import Foundation
import Roost
import RoostAPI

extension ScreenChat {
    /// Handles a key.
    ///
    /// - Returns: Whether to continue.
    func press(_ key: Key) -> Bool {
        let page = max(1, RawTerminal.size.height - 4)
        reading.marker.pressedKey(isInView: showsMarker)
        if scrollPanel(by: key, page: page) { return true }
        state.panel = Panel()
        switch key {
        case .interrupt: return false
        case .endOfInput: return !state.editor.text.isEmpty
        case .enter: return submit()
        case .pageUp: scroll(by: page)
        case .pageDown: scroll(by: -page)
        case .up: scroll(by: 1)
        case .down: scroll(by: -1)
        case .end where state.editor.cursor == state.editor.characters.count: scrollDown()
        case .escape: state.notice = nil
        case .tab: completeMention()
        default:
            state.editor.apply(key)
            reportTyping()
        }
        return true
    }

    /// Scrolls a panel that is longer than its space, with the keys that otherwise scroll the messages. Redrawing leaves it unchanged.
    ///
    /// - Returns: Whether the key was for the panel.
    private func scrollPanel(by key: Key, page: Int) -> Bool {
        guard !state.panel.lines.isEmpty else { return false }
        if key == .redraw { return true }
        let size = RawTerminal.size
        guard ScreenLayout(width: size.width).isScrollable(state.panel, height: size.height) else { return false }
        switch key {
        // Two lines less than the panel has: the last one shows the position, and one line is shown on both pages.
        case .pageUp: state.panel.scroll -= max(1, page - 2)
        case .pageDown: state.panel.scroll += max(1, page - 2)
        case .up: state.panel.scroll -= 1
        case .down: state.panel.scroll += 1
        default: return false
        }
        return true
    }

    /// Notifies others that the user is typing a message, or has stopped. A command isn't a message.
    private func reportTyping() {
        let text = state.editor.text
        if text.allSatisfy(\.isWhitespace) || text.hasPrefix("/") && !text.hasPrefix("//") {
            room.channel.stopTyping()
        } else {
            room.channel.startTyping()
        }
    }

    private func scroll(by lines: Int) {
        (reading.goal, reading.isReturning) = (nil, false)
        state.scroll = max(0, state.scroll + lines)
        let size = RawTerminal.size
        let frame = ScreenLayout(width: size.width).frame(of: state, height: size.height, now: .now)
        if lines > 0, frame.showsOldest, list.hasOlder { loadOlder() }
        // At the bottom the list follows the newest messages again.
        if lines < 0, frame.scroll == 0 {
            reading.marker.reachedBottom()
            attempt { [list] _ in try await list.loadNewer() }
        }
    }

    /// Shows the newest messages.
    private func scrollDown() {
        (state.scroll, reading.goal, reading.isReturning) = (0, nil, true)
        reading.marker.reachedBottom()
        // The list currently on the screen: a /goto right after this replaces it.
        attempt { [list] _ in await list.showNewest() }
    }

    private func submit() -> Bool {
        let line = state.editor.text
        guard !line.allSatisfy(\.isWhitespace) else { return true }
        state.editor.text = ""
        state.notice = nil
        // A typed message should be sent now, not at the next attempt.
        if case .waiting = state.status { room.chat.nudge() }
        switch ChatLine(line) {
        case .quit: return false
        case .message(let text): send(text)
        case .help(nil): state.panel = Panel(ChatHelp.screenLines(width: RawTerminal.size.width))
        case .help(let name?): state.showResult(ChatHelp.lines(of: name), width: RawTerminal.size.width)
        case .scrollback(let command): carryOut(command)
        case .room(let command):
            let room = room
            attempt(line.split(separator: " ").first.map(String.init)) { screen in
                screen.events.yield(.answered(try await room.carryOut(command)))
            }
        case .refused(let reason):
            state.showResult([reason], width: RawTerminal.size.width)
            state.editor.text = line
        }
        return true
    }

    private func carryOut(_ command: ScrollbackCommand) {
        switch command {
        case .older: loadOlder()
        case .delete: deleteNewest()
        case .edit(let text): editNewest(text)
        case .goto(let place): go(to: place)
        case .retry: retryRefused()
        case .discard: discardRefused()
        case .unread: leaveUnread()
        case .readAll: readAll()
        }
    }

    private func send(_ text: String) {
        composer.text = text
        let draft = composer.mentions.isEmpty ? MessageDraft(text: text) : composer.draft
        composer = MentionComposer()
        reading.marker.remove()
        scrollDown()
        // Without waiting for each other, two messages could swap places: the list's order is that of these tasks on the main actor.
        let previous = sending
        let channel = room.channel
        sending = Task {
            await previous?.value
            do {
                try await channel.send(draft)
            } catch {
                reportFailure("not sent: \(PlainWords.line(of: error))")
                if state.editor.text.isEmpty { state.editor.text = text }
            }
        }
    }

    private func go(to place: ScrollbackCommand.Place) {
        switch place {
        case .message(let id): show(around: .message(id))
        case .time(let time): show(around: .time(time))
        }
    }

    private func loadOlder() {
        guard list.hasOlder else {
            return showLine("there is nothing older")
        }
        attempt { [list] _ in try await list.loadOlder() }
    }

    /// The user's newest message that isn't deleted, sent or not.
    var newestOwn: MessageItem? { list.items.last { isOwn($0) && !$0.isDeleted } }

    /// Whether the user wrote a message. The server's messages about the user's actions name the user as sender, but aren't the user's own.
    func isOwn(_ item: MessageItem) -> Bool { item.id.sender == room.chat.user && item.content.kind != .system }

    /// The error for changing a message that is no longer stored; nil if the channel stores its messages.
    func refusal(_ reason: String) -> String? {
        guard room.channel.channel?.isEphemeral == true else { return nil }
        return "#\(state.channel.rawValue.safe()) keeps no messages: \(reason)"
    }

    private func deleteNewest() {
        guard let item = newestOwn else { return showLine("none of your messages is in view") }
        if item.state == .sent, let refusal = refusal("what is sent can't be deleted") { return showLine(refusal) }
        attempt { [room] _ in try await room.channel.delete(item) }
    }

    /// Leaves the last message of others unread, to be answered later: it stays unread until a newer one is read.
    private func leaveUnread() {
        if let refusal = refusal("none can be unread again") { return showLine(refusal) }
        // The server's own messages and silent ones are never unread.
        let last = items.last { $0.id.sender != room.chat.user && !$0.isDeleted && $0.message.map(Unread.counts) == true }
        guard let seq = last?.message?.seq else { return showLine("no message from anyone else is in view") }
        reading.marker.leaveUnread(from: seq, upTo: newestSeq)
        showLine("the last message is unread again")
        // A pending mark would arrive after it and undo it.
        let marking = reading.marking
        attempt { [room] _ in
            await marking?.value
            try await room.channel.markUnread(from: seq)
        }
    }

    /// Marks all of the user's channels as read, up to the state known to this device.
    private func readAll() {
        attempt { screen in
            try await screen.room.chat.markAllRead()
            screen.events.yield(.notice("all your channels are read"))
        }
    }

    /// Performs a request to the server in the background, and reports a failure on the status line.
    ///
    /// - Parameter command: What the user typed: a missing connection is reported long after, and for several commands at a time.
    func attempt(_ command: String? = nil, _ body: @escaping @MainActor (ScreenChat) async throws -> Void) {
        attemptCount += 1
        let number = attemptCount
        attempts[number] = Task {
            do { try await body(self) } catch { reportFailure(of: command, error) }
            attempts[number] = nil
        }
    }

    private func reportFailure(of command: String?, _ error: any Error) {
        let (line, refusal) = (PlainWords.line(of: error), error as? RoostError)
        switch refusal?.code {
        case .notConnected, .unavailable: reportFailure((command.map { "\($0): " } ?? "") + line, isOutage: true)
        // A private channel isn't revealed to non-members.
        case .notMember where state.hasLeft, .inviteRequired where state.hasLeft,
            .notFound where state.hasLeft && refusal?.field == "channel":
            reportFailure(room.absence)
        default: reportFailure(line)
        }
    }

    private func reportFailure(_ text: String, isOutage: Bool = false) {
        if lateFailures == nil { events.yield(isOutage ? .outage(text) : .notice(text)) } else { lateFailures?.append(text) }
    }

    /// Shows a line on the status line.
    func showLine(_ line: String) { state.showResult([line], width: RawTerminal.size.width) }
}
