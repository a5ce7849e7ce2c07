// A chat in the terminal: what is there is shown at once, offline too; what is typed offline is sent when there is a connection, also by the
// next run.
import Foundation
import Roost

guard CommandLine.arguments.count == 4, let url = URL(string: CommandLine.arguments[1]) else {
    FileHandle.standardError.write(Data("usage: TOKEN=… example-terminal-chat http://127.0.0.1:8080 ann general\n".utf8))
    exit(64)
}
let chat = Chat(url: url, user: UserID(CommandLine.arguments[2])) {
    // An app asks its backend.
    guard let token = ProcessInfo.processInfo.environment["TOKEN"] else { throw MissingToken() }
    return token
}

struct MissingToken: Error, CustomStringConvertible {
    var description: String { "TOKEN is missing in the environment" }
}

/// What is on the screen, and what a line that was typed does.
@MainActor final class Screen {
    private let chat: Chat
    private let channel: LiveChannel
    private let messages: MessageList
    private var observed: [ObservationToken] = []

    init(_ chat: Chat, _ id: ChannelID) {
        self.chat = chat
        channel = chat.channel(id)
        messages = channel.messages()
        observed.append(messages.observe { [weak self] in self?.show($0) })
        observed.append(chat.connection.observe { [weak self] in self?.show($0) })
    }

    /// Joins as soon as there is a connection. A member who is offline reads on without.
    func enter() async {
        do {
            try await messages.loaded()
            try await chat.connect(timeout: .seconds(2))
            try await channel.join()
        } catch {
            print("· \(error.localizedDescription)")
        }
    }

    private func show(_ update: ListUpdate<MessageItem>) {
        for index in (update.inserted + update.updated).sorted() {
            let item = update.items[index]
            let text = item.isDeleted ? "(deleted)" : item.text
            switch item.state {
            case .sent: print("\(item.sender.name): \(text)")
            case .pending: print("\(item.sender.name): \(text) …")
            case .waiting(let error): print("\(item.sender.name): \(text) … \(error.message)")
            case .failed(let error): print("\(item.sender.name): \(text) ✗ \(error.message) (/retry, /discard)")
            }
        }
    }

    private func show(_ status: ConnectionStatus) {
        switch status {
        case .offline, .connecting: break
        case .online: print("· online")
        case .waiting(_, let reason): print("· waiting: \(reason)")
        case .refused(let error), .failed(let error): print("· \(error.message)")
        }
    }

    /// Does what a line says; false for the last one.
    func take(_ line: String) async -> Bool {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let own = messages.items.last { $0.id.sender == chat.user && !$0.isDeleted }
        do {
            switch (words.first ?? "", own?.message) {
            case ("", _): break
            case ("/quit", _): return false
            case ("/older", _): try await messages.loadOlder()
            case ("/read", _): _ = try await channel.markRead()
            case ("/edit", let message?) where words.count == 2: _ = try await channel.edit(message.messageId, text: words[1])
            case ("/delete", let message?): _ = try await channel.delete(message.messageId)
            case ("/retry", _): for item in failed { await messages.retry(item.clientId) }
            case ("/discard", _): for item in failed { await messages.discard(item.clientId) }
            case ("/unread", _): print("· \(channel.unreadCount) unread here, \(chat.unread.total.unreadCount) in all")
            case (let word, _) where word.hasPrefix("/"): print("· /older /read /edit TEXT /delete /retry /discard /unread /quit")
            default: try await send(line)
            }
        } catch {
            print("· \(error.localizedDescription)")
        }
        return true
    }

    /// Sends a line, and returns when it is on the screen.
    private func send(_ line: String) async throws {
        await messages.showNewest()
        let sent = try await channel.send(line)
        for await update in messages.updates where update.items.contains(where: { $0.clientId == sent }) { return }
    }

    private var failed: [MessageItem] {
        messages.items.filter { if case .failed = $0.state { true } else { false } }
    }

    /// Waits until the server has everything that was typed.
    func finish() async {
        for await update in messages.updates where !update.items.contains(where: { $0.state == .pending }) { return }
    }
}

let screen = Screen(chat, ChannelID(CommandLine.arguments[3]))
await screen.enter()

/// Reading waits for somebody who types, so that it has a thread of its own.
let lines = AsyncStream<String> { lines in
    Thread.detachNewThread {
        while let line = readLine() { lines.yield(line) }
        lines.finish()
    }
}
var goesOn = true
for await line in lines {
    goesOn = await screen.take(line)
    guard goesOn else { break }
}
// After /quit, what isn't sent yet waits for the next run.
if goesOn { await screen.finish() }
await chat.disconnect()
