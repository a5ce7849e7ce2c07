// A chat in the terminal: stored messages are shown at once, offline too; messages typed offline are sent later, even by the next run.
import Foundation
import Roost

let arguments = CommandLine.arguments
guard arguments.count == 4, let url = URL(string: arguments[1]), let token = ProcessInfo.processInfo.environment["TOKEN"] else {
    FileHandle.standardError.write(Data("usage: TOKEN=… example-terminal-chat http://127.0.0.1:8080 ann general\n".utf8))
    exit(64)
}
let configuration = Chat.Configuration(onStorageProblem: { print("· \($0)") })
let chat = Chat(url: url, user: UserID(arguments[2]), configuration: configuration) { [token] in token }  // Ask your backend.

/// Prints a line. Text of others must not control the terminal: no control characters, nothing that changes the direction of text.
@Sendable func print(_ line: String) {
    let unsafe: [Unicode.GeneralCategory] = [.control, .format]
    let scalars = line.unicodeScalars.map { $0 != "\u{200D}" && unsafe.contains($0.properties.generalCategory) ? " " : $0 }
    Swift.print(String(String.UnicodeScalarView(scalars)))
}

/// The screen's content, and the effect of typed lines.
@MainActor final class Screen {
    private var channel: LiveChannel
    private(set) lazy var messages = channel.messages(around: .firstUnread)
    private var following: (status: ObservationToken?, messages: ObservationToken?, join: Task<Void, Never>?)

    /// Joins on the first connection on which that succeeds, however late. A member who is offline can read without joining again.
    init(_ id: ChannelID) async {
        channel = chat.channel(id)
        try? await chat.outbox.loaded()
        try? await channel.loaded()
        print("· \(channel.channel?.displayName ?? "\(id)"): \(channel.unreadCount) unread; /help")
        following.status = chat.connection.observe { [weak self] in self?.show($0) }
        do { try await chat.connect(timeout: .seconds(3)) } catch { print("· \(error.localizedDescription)") }
        let isOver = if chat.connection.isOnline { await join(id) } else { false }
        if !isOver { following.join = Task { for await case .online in chat.connection.updates { if await join(id) { break } } } }
        // The list begins at the first unread message, and is on the screen before a line is read.
        await follow(messages)
        if chat.outbox.isForAnotherServer { print("· Some of what you typed is for another server: /send-here") }
    }

    /// Returns whether it has joined, or never will, so another connection needs no attempt.
    private func join(_ id: ChannelID) async -> Bool {
        do { channel = try await chat.joinChannel(id) } catch {
            print("· \(error.localizedDescription)")
            return (error as? RoostError)?.isRetryable != true
        }
        return true
    }

    /// Shows a list from its anchor on, in place of the previous one. If the anchor can't be loaded, its phase says why, and the previous list stays.
    private func follow(_ list: MessageList) async {
        try? await list.loaded()
        if let error = list.phase.error { print("· \(error.localizedDescription)") }
        guard list.phase == .loaded || list === messages else { return }
        messages = list
        following.messages = list.observe { [weak self] in self?.show($0) }
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
        case .failed(let error): " ✗ \(error.message) (/outbox)"
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

    func take(_ line: String) async {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let text = words.count == 2 ? words[1] : nil
        let number = text.flatMap { Int64($0) }  // A message's id (/ids), or an operation's number (/outbox).
        let entry = chat.outbox.entries.first { $0.id == number }
        let own = messages.items.last { $0.id.sender == chat.user && $0.content.kind != .system && !$0.isDeleted }
        do {
            switch words.first ?? "" {
            case "/older": try await messages.loadOlder()
            case "/newer": try await messages.loadNewer()
            case "/newest": await messages.showNewest()
            case "/ids": for item in messages.items { print("· \(item.message?.messageId.rawValue ?? 0) \(item.text)") }
            case "/goto": if let number { await follow(channel.messages(around: .message(MessageID(rawValue: number)))) }
            case "/read": try await channel.markRead()
            case "/edit":
                guard let own, let text else { break }
                try await channel.edit(own, text: text)
                await shown { $0.id == own.id && ($0.text == text || $0.change != nil) }
            case "/delete": if let own { try await channel.delete(own) }
            case "/hide": try await channel.hide()
            case "/leave":
                following.join?.cancel()
                try await channel.leave()
            case "/list": try await list(named: text)
            case "/autoaccept": if let text { try await chat.setAutoAcceptInvitations(text == "on") }
            case "/outbox": for entry in chat.outbox.entries { print("· \(entry.id) \(entry.operation): \(entry.state)") }
            case "/retry": if let entry { await chat.outbox.retry(entry) }
            case "/discard": if let entry { await chat.outbox.discard(entry) }
            case "/send-here": await chat.outbox.sendOperationsForAnotherServer()
            case let word where word.hasPrefix("/"):
                print("· /older /newer /newest /ids /goto ID /read /edit TEXT /delete /hide /leave /list NAME /autoaccept on|off")
                print("· /outbox /retry NUMBER /discard NUMBER /send-here /quit")
            default:
                await messages.showNewest()
                let sent = try await channel.send(line)
                await shown { $0.clientId == sent }
            }
        } catch { print("· \(error.localizedDescription)") }
    }

    private func shown(_ isIt: (MessageItem) -> Bool) async {
        for await update in messages.updates where update.items.contains(where: isIt) { return }
    }

    private func list(named name: String?) async throws {
        let channels = chat.channels(matching: ChannelQuery(nameContains: name))
        try await channels.loaded()
        for item in channels.items {
            let last = item.lastMessage.map { "\(item.lastSender?.name ?? ""): \($0.text)" } ?? ""
            print("· \(item.channel.displayName ?? "\(item.id)") (\(item.unreadCount) unread) \(last)")
        }
    }
}

let screen = await Screen(ChannelID(arguments[3]))
let (lines, typed) = AsyncStream.makeStream(of: String.self)
Thread.detachNewThread { [typed] in  // readLine() blocks.
    while let line = readLine() { typed.yield(line) }
    typed.finish()
}
for await line in lines where !line.allSatisfy(\.isWhitespace) { if line == "/quit" { exit(0) } else { await screen.take(line) } }
for await entries in chat.outbox.updates where !entries.contains(where: { $0.state == .pending }) { break }
for await update in screen.messages.updates where !update.items.contains(where: { $0.state == .pending }) { break }
await chat.disconnect()
