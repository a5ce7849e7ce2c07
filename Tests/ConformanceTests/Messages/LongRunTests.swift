import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// Commands that run on: connections and tokens end meanwhile, and no line is lost without a word.
@Suite struct LongRunTests {
    private func environment(_ server: TestServer, port: Int? = nil, token: String? = nil) -> [String: String] {
        [
            "ROOST_URL": "http://127.0.0.1:\(port ?? server.port)", "ROOST_DATA": server.directory.path, "ROOST_TOKEN": token,
        ].compactMapValues { $0 }
    }

    @Test(
        "send --lines goes on through another connection where one was closed between two lines, and says the line of one that has no server"
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

    @Test("a line that isn't UTF-8 is refused by its number, and a carriage return before the end of the input belongs to the end")
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

    @Test("who follows a channel is told that there is no server, and ends when a token that was given isn't taken any more")
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
        // Neither has more to read or to do. The server ends connections whose token expires.
        for run in [try await following.end(), try await chatting.end()] {
            #expect(run.status == 1 && run.errors.hasSuffix("(token_expired)\n"), "\(run.errors)")
        }
        await proxy.stop()
        try await server.stop()
    }

    @Test("what a plain chat says isn't sent isn't sent later either")
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

    @Test("a server says that SIGHUP changes nothing, and goes on")
    func hangUp() async throws {
        let directory = TemporaryDirectory.make()
        let serving = try RunningCommand("serve --port 0 --drain-window 0.2 --data \(directory.path)", environment: [:])
        try await serving.wait(forOutput: "Next, in another terminal")
        serving.signal(SIGHUP)
        try await serving.wait(forError: "SIGHUP changes nothing")
        serving.signal(SIGTERM)
        #expect(try await serving.end().status == 0)
    }
}
