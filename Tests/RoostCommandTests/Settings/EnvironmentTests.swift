import ArgumentParser
import Foundation
import RoostAPI
import Testing

@testable import RoostCommand

/// Environment variables that begin with `ROOST_` and aren't settings.
@Suite struct EnvironmentTests {
    private func settings(_ environment: [String: String]) async throws -> Settings {
        try await Settings.load(try SettingFlags.parse([]), standardData: "/nowhere/roost-data", environment: environment)
    }

    @Test("a variable that isn't a setting causes a warning with the nearest name, and the others apply")
    func slip() async throws {
        let settings = try await settings(["ROOST_PROT": "7", "ROOST_PING_INTERVAL": "9", "ROOST_TEST_DATABASE": "x", "PATH": "/"])
        #expect(
            settings.warnings == [
                "The environment variable ROOST_PROT isn't a setting and is ignored. Did you mean ROOST_PORT?"
            ])
        #expect(settings.whole(.port) == 8080 && settings.seconds(.pingInterval) == .seconds(9))
    }

    /// The variables that Kubernetes sets in every container beside services named roost and roost-bus.
    private static let links = [
        "ROOST_SERVICE_HOST": "10.0.0.7", "ROOST_SERVICE_PORT": "8080", "ROOST_SERVICE_PORT_HTTP": "8080",
        "ROOST_PORT": "tcp://10.0.0.7:8080", "ROOST_PORT_8080_TCP": "tcp://10.0.0.7:8080", "ROOST_PORT_8080_TCP_PROTO": "tcp",
        "ROOST_PORT_8080_TCP_PORT": "8080", "ROOST_PORT_8080_TCP_ADDR": "10.0.0.7", "ROOST_BUS_SERVICE_HOST": "10.0.0.8",
        "ROOST_BUS_PORT": "udp://[fd00::8]:4222", "ROOST_BUS_PORT_4222_UDP": "udp://[fd00::8]:4222",
    ]

    @Test("variables that Kubernetes sets for a service named roost are ignored with one warning, ROOST_PORT too")
    func kubernetes() async throws {
        let settings = try await settings(Self.links)
        #expect(settings.warnings.count == 1 && settings.warnings.first?.hasPrefix("ROOST_BUS_PORT, ") == true)
        #expect(settings.warnings.first?.contains("enableServiceLinks") == true)
        #expect(Self.links.keys.allSatisfy { settings.warnings.first?.contains($0) == true })
        #expect(settings.whole(.port) == 8080 && settings.all.allSatisfy { $0.origin == .standard })
    }

    @Test(
        "a malformed value of a setting prevents the start, even one that looks a little like Kubernetes'",
        arguments: [
            "eighty", "tcp://", "tcp://10.0.0.7", "http://10.0.0.7:8080", "8080 tcp://10.0.0.7:8080", "70000",
        ])
    func malformed(port: String) async throws {
        await #expect(throws: Failure.self) { try await settings(["ROOST_PORT": port]) }
        await #expect(throws: Failure.self) { try await settings(["ROOST_DRAIN_WINDOW": "tcp://10.0.0.7:8080"]) }
    }

    @Test(
        "a mistake in a flag is a mistake in the command, and the error shows the value",
        arguments: [
            (["--port", "abc"], "port is 'abc'; it must be a whole number from 0 to 65535 (from --port)."),
            (["--port", "70000"], "port is '70000'; it must be a whole number from 0 to 65535 (from --port)."),
            (["--data", ""], "data must not be empty (from --data)."),
            (
                ["--memory-budget", "24MB"],
                "memory-budget is '24MB'; it must be a whole number from 8 to 1048576, in MiB (from --memory-budget)."
            ),
            (
                ["--message-versions", "1d"],
                "message-versions is '1d'; it must be a whole number from 0 to \(Limits.versionSecondsMax), in seconds (from --message-versions)."
            ),
            (
                ["--drain-window", "5s"],
                "drain-window is '5s'; it must be a number of seconds from 0 to 600 (from --drain-window)."
            ),
        ])
    func mistakenFlag(arguments: [String], message: String) async throws {
        let flags = try SettingFlags.parse(arguments)
        let refusal = await #expect(throws: ValidationError.self) {
            try await Settings.load(flags, environment: [:])
        }
        #expect(refusal?.message == message)
    }

    @Test("an idle timeout that leaves no time for a ping is refused with both values and their sources")
    func idleTimeout() async throws {
        let end = ", or every quiet client would be considered gone."
        let failure = await #expect(throws: Failure.self) { try await settings(["ROOST_IDLE_TIMEOUT": "10"]) }
        let ping = "it must be longer than ping-interval, which is 25 s (the default)"
        #expect(failure?.description == "idle-timeout is 10 s (from ROOST_IDLE_TIMEOUT); \(ping)\(end)")
        let flags = try SettingFlags.parse(["--ping-interval", "60"])
        let mistake = await #expect(throws: ValidationError.self) {
            try await Settings.load(flags, standardData: "/nowhere/roost-data", environment: [:])
        }
        let flag = "it must be longer than ping-interval, which is 60 s (from --ping-interval)"
        #expect(mistake?.message == "idle-timeout is 60 s (the default); \(flag)\(end)")
    }

    @Test(
        "the limit on memory is 0 or one that a server can keep, and the refusal names it",
        arguments: ["1", "127", "-1", "1048577"])
    func memoryLimit(given: String) async throws {
        let refusal = await #expect(throws: Failure.self) { try await settings(["ROOST_MEMORY_LIMIT": given]) }
        #expect(
            refusal?.description.hasPrefix("memory-limit is '\(given)'; it must be 0 or a whole number from 128 to 1048576")
                == true)
        for good in [0, 128, 1_048_576] {
            #expect(try await settings(["ROOST_MEMORY_LIMIT": "\(good)"]).whole(.memoryLimit) == good)
        }
    }

    @Test(
        "D-25 a number of mentions accepted by an earlier version counts as the maximum, and doesn't prevent the start",
        arguments: [Setting.mentionsPerMessage, .mentionNotifyCap].map(\.name))
    func loweredMaximum(name: String) async throws {
        let setting = try #require(Setting.all.first { $0.name == name })
        for (given, held) in [("29", 29), ("30", 30), ("31", 30), ("100", 30)] {
            let settings = try await settings([setting.environmentName: given])
            let warning = "\(name) is '\(given)' (from \(setting.environmentName)), which exceeds the maximum; 30 is used."
            #expect(settings.whole(setting) == held && settings.warnings == [])
            #expect(settings.lowered == (given == "\(held)" ? [] : [warning]))
        }
        let refusal = await #expect(throws: Failure.self) { try await settings([setting.environmentName: "101"]) }
        #expect(refusal?.description.contains("\(setting.kind.requirement) (from \(setting.environmentName)).") == true)
    }

    @Test("by default a server can be reached from its own machine only, and no browser page can read its answers")
    func standards() async throws {
        let settings = try await settings([:])
        #expect([settings.text(.host), settings.text(.allowOrigin)] == ["127.0.0.1", "none"])
    }

    @Test("settings are shown without the database's and the bus's passwords")
    func passwords() async throws {
        let settings = try await settings([
            "ROOST_DATABASE": "postgres://roost:hunter2@db.internal/roost?sslmode=verify-full&password=hunter3",
            "ROOST_BUS": "tls://ann:hunter4@a.internal,tls://ann:hunter4@b.internal",
        ])
        let shown = settings.all.filter { ["database", "bus"].contains($0.setting.name) }.map { "\($0.shown)" }
        #expect(shown == ["postgres://…@db.internal/roost?sslmode=verify-full&password=…", "tls://…@b.internal"])
    }

    @Test(
        "no part of a password is shown, wherever an @ is and however its parameter is written",
        arguments: [
            ("postgres://h/db?user=x&password=se@cret", "postgres://…"),
            ("postgres://h/db?password=se@cret&sslmode=require", "postgres://…"),
            ("postgres://h?password=se@cret", "postgres://…"), ("postgres://u:se?cret@h/db", "postgres://…"),
            ("postgres://u:p@h/db?sslmode=require&password=se@cret", "postgres://…"), ("u:se?cr@et", "…"),
            ("postgres://u:se@cret@h/db?sslmode=require", "postgres://…@h/db?sslmode=require"),
            ("postgres://u:xpassword=secret@h/db", "postgres://…@h/db"), ("nats://token@h:4222", "nats://…@h:4222"),
            ("postgres://h/db?password=secret&sslmode=require", "postgres://h/db?password=…&sslmode=require"),
            ("postgres://h/db?user=x&password=se%40cret", "postgres://h/db?user=x&password=…"),
            ("postgres://h/db?pass%77ord=secret&user=x", "postgres://h/db?pass%77ord=…&user=x"),
            ("postgres://h/db?password=se&cret&user=x", "postgres://h/db?password=…&user=x"),
            ("postgres://h/db?password=se&cret", "postgres://h/db?password=…"),
            ("postgres://%2Frun%2Fsocket/db?user=x", "postgres://%2Frun%2Fsocket/db?user=x"), ("sqlite", "sqlite"),
        ])
    func passwordParts(text: String, expected: String) async throws {
        let settings = try await settings(["ROOST_DATABASE": text])
        let shown = settings.all.filter { $0.setting.name == "database" }.map { "\($0.shown)" }
        #expect(shown == [expected])
    }

    @Test(
        "none of libpq's secret parameters is shown, however its name is written",
        arguments: ["password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"])
    func secretParameters(name: String) async throws {
        let encoded = name.replacing("s", with: "%73")
        let cases = [
            ("postgres://h/db?\(name)=secret", "postgres://h/db?\(name)=…"),
            ("postgres://h/db?user=x&\(name)=secret&sslmode=require", "postgres://h/db?user=x&\(name)=…&sslmode=require"),
            ("postgres://h/db?\(encoded)=secret&user=x", "postgres://h/db?\(encoded)=…&user=x"),
            ("postgres://h/db?\(name) = secret&user=x", "postgres://h/db?\(name) =…&user=x"),
            ("host=h \(name)=secret dbname=y", "…"),
        ]
        for (text, expected) in cases {
            let settings = try await settings(["ROOST_DATABASE": text])
            let shown = settings.all.filter { $0.setting.name == "database" }.map { "\($0.shown)" }
            #expect(shown == [expected])
        }
    }

    @Test(
        "nothing of an invalid database or bus URL is shown, since a secret may be anywhere in it",
        arguments: [
            ("user:secret@host/db", "…"), ("user:secret", "…"), ("postgres:/user:secret@host/db", "…"),
            ("postgres//user:secret@host/db?sslmode=require", "…"), ("mysql://user:secret@host/db", "…"), ("secret", "…"),
            ("host=h user=x password = se@cret dbname=y", "…"), ("host=h pasword=secret", "…"),
            ("postgres://user:secret/host/db", "postgres://…"), ("postgres://h:5432,user:secret/db", "postgres://…"),
            ("postgres://a:5432,[::1]:5433,c/db?user=x", "postgres://a:5432,[::1]:5433,c/db?user=x"),
            ("postgresql:///db", "postgresql:///db"), ("postgres://user:1234567/db", "postgres://…"),
            ("postgres://h/db?user=x&pasword=secret", "postgres://h/db?user=x&…"), ("postgres://h/db?secret", "postgres://h/db?…"),
            ("postgres://u@h/db?what=secret&sslmode=require", "postgres://…@h/db?…&sslmode=require"),
            ("nats://h:4222?token=secret", "nats://…"), ("nats://h/secret", "nats://…"), ("tls://h:4222/", "tls://h:4222/"),
            ("nats://a:4222,nats://b:4222", "nats://a:4222,nats://b:4222"), ("nats://a/secret,b", "nats://…"),
        ])
    func mistyped(text: String, expected: String) async throws {
        let settings = try await settings(["ROOST_DATABASE": text, "ROOST_BUS": text])
        let shown = settings.all.filter { ["database", "bus"].contains($0.setting.name) }.map { "\($0.shown)" }
        #expect(shown == [expected, expected])
    }

    @Test("the paths of files with secrets are shown")
    func secretFiles() async throws {
        let url = "postgres://h/db?passfile=/etc/roost/pgpass&sslkey=/etc/roost/client.key"
        let settings = try await settings(["ROOST_DATABASE": url])
        #expect(settings.all.filter { $0.setting.name == "database" }.map { "\($0.shown)" } == [url])
    }

    @Test("an empty variable, as left by a failed command, names no configuration file")
    func emptyVariable() async throws {
        #expect(try await settings(["ROOST_CONFIG": ""]).text(.host) == "127.0.0.1")
    }

    @Test("a flag overrides the environment, which overrides the file, which overrides the default")
    func order() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "roost-settings-\(UUID().uuidString).json")
        try Data(#"{"port": 3, "lanes": 3, "bus-prefix": "file"}"#.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let settings = try await Settings.load(
            try SettingFlags.parse(["--config", file.path, "--port", "1"]), standardData: "/nowhere/roost-data",
            environment: ["ROOST_PORT": "2", "ROOST_LANES": "2"])
        #expect(settings.whole(.port) == 1 && settings.whole(.lanes) == 2)
        #expect(settings.text(.busPrefix) == "file" && settings.text(.host) == "127.0.0.1")
    }

    @Test("an address that is valid for a setting isn't taken for Kubernetes'")
    func addresses() async throws {
        let settings = try await settings(["ROOST_BUS": "nats://10.0.0.8:4222", "ROOST_HOST": "10.0.0.7"])
        #expect(settings.warnings == [] && settings.text(.bus) == "nats://10.0.0.8:4222" && settings.text(.host) == "10.0.0.7")
    }
}
