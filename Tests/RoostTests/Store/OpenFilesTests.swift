import Dispatch
import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Two stores of one process on one file.
@Suite("Store: several chats of a process", .timeLimit(.minutes(5)))
struct OpenFilesTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let former = Position(cursor: 500, windowStart: 0)
    private let later = Position(cursor: 700, windowStart: 601)

    private func store() throws -> Store {
        let file = directory.appending(component: "cache.sqlite")
        let kinds = CachedRowKinds(RowKinds.standard.adding([HeldUp.self]))
        return try Store(url: file, user: "ann", kinds: kinds, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Two stores that know a channel's position.
    private func stores() async throws -> (Store, Store) {
        let (first, second) = (try store(), try store())
        try await first.write([.erase(epoch: "first"), .forget("general"), .position("general", former)])
        for store in [first, second] { _ = try await store.savedState() }
        return (first, second)
    }

    /// A store's write that is held up in its transaction, after it has reset something.
    private func held(_ store: Store, _ writes: [StoreWrite]) async -> (writing: Task<Void, any Error>, gate: HeldUp.Gate) {
        let gate = HeldUp.Gate()
        let writing = Task {
            try await HeldUp.$gate.withValue(gate) {
                try await store.write(writes + [.rows(Rows([HeldUp()]), of: .channel("general"))])
            }
        }
        await gate.isReached()
        return (writing, gate)
    }

    @Test("a read of the positions during another chat's reset of a channel doesn't wait, and is repeated before a write")
    func betweenNoteAndCommit() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (first, second) = try await stores()
        let (writing, gate) = await held(first, [.forget("general"), .position("general", later)])
        #expect(try await second.savedState().channels["general"] == former)
        gate.open()
        try await writing.value
        let moved = Position(cursor: 501, windowStart: 0)
        await #expect(throws: OpenFiles.RestartedElsewhere.self) { try await second.write([.position("general", moved)]) }
        #expect(try await second.savedState().channels["general"] == later)
        try await second.write([.position("general", Position(cursor: 701, windowStart: 601))])
    }

    @Test("the same holds for a history that is replaced; other channels don't have to be read again")
    func erased() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (first, second) = try await stores()
        let (leaving, toLeave) = await held(first, [.leave("other")])
        #expect(try await second.savedState().epoch == "first")
        toLeave.open()
        try await leaving.value
        try await second.write([.position("general", former), .userPosition(1)])

        let (erasing, toErase) = await held(first, [.erase(epoch: "second")])
        #expect(try await second.savedState().epoch == "first")
        toErase.open()
        try await erasing.value
        await #expect(throws: OpenFiles.RestartedElsewhere.self) { try await second.write([.userPosition(2)]) }
        #expect(try await second.savedState() == SavedState(epoch: "second"))
        try await second.write([.userPosition(2)])
    }

    @Test("a transaction that fails is over too: a write after a new read succeeds")
    func failed() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (first, second) = try await stores()
        let gate = HeldUp.Gate(fails: true)
        gate.open()
        await #expect(throws: HeldUp.Failure.self) {
            try await HeldUp.$gate.withValue(gate) {
                try await first.write([.forget("general"), .rows(Rows([HeldUp()]), of: .channel("general"))])
            }
        }
        #expect(try await second.savedState().channels["general"] == former)
        try await second.write([.position("general", former)])
        #expect(try await first.savedState().channels["general"] == former)
    }

    @Test("a refused write records none of its resets")
    func refused() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (first, second) = try await stores()
        try await first.write([.forget("general"), .position("general", later)])
        await #expect(throws: OpenFiles.RestartedElsewhere.self) {
            try await second.write([.forget("other"), .position("general", former)])
        }
        try await first.write([.forget("other"), .position("other", former)])
        await #expect(throws: OpenFiles.RestartedElsewhere.self) { try await second.write([.position("other", former)]) }
    }

    @Test("a chat that opens during another one's write of a reset waits only for that")
    func opening() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let first = try store()
        try await first.write([.erase(epoch: "first"), .forget("general"), .position("general", former)])
        let (writing, gate) = await held(first, [.forget("general"), .position("general", later)])
        let opening = Task.detached { [self] in try store() }
        // It is registered among the stores by now, or about to be.
        await letOthersRun()
        gate.open()
        try await writing.value
        let second = try await opening.value
        #expect(try await second.savedState().channels["general"] == later)
        try await second.write([.position("general", later)])
    }
}

/// A row whose write a test holds up, and with it its transaction.
private struct HeldUp: StreamRow, CachedRow {
    @TaskLocal static var gate: Gate?

    static let kind = "heldUp"
    static let schema = "CREATE TABLE heldUp (id INTEGER PRIMARY KEY);"
    var key: String { "" }
    var stamp: Int64 { 0 }

    func write(to json: inout JSONBytes) {
        json.beginObject()
        json.endObject()
    }

    static func save(_ rows: [HeldUp], of stream: StreamID, as user: UserID, in database: Database) throws { try gate?.pass() }
    static func forget(_ channel: ChannelID, as user: UserID, in database: Database) throws {}
    static func forget(messages: ClosedRange<Seq>, in channel: ChannelID, _ database: Database) throws {}

    struct Failure: Error {}

    final class Gate: Sendable {
        private let mayPass = DispatchSemaphore(value: 0)
        private let reached: AsyncStream<Void>
        private let hasReached: AsyncStream<Void>.Continuation
        private let fails: Bool

        init(fails: Bool = false) {
            self.fails = fails
            (reached, hasReached) = AsyncStream.makeStream(of: Void.self)
        }

        func open() { mayPass.signal() }
        func isReached() async { for await _ in reached {} }

        fileprivate func pass() throws {
            hasReached.finish()
            mayPass.wait()
            if fails { throw Failure() }
        }
    }
}
