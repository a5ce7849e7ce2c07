import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Live objects: nothing is kept", .timeLimit(.minutes(5)))
struct LeakTests {
    /// What becomes of an object when nobody has it any more.
    private struct Watched {
        let name: String
        weak var object: AnyObject?
    }

    private func chat() -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        // The server doesn't answer what some lists ask; they wait so long, and are freed after it.
        configuration.callTimeout = .seconds(1)
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    /// Every kind of live object of a chat.
    private func liveObjects(of chat: Chat) -> [any AnyObject & Sendable] {
        let general = chat.channel("general")
        return [
            chat.connection, chat.preferences, chat.unread, chat.invitations(), chat.channels(),
            chat.channels(matching: ChannelQuery(membership: .all)), general, general.messages(), general.members(),
            general.searchMembers("b"),
        ]
    }

    /// Has a chat and all of its live objects, used in every way, and lets go of them.
    private func use(isConnected: Bool) async throws -> [Watched] {
        let chat = chat()
        if isConnected { try await chat.connect() }
        let objects = liveObjects(of: chat)
        var tokens: [ObservationToken] = []
        var readers: [Task<Void, Never>] = []
        for object in objects {
            switch object {
            case let list as ChannelList:
                tokens.append(list.observe { _ in })
                readers.append(Task { for await _ in list.updates {} })
            case let list as MessageList:
                tokens.append(list.observe { _ in })
                readers.append(Task { for await _ in list.updates {} })
            case let list as MemberList:
                tokens.append(list.observe { _ in })
                readers.append(Task { for await _ in list.updates {} })
            case let list as InvitationList:
                tokens.append(list.observe { _ in })
                readers.append(Task { for await _ in list.updates {} })
            case let channel as LiveChannel:
                tokens.append(channel.observe { _ in })
                readers.append(Task { for await _ in channel.updates {} })
                try await channel.send("hi")
                try await channel.loaded()
            case let connection as LiveConnection:
                tokens.append(connection.observe { _ in })
                readers.append(Task { for await _ in connection.updates {} })
            case let preferences as LivePreferences:
                tokens.append(preferences.observe { _ in })
                readers.append(Task { for await _ in preferences.updates {} })
            case let unread as LiveUnread:
                tokens.append(unread.observe { _ in })
                readers.append(Task { for await _ in unread.updates {} })
            default: Issue.record("\(type(of: object)) isn't used here.")
            }
        }
        for _ in 0..<100 { await Task.yield() }
        for reader in readers { reader.cancel() }
        for reader in readers { await reader.value }
        #expect(tokens.count == objects.count)
        return objects.map { Watched(name: "\(type(of: $0))", object: $0) } + [
            Watched(name: "Chat", object: chat), Watched(name: "SyncDriver", object: chat.driver),
        ]
    }

    @Test("AM-29 A chat and every live object of it are freed once nobody has them, connected or not", arguments: [true, false])
    func freed(isConnected: Bool) async throws {
        let watched = try await use(isConnected: isConnected)
        for one in watched { while one.object != nil { try await Task.sleep(for: .milliseconds(2)) } }
    }
}
