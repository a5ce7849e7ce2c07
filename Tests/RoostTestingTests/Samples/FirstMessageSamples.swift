import Foundation
import Roost

/// The part that the articles call the app's own.
struct Backend: Sendable {
    func chatToken() async throws -> String { "token" }
}

@MainActor private func firstMessage(server: URL, backend: Backend) async throws {
    // sample.begin
    let chat = Chat(url: server, user: "ann") { try await backend.chatToken() }
    try await chat.connect()

    let general = chat.channel("general")
    try await general.join()
    try await general.send("Hello, everyone!")

    for await update in general.messages().updates {
        print(update.items.map { "\($0.sender.name): \($0.text)" })
    }
    // sample.end
}

@MainActor private func fromAnEmptyFolder() async throws {
    // sample.begin
    guard let token = ProcessInfo.processInfo.environment["TOKEN"], let server = URL(string: "http://127.0.0.1:8080") else {
        fatalError("TOKEN is missing.")
    }
    let chat = Chat(url: server, user: "ann") { token }
    try await chat.connect(timeout: .seconds(10))

    let general = try await chat.joinChannel("general")
    let sent = try await general.sendConfirmed(MessageDraft(text: "Hello, everyone!"))
    print("\(sent.text) It is message \(sent.seq) of \(general.channel?.displayName ?? "general").")
    await chat.disconnect()
    // sample.end
}

@MainActor private func ids(chat: Chat, number: Int) async throws {
    // sample.begin
    let room = chat.channel("room-\(number)")
    let id = ChannelID("room-\(number)")
    // sample.end
    _ = (room, id)
}
