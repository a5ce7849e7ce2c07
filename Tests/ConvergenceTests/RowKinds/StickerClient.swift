import Foundation
import Logging
import RoostTestSupport

@testable import Roost
@testable import RoostAPI
@testable import RoostCore

/// The SDK's machine and cache for one user, fed by hand from a world.
struct StickerClient {
    private(set) var sync: Sync
    let store: Store
    private var resumeCall: Int64?

    init(user: UserID, _ kinds: RowKinds, at url: URL? = nil) async throws {
        store = try Store(
            url: url, user: user, kinds: CachedRowKinds(kinds), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var settings = Sync.Settings()
        settings.rowKinds = kinds
        sync = Sync(
            user: user, client: "test", settings: settings, saved: try await store.savedState(), random: SeededGenerator(seed: 1))
    }

    func stickers() async throws -> [Sticker] { try await store.read { try Sticker.cached(in: "general", $0) } }

    /// Connects, and catches up with a world.
    mutating func connect(to world: CoreWorld) async throws {
        try await feed(.stop)
        try await feed(.start)
        if sync.isFetchingToken { try await feed(.token("token")) }
        try await feed(.transport(sync.connection, .opened))
        try await receive(
            frame: WelcomeFrame(
                welcome: .init(
                    user: sync.user, role: .user, connection: 1, server: "server", epoch: "first", version: "1", now: world.now,
                    tokenExpiresAt: world.now, pingIntervalSeconds: 30)))
        while let call = resumeCall {
            resumeCall = nil
            let positions = sync.saved.channels.map { ($0.key.rawValue, $0.value.cursor) }
            let answer = try world.perform(
                Resume(after: sync.saved.userCursor, channels: Dictionary(uniqueKeysWithValues: positions)), as: sync.user)
            try await receive(frame: Answer(reply: call, result: answer))
        }
    }

    mutating func receive(_ events: some Sequence<Event>) async throws {
        for event in events { try await receive(frame: event) }
    }

    private mutating func receive(frame: some Encodable) async throws {
        try await feed(.transport(sync.connection, .message(try JSONWriter.bytes(of: frame))))
    }

    private mutating func feed(_ input: Sync.Input) async throws {
        for output in sync.handle(input) {
            switch output {
            case .store(let writes): try await store.write(writes)
            case .send(let bytes), .sendBeforeStoring(let bytes):
                let call = try? JSONDecoder().decode(Call.self, from: Data(bytes))
                if let call, call.operation == Resume.name { resumeCall = call.call }
            default: break
            }
        }
    }

    private struct Call: Decodable {
        var call: Int64
        var operation: String
    }

    private struct Answer: Encodable {
        var reply: Int64
        var result: Resumption
    }
}

/// A path for a file that is removed after the test.
struct TemporaryFile {
    let url: URL

    init() throws {
        let folder = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        url = folder.appending(component: "cache.sqlite")
    }

    func remove() { try? FileManager.default.removeItem(at: url.deletingLastPathComponent()) }
}
