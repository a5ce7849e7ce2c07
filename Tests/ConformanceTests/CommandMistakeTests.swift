import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Mistakes in commands and in files that commands read, without a server: the exit code, what is wrong, and what to do.
@Suite struct CommandMistakeTests {
    private func roost(_ words: String, in directory: URL? = nil) async throws -> CommandRun {
        let meanings = ["DIR": directory?.path ?? "/nowhere", "LONG": String(repeating: "x", count: 300), "EMPTY": ""]
        let words = words.split(separator: " ").map { word in
            meanings.reduce(String(word)) { $0.replacing($1.key, with: $1.value) }
        }
        return try await CommandRun.roost(arguments: words)
    }

    private func start(of text: String) -> String { text.split(separator: "\n").first.map(String.init) ?? "" }

    @Test(
        "a mistake in a command has exit code 64, and names the help of that command",
        arguments: [
            ("messages send general hi", "messages send", "No token. Give one with --token"),
            ("messages send general hi --as ann --url 127.0.0.1:8080", "messages send", "it is '127.0.0.1:8080'."),
            ("chat general --as ann --url 127.0.0.1:8080 --plain", "chat", "--url must be like"),
            ("messages send general hi --as ann --url http://127.0.0.1:100000", "messages send", "--url must have a port from 1"),
            ("messages list team --token t --url https://127.0.0.1:99999", "messages list", "--url must have a port from 1"),
            ("call user.me --token t --url http://ann:secret@127.0.0.1", "call", "--url must have no query, fragment, user"),
            ("doctor --url http://127.0.0.1:65536", "doctor", "--url must have a port from 1"),
            ("serve --port 99999", "serve", "port is '99999'"),
            ("doctor --trusted-proxies 10.0.0.0/99", "doctor", "it must be addresses and networks separated by commas"),
            ("serve --history-for-new-members maybe", "serve", "it must be true or false"),
            ("token ann --expires 31d --data DIR", "token", "--expires must be from 1 second"),
            ("token ann --expires soon", "token", "a duration must be like 3600"),
            ("token a/b --data DIR", "token", "The user's id must not contain control characters, '/' or ','."),
            ("token ann --name LONG --data DIR", "token", "The name has a limit of 128 characters."),
            ("channels list --as a/b --data DIR", "channels list", "The user's id must not contain"),
            ("chat a/b --as ann --plain", "chat", "The channel's id must not contain"),
            ("messages send general hi --as ann --metadata [1]", "messages send", "it must be a JSON object"),
            ("restore x --data y --secret X --new-secret", "restore", "--secret and --new-secret can't be combined."),
            ("restore x", "restore", "Name the new data directory with --data."),
            ("messages follow team --count -3 --as ann", "messages follow", "--count must be 1 or more; it is -3."),
            ("messages follow team --admin --token x --as ann", "messages follow", "--admin makes an admin's token"),
            (
                "call message.list channel=g beforeTime=yesterday --as ann", "call",
                "beforeTime must be a time like 2026-03-01T12:30:05.250Z."
            ),
            (
                "call message.send channel=g clientId=1 text=x parentId=abc --as ann", "call",
                "parentId must be a message id: decimal digits"
            ),
            ("call message.get channel=g message=abc --as ann", "call", "message must be a message id: decimal digits"),
            ("channels list --token EMPTY", "channels list", "--token is empty."),
            ("messages list team --admin --token x --as ann", "messages list", "--admin makes an admin's token"),
            (
                "messages list team --limit 0 --as ann", "messages list",
                "'--limit <rows>': it must be a whole number from 1 to 100"
            ),
            ("members list team --limit x --as ann", "members list", "it must be a whole number from 1 to 100"),
            ("messages follow team --after x --as ann", "messages follow", "'--after <seq>': a seq is a whole number from 0"),
            ("messages follow team --count x --as ann", "messages follow", "'--count <messages>': it must be a whole number"),
            ("messages edit team abc hi --as ann", "messages edit", "'<message>': a message's id is a number, as roost messages"),
            ("messages delete team 1 b --as ann", "messages delete", "'<messages>': a message's id is a number, as roost messages"),
            ("messages lst", "messages", "Did you mean 'roost messages list'?"),
            ("messages list team --after-time 12:00 --as ann", "messages list", "a time must be like 2026-03-01T12:30:05.250Z"),
            ("messages list team --after-time 2026-03-2x --as ann", "messages list", "or a day like 2026-03-01"),
            (
                "messages list team --around-time 2026-02-01 --before-time 2026-03-01 --as ann", "messages list",
                "--before-time, --around-time can't be combined"
            ),
            ("messages list team --before 3 --after 1 --as ann", "messages list", "--before, --after can't be combined"),
            ("messages list team --before-time 2026-02-31 --as ann", "messages list", "or a day like 2026-03-01"),
            (#"messages send general hi --as ann --metadata {"a":1,"a":2}"#, "messages send", "a is given more than once."),
            (
                #"messages send general hi --as ann --metadata {"n":12345678901234567890}"#, "messages send",
                "n can't be kept exactly"
            ),
            ("messages send general hi --as ann --meta-array yes", "messages send", "a list's value must be like colors=red"),
            ("messages send general hi --as ann --kind system", "messages send", "one of 'text', 'admin' or 'custom'."),
            ("messages send general hi --as ann --push-option no", "messages send", "one of 'default', 'suppress' or 'force'."),
            ("messages send general hi --as ann --kind custom", "messages send", "--kind custom needs --custom-type"),
            (
                #"channels update general --as ann --metadata {"a":1,}"#, "channels update",
                "this is not JSON: unexpected input at byte 8."
            ),
            ("channels create --max-members -1 --as ann", "channels create", "--max-members must be from 1 to"),
            (
                "channels silence team --for 0 --as ann", "channels silence",
                "for '--for <time>': a duration must be 1 second or more"
            ),
            ("channels silence team --for -2 --as ann", "channels silence", "or ever"),
            ("keys remove token-secret --data DIR", "keys remove", "Add --for-good"),
            ("backup EMPTY --data DIR", "backup", "Name the new directory: it is empty."),
            ("backup x --data EMPTY", "backup", "--data is empty."),
            ("restore EMPTY --check", "restore", "Name the backup's directory: it is empty."),
            ("restore x --data EMPTY", "restore", "--data is empty."), ("token ann --data EMPTY", "token", "--data is empty."),
            ("keys list --data EMPTY", "keys list", "--data is empty."),
            ("chat general --as ann --plain --data EMPTY", "chat", "--data is empty."),
            ("chat general --as ann --plain --store EMPTY", "chat", "--store is empty."),
        ])
    func commands(words: String, command: String, message: String) async throws {
        let run = try await roost(words)
        #expect(run.status == 64 && start(of: run.errors).contains(message), "\(run.errors)")
        #expect(run.errors.hasSuffix("  See 'roost \(command) --help' for more information.\n"), "\(run.errors)")
    }

    @Test("a line end around a token is no part of it, and one that can't be sent is refused with its source")
    func tokenCharacters() async throws {
        let server = try await TestServer()
        let token = try await server.token("ann")
        let address = ["ROOST_URL": server.url.absoluteString]
        for given in ["\(token)\n", "\(token)\r\n", " \(token)"] {
            let variable = try await CommandRun.roost(
                arguments: ["call", "user.me"], environment: address.merging(["ROOST_TOKEN": given]) { $1 })
            let option = try await CommandRun.roost(arguments: ["call", "user.me", "--token", given], environment: address)
            #expect([variable.status, option.status] == [0, 0], "\(variable.errors)\(option.errors)")
        }
        for given in ["one\ntwo", "Bearer \(token)", "t\u{F6}ken"] {
            for words in ["call user.me", "chat team --as ann --plain", "messages follow team"] {
                let arguments = words.split(separator: " ").map(String.init)
                let variable = try await CommandRun.roost(
                    arguments: arguments, environment: address.merging(["ROOST_TOKEN": given]) { $1 })
                let expected = "Error: The token (from ROOST_TOKEN) has a character that no token has.\n"
                #expect(variable.status == 1 && variable.errors == expected, "\(variable.errors)")
                let option = try await CommandRun.roost(arguments: arguments + ["--token", given], environment: address)
                let start = "Error: The token (from --token) has a character that no token has.\n"
                #expect(option.status == 64 && option.errors.hasPrefix(start), "\(option.errors)")
            }
        }
        try await server.stop()
    }

    @Test("a refusal to use a token of the environment as told says where the token came from")
    func tokenOrigin() async throws {
        let token = try await TestServer.shared().token("ann")
        let place = "http://127.0.0.1:1"
        for command in [["call", "user.me"], ["messages", "follow", "team"]] {
            func roost(_ options: String...) async throws -> (variable: CommandRun, option: CommandRun) {
                let arguments = command + options + ["--url", place]
                return (
                    try await CommandRun.roost(arguments: arguments, environment: ["ROOST_TOKEN": token]),
                    try await CommandRun.roost(arguments: arguments + ["--token", token])
                )
            }
            let others = try await roost("--as", "bob")
            #expect(others.variable.errors == "Error: The token (from ROOST_TOKEN) is for ann, not for bob.\n")
            #expect(others.option.errors == "Error: The token is for ann, not for bob.\n")
            let admin = try await roost("--as", "ann", "--admin")
            let start = "Error: --admin makes an admin's token from the data directory; a given token"
            #expect(admin.variable.errors.hasPrefix("\(start) (from ROOST_TOKEN) is used as is.\n"), "\(admin.variable.errors)")
            #expect(admin.option.errors.hasPrefix("\(start) is used as is.\n"), "\(admin.option.errors)")
        }
    }

    @Test("an argument that isn't UTF-8 is refused by its number, not read as another user's id")
    func malformedArgument() async throws {
        let script = #"exec "$1" token "$(printf 'b\374b')""#
        let run = try await CommandRun.program("/bin/sh", arguments: ["-c", script, "sh", ServerProcess.binary.path])
        #expect(
            [run.errors, run.output] == ["Error: Argument 2 isn't UTF-8 text.\n  See 'roost --help' for more information.\n", ""])
        #expect(run.status == 64)
    }

