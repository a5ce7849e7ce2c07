import Foundation
import RoostAPI
import RoostDatabase
import RoostServer
import RoostTestSupport
import Testing

/// The files of keys, and changing keys while a server runs.
@Suite struct TokenKeyTests {
    /// Waits until a token is answered with the status.
    private static func wait(_ server: TestServer, until status: Int, for token: String) async throws {
        let deadline = ContinuousClock.now + .seconds(20)
        while try await server.request("GET", "/v1/me", token: token).status != status {
            guard ContinuousClock.now < deadline else { throw Missed("status \(status)") }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    private static func prepared() async throws -> (URL, URL, TokenForge) {
        let directory = TemporaryDirectory.make()
        let forge = try await TokenForge(firstRunIn: directory)
        return (directory, directory.appending(path: "keys.json"), forge)
    }

    @Test("a changed file of keys is reloaded, and a broken one leaves the keys as they are")
    func reading() async throws {
        let (directory, file, forge) = try await Self.prepared()
        let keys = try forge.keys
        try forge.write([try #require(keys["ec"])], to: file)
        let server = try await TestServer(directory: directory) { $0.tokenKeys = file }
        #expect(try await server.request("GET", "/v1/me", token: try forge.es256()).status == 200)
        #expect(try await server.request("GET", "/v1/me", token: try forge.edDSA()).status == 401)
        try forge.write([try #require(keys["ec"]), try #require(keys["ed"])], to: file)
        try await Self.wait(server, until: 200, for: try forge.edDSA())
        // Broken, then repaired without EC: the broken file changes nothing.
        try TokenForge.write(Data(#"{"keys":[{"#.utf8), to: file)
        #expect(try await server.request("GET", "/v1/me", token: try forge.es256()).status == 200)
        try forge.write([try #require(keys["ed"]), try #require(keys["shared"])], to: file)
        try await Self.wait(server, until: 401, for: try forge.es256())
        #expect(try await server.request("GET", "/v1/me", token: forge.shared()).status == 200)
        #expect(try await server.request("GET", "/v1/me", token: forge.own()).status == 200)
        try await server.stop()
    }

    @Test("a file of keys with any mistake prevents the start, with the reason")
    func refusals() async throws {
        let (directory, file, forge) = try await Self.prepared()
        let keys = try forge.keys
        let (oct, ec, rsa) = try (#require(keys["shared"]), #require(keys["ec"]), #require(keys["rsa"]))
        func changed(_ key: [String: String], _ change: (inout [String: String]) -> Void) -> [String: String] {
            var key = key
            change(&key)
            return key
        }
        let bad: [(keys: [[String: String]], reason: String)] = [
            ([oct, changed(ec) { $0["kid"] = "shared" }], "it has the kid shared twice"),
            ([changed(oct) { $0["kid"] = nil }], "key 1: kid must have"),
            ([changed(oct) { $0["kid"] = "" }], "key 1: kid must have"),
            ([changed(oct) { $0["k"] = "c2hvcnQ" }], "k must be at least 32 bytes"),
            ([changed(oct) { $0["alg"] = "HS512" }], "alg must be HS256"),
            ([changed(oct) { $0["alg"] = "none" }], "alg must be HS256"),
            ([changed(rsa) { $0["alg"] = "HS256" }], "alg must be RS256"),
            ([changed(ec) { $0["alg"] = "ES384" }], "alg must be ES256"),
            ([changed(ec) { $0["crv"] = "P-384" }], "isn't one of"), ([changed(ec) { $0["x"] = $0["y"] }], "point"),
            ([changed(ec) { $0["d"] = $0["x"] }], "private key"), ([changed(rsa) { $0["d"] = "AQAB" }], "private key"),
            ([changed(rsa) { $0["n"] = String($0["n"]?.prefix(340) ?? "") }], "2048"),
            ([changed(rsa) { $0["kty"] = "DSA" }], "isn't one of"),
            ((0...100).map { number in changed(oct) { $0["kid"] = "\(number)" } }, "more than 100 keys"),
        ]
        for (keys, reason) in bad {
            try forge.write(keys, to: file)
            #expect(try await Self.failure(directory, file).contains(reason), "\(reason)")
        }
        for (text, reason) in [
            ("", "JWK set"), ("[]", "JWK set"), (#"{"keys":{}}"#, "JWK set"), (#"{"keys":[],"keys":[]}"#, "more than once"),
            (#"{"keys":[],"roostTokenSecret":"retired"}"#, "token-keys.json only"),
            (String(repeating: " ", count: 300_000), "262144 bytes"),
        ] {
            try TokenForge.write(Data(text.utf8), to: file)
            #expect(try await Self.failure(directory, file).contains(reason), "\(reason)")
        }
        try TokenForge.write(Data("{".utf8), to: file)
        let broken = try await Self.failure(directory, file)
        #expect(broken.hasSuffix(" at byte 2."), "one full stop: \(broken)")
        // The permissions to read a secret and to change a public key.
        try forge.write([oct], to: file, mode: 0o640)
        #expect(try await Self.failure(directory, file).contains("chmod 600"))
        try forge.write([ec], to: file, mode: 0o664)
        #expect(try await Self.failure(directory, file).contains("chmod 644"))
        #expect(try await Self.failure(directory, directory.appending(path: "absent")).contains("can't be read"))
        // Many providers' sets have keys for encryption beside those for signatures.
        try forge.write([ec, ["kty": "RSA", "use": "enc", "alg": "RSA-OAEP"]], to: file, mode: 0o644)
        let server = try await TestServer(directory: directory) { $0.tokenKeys = file }
        try await server.stop()
    }

    private static func failure(_ directory: URL, _ file: URL) async throws -> String {
        do {
            let server = try await TestServer(directory: directory) { $0.tokenKeys = file }
            try await server.stop()
            return "it started"
        } catch {
            return "\(error)"
        }
    }

    @Test("roost keys rotates the secret of a running server without downtime, and prints no secret")
    func rotation() async throws {
        let server = try await TestServer()
        func roost(_ words: String) async throws -> String {
            let run = try await CommandRun.roost(words, on: server)
            #expect(run.status == 0, "\(words): \(run.errors)")
            return run.output.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let old = try await roost("token ann")
        let kid = try await roost("keys add")
        let listed = try JSONDecoder().decode([TokenKeyRing.Entry].self, from: Data(try await roost("keys list --json").utf8))
        #expect(listed.map(\.kid) == ["token-secret", kid] && listed.map(\.signs) == [true, false])
        // An added key doesn't sign yet.
        #expect(try await roost("token ann").split(separator: ".")[0] == old.split(separator: ".")[0])
        #expect(try await roost("keys use \(kid)") == "roost token now signs with \(kid).")
        let new = try await roost("token ann")
        try await Self.wait(server, until: 200, for: new)
        #expect(try await server.request("GET", "/v1/me", token: old).status == 200)
        // The old one is removed for good, without a restart.
        let removed = try await roost("keys remove token-secret --for-good")
        #expect(removed == "token-secret is removed for good: tokens without kid are refused.")
        try await Self.wait(server, until: 401, for: old)
        #expect(try await server.request("GET", "/v1/me", token: new).status == 200)

        let file = server.directory.appending(path: "token-keys.json")
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let secret = try JSONDecoder().decode(JSONValue.self, from: Data(contentsOf: file))["keys"]
        guard case .array(let keys)? = secret, let k = keys.first?["k"]?.text else { throw Missed("a key in the file") }
        #expect(try await !roost("keys list").contains(k))
        let refused = try await CommandRun.roost("keys remove \(kid)", on: server)
        #expect(refused.status == 1 && refused.errors.contains("signs with"))
        try await server.stop()

        let restarted = try await TestServer(directory: server.directory)
        #expect(try await restarted.request("GET", "/v1/me", token: new).status == 200)
        #expect(try await restarted.request("GET", "/v1/me", token: old).status == 401)
        try await restarted.stop()
    }

    @Test("the name of a new key has no control characters, and those in a file don't reach the terminal")
    func controls() async throws {
        let (directory, _, forge) = try await Self.prepared()
        let (data, name) = (["--data", directory.path], "\u{1B}[31mX\u{7}")
        let refused = try await CommandRun.roost(arguments: ["keys", "add", name] + data)
        #expect(refused.status == 1 && refused.errors == "Error: A key's name must not contain control characters.\n", "\(refused)")
        var key = try #require(try forge.keys["shared"])
        key["kid"] = name
        try forge.write([key], to: directory.appending(path: "token-keys.json"))
        let listed = try await CommandRun.roost(arguments: ["keys"] + data)
        #expect(listed.status == 0 && listed.lines.contains("[31mX HS256"), "\(listed)")
        #expect(!listed.output.unicodeScalars.contains("\u{1B}") && !listed.output.unicodeScalars.contains("\u{7}"))
    }

    @Test("a change of the keys is on disk when its command ends: first the new file, then its name")
    func synced() async throws {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let ring = TokenKeyRing(directory: directory)
        let record = FileSync.Record()
        try await FileSync.$record.withValue(record) {
            _ = try await ring.add(named: "k1")
            try await ring.use("k1")
            try await ring.remove(TokenKeyRing.tokenSecretName)
        }
        let path = directory.resolvingSymlinksInPath().path
        let change = ["\(path)/.token-keys-\(getpid()).tmp", path]
        #expect(record.take() == change + change + change)
    }

    @Test("if token-keys.json is a link, roost keys changes the link's target, and the link stays")
    func link() async throws {
        let (directory, mount) = (TemporaryDirectory.make(), TemporaryDirectory.make())
        for place in [directory, mount] { try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true) }
        let ring = TokenKeyRing(directory: directory)
        _ = try await ring.add(named: "k1")
        let file = mount.appending(path: "keys.json")
        try FileManager.default.moveItem(at: ring.url, to: file)
        try FileManager.default.createSymbolicLink(atPath: ring.url.path, withDestinationPath: file.path)
        _ = try await ring.add(named: "k2")
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: ring.url.path) == file.path)
        #expect(try String(contentsOf: file, encoding: .utf8).contains("k2"))
        #expect(try await ring.entries().map(\.kid) == ["token-secret", "k1", "k2"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: mount.path).sorted() == ["keys.json", "token-keys.lock"])
        // Commands take turns with the file, whichever link they use.
        let lock = open(mount.appending(path: "token-keys.lock").path, O_RDWR)
        defer { close(lock) }
        try #require(flock(lock, LOCK_EX | LOCK_NB) == 0)
        await #expect(throws: TokenKeyRing.Refusal.self) { try await ring.add(named: "k3") }
        #expect(try await ring.entries().map(\.kid) == ["token-secret", "k1", "k2"])
    }

    /// A server whose token secret was retired while it ran, and a token signed with the secret.
    private static func retired() async throws -> (server: WatchedServer, ring: TokenKeyRing, old: String) {
        let server = try await WatchedServer.start()
        let old = try await server.token("ann")
        let ring = TokenKeyRing(directory: server.directory)
        _ = try await ring.add(named: "k1")
        try await ring.use("k1")
        try await ring.remove(TokenKeyRing.tokenSecretName)
        let status = try await Polling.value {
            try await server.request("GET", "/v1/me", token: old).status
        } until: {
            $0 == 401
        }
        #expect(status == 401)
        return (server, ring, old)
    }

    @Test("a running server keeps refusing a retired secret when its file is lost and replaced")
    func lostWhileRunning() async throws {
        let (server, ring, old) = try await Self.retired()
        await #expect(throws: TokenKeyRing.Refusal.self) { try await ring.use(TokenKeyRing.tokenSecretName) }
        try FileManager.default.removeItem(at: ring.url)
        _ = try await ring.add(named: "k2")
        let log = try await Polling.value {
            server.log
        } until: {
            $0.contains("The token secret was retired")
        }
        #expect(log.contains("The token keys stay as they were") && log.contains("from a backup"))
        #expect(try await server.request("GET", "/v1/me", token: old).status == 401)
        // Retired again with new keys, the server continues.
        try await ring.use("k2")
        try await ring.remove(TokenKeyRing.tokenSecretName)
        let new = try await TokenKeys(directory: server.directory).sign(
            .init(user: "ann", role: .user, expiresAt: Date(timeIntervalSinceNow: 600)))
        let status = try await Polling.value {
            try await server.request("GET", "/v1/me", token: new).status
        } until: {
            $0 == 200
        }
        #expect(status == 200)
        #expect(try await server.request("GET", "/v1/me", token: old).status == 401)
        try await server.stop()
    }

    @Test("a server whose secret was retired doesn't start without the file that says so, except with --accept-data-loss")
    func lostBeforeStart() async throws {
        let (first, ring, old) = try await Self.retired()
        try await first.stop()
        let kept = try Data(contentsOf: ring.url)
        func refusal() async -> String {
            do {
                try await TestServer(directory: first.directory).stop()
                return "none"
            } catch {
                return "\(error)"
            }
        }
        try FileManager.default.removeItem(at: ring.url)
        let lost = await refusal()
        #expect(lost.contains(ring.url.path) && lost.contains("from a backup"), "\(lost)")
        // Without the option, the directory might be another server's.
        let data = "--data \(first.directory.path)"
        #expect(lost.contains(" roost serve \(data) --accept-data-loss."), "\(lost)")
        let again = "roost keys add KID \(data), roost keys use KID \(data), roost keys remove token-secret --for-good \(data)."
        #expect(lost.contains(again), "\(lost)")
        _ = try await ring.add(named: "k2")
        #expect(await refusal() == lost)
        try TokenForge.write(kept, to: ring.url)
        #expect(await refusal() == "none")

        try FileManager.default.removeItem(at: ring.url)
        let accepting = try await TestServer(directory: first.directory) { $0.acceptsDataLoss = true }
        #expect(try await accepting.request("GET", "/v1/me", token: old).status == 200)
        try await accepting.stop()
        #expect(await refusal() == "none")
        try? FileManager.default.removeItem(at: first.directory)
    }
}
