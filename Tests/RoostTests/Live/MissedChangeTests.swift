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
