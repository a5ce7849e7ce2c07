import Foundation
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostDatabase

/// Damages the files of a stopped server, one thing at a time, and then starts it.
///
/// Three outcomes are right: the start is refused; a read that needs the damaged part is refused; or everything acknowledged is there,
/// unchanged. Anything else is a wrong answer, or a silent loss.
@Suite("Damaged files")
struct DamageTests {
    @Test("I1 I24 whatever happens to one file, the start is refused, the read is refused, or everything is there")
    func oneFileDamaged() throws {
        let scene = try Scene()
        defer { scene.remove() }
        var random = SeededGenerator(seed: 9)
        var ends: [String: Int] = [:]
        var wrong: [String] = []
        var count = 0
        for origin in [scene.killed, scene.closed] {
            for damage in Damage.all(of: origin, scene, &random) {
                count += 1
                let end = try scene.end(of: damage, from: origin)
                ends[end.kind, default: 0] += 1
                if end.kind == "wrong" { wrong.append("\(origin.lastPathComponent): \(damage.name): \(end.detail)") }
            }
        }
        print("Damage: \(count) kinds, \(ends.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")).")
        #expect(wrong == [])
        #expect(count >= 200)
        // The table can fail: it has all three outcomes.
        #expect(Set(ends.keys) == ["refused at the start", "refused at the read", "harmless"])
    }

    @Test("I1 undamaged files start with everything in them, after a kill and after a stop")
    func untouchedFilesStart() throws {
        let scene = try Scene()
        defer { scene.remove() }
        for origin in [scene.killed, scene.closed] {
            let end = try scene.end(of: Damage(name: "nothing") { _ in }, from: origin)
            #expect(end.kind == "harmless", "\(end.detail)")
        }
    }

    @Test("I1 after a power cut in the middle of a commit the server starts, whichever of its sectors reached the disk")
    func tornCommitStarts() throws {
        let scene = try Scene()
        defer { scene.remove() }
        let name = "roost.sqlite-wal"
        let whole = try Data(contentsOf: scene.torn.appending(path: name))
        var before = try Data(contentsOf: scene.killed.appending(path: name))
        before.append(Data(count: max(0, whole.count - before.count)))
        let start = try #require(zip(whole, before).enumerated().first { $1.0 != $1.1 }?.offset)
        for seed in UInt64(1)...40 {
            var random = SeededGenerator(seed: seed)
            var bytes = whole
            // Each sector after the acknowledged ones is written, or still has its former contents.
            var place = start
            while place < bytes.count {
                let end = min(bytes.count, (place / 512 + 1) * 512)
                if random.once(in: 2) { bytes.replaceSubrange(place..<end, with: before[place..<end]) }
                place = end
            }
            let torn = bytes
            let end = try scene.end(of: Damage(name: "torn") { try torn.write(to: $0.appending(path: name)) }, from: scene.torn)
            #expect(end.kind == "harmless", "seed \(seed): \(end.detail)")
        }
    }

    @Test("I20 with --accept-data-loss the server starts without its log, has a new epoch, and says what is lost")
    func acceptedLoss() throws {
        let scene = try Scene()
        defer { scene.remove() }
        let directory = try scene.copy(of: scene.killed)
        try FileManager.default.removeItem(at: directory.appending(path: "roost.sqlite-wal"))
        #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory) }
        let database = try SQLiteDatabase(directory: directory, acceptsDataLoss: true)
        let epoch = try database.read { try $0.setting("epoch") }
        #expect(database.losses.count == 1 && epoch != nil && epoch != Scene.epoch)
        try database.close()
        // From then on it is an ordinary server.
        let again = try SQLiteDatabase(directory: directory)
        #expect(try again.read { try $0.setting("epoch") } == epoch)
        #expect(again.losses == [])
        try again.close()
        // Files moved aside don't come back unnoticed.
        try FileManager.default.removeItem(at: directory.appending(path: "roost.sqlite"))
        try FileManager.default.copyItem(
            at: scene.closed.appending(path: "roost.sqlite"), to: directory.appending(path: "roost.sqlite"))
        #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory) }
    }

    @Test("I1 I24 a truncated log is refused also if an incomplete checkpoint has left its number in the database")
    func cutAfterIncompleteCheckpoint() throws {
        let scene = try Scene()
        defer { scene.remove() }
        for isCut in [false, true] {
            let directory = try scene.copy(of: scene.killed)
            let path = directory.appending(path: "roost.state").path
            guard case .state(var state) = StateFile.read(path: path) else { throw Missed("a state") }
            try #require(state.generation > 0 && state.logFrames > 1 && state.logSalts != nil)
            // Simulates that one checkpoint fewer was completed.
            (state.generation, state.sequence) = (state.generation - 1, state.sequence + 1)
            try StateFile(path: path).write(state)
            let log = directory.appending(path: "roost.sqlite-wal")
            if isCut { try Data(contentsOf: log).prefix(32 + 24 + 4096).write(to: log) }
            #expect(scene.look(at: directory).kind == (isCut ? "refused at the start" : "harmless"))
        }
    }

    @Test("I1 a refused start changes nothing: with the right file put back, the server starts")
    func refusalChangesNothing() throws {
        let scene = try Scene()
        defer { scene.remove() }
        let directory = try scene.copy(of: scene.killed)
        for name in ["roost.sqlite-wal", "roost.state", "roost.sqlite"] {
            let file = directory.appending(path: name)
            let aside = directory.appending(path: "aside")
            try FileManager.default.moveItem(at: file, to: aside)
            #expect(throws: DamagedFiles.self) { try SQLiteDatabase(directory: directory) }
            try? FileManager.default.removeItem(at: file)
            try FileManager.default.moveItem(at: aside, to: file)
        }
        let end = scene.look(at: directory)
        #expect(end.kind == "harmless", "\(end.detail)")
    }
}

