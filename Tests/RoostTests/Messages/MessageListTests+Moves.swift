import Foundation
import RoostAPI
import Testing

@testable import Roost

extension MessageListTests {
    @Test("AM-30 a list that is asked for the newest messages while it finds its place lost goes to the newest messages")
    func newestWhileLost() async throws {
        let folder = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let server = ScriptedServer { _ in .error(.notFound("operation")) }
        let chat = try await server.connectedInGeneral(storage: .directory(folder))
        let store = try await chat.driver.files().store
        func startOver(with seqs: ClosedRange<Seq>) async throws {
            try await store.write([
                .forget(Harness.channel), .messages(seqs.map { message($0, "\($0)") }, of: Harness.channel),
                .position(Harness.channel, Position(cursor: seqs.upperBound, windowStart: seqs.lowerBound, messageCount: nil)),
            ])
        }
        try await startOver(with: 1...1000)
        let list = chat.channel(Harness.channel).messages(around: .message(MessageID(rawValue: 500)), pageSize: 10)
        try await list.loaded()
        #expect(list.items.map(\.text) == (496...505).map { "\($0)" } && list.hasNewer)

        // The list can't read yet that its place isn't cached any longer.
        let readers = try await BusyReaders.occupying(store)
        defer { readers.end() }
        try await startOver(with: 5001...5010)
        await letOthersRun()
        let showing = Task { await list.showNewest() }
        await letOthersRun()
        readers.end()
        await showing.value
        #expect(list.items.map(\.text) == (5001...5010).map { "\($0)" } && !list.hasNewer && list.phase == .loaded)
        await chat.disconnect()
    }
}
