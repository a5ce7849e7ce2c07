import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// A change for which the store couldn't be read is shown with the next one, whatever that is about, or a little later without one.
@MainActor @Suite("Live objects: changes that couldn't be read", .timeLimit(.minutes(5)))
struct MissedChangeTests {
    private func chat(_ clock: any Clock<Duration> = ContinuousClock()) -> Chat {
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: TinyServer(),
            clock: clock)
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    /// Writes while a table is missing that reads need, and writes don't.
    private func write(_ write: StoreWrite, to store: Store, without table: String, until isMissed: () -> Bool) async throws {
        try await store.change { try $0.run("ALTER TABLE \(table) RENAME TO hidden") }
        try await store.write([write])
        try await RoostTests.until { isMissed() }
        try await store.change { try $0.run("ALTER TABLE hidden RENAME TO \(table)") }
    }

    /// A change of users whom nothing shows.
    private let other = StoreChange(users: ["carl"])

    @Test("AM-29 R08 preferences show what they missed")
    func preferences() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        let preferences = chat.preferences
        try await preferences.loaded()
        var overlay = Overlay()
        overlay.preferences = UpdatePreferences(sharesTyping: false)
        try await write(.overlay(nil, overlay), to: store, without: "preferences") { preferences.phase.error != nil }
        store.signals.signal(other)
        try await until { !preferences.sharesTyping && preferences.phase == .loaded }
    }

    @Test("AM-29 R08 a list of invitations shows what it missed")
    func invitations() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        let list = chat.invitations()
        try await list.loaded()
        try await write(.invitation(invitation()), to: store, without: "users") { list.phase.error != nil }
        store.signals.signal(other)
        try await until { list.items.map(\.id.channelId) == ["private"] && list.phase == .loaded }
    }

    @Test("AM-29 R08 missed changes are shown after a while if nothing else changes")
    func later() async throws {
        let clock = ManualClock()
        let chat = chat(clock)
        let store = try await chat.driver.prepare().store
        let list = chat.invitations()
        try await list.loaded()
        try await write(.invitation(invitation()), to: store, without: "users") {
            list.phase.error != nil && clock.ends.contains(.seconds(1))
        }
        clock.advance(by: .seconds(1))
        try await until { list.items.map(\.id.channelId) == ["private"] && list.phase == .loaded }
    }

    /// A live object whose request to the server begins by reading the store.
    enum Asking: CaseIterable {
        case channels, members, watchers, receipts, presence, watch

        var operation: String {
            switch self {
            case .channels: "channel.query"
            case .members: "member.list"
            case .watchers: "channel.listWatchers"
            case .receipts: "reading.listReaders"
            case .presence, .watch: "channel.watch"
            }
        }

        /// A table that the request needs.
        var table: String { self == .channels ? "channels" : "positions" }
    }

    /// Makes the object. Returns its phase, and keeps the object with it.
    private func make(_ object: Asking, in chat: Chat) -> @MainActor () -> LivePhase {
        switch object {
        case .channels:
            let list = chat.channels(matching: ChannelQuery(membership: .notMember))
            return { list.phase }
        case .members:
            let list = MemberList(.list(ListMembers(channel: "general")), pageSize: 30, in: chat)
            return { list.phase }
        case .watchers:
            let list = WatcherList(of: "general", pageSize: 30, in: chat)
            return { list.phase }
        case .receipts:
            let receipts = LiveReceipts(of: "general", in: chat)
            return { receipts.phase }
        case .presence:
            let presence = LivePresence(of: "general", in: chat)
            return { presence.phase }
        case .watch:
            let watch = ChannelWatch(of: "general", in: chat)
            // It has no phase.
            return { withExtendedLifetime(watch) { LivePhase.loaded } }
        }
    }

    @Test(
        "AM-29 R08 a request for which the store couldn't be read is made a little later, on the same connection",
        arguments: Asking.allCases)
    func askedLater(object: Asking) async throws {
        let clock = ManualClock()
        let server = ScriptedServer { call in
            switch call.operation {
            case "channel.query": .result(Page<ChannelView>(items: []))
            case "member.list": .result(Page<MemberEntry>(items: []))
            case "channel.listWatchers": .result(WatcherPage(watchers: [], watcherCount: 0))
            default: LogOutListTests.answer(to: call)
            }
        }
        let chat = try await server.connected(clock)
        let store = try await chat.driver.files().store
        func requests() async -> Int { await server.operations().count { $0 == object.operation } }
        try await store.change { try $0.run("ALTER TABLE \(object.table) RENAME TO hidden") }
        let phase = make(object, in: chat)
        try await until { clock.ends.contains(.seconds(1)) }
        #expect(await requests() == 0)
        try await store.change { try $0.run("ALTER TABLE hidden RENAME TO \(object.table)") }
        clock.advance(by: .seconds(1))
        try await until { await requests() == 1 && phase() == .loaded }
        await chat.disconnect()
    }

    @Test("AM-29 R08 a new connection doesn't load a list of the user's own channels that can't be read")
    func unreadableOnConnection() async throws {
        let clock = ManualClock()
        let chat = try await ScriptedServer { _ in .nothing }.connected(clock)
        let store = try await chat.driver.files().store
        let list = chat.channels()
        try await list.loaded()
        try await store.change { try $0.run("ALTER TABLE channels RENAME TO hidden") }
        store.signals.signal(.everything)
        try await until { list.phase.error != nil }
        await chat.disconnect()
        try await chat.connect()
        await letOthersRun()
        #expect(list.phase.error?.code == .storageFailed)
        try await store.change { try $0.run("ALTER TABLE hidden RENAME TO channels") }
        store.signals.signal(.everything)
        try await until { list.phase == .loaded }
        await chat.disconnect()
    }

    @Test("preferences show the user's own change when that call returns")
    func shownAtOnce() async throws {
        let chat = chat()
        let preferences = chat.preferences
        try await preferences.loaded()
        for isShared in [false, true, false] {
            try await chat.setSharing(typing: isShared)
            #expect(preferences.sharesTyping == isShared)
            try await chat.setAutoAcceptInvitations(isShared)
            #expect(preferences.autoAcceptInvitations == isShared)
        }
    }
}
