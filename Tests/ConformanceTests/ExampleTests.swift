import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// The programs of the folder Examples, each from its beginning to its end against a real server, twice.
@Suite struct ExampleTests {
    @Test(
        "AM-19 AM-23 AM-24 AM-25 AM-26 AM-27 AM-28 AM-30 AM-32 AM-33 AM-34 AM-35 AM-38 AM-48 R06 R08 the way of Amity: create, query, join",
        .timeLimit(.minutes(2)))
    func createQueryJoin() async throws { try await runTwice("example-create-query-join") }

    @Test(
        "SB-05 SB-07 SB-13 SB-15 SB-16 SB-18 SB-19 SB-21 SB-26 SB-27 SB-30 SB-31 R14 R27 the way of Sendbird: distinct, invite, hide, filter",
        .timeLimit(.minutes(2)))
    func distinctInviteHide() async throws { try await runTwice("example-distinct-invite-hide") }

    @Test(
        "without a server an example says which address it waits for",
        arguments: ["example-create-query-join", "example-distinct-invite-hide"])
    func waiting(name: String) async throws {
        let isTold = try await CommandRun.hasError(
            "Waiting for a server at http://127.0.0.1:1. Is one running there?\n", from: name, ["http://127.0.0.1:1"],
            environment: ["ANN_TOKEN": "a", "BOB_TOKEN": "b"])
        #expect(isTold)
    }

    @Test(
        "R06 R07 the chat in the terminal: two talk, and what is typed while the server is away is sent by the next run",
        .timeLimit(.minutes(2)))
    func terminalChat() async throws {
        let data = TemporaryDirectory.make()
        var server = try await TestServer()
        let (url, port, directory) = (server.url.absoluteString, server.port, server.directory)
        let tokens = ["ann": try await server.token("ann"), "bob": try await server.token("bob")]
        func type(_ lines: String..., as user: String) async throws -> [String] {
            let run = try await CommandRun.example(
                "example-terminal-chat", arguments: [url, user, "general"],
                environment: ["TOKEN": tokens[user] ?? "", "XDG_DATA_HOME": data.path],
                input: lines.map { $0 + "\n" }.joined())
            #expect(run.status == 0, "\(run.output)\(run.errors)")
            return run.lines
        }
        let admin = try await server.socket("root", role: .admin)
        _ = try await admin.call(CreateChannel(channel: "general"))
        #expect(try await type("hello", as: "ann").last == "ann: hello")
        #expect(try await type("hi", as: "bob").suffix(1) == ["bob: hi"])
        #expect(try await type("/edit hi, ann", as: "bob").contains("bob: hi"))

        try await server.stop()
        let offline = try await type("later", "/quit", as: "ann")
        #expect(offline.contains("ann: hello") && offline.contains { $0.hasPrefix("· There was no connection within 2") })
        #expect(offline.last == "ann: later …")
        server = try await TestServer(directory: directory) { $0.port = port }
        let online = try await type(as: "ann")
        #expect(online.contains("ann: later"))
        #expect(try await type("/read", "/unread", as: "bob").contains("bob: hi, ann"))
        try await server.stop()
    }

    private func runTwice(_ name: String) async throws {
        let server = try await TestServer()
        for _ in 1...2 {
            let run = try await CommandRun.example(name, on: server)
            #expect(run.status == 0, "\(run.output)\(run.errors)")
        }
        try await server.stop()
    }
}
