import Roost
import RoostAPI

/// Mentions in the text being typed.
extension ScreenChat {
    /// Completes a name after an "@" in the text, or lists its possible meanings.
    func completeMention() {
        let line = state.editor.text
        guard let start = ChatLine.textStart(in: line) else { return }
        composer.text = String(line[String.Index(utf16Offset: start, in: line)...])
        let cursor = state.editor.utf16Cursor
        guard let typed = composer.query(at: cursor - start) else { return }
        guard room.mayMention else { return showLine("nobody can be mentioned in this channel") }
        attempt { [room] screen in
            let (chat, channel) = (room.chat, room.channel.id)
            let members =
                typed.isEmpty
                ? try await chat.call(ListMembers(channel: channel, limit: 10)).items
                : try await chat.call(SearchMembers(channel: channel, text: typed, limit: 10)).items
            let users = members.compactMap { $0.user?.summary }.filter { $0.userId != chat.user }
            let offersChannel = MentionChoice.mayBeChannel(typed) ? try await room.canMentionChannel() : false
            // Meanwhile more may have been typed, the line may have been sent and begun again, or another channel entered.
            guard room === screen.room, screen.state.editor.text == line, screen.state.editor.utf16Cursor == cursor else { return }
            screen.composer.text = String(line[String.Index(utf16Offset: start, in: line)...])
            let choices = MentionChoice.all(for: typed, among: users, withChannel: offersChannel)
            guard let choice = choices.first else {
                screen.events.yield(.notice("no member is called \(typed.safe())"))
                return
            }
            guard choices.count == 1 else {
                screen.events.yield(.answered(RoomAnswer(["Which one?"] + choices.map { "@\($0.name.safe())" })))
                return
            }
            screen.insert(choice, after: start, in: line)
        }
    }

    private func insert(_ choice: MentionChoice, after start: Int, in line: String) {
        let place = state.editor.utf16Cursor - start
        let cursor =
            switch choice {
            case .user(let user): composer.choose(user, at: place)
            case .channel: composer.chooseChannel(as: MentionChoice.channelName, at: place)
            }
        state.editor.text = line[..<String.Index(utf16Offset: start, in: line)] + composer.text
        state.editor.utf16Cursor = start + cursor
        events.yield(.changed)
    }

    /// Loads the user's newest message with its mentions into the input, or replaces its text.
    func editNewest(_ text: String?) {
        guard let item = newestOwn else { return showLine("none of your messages is in view") }
        if item.state == .sent, let refusal = refusal("what is sent can't be edited") { return showLine(refusal) }
        let mentions = EditedMentions(of: item.content, named: item.mentionedUsers)
        guard let text else {
            composer = mentions.composer
            composer.text = item.text.withoutControls(keeping: ["\n", "\t"])
            return state.editor.text = "/edit " + composer.text
        }
        composer.text = text
        var changes = mentions.changes(to: composer)
        // Only an edit that gives its mentions gets back which of them were dropped.
        if !item.droppedMentions.isEmpty { changes.mentionees = changes.mentionees ?? item.mentionees ?? [] }
        composer = MentionComposer()
        attempt { [room] _ in
            try await room.channel.edit(
                item, text: changes.text, metadata: changes.metadata, mentionees: changes.mentionees)
        }
    }
}

extension Room {
    /// Whether the user may mention anyone, as far as known; otherwise the server decides.
    var mayMention: Bool { channel.channel == nil || channel.hasPermission(.messageMention) }

    /// Whether the user may mention the whole channel.
    func canMentionChannel() async throws -> Bool {
        guard mayMention else { return false }
        return try await chat.call(GetConfiguration()).options.isMentionAllEnabled
    }
}
