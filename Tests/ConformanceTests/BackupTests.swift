import Foundation
import Roost
import RoostAPI
import RoostCore
import RoostDatabase
import RoostServer
import RoostTestSupport
import Testing

/// Backups made by a running server, and servers restored from them.
@MainActor @Suite struct BackupTests {
    private func text(_ error: any Error) -> String { "\(error)" }

    @Test("I24 a backup can be requested however long the path of the data directory is")
    func longPath() async throws {
        let directory = TemporaryDirectory.make().appending(path: String(repeating: "d", count: 120), directoryHint: .isDirectory)
        let server = try await TestServer(directory: directory)
        let target = TemporaryDirectory.make()
        let answer = try await ControlSocket.ask(.init(backup: target.path, withSecret: true), in: directory)
        #expect(answer.backup?.hasSecret == true, "\(answer.error ?? "")")
        try await server.stop()
    }

    @Test("a request for a backup has 16,384 bytes at most: one of that size is answered, and one a byte longer isn't")
    func longRequest() async throws {
        let server = try await TestServer()
        func request(_ size: Int) throws -> ControlSocket.Request {
            // The line's end counts as a byte.
            let others = try JSONEncoder().encode(ControlSocket.Request(backup: "", withSecret: false)).count + 1
            return .init(backup: String(repeating: "d", count: size - others), withSecret: false)
        }
        // No directory can have such a long name.
        let answer = try await ControlSocket.ask(request(16_384), in: server.directory)
        #expect(answer.backup == nil && answer.error != nil)
        let long = try request(16_385)
        // The caller can tell a server that ended without an answer from one that isn't running.
        await #expect(throws: ControlSocket.Unanswered.self) { try await ControlSocket.ask(long, in: server.directory) }
        try await server.stop()
        let failure = await #expect(throws: (any Error).self) { try await ControlSocket.ask(long, in: server.directory) }
        #expect(!(failure is ControlSocket.Unanswered))
    }

    @Test("I24 a backup made during writes holds a consistent state, and a server restored from it has exactly that")
    func backupUnderLoad() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        try await socket.call(CreateChannel(channel: "general"))
        for number in 1...200 {
            try await socket.call(
                SendMessage(channel: "general", clientId: ClientID("a\(number)"), text: String(repeating: "a", count: 4000)))
        }
        let target = TemporaryDirectory.make()
        async let answered = ControlSocket.ask(.init(backup: target.path, withSecret: true), in: server.directory)
        var sent = 200
        let made: ControlSocket.Answer
        do {
            // Writing continues until the backup is made.
            let writer = try await server.socket("ann")
            let writing = Task {
                var number = 200
                while !Task.isCancelled {
                    number += 1
                    try await writer.call(
                        SendMessage(channel: "general", clientId: ClientID("a\(number)"), text: String(repeating: "b", count: 4000))
                    )
                }
                return number
            }
            made = try await answered
            writing.cancel()
            sent = (try? await writing.value) ?? sent
            await writer.close()
        }
        let backup = try #require(made.backup, "\(made.error ?? "")")
        #expect(try await Backup.verify(target).database == backup.database)
        let stored = Int(backup.database.rows["messages"] ?? 0)
        #expect((200...max(200, sent)).contains(stored))
        let before = try await socket.call(ListMessages(channel: "general", after: 0, limit: 100)).messages
        await socket.close()
        try await server.stop()