    @Test("an address in the environment is checked like one in the command, and a password in it isn't printed")
    func addressOfEnvironment() async throws {
        var errors: [String] = []
        for address in ["127.0.0.1:8080", "http://127.0.0.1:100000", "http://ann:secret@127.0.0.1"] {
            let run = try await CommandRun.roost(
                arguments: ["call", "user.me", "--token", "t"], environment: ["ROOST_URL": address])
            errors.append("\(run.status) \(run.errors)")
        }
        let requirements = [
            "be like http://127.0.0.1:8080 or https://chat.example.com; it is '127.0.0.1:8080'.", "have a port from 1 to 65535.",
            "have no query, fragment, user or password.",
        ]
        #expect(errors == requirements.map { "1 Error: ROOST_URL must \($0)\n" })
    }

    @Test(
        "a setting that can't be read is refused before anything is made",
        arguments: ["10.0.0.0/99", "proxy.example.com", "::1,", ","])
    func nothingMade(proxies: String) async throws {
        let directory = TemporaryDirectory.make()
        let run = try await roost("serve --port 0 --data DIR --trusted-proxies \(proxies)", in: directory)
        let start =
            "Error: trusted-proxies is '\(proxies)'; it must be addresses and networks separated by commas, such as 10.0.0.0/8,::1"
        #expect(run.status == 64 && run.errors.hasPrefix(start), "\(run.errors)")
        #expect(!FileManager.default.fileExists(atPath: directory.path))
    }

