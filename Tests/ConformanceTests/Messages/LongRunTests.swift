import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Long-running commands: connections and tokens end meanwhile, and no line is lost silently.
@Suite struct LongRunTests {
    private func environment(_ server: TestServer, port: Int? = nil, token: String? = nil) -> [String: String] {
        [
            "ROOST_URL": "http://127.0.0.1:\(port ?? server.port)", "ROOST_DATA": server.directory.path, "ROOST_TOKEN": token,
        ].compactMapValues { $0 }
    }

    @Test(
        "send --lines continues on another connection if one was closed between two lines, and names the line if there is no server"
    )
    func lines() async throws {
        let server = try await TestServer()
        let proxy = try await TCPProxy.start(targets: [server.port])
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "team"))
        let sending = try RunningCommand("messages send team --lines --as ann", environment: environment(server, port: proxy.port))
        for text in ["one", "two", "three"] {
            try sending.type("\(text)\n")
            try await sending.wait(forOutput: "ann  \(text)\n")
            proxy.cutAll()
        }
        // No line yet, and no connection either.
        await proxy.stop()
        try sending.type("four\n")
        let run = try await sending.end()
        #expect(run.status == 1 && run.errors.hasPrefix("Error: line 4: No server answers at http://127.0.0.1:"), "\(run.errors)")
        let all = try await ann.call(ListMessages(channel: "team", limit: 10)).messages
        #expect(all.map(\.text) == ["one", "two", "three"])
        try await server.stop()
    }

    @Test("a line that isn't UTF-8 is refused by its number, and a carriage return at the end of the input belongs to the end")
    func text() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "team"))
        let roost = "'\(ServerProcess.binary.path)' messages send team --as ann"
        let variables = environment(server).map { "\($0)='\($1)'" }.joined(separator: " ")
        func shell(_ input: String, _ options: String) async throws -> CommandRun {
            try await CommandRun.program("/bin/sh", arguments: ["-c", "\(input) | \(variables) \(roost) \(options)"])
        }
        #expect(try await shell(#"printf 'hi\r\n'"#, "").status == 0)
        let lines = try await shell(#"printf 'good\nb\377d\n'"#, "--lines")
        #expect(lines.status == 1 && lines.errors == "Error: line 2: The line isn't UTF-8 text.\n", "\(lines.errors)")
        let long = try await shell("head -c 1000000 /dev/zero | tr '\\0' x", "--lines")
        #expect(long.status == 1 && long.errors.hasPrefix("Error: line 1: The line is too long"), "\(long.errors)")
        let closed = try await CommandRun.program("/bin/sh", arguments: ["-c", "\(variables) \(roost) <&-"])
        #expect(closed.status == 1 && closed.errors == "Error: Standard input can't be read: Bad file descriptor.\n")
        #expect(try await ann.call(ListMessages(channel: "team", limit: 10)).messages.map(\.text) == ["hi", "good"])
        try await server.stop()
    }

    @Test("messages follow says that there is no server, and ends when its given token is no longer accepted")
    func follow() async throws {
        let server = try await TestServer()
        let proxy = try await TCPProxy.start(targets: [server.port])
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "team"))
        let lonely = try await CommandRun.hasError(
            "No connection to http://127.0.0.1:1: nothing answers at 127.0.0.1, port 1: Connection refused", from: "roost",
            ["messages", "follow", "team", "--token", try await server.token("ann"), "--url", "http://127.0.0.1:1"])
        #expect(lonely)
        // Long enough for two programs to start on a busy machine.
        let given = try await server.token("ann", expiresIn: 15)
        let following = try RunningCommand(
            "messages follow team", environment: environment(server, port: proxy.port, token: given))
        let chatting = try RunningCommand(
            "chat team --as ann --plain", environment: environment(server, port: proxy.port, token: given))
        try await chatting.wait(forError: "Online.")
        try await ann.call(SendMessage(channel: "team", clientId: "1", text: "hello"))
        try await chatting.wait(forOutput: "hello")
        // Neither has more to read or do. The server closes connections whose token expires.
        for run in [try await following.end(), try await chatting.end()] {
            #expect(run.status == 1 && run.errors.hasSuffix("(token_expired)\n"), "\(run.errors)")
        }
        await proxy.stop()
        try await server.stop()
    }

    @Test("messages follow continues on another connection if the first one ends before its first question is answered")
    func lostAtFirst() async throws {
        let server = try await TestServer()
        let proxy = try await TCPProxy.start(targets: [server.port])
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "team"))
        try await ann.call(SendMessage(channel: "team", clientId: "1", text: "hello"))
        proxy.cutAll(insteadOfCarrying: GetChannel.name)
        let following = try RunningCommand(
            "messages follow team --after 0 --count 1 --as ann", environment: environment(server, port: proxy.port))
        let run = try await following.end()
        #expect(run.status == 0 && run.output.contains("hello"), "\(run.output)\(run.errors)")
        await proxy.stop()
        try await server.stop()
    }

    @Test("messages follow ends with an error at a page that it can't read, instead of asking for it without end")
    func unreadablePage() async throws {
        let server = try await TestServer()
        let proxy = try await TCPProxy.start(targets: [server.port])
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "team"))
        try await ann.call(SendMessage(channel: "team", clientId: "1", text: "hello"))
        let following = try RunningCommand(
            "messages follow team --after 0 --as ann", environment: environment(server, port: proxy.port))
        try await following.wait(forOutput: "hello")
        // Every page has this member.
        proxy.replace(#""hasMore":"#, with: #""hasLess":"#)
        try await ann.call(SendMessage(channel: "team", clientId: "2", text: "more"))
        let run = try await following.end()
        #expect(run.status == 1 && !run.output.contains("more"))
        #expect(run.errors.contains("The answer couldn't be read") && run.errors.hasSuffix("(internal_error)\n"), "\(run.errors)")
        await proxy.stop()
        try await server.stop()
    }

    @Test("a message that a plain chat reports as unsent isn't sent later either")
    func refused() async throws {
        let server = try await TestServer()
        let root = try await server.socket("root", role: .admin)
        let ann = try await server.socket("ann")
        try await root.call(CreateChannel(channel: "team", users: ["ann"]))
        try await root.call(SilenceChannel(channel: "team", seconds: 3600))
        let chatting = try RunningCommand("chat team --as ann --plain", environment: environment(server))
        try chatting.type("too early\n")
        try await chatting.wait(forError: "Not sent: ")
        try await root.call(UnsilenceChannel(channel: "team"))
        try await ann.call(SendMessage(channel: "team", clientId: "1", text: "in time"))
        try chatting.type("late\n")
        try chatting.endInput()
        let run = try await chatting.end()
        #expect(run.status == 1 && run.errors.hasSuffix("Error: 1 line was refused.\n"), "\(run.errors)")
        #expect(try await ann.call(ListMessages(channel: "team", limit: 10)).messages.map(\.text) == ["in time", "late"])
        try await server.stop()
    }

    /// The last word of each message that a plain chat printed.
    private func lastWords(of run: CommandRun) -> [String] {
        run.output.split(separator: "\n").filter { $0.hasPrefix("[") }.compactMap { $0.split(separator: " ").last.map(String.init) }
    }

    @Test("R39 a plain chat in an empty channel prints each message sent while it is away, even more than its first page")
    func emptyChannel() async throws {
        let server = try await TestServer()
        let proxy = try await TCPProxy.start(targets: [server.port])
        let chatting = try RunningCommand("chat new --as ann --plain", environment: environment(server, port: proxy.port))
        // It answers once it has entered the channel.
        try chatting.type("/help quit\n")
        try await chatting.wait(forOutput: "end this chat")
        proxy.setMode(.refuse)
        proxy.cutAll()
        try await chatting.wait(forError: "No connection to ")
        let bob = try await server.socket("bob")
        try await bob.call(JoinChannel(channel: "new"))
        for number in 1...25 {
            try await bob.call(SendMessage(channel: "new", clientId: ClientID("\(number)"), text: "number \(number)"))
        }
        proxy.setMode(.pass)
        try await chatting.wait(forOutput: "number 25\n")
        try chatting.endInput()
        let run = try await chatting.end()
        #expect(lastWords(of: run) == (1...25).map(String.init), "\(run.output)")
        #expect(run.status == 0, "\(run.errors)")
        await proxy.stop()
        try await server.stop()
    }

    @Test("R39 a plain chat that loses its connection while catching up continues with the next one, and skips no message")
    func lostWhileCatchingUp() async throws {
        let server = try await TestServer()
        let proxy = try await TCPProxy.start(targets: [server.port])
        _ = try await server.socket("ann")
        let bob = try await server.socket("bob")
        try await bob.call(CreateChannel(channel: "team", users: ["ann"]))
        // Long enough for the connection to end in the middle of the pages.
        let padding = String(repeating: "x", count: 500)
        func send(_ numbers: ClosedRange<Int>) async throws {
            for number in numbers {
                try await bob.call(SendMessage(channel: "team", clientId: ClientID("\(number)"), text: "\(padding) \(number)"))
            }
        }
        try await send(1...1)
        let chatting = try RunningCommand("chat team --as ann --plain", environment: environment(server, port: proxy.port))
        try chatting.type("/help quit\n")
        try await chatting.wait(forOutput: "end this chat")
        proxy.setMode(.refuse)
        proxy.cutAll()
        try await chatting.wait(forError: "No connection to ")
        // More than the server sends to a client that reconnects.
        try await send(2...530)
        // After some of the 27 pages.
        proxy.cutAll(afterReceiving: 100_000)
        proxy.setMode(.pass)
        try await chatting.wait(forOutput: " 530\n")
        try chatting.endInput()
        let run = try await chatting.end()
        #expect(lastWords(of: run) == (1...530).map(String.init))
        #expect(run.status == 0, "\(run.errors)")
        await proxy.stop()
        try await server.stop()
    }

    @Test("I20 a plain chat prints messages sent to a restored server, also at the positions of messages that this one lacks")
    func chatInLines() async throws {
        let server = try await TestServer()
        let proxy = try await TCPProxy.start(targets: [server.port])
        _ = try await server.socket("ann")
        let bob = try await server.socket("bob")
        try await bob.call(CreateChannel(channel: "team", users: ["ann"]))
        func send(_ texts: [String], _ sender: RawSocket) async throws {
            for text in texts { try await sender.call(SendMessage(channel: "team", clientId: ClientID(text), text: text)) }
        }
        try await send(["kept"], bob)
        let target = TemporaryDirectory.make()
        let made = try await ControlSocket.ask(.init(backup: target.path, withSecret: true), in: server.directory)
        #expect(made.error == nil)
        try await send(["gone-1", "gone-2", "gone-3"], bob)
        let ann = try RunningCommand("chat team --as ann --plain", environment: environment(server, port: proxy.port))
        try await ann.wait(forOutput: " gone-3\n")
        await bob.close()
        try await server.stop()

        let restored = TemporaryDirectory.make()
        _ = try await Backup.restore(target, to: restored, secret: .backup)
        let second = try await TestServer(directory: restored)
        proxy.setTargets([second.port])
        let after = try await second.socket("bob")
        try await send(["new-1"], after)
        try await ann.wait(forOutput: " new-1\n")
        try await send(["new-2"], after)
        try await ann.wait(forOutput: " new-2\n")
        try ann.endInput()
        let run = try await ann.end()
        #expect(lastWords(of: run) == ["kept", "gone-1", "gone-2", "gone-3", "new-1", "new-2"])
        #expect(run.status == 0, "\(run.errors)")
        await proxy.stop()
        try await second.stop()
        for directory in [target, restored, server.directory] { try? FileManager.default.removeItem(at: directory) }
    }

    @Test("a server says that SIGHUP has no effect, and continues")
    func hangUp() async throws {
        let directory = TemporaryDirectory.make()
        let serving = try RunningCommand("serve --port 0 --drain-window 0.2 --data \(directory.path)", environment: [:])
        try await serving.wait(forOutput: "Next, in another terminal")
        serving.signal(SIGHUP)
        try await serving.wait(forError: "SIGHUP has no effect")
        serving.signal(SIGTERM)
        #expect(try await serving.end().status == 0)
    }
}
