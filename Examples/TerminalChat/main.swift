// A chat in the terminal: what is there is shown at once, offline too; what is typed offline is sent later, also by the next run.
import Foundation
import Roost

guard CommandLine.arguments.count == 4, let url = URL(string: CommandLine.arguments[1]) else {
    FileHandle.standardError.write(Data("usage: TOKEN=… example-terminal-chat http://127.0.0.1:8080 ann general\n".utf8))
    exit(64)
}
let chat = Chat(url: url, user: UserID(CommandLine.arguments[2]), configuration: .init(onStorageProblem: { print("· \($0)") })) {
    // An app asks its backend.
    guard let token = ProcessInfo.processInfo.environment["TOKEN"] else { throw RoostError(.unauthenticated, "TOKEN is missing") }
    return token
}

/// Prints a line. What others write must not steer the terminal: no control characters, nothing that turns the direction of text.
@Sendable func print(_ line: String) {
    let unsafe: [Unicode.GeneralCategory] = [.control, .format]
    let scalars = line.unicodeScalars.map { $0 != "\u{200D}" && unsafe.contains($0.properties.generalCategory) ? " " : $0 }
    Swift.print(String(String.UnicodeScalarView(scalars)))
}

/// What is on the screen, and what a line that was typed does.
@MainActor final class Screen {
    private let chat: Chat
    private var channel: LiveChannel
    private(set) lazy var messages = channel.messages(around: .firstUnread)
    private let channels: ChannelList
    private var observed: [ObservationToken] = []

    /// Joins with the first connection, however late it comes. A member who is offline reads on without.
    init(_ chat: Chat, _ id: ChannelID) async {
        (self.chat, channel, channels) = (chat, chat.channel(id), chat.channels(matching: ChannelQuery()))
        try? await chat.outbox.loaded()
        try? await channel.loaded()
        print("· \(channel.channel?.displayName ?? "\(id)"): \(channel.unreadCount) unread; /help")
        observed = [chat.connection.observe { [weak self] in self?.show($0) }]
        let joining = Task {
            for await status in chat.connection.updates where status == .online { break }
            do { channel = try await chat.joinChannel(id) } catch { print("· \(error.localizedDescription)") }
        }
        chat.start()
        // The first attempt to connect succeeds, or says why it doesn't.
        for await status in chat.connection.updates where status != .offline && status != .connecting { break }
        if chat.connection.isOnline { await joining.value }
        // It begins at the first message that wasn't read, of all that came meanwhile, and is on the screen before a line is taken.
        observed.append(messages.observe { [weak self] in self?.show($0) })
        try? await messages.loaded()
        Task { [weak self, events = chat.events] in for await event in events { await self?.tellOfOtherChannel(event) } }
        if chat.outbox.isForAnotherServer { print("· Some of what you typed is for another server: /send-here") }
    }

    private func show(_ update: ListUpdate<MessageItem>) {
        for index in (update.inserted + update.updated).sorted() {
            let item = update.items[index]
            if item.id == messages.firstUnread, update.inserted.contains(index) { print("--- new ---") }
            let change = item.change.map { " (change\(words($0)))" } ?? ""
            print("\(item.sender.name): \(item.isDeleted ? "(deleted)" : item.text)\(words(item.state))\(change)")
        }
    }

    private func words(_ state: MessageItem.State) -> String {
        switch state {
        case .sent: ""
        case .pending: " …"
        case .waiting(let error): " … \(error.message)\(error.until.map { " until \($0.date)" } ?? "")"
        case .failed(let error): " ✗ \(error.message) (/retry, /discard)"
        case .forAnotherServer: " ✗ it was meant for another server's data (/send-here)"
        }
    }

    private func show(_ status: ConnectionStatus) {
        switch status {
        case .offline, .connecting: break
        case .online: print("· online")
        case .waiting(let next, let reason): print("· waiting until \(next.date): \(reason)")
        case .refused(let error), .failed(let error): print("· \(error.message)")
        }
    }

    private func tellOfOtherChannel(_ event: ChatEvent) async {
        guard case .happened(let news) = event, news.kind == .messageNew, !news.isOwn, let place = news.channel,
            place != channel.id, let sender = news.actor.map(chat.user)
        else { return }
        try? await sender.loaded()
        print("* \(sender.user.name) in \(place): \(news.message?.text ?? "")")
    }

    /// Does what a line says; false for the last one.
    func take(_ line: String) async -> Bool {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let text = words.count == 2 ? words[1] : nil
        let refused = chat.outbox.entries.filter { if case .failed = $0.state { true } else { false } }
        let own = messages.items.last { $0.id.sender == chat.user && $0.content.kind != .system && !$0.isDeleted }
        do {
            switch (words.first ?? "", own) {
            case ("", _), ("/quit", _): break
            case ("/older", _): try await messages.loadOlder()
            case ("/newer", _): try await messages.loadNewer()
            case ("/read", _): try await channel.markRead()
            case ("/edit", let item?) where text != nil:
                try await channel.edit(item, text: text)
                await shown { $0.id == item.id && ($0.text == text || $0.change != nil) }
            case ("/delete", let item?): try await channel.delete(item)
            case ("/hide", _): try await channel.hide()
            case ("/leave", _): try await channel.leave()
            case ("/list", _): try await list(named: text)
            case ("/outbox", _): for entry in chat.outbox.entries { print("· \(entry.operation): \(entry.state)") }
            case ("/retry", _): for entry in refused { await chat.outbox.retry(entry) }
            case ("/discard", _): for entry in refused { await chat.outbox.discard(entry) }
            case ("/send-here", _): await chat.outbox.sendOperationsForAnotherServer()
            case (let word, _) where word.hasPrefix("/"):
                print("· /older /newer /read /edit TEXT /delete /hide /leave /list NAME /outbox /retry /discard /send-here /quit")
            default:
                await messages.showNewest()
                let sent = try await channel.send(line)
                await shown { $0.clientId == sent }
            }
        } catch {
            print("· \(error.localizedDescription)")
        }
        return words.first != "/quit"
    }

    private func shown(_ isIt: (MessageItem) -> Bool) async {
        for await update in messages.updates where update.items.contains(where: isIt) { return }
    }

    private func list(named name: String?) async throws {
        channels.query.nameContains = name
        try await channels.loaded()
        for item in channels.items {
            let last = item.lastMessage.map { "\(item.lastSender?.name ?? ""): \($0.text)" } ?? ""
            print("· \(item.channel.displayName ?? "\(item.id)") (\(item.unreadCount) unread) \(last)")
        }
    }
}

let screen = await Screen(chat, ChannelID(CommandLine.arguments[3]))
/// Reading waits for somebody who types, so that it has a thread of its own.
let lines = AsyncStream<String> { lines in
    Thread.detachNewThread {
        while let line = readLine() { lines.yield(line) }
        lines.finish()
    }
}
// What isn't sent yet waits for the next run.
for await line in lines { guard await screen.take(line) else { exit(0) } }
for await entries in chat.outbox.updates where !entries.contains(where: { $0.state == .pending }) { break }
for await update in screen.messages.updates where !update.items.contains(where: { $0.state == .pending }) { break }
await chat.disconnect()
