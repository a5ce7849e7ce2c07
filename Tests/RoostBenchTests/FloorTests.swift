import Foundation
import Testing

@testable import RoostBench
@testable import RoostDatabase

/// The floor of sends compares equal terms.
@Suite struct FloorTests {
    @Test("SQLite alone has the pragmas of the server's writer, and writes its log into the database at the same size")
    func pragmas() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Sources/RoostDatabase/SQLiteStart.swift")
        let source = try String(contentsOf: file, encoding: .utf8)
        let servers = source.matches(of: #/PRAGMA ([a-z_]+ = [A-Za-z]+)"/#).map { String($0.1) }
        #expect(servers.count >= 4)
        let cacheKibibytes = SQLiteDatabase.writerCacheBytes(of: SQLiteDatabase.standardPageCacheBytes) / 1024
        let others = ["wal_autocheckpoint = \(Checkpoints.logFrames)", "cache_size = -\(cacheKibibytes)"]
        #expect(Set(FloorDatabase.pragmas) == Set(servers + others))
    }
}