        let restored = TemporaryDirectory.make()
        _ = try await Backup.restore(target, to: restored, secret: .backup)
        let second = try await TestServer(directory: restored)
        let reader = try await second.socket("ann")
        let channel = try await reader.call(GetChannel(channel: "general")).channel
        #expect(channel.counters.messageCount == stored)
        #expect(try await reader.call(ListMessages(channel: "general", after: 0, limit: 100)).messages == before)
        await reader.close()
        try await second.stop()
        for directory in [target, restored, server.directory] { try? FileManager.default.removeItem(at: directory) }
    }

    @Test("I20 a client drops stored messages that the restored server doesn't have, and continues")
    func clientsResync() async throws {
        let port = try LoopbackPort.free()
        let server = try await TestServer { $0.port = port }
        let store = TemporaryDirectory.make()
        let tokens = Tokens(token: try await server.token("ann"))
        let ann = Chat(url: server.url, user: "ann", configuration: .tested(.directory(store))) { tokens.token }
        try await ann.connect()
        let general = try await ann.createChannel("general")
        for number in 1...5 { try await general.sendConfirmed(MessageDraft(text: "kept \(number)")) }
        let target = TemporaryDirectory.make()
        let made = try await ControlSocket.ask(.init(backup: target.path, withSecret: true), in: server.directory)
        #expect(made.error == nil)
        for number in 1...20 { try await general.sendConfirmed(MessageDraft(text: "gone \(number)")) }
        let list = general.messages()
        try await wait("25 messages") { list.items.count == 25 }
        try await server.stop()

        let restored = TemporaryDirectory.make()
        _ = try await Backup.restore(target, to: restored, secret: .backup)
        let second = try await TestServer(directory: restored) { $0.port = port }
        try await wait("the 5 that the backup has") { list.items.map(\.text) == (1...5).map { "kept \($0)" } }
        try await general.sendConfirmed(MessageDraft(text: "after"))
        try await wait("6 messages") { list.items.map(\.text) == (1...5).map { "kept \($0)" } + ["after"] }
        await ann.disconnect()
        try await second.stop()
        for directory in [target, restored, server.directory, store] { try? FileManager.default.removeItem(at: directory) }
    }

    @Test("I20 roost epoch renew is for PostgreSQL: with SQLite it says that a restore gives a new epoch, and changes nothing")
    func epochOfSQLite() async throws {
        let server = try await TestServer()
        func epoch() async throws -> JSONValue? {
            let socket = try await RawSocket.open(port: server.port)
            try await socket.send(json: AuthenticateFrame(token: try await server.token("ann")))
            guard case .text(let welcome) = await socket.next() else { throw Missed("a welcome") }
            await socket.close()
            return try JSONDecoder().decode(JSONValue.self, from: Data(welcome.utf8))["welcome"]?["epoch"]
        }
        let before = try await epoch()
        let run = try await CommandRun.roost("epoch renew", on: server)
        #expect(run.status == 1)
        #expect(run.errors.contains("roost restore sets a new epoch itself"))
        #expect(before != nil)
        #expect(try await epoch() == before)
        try await server.stop()
    }

    @Test("a backup overwrites nothing, and an incomplete, damaged or changed one isn't restored")
    func refusals() async throws {
        let server = try await TestServer()
        let target = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
        let refused = try await ControlSocket.ask(.init(backup: target.path, withSecret: false), in: server.directory)
        #expect(refused.backup == nil && refused.error?.contains("already exists") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: target.path) == [])
        try FileManager.default.removeItem(at: target)
        #expect(try await ControlSocket.ask(.init(backup: target.path, withSecret: false), in: server.directory).error == nil)
        let secret = SecretFile(directory: server.directory).url
        let new = TemporaryDirectory.make()
        await #expect(throws: Backup.Unusable.self, "no secret in it") {
            try await Backup.restore(target, to: new, secret: .backup)
        }
        await #expect(throws: Backup.Unusable.self, "a directory in use") {
            try await Backup.restore(target, to: server.directory, secret: .new)
        }
        let other = try TestSecret.make()
        await #expect(throws: Backup.Unusable.self, "another secret") {
            try await Backup.restore(target, to: new, secret: .file(other))
        }
        let left = (try? FileManager.default.contentsOfDirectory(atPath: new.path)) ?? []
        #expect(left == [])

        let file = target.appending(path: "roost.sqlite")
        let whole = try Data(contentsOf: file)
        for place in stride(from: 5, to: whole.count, by: whole.count / 12) {
            var bytes = whole
            bytes[place] ^= 4
            try bytes.write(to: file)
            await #expect(throws: (any Error).self, "bit at \(place)") {
                try await Backup.restore(target, to: new, secret: .file(secret))
            }
        }
        try whole.prefix(whole.count / 2).write(to: file)
        await #expect(throws: (any Error).self, "cut off") { try await Backup.restore(target, to: new, secret: .file(secret)) }
        try whole.write(to: file)
        let restored = try await Backup.restore(target, to: new, secret: .file(secret))
        #expect(restored.hasSecret == false)
        try FileManager.default.removeItem(at: target.appending(path: "backup.json"))
        await #expect(throws: Backup.Unusable.self, "no manifest") { try await Backup.verify(target) }
        try await server.stop()
        for directory in [target, new, server.directory] { try? FileManager.default.removeItem(at: directory) }
    }

    @Test("the key ring goes with the secret: into a backup, and with --keys into a restore from a backup without one")
    func keyRing() async throws {
        let server = try await TestServer()
        let ring = TokenKeyRing(directory: server.directory)
        let none = TemporaryDirectory.make()
        #expect(
            try await ControlSocket.ask(.init(backup: none.path, withSecret: true), in: server.directory).backup?.keys
                == Backup.KeyRing.none)
        _ = try await ring.add(named: "k1")
        let (whole, bare) = (TemporaryDirectory.make(), TemporaryDirectory.make())
        let secret = SecretFile(directory: server.directory).url
        #expect(
            try await ControlSocket.ask(.init(backup: whole.path, withSecret: true), in: server.directory).backup?.keys == .included
        )
        #expect(
            try await ControlSocket.ask(.init(backup: bare.path, withSecret: false), in: server.directory).backup?.keys == .separate
        )
        try await server.stop()
        #expect(!FileManager.default.fileExists(atPath: bare.appending(path: "token-keys.json").path))

        let (first, second, third) = (TemporaryDirectory.make(), TemporaryDirectory.make(), TemporaryDirectory.make())
        _ = try await Backup.restore(whole, to: first, secret: .backup)
        await #expect(throws: Backup.Unusable.self, "no keys") { try await Backup.restore(bare, to: second, secret: .file(secret)) }
        #expect((try? FileManager.default.contentsOfDirectory(atPath: second.path)) ?? [] == [])
        _ = try await Backup.restore(bare, to: second, secret: .file(secret, keys: ring.url))
        for directory in [first, second] {
            #expect(try await TokenKeyRing(directory: directory).entries().map(\.kid) == ["token-secret", "k1"])
        }
        // With a new secret, none of the old keys is valid.
        _ = try await Backup.restore(whole, to: third, secret: .new)
        #expect(!FileManager.default.fileExists(atPath: third.appending(path: "token-keys.json").path))
        for directory in [none, whole, bare, first, second, third, server.directory] {
            try? FileManager.default.removeItem(at: directory)
        }
    }

    @Test("a token revoked after the backup is valid again on the restored server, unless that has a new secret")
    func revokedLater() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        func status(on server: TestServer) async throws -> Int {
            try await server.request("GET", "/v1/me", token: token).status
        }
        var found = [try await status(on: server)]
        let (backup, same, new) = (TemporaryDirectory.make(), TemporaryDirectory.make(), TemporaryDirectory.make())
        let made = try await ControlSocket.ask(.init(backup: backup.path, withSecret: true), in: server.directory)
        #expect(made.error == nil)
        let admin = try await server.socket("root", role: .admin)
        try await admin.call(RevokeUserTokens(user: "ann"))
        found.append(try await status(on: server))
        await admin.close()
        try await server.stop()
        for (directory, secret) in [(same, .backup), (new, .new)] as [(URL, Backup.Secret)] {
            _ = try await Backup.restore(backup, to: directory, secret: secret)
            let restored = try await TestServer(directory: directory)
            found.append(try await status(on: restored))
            try await restored.stop()
        }
        #expect(found == [200, 401, 200, 401])
        for directory in [backup, same, new, server.directory] { try? FileManager.default.removeItem(at: directory) }
    }

    @Test("the data directory's configuration file goes into a backup, closed to others, and comes back with a restore")
    func settings() async throws {
        let server = try await TestServer()
        let (none, backup, restored) = (TemporaryDirectory.make(), TemporaryDirectory.make(), TemporaryDirectory.make())
        let bare = try await ControlSocket.ask(.init(backup: none.path, withSecret: true), in: server.directory)
        #expect(bare.backup?.hasSettings == false)
        let text = Data(#"{"connections-max": 77}"#.utf8)
        try text.write(to: server.directory.appending(path: "roost.json"))
        let made = try await CommandRun.roost("backup \(backup.path) --with-secret", on: server)
        #expect(made.status == 0 && made.lines.contains("settings roost.json included"), "\(made)")
        try await server.stop()
        _ = try await Backup.restore(backup, to: restored, secret: .backup)
        for directory in [backup, restored] {
            let file = directory.appending(path: "roost.json")
            #expect(try Data(contentsOf: file) == text)
            #expect(DataFiles.mode(of: file.path) == 0o600)
        }
        try FileManager.default.removeItem(at: backup.appending(path: "roost.json"))
        await #expect(throws: Backup.Unusable.self, "lost") { try await Backup.verify(backup) }
    }

    @Test("the secret goes with its database: a missing one, another's or one open to others is refused, with what to do")
    func secretIsBound() async throws {
        let server = try await TestServer()
        try await server.stop()
        let file = SecretFile(directory: server.directory).url
        let right = try Data(contentsOf: file)
        func refusal() async -> String {
            do {
                try await TestServer(directory: server.directory).stop()
                return "none"
            } catch {
                return "\(error)"
            }
        }
        chmod(file.path, 0o644)
        #expect(await refusal().contains("chmod 600"))
        try FileManager.default.removeItem(at: file)
        #expect(await refusal().contains("is missing"))
        try Data(contentsOf: TestSecret.make()).write(to: file)
        chmod(file.path, 0o600)
        #expect(await refusal().contains("isn't the one"))
        #expect(await refusal().contains("To go on with another: roost serve --data \(server.directory.path) --accept-data-loss."))
        try right.write(to: file)
        chmod(file.path, 0o600)
        #expect(await refusal() == "none")
        // With a secret in the directory, a missing database isn't taken for a first start.
        for name in ["roost.sqlite", "roost.state"] {
            try FileManager.default.removeItem(at: server.directory.appending(path: name))
        }
        #expect(await refusal().contains("roost serve --data \(server.directory.path) --accept-data-loss."))
        try? FileManager.default.removeItem(at: server.directory)
    }

    @Test("every file of a running server is its owner's alone, also the socket for backups, even in an open directory")
    func modes() async throws {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        let server = try await TestServer(directory: directory)
        let socket = try await server.socket("ann")
        try await socket.call(CreateChannel(channel: "general"))
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(Set(names).isSuperset(of: ["roost.control", "roost.sqlite", "roost.sqlite-wal", "roost.state", "token-secret"]))
        let open = names.filter { DataFiles.mode(of: directory.appending(path: $0).path) != 0o600 }
        #expect(open == [])
        await socket.close()
        try await server.stop()
    }

    @Test("I1 after SIGTERM one file of the data directory holds the whole database")
    func stopLeavesOneFile() async throws {
        let server = try await TestServer()
        let socket = try await server.socket("ann")
        try await socket.call(CreateChannel(channel: "general"))
        for number in 1...50 { try await socket.call(SendMessage(channel: "general", clientId: ClientID("\(number)"), text: "hi")) }
        await socket.close()
        try await server.stop()
        let names = try FileManager.default.contentsOfDirectory(atPath: server.directory.path).sorted()
        #expect(names == ["roost.lock", "roost.sqlite", "roost.state", "token-secret"])
        #expect(try SQLiteDatabase.verify(copy: server.directory.appending(path: "roost.sqlite").path).rows["messages"] == 50)
        try? FileManager.default.removeItem(at: server.directory)
    }
}

private struct Tokens: Sendable { let token: String }

private enum TestSecret {
    /// A file with a secret that belongs to no server.
    static func make() throws -> URL {
        let directory = TemporaryDirectory.make()
        _ = try SecretFile(directory: directory).readOrMake()
        return SecretFile(directory: directory).url
    }
}