/// One thing that happens to the files of a directory.
private struct Damage {
    let name: String
    let happen: (URL) throws -> Void

    static func all(of origin: URL, _ scene: Scene, _ random: inout SeededGenerator) -> [Damage] {
        var all: [Damage] = []
        let files = ["roost.sqlite": 70, "roost.sqlite-wal": 70, "roost.state": 16, "roost.lock": 2]
        for (file, flips) in files.sorted(by: { $0.key < $1.key }) {
            guard let data = try? Data(contentsOf: origin.appending(path: file)) else { continue }
            all.append(Damage(name: "\(file) missing") { try FileManager.default.removeItem(at: $0.appending(path: file)) })
            all.append(Damage(name: "\(file) empty") { try Data().write(to: $0.appending(path: file)) })
            for size in Set([
                1, 31, 56, 100, 512, 4096, data.count / 4, data.count / 2, data.count * 3 / 4, data.count - 4096, data.count - 512,
                data.count - 1,
            ]) where size > 0 && size < data.count {
                all.append(Damage(name: "\(file) cut off at \(size)") { try data.prefix(size).write(to: $0.appending(path: file)) })
            }
            for (what, other) in [
                ("older", scene.older), ("of another server", scene.other), ("of the running server", scene.killed),
            ] {
                guard let bytes = try? Data(contentsOf: other.appending(path: file)), bytes != data else { continue }
                all.append(Damage(name: "\(file) \(what)") { try bytes.write(to: $0.appending(path: file)) })
            }
            let header = [0, 16, 18, 20, 24, 28, 40, 60, 68, 92].filter { $0 < data.count }
            for place in header + (0..<flips).map({ _ in random.number(0...max(0, data.count - 1)) }) where place < data.count {
                let bit = UInt8(1) << UInt8(random.number(0...7))
                all.append(
                    Damage(name: "\(file) bit at \(place)") { directory in
                        var bytes = data
                        bytes[place] ^= bit
                        try bytes.write(to: directory.appending(path: file))
                    })
            }
            for place in stride(from: 0, to: data.count - 4096, by: max(4096, data.count / 6 / 4096 * 4096)) {
                all.append(
                    Damage(name: "\(file) zeros at \(place)") { directory in
                        var bytes = data
                        bytes.replaceSubrange(place..<place + 4096, with: Data(count: 4096))
                        try bytes.write(to: directory.appending(path: file))
                    })
            }
        }
        return all
    }
}

