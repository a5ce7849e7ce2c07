import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Live objects: nothing is kept", .timeLimit(.minutes(5)))
struct LeakTests {
    /// Whether an object is freed once it has no owner.
    private struct Watched {
        let name: String
        weak var object: AnyObject?
    }

    private func chat(_ server: any Transport = TinyServer()) -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server
        // The server doesn't answer some lists; their calls wait this long, and the lists are freed afterwards.
        configuration.callTimeout = .seconds(1)
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    /// Every kind of live object of a chat.
    private func liveObjects(of chat: Chat) -> [any AnyObject & Sendable] {
        let general = chat.channel("general")
        return [
            chat.connection, chat.preferences, chat.unread, chat.outbox, chat.invitations(), chat.drafts(), chat.user("bob"),
            chat.channels(), chat.channels(matching: ChannelQuery(membership: .all)), general, general.messages(),
            general.history(), general.members(), general.searchMembers("b"), general.draft(), general.receipts(),
            general.typing(), general.presence(), general.watchers(),
        ]
    }

    /// An object that is followed in every way that it offers.
    @MainActor
    private struct Followed {
        /// Nil for an object without observers.
        let token: ObservationToken?
        let reader: Task<Void, Never>

        init<Value: Sendable>(_ token: ObservationToken, _ updates: AsyncStream<Value>) {
            self.token = token
            reader = Task { for await _ in updates {} }
        }

        init<Item: Identifiable & Hashable & Sendable>(
            _ token: ObservationToken, _ updates: ListUpdates<Item>
        ) where Item.ID: Sendable {
            self.token = token
            reader = Task { for await _ in updates {} }
        }

        init(_ history: MessageHistory) {
            token = nil
            reader = Task { _ = try? await history.loadOlder() }
        }
    }

    private func follow(_ object: any AnyObject & Sendable) -> Followed? {
        switch object {
        case let list as ChannelList: return Followed(list.observe { _ in }, list.updates)
        case let list as MessageList: return Followed(list.observe { _ in }, list.updates)
        case let list as MemberList: return Followed(list.observe { _ in }, list.updates)
        case let list as InvitationList: return Followed(list.observe { _ in }, list.updates)
        case let list as DraftList: return Followed(list.observe { _ in }, list.updates)
        case let list as WatcherList: return Followed(list.observe { _ in }, list.updates)
        case let history as MessageHistory: return Followed(history)
        case let channel as LiveChannel: return Followed(channel.observe { _ in }, channel.updates)
        case let connection as LiveConnection: return Followed(connection.observe { _ in }, connection.updates)
        case let preferences as LivePreferences: return Followed(preferences.observe { _ in }, preferences.updates)
        case let unread as LiveUnread: return Followed(unread.observe { _ in }, unread.updates)
        case let outbox as LiveOutbox: return Followed(outbox.observe { _ in }, outbox.updates)
        case let draft as LiveDraft: return Followed(draft.observe { _ in }, draft.updates)
        case let receipts as LiveReceipts: return Followed(receipts.observe { _ in }, receipts.updates)
        case let typing as LiveTyping: return Followed(typing.observe { _ in }, typing.updates)
        case let presence as LivePresence: return Followed(presence.observe { _ in }, presence.updates)
        case let user as LiveUser: return Followed(user.observe { _ in }, user.updates)
        default:
            Issue.record("\(type(of: object)) isn't used here.")
            return nil
        }
    }

    /// Makes a chat and all of its live objects, uses them in every way, and releases them.
    private func use(isConnected: Bool) async throws -> [Watched] {
        let chat = chat()
        if isConnected { try await chat.connect() }
        let objects = liveObjects(of: chat)
        let followed = objects.compactMap { follow($0) }
        for case let channel as LiveChannel in objects {
            try await channel.send("hi")
            try await channel.loaded()
        }
        await letOthersRun(100)
        for one in followed { one.reader.cancel() }
        for one in followed { await one.reader.value }
        #expect(followed.count == objects.count)
        return watched(objects, of: chat)
    }

    private func watched(_ objects: [any AnyObject & Sendable], of chat: Chat) -> [Watched] {
        objects.map { Watched(name: "\(type(of: $0))", object: $0) } + [
            Watched(name: "Chat", object: chat), Watched(name: "SyncDriver", object: chat.driver),
        ]
    }

    @Test("AM-29 a chat and every live object of it are freed once they have no owner, connected or not", arguments: [true, false])
    func freed(isConnected: Bool) async throws {
        let watched = try await use(isConnected: isConnected)
        for one in watched { try await until { one.object == nil } }
    }

    /// Releases a chat and all of its live objects while these start, and the chat connects.
    private func use(forTurns turns: Int) async -> [Watched] {
        let chat = chat(ScriptedServer { _ in .error(.notFound("channel")) })
        chat.start()
        let objects = liveObjects(of: chat)
        let followed = objects.compactMap { follow($0) }
        await letOthersRun(turns)
        for one in followed { one.reader.cancel() }
        return watched(objects, of: chat)
    }

    @Test("AM-29 a chat and every live object of it are freed if they lose their owners after any number of turns")
    func freedAnytime() async throws {
        for turns in Array(0...30) + [40, 60, 100, 200] {
            for one in await use(forTurns: turns) { try await until { one.object == nil } }
        }
    }

    @Test("AM-29 an app that keeps only a live object stays connected, unless the chat owns it itself")
    func kept() async throws {
        let count = liveObjects(of: chat()).count
        for number in 0..<count {
            var chat: Chat? = chat()
            try await chat?.connect()
            let driver = try #require(chat?.driver)
            let object = try #require(chat.map { liveObjects(of: $0)[number] })
            let isOwned = object is LiveConnection || object is LivePreferences || object is LiveUnread || object is LiveOutbox
            chat = nil
            if isOwned {
                try await until { driver.statuses.current == .offline }
            } else {
                await letOthersRun(200)
                #expect(driver.statuses.current == .online, "\(type(of: object))")
            }
            withExtendedLifetime(object) {}
        }
    }

    @Test("every public class of the SDK is among them, except the token that ends an observation")
    func complete() throws {
        let used = Set(liveObjects(of: chat()).map { "\(type(of: $0))" })
        let declared = try Self.publicClasses()
        #expect(used.union(["Chat", "ObservationToken"]) == declared)
    }

    /// The names of the public classes in the SDK's sources.
    private static func publicClasses() throws -> Set<String> {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let folder = tests.deletingLastPathComponent().appending(path: "Sources/Roost")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        var names: Set<String> = []
        for path in paths {
            let text = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            for line in text.split(separator: "\n") where line.hasPrefix("public ") {
                if let match = line.prefixMatch(of: /public (?:final )?class (\w+)/) { names.insert(String(match.1)) }
            }
        }
        return names
    }
}
