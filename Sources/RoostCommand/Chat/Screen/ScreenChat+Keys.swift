import Foundation
import Roost
import RoostAPI

extension ScreenChat {
    /// Does what a key says.
    ///
    /// - Returns: Whether to go on.
    func press(_ key: Key) -> Bool {
        let page = max(1, RawTerminal.size.height - 4)
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
            tellTyping()
        }
        return true
    }

    /// Scrolls a panel that is longer than its place, by the keys that scroll the messages otherwise. Redrawing leaves it as it is.
    ///
    /// - Returns: Whether the key was for the panel.
    private func scrollPanel(by key: Key, page: Int) -> Bool {
        guard !state.panel.lines.isEmpty else { return false }
        if key == .redraw { return true }
        let size = RawTerminal.size
        guard ScreenLayout(width: size.width).isScrollable(state.panel, height: size.height) else { return false }
        switch key {
        // Two lines less than the panel has: the last tells which part this is, and one line is shown on both pages.
        case .pageUp: state.panel.scroll -= max(1, page - 2)
        case .pageDown: state.panel.scroll += max(1, page - 2)
        case .up: state.panel.scroll -= 1
        case .down: state.panel.scroll += 1
        default: return false
        }
        return true
    }

    /// Tells the others that the user writes a message, or doesn't any more. A command is no message.
    private func tellTyping() {
        let text = state.editor.text
        if text.allSatisfy(\.isWhitespace) || text.hasPrefix("/") && !text.hasPrefix("//") {
            room.channel.stopTyping()
        } else {
            room.channel.startTyping()
        }
    }

    private func scroll(by lines: Int) {
        goal = nil
        state.scroll = max(0, state.scroll + lines)
        let size = RawTerminal.size
        let frame = ScreenLayout(width: size.width).frame(of: state, height: size.height, now: .now)
        if lines > 0, frame.showsOldest, list.hasOlder { loadOlder() }
        // From the bottom on the list follows the newest messages again.
        if lines < 0, frame.scroll == 0 { attempt { [list] _ in try await list.loadNewer() } }
    }

    /// Shows the newest messages.
    private func scrollDown() {
        (state.scroll, goal) = (0, nil)
        // What is meant is the list on the screen now: a /goto right after it has another.
        attempt { [list] _ in await list.showNewest() }
    }

    private func submit() -> Bool {
        let line = state.editor.text
        guard !line.allSatisfy(\.isWhitespace) else { return true }
        state.editor.text = ""
        state.notice = nil
        switch ChatLine(line) {
        case .quit: return false
        case .message(let text): send(text, mentioning: text == line)
        case .help(nil): state.panel = Panel(ChatHelp.screenLines(width: RawTerminal.size.width))
        case .help(let name?): state.tell(ChatHelp.lines(of: name), width: RawTerminal.size.width)
        case .scrollback(let command): carryOut(command)
        case .room(let command):
            let room = room
            attempt { screen in screen.events.yield(.answered(try await room.carryOut(command))) }
        case .refused(let reason):
            state.tell([reason], width: RawTerminal.size.width)
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
        case .retry: settleRefused { await $0.retry($1) }
        case .discard: settleRefused { await $0.discard($1) }
        case .unread: leaveUnread()
        }
    }

    /// - Parameter isWhole: Whether the text is what was written, so that mentions are where they were put.
    private func send(_ text: String, mentioning isWhole: Bool) {
        composer.text = text
        let draft = isWhole && !composer.mentions.isEmpty ? composer.draft : MessageDraft(text: text)
        composer = MentionComposer()
        state.marker = nil
        scrollDown()
        // Without waiting for one another, two messages could change places: the list's order is that of these tasks on the main actor.
        let previous = sending
        let channel = room.channel
        sending = Task {
            await previous?.value
            do {
                try await channel.send(draft)
            } catch {
                events.yield(.notice("not sent: \(Self.reason(error))"))
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

    /// Puts the name of the one member that what was typed after an "@" can mean, or tells who they are.
    private func completeMention() {
        let text = state.editor.text
        composer.text = text
        guard let typed = composer.query(at: state.editor.utf16Cursor) else { return }
        attempt { screen in
            let channel = screen.room.channel.id
            let members =
                typed.isEmpty
                ? try await screen.room.chat.call(ListMembers(channel: channel, limit: 10)).items
                : try await screen.room.chat.call(SearchMembers(channel: channel, text: typed, limit: 10)).items
            let users = members.compactMap { $0.user?.summary }.filter { $0.userId != screen.room.chat.user }
            // More may have been typed meanwhile.
            guard screen.state.editor.text == text else { return }
            guard let user = users.first else {
                screen.events.yield(.notice("no member is called \(typed.safe())"))
                return
            }
            guard users.count == 1 else {
                screen.events.yield(.answered(RoomAnswer(["Which one?"] + users.map { "@\($0.name.safe())" })))
                return
            }
            let cursor = screen.composer.choose(user, at: screen.state.editor.utf16Cursor)
            screen.state.editor.text = screen.composer.text
            screen.state.editor.utf16Cursor = cursor
            // The screen is drawn after an event.
            screen.events.yield(.tick)
        }
    }

    private func loadOlder() {
        guard list.hasOlder else {
            state.notice = "there is nothing older"
            return
        }
        attempt { [list] _ in try await list.loadOlder() }
    }

    private var newestOwn: Message? {
        list.items.last { $0.id.sender == room.chat.user && $0.message != nil && !$0.isDeleted }?.message
    }

    private func deleteNewest() {
        guard let message = newestOwn else { return state.notice = "none of your messages is in view" }
        attempt { [room] _ in try await room.channel.delete(message.messageId) }
    }

    private func editNewest(_ text: String?) {
        guard let message = newestOwn else { return state.notice = "none of your messages is in view" }
        guard let text else { return state.editor.text = "/edit " + message.text.safe(keepsNewlines: true) }
        attempt { [room] _ in try await room.channel.edit(message.messageId, text: text) }
    }

    /// Has the last message of others answered later: it stays unread until a newer one is read.
    private func leaveUnread() {
        guard let seq = items.last(where: { $0.id.sender != room.chat.user && $0.message != nil })?.message?.seq else {
            return state.notice = "no message of somebody else's is in view"
        }
        leftUnread = items.compactMap { $0.message?.seq }.max() ?? seq
        state.notice = "the last message is unread again"
        attempt { [room] _ in try await room.channel.markUnread(from: seq) }
    }

    private func settleRefused(_ settle: @escaping @MainActor (MessageList, ClientID) async -> Void) {
        let refused = list.items.filter { if case .failed = $0.state { true } else { false } }
        guard !refused.isEmpty else { return state.notice = "no message was refused" }
        Task { [list] in for item in refused { await settle(list, item.clientId) } }
    }

    /// Does something with the server beside the screen, and reports a failure on the status line.
    func attempt(_ body: @escaping @MainActor (ScreenChat) async throws -> Void) {
        Task {
            do { try await body(self) } catch { events.yield(.notice(Self.reason(error))) }
        }
    }

    private static func reason(_ error: any Error) -> String { (error as? RoostError)?.summaryLine ?? "\(error)" }
}