/// A server's files at several moments, with the rows acknowledged by then.
private struct Scene {
    static let epoch = "the-epoch"
    private let root = TemporaryPlace.make()
    /// The acknowledged state: names and values.
    private var truth: [String: String] = [:]

    var killed: URL { root.appending(path: "killed") }
    var closed: URL { root.appending(path: "closed") }
    var older: URL { root.appending(path: "older") }
    var other: URL { root.appending(path: "other") }
    /// The files of `killed` in the middle of one more commit, which wasn't acknowledged.
    var torn: URL { root.appending(path: "torn") }

    init() throws {
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        let live = root.appending(path: "live")
        let database = try SQLiteDatabase(directory: live)
        try write(database, 1...40)
        try database.markNow()
        try copy(live, to: older)
        try database.checkpointNow()
        // Free pages, and long texts on their own pages.
        try database.write(lane: 0) { _ = try $0.execute("DELETE FROM settings WHERE name LIKE 'value 1%'") }
        truth = truth.filter { !$0.key.hasPrefix("value 1") }
        try write(database, 41...60)
        try database.checkpointNow()
        try write(database, 61...80)
        try database.markNow()
        try copy(live, to: killed)
        try database.write(lane: 0) { try Self.insert("unknown", String(repeating: "?", count: 20_000), $0) }
        try copy(live, to: torn)
        try FileManager.default.removeItem(at: torn.appending(path: "roost.state"))
        try FileManager.default.copyItem(at: killed.appending(path: "roost.state"), to: torn.appending(path: "roost.state"))
        try database.write(lane: 0) { _ = try $0.execute("DELETE FROM settings WHERE name = 'unknown'") }
        try database.close()
        try copy(live, to: closed)

        let stranger = root.appending(path: "stranger")
        var strangers = self
        let second = try SQLiteDatabase(directory: stranger)
        try strangers.write(second, 1...80)
        try second.markNow()
        try copy(stranger, to: other)
        try second.close()
    }

    private mutating func write(_ database: SQLiteDatabase, _ numbers: ClosedRange<Int>) throws {
        for number in numbers {
            let value = String(repeating: "\(number) ", count: number.isMultiple(of: 5) ? 4000 : 20)
            try database.write(lane: 0) { try Self.insert("value \(number)", value, $0) }
            truth["value \(number)"] = value
        }
        _ = try database.write(lane: 0) { try $0.epoch(orNew: Self.epoch) }
    }

    private static func insert(_ name: String, _ value: String, _ transaction: any Transaction) throws {
        try transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), \(value))")
    }

    private func copy(_ from: URL, to directory: URL) throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        // The log's index is memory of the running process.
        for name in try FileManager.default.contentsOfDirectory(atPath: from.path) where !name.hasSuffix("-shm") {
            try FileManager.default.copyItem(at: from.appending(path: name), to: directory.appending(path: name))
        }
    }

    func copy(of origin: URL) throws -> URL {
        let directory = root.appending(path: "case-\(UUID().uuidString)")
        try copy(origin, to: directory)
        return directory
    }

    func end(of damage: Damage, from origin: URL) throws -> (kind: String, detail: String) {
        let directory = try copy(of: origin)
        defer { try? FileManager.default.removeItem(at: directory) }
        try damage.happen(directory)
        return look(at: directory)
    }

    /// Starts a server in the directory and reads everything acknowledged.
    func look(at directory: URL) -> (kind: String, detail: String) {
        let database: SQLiteDatabase
        do { database = try SQLiteDatabase(directory: directory) } catch { return ("refused at the start", "\(error)") }
        defer { try? database.close() }
        var refused: String?
        for (name, value) in truth {
            do {
                let found = try database.read { try $0.setting(name) }
                if found != value { return ("wrong", "\(name) is \(found?.prefix(40) ?? "missing")") }
            } catch {
                refused = "\(error)"
            }
        }
        do {
            let count = try database.read { try $0.rows("SELECT name FROM settings WHERE name LIKE 'value%'") { $0.string() } }
                .count
            if count != truth.count { return ("wrong", "\(count) values instead of \(truth.count)") }
        } catch {
            refused = "\(error)"
        }
        return refused.map { ("refused at the read", $0) } ?? ("harmless", "")
    }

    func remove() { try? FileManager.default.removeItem(at: root) }
}