    @Test(
        "a configuration file is read strictly, and an unreadable one is refused with the reason",
        arguments: [
            (#"{"port":8095,"port":8096}"#, "can't be used: port is given more than once."),
            (#"{"port":8095,}"#, "can't be used: this is not JSON: unexpected input at byte 14."),
            (#"{"#, "can't be used: this is not JSON: unexpected end at byte 2."),
            (#"[1]"#, "can't be used: it must be a JSON object."), (nil, "can't be read: No such file or directory."),
        ] as [(String?, String)])
    func configuration(text: String?, reason: String) async throws {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = directory.appending(path: "settings.json")
        try text.map { try Data($0.utf8).write(to: file) }
        let run = try await roost("config show --config DIR/settings.json", in: directory)
        #expect([run.errors, run.output] == ["Error: The configuration file \(file.path) \(reason)\n", ""])
        #expect(run.status == 1)
    }

    @Test(
        "a value of the wrong type is refused with what the setting has to be, not as empty",
        arguments: [
            (#"{"trusted-proxies":["10.0.0.0/8"]}"#, "trusted-proxies must be one string, with values separated by commas"),
            (#"{"allow-origin":["https://app.example.com"]}"#, "allow-origin must be one string, with values separated by commas"),
            (#"{"token-issuer":5}"#, "token-issuer must be a string"), (#"{"token-issuer":""}"#, "token-issuer must not be empty"),
            (#"{"port":[8080]}"#, "port must be a whole number from 0 to 65535"),
            (#"{"log-level":["info"]}"#, "log-level must be one of: trace, debug, info, notice, warning, error, critical"),
        ])
    func types(text: String, message: String) async throws {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = directory.appending(path: "settings.json")
        try Data(text.utf8).write(to: file)
        let run = try await roost("config show --config DIR/settings.json", in: directory)
        #expect([run.errors, run.output] == ["Error: \(message) (from \(file.path)).\n", ""])
        #expect(run.status == 1)
    }

    @Test("a missing or invalid file that a server has to read is refused with the reason")
    func files() async throws {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data().write(to: directory.appending(path: "file"))
        var errors: [String] = []
        for words in ["--data DIR/file", "--data DIR/d --channel-types DIR/none", "--data DIR/d --token-keys DIR/none"] {
            let run = try await roost("serve --port 0 " + words, in: directory)
            errors.append("\(run.status) \(start(of: run.errors).replacing(directory.path, with: "DIR"))")
        }
        #expect(
            errors == [
                "1 Error: The data directory DIR/file isn't a directory. Give another one with --data.",
                "1 Error: The channel types of DIR/none can't be read: No such file or directory.",
                "1 Error: The file of keys DIR/none can't be read: No such file or directory.",
            ])
    }

    @Test("a server that can't listen on its address says why, and how to choose another one")
    func address() async throws {
        let server = try await TestServer()
        let directory = TemporaryDirectory.make()
        let used = try await roost("serve --port \(server.port) --data DIR", in: directory)
        try await server.stop()
        let advice = "Free it, or choose another with --port or ROOST_PORT; 0 takes any free one."
        #expect(used.errors == "Error: Port \(server.port) on 127.0.0.1 is in use. \(advice)\n" && used.status == 1)
        // It lacks the interface that it belongs to.
        let vague = try await roost("serve --host fe80::1 --port 0 --data DIR", in: directory)
        #expect(vague.errors.hasPrefix("Error: fe80::1, port 0 can't be listened on: "), "\(vague.errors)")
        #expect(vague.errors.hasSuffix(". Choose another with --host.\n") && vague.status == 1, "\(vague.errors)")
    }

    /// One run in a place, by a user who may not open every directory: root may otherwise.
    private func confined(_ words: String, in place: URL) async throws -> CommandRun {
        var arguments = ["-c", #"cd "$1" && shift && exec "$@""#, "sh", place.path]
        if geteuid() == 0 { arguments += ["/usr/bin/setpriv", "--bounding-set=-dac_override,-dac_read_search"] }
        arguments += [ServerProcess.binary.path] + words.split(separator: " ").map(String.init)
        return try await CommandRun.program("/bin/sh", arguments: arguments)
    }

    @Test(
        "another user's data directory is there, and can't be read; it isn't taken for none, nor its settings for the defaults",
        .enabled(
            if: geteuid() != 0 || FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv"), "root may open every directory")
    )
    func othersDirectory() async throws {
        let place = TemporaryDirectory.make()
        let (data, demo) = (place.appending(path: "roost-data"), place.appending(path: "roost-demo"))
        func setMode(_ mode: Int, of url: URL) throws {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url.path)
        }
        _ = try SecretFile(directory: demo).readOrMake()
        try setMode(0, of: demo)
        defer { for url in [data, demo] { try? setMode(0o700, of: url) } }
        for words in [
            "chat general --as ann --plain", "token ann", "keys", "messages follow general --as ann", "call user.me --as ann",
            "config show --data roost-demo",
        ] {
            let run = try await confined(words, in: place)
            #expect(run.status == 1 && run.output == "", "\(words): \(run)")
            let reason = "can't be read: Permission denied. Run this as the user who runs the server"
            #expect(run.errors.contains("roost-demo") && run.errors.contains(reason), "\(words): \(run.errors)")
        }
        let doctor = try await confined("doctor --url http://127.0.0.1:1", in: place)
        #expect(doctor.output.contains("roost-demo can't be read and written: Permission denied"), "\(doctor)")
        // A directory that can be used is preferred.
        try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
        try setMode(0, of: data)
        try setMode(0o700, of: demo)
        let token = try await confined("token ann", in: place)
        #expect(token.status == 0 && token.errors == "", "\(token)")
    }

    @Test("an unusable token secret ends every command that needs it, also a chat, and the error says what to do")
    func secret() async throws {
        let server = try await TestServer()
        try await server.stop()
        let directory = server.directory
        let secret = directory.appending(path: "token-secret")
        try Data("short\n".utf8).write(to: secret)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret.path)
        let malformed = """
            Error: The token secret \(secret.path) doesn't hold at least 32 bytes in base 64. Put the right one back, from a backup or another node: \
            another secret would invalidate all tokens.

            """
        for words in [
            "token ann --data DIR", "chat team --as ann --plain --data DIR", "messages follow team --as ann --data DIR",
            "serve --port 0 --data DIR",
        ] {
            let run = try await roost(words, in: directory)
            #expect(run.status == 1 && run.errors.hasSuffix(malformed), "\(words): \(run.errors)")
        }
        // Root can read every file, but a directory in its place can't be read as one.
        try FileManager.default.removeItem(at: secret)
        try FileManager.default.createDirectory(at: secret, withIntermediateDirectories: true)
        let run = try await roost("chat team --as ann --plain --data DIR", in: directory)
        #expect(run.status == 1 && run.errors.contains("can't be read: Is a directory. Run this as the user"), "\(run.errors)")
    }
}
