import Foundation
import Roost
import RoostAPI

@MainActor private func offline(server: URL, backend: Backend, group: URL, id: MessageID) async throws {
    // sample.begin
    let chat = Chat(url: server, user: "ann") { try await backend.chatToken() }
    chat.start()
    let channels = chat.channels()
    // sample.end

    // sample.begin
    for await status in chat.connection.updates {
        switch status {
        case .online: print("connected")
        case .waiting(let next, let reason): print("again at \(next.date): \(reason)")
        case .refused(let error), .failed(let error): print(error.message)
        case .offline, .connecting: break
        }
    }
    // sample.end

    // sample.begin
    try await chat.connect(timeout: .seconds(20))
    try await chat.channel("general").sendConfirmed("On my way.")
    await chat.disconnect()
    // sample.end

    let channel = chat.channel("general")
    // sample.begin
    do {
        try await channel.addMembers(["bob"])
    } catch let error as RoostError {
        switch error.code {
        case .notConnected: print("There is no connection; the change may or may not have been made.")
        case .notPermitted: print("You may not add anybody here.")
        default: print(error.message)
        }
    }
    // sample.end

    // sample.begin
    let me = try await chat.call(GetUser(user: "ann"))
    // sample.end

    // sample.begin
    let stored = try StoredChat(user: "ann", at: server, in: .shared(group))
    let newest = try await stored.messages(in: "general", limit: 5)
    let pushed = try await stored.message(id, in: "general")
    // sample.end

    // sample.begin
    var configuration = Chat.Configuration(storage: .shared(group))
    configuration.onStorageProblem = { problem in print(problem) }
    // sample.end
    _ = (channels, me, newest, pushed, configuration)
}
