import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// The programs of the folder Examples, each from its beginning to its end against a real server, twice.
@Suite struct ExampleTests {
    @Test(
        "AM-19 AM-23 AM-24 AM-25 AM-26 AM-27 AM-28 AM-30 AM-32 AM-33 AM-34 AM-35 AM-38 AM-48 R06 R08 the way of Amity: create, query, join",
        .timeLimit(.minutes(5)))
    func createQueryJoin() async throws { try await runTwice("example-create-query-join") }

    @Test(
        "SB-05 SB-07 SB-13 SB-15 SB-16 SB-18 SB-19 SB-21 SB-26 SB-27 SB-30 SB-31 R14 R27 the way of Sendbird: distinct, invite, hide, filter",
        .timeLimit(.minutes(5)))
    func distinctInviteHide() async throws { try await runTwice("example-distinct-invite-hide") }

    @Test(
        "SB-33 SB-34 SB-37 SB-48 SB-50 SB-51 SB-53 SB-54 SB-55 SB-56 SB-58 SB-59 SB-60 R22 the way of Sendbird: send, load both ways, edit, delete, reset",
        .timeLimit(.minutes(5)))
    func sendLoadEdit() async throws { try await runTwice("example-send-load-edit") }

    @Test(
        "MN-01 MN-04 MN-09 MN-10 MN-12 MN-16 MN-17 R35 the way of Amity: mentions suggested, sent, shown, read and edited in",
        .timeLimit(.minutes(5)))
    func mentionPeople() async throws { try await runTwice("example-mention-people") }

    @Test(
        "ST-05 ST-06 ST-08 ST-10 ST-13 ST-14 ST-16 R06 R17 R26 the way of Stream: watch, see who watches, types and reads",
        .timeLimit(.minutes(5)))
    func watchTogether() async throws { try await runTwice("example-watch-together") }

    @Test(
        "AM-43 AM-44 AM-45 AM-46 R25 the way of Amity: read on one of two devices, and stop, also by going", .timeLimit(.minutes(5))
    )
    func readTogether() async throws { try await runTwice("example-read-together") }

    @Test(
        "without a server an example says which address it waits for",
        arguments: [
            "example-create-query-join", "example-distinct-invite-hide", "example-send-load-edit", "example-mention-people",
            "example-watch-together", "example-read-together",
        ])
    func waiting(name: String) async throws {
        let isTold = try await CommandRun.hasError(
            "Waiting for a server at http://127.0.0.1:1. Is one running there?\n", from: name, ["http://127.0.0.1:1"],
            environment: ["ANN_TOKEN": "a", "BOB_TOKEN": "b"])
        #expect(isTold)
        // With a server or without, nothing comes of a token that isn't there.
        let run = try await CommandRun.example(name, arguments: ["http://127.0.0.1:1"], environment: ["ANN_TOKEN": "a"], input: "")
        #expect(run.status == 64 && run.errors == "BOB_TOKEN is missing: a token, made by roost token.\n")
    }

    @Test(
        "R06 R07 SB-58 SB-59 SB-26 the chat in the terminal: two talk, and what is typed while the server is away is sent by the next run",
        .timeLimit(.minutes(5)))
    func terminalChat() async throws {
        let data = TemporaryDirectory.make()
        var server = try await TestServer()
        let (url, port, directory) = (server.url.absoluteString, server.port, server.directory)
        let tokens = ["ann": try await server.token("ann"), "bob": try await server.token("bob")]
        func type(_ lines: String..., as user: String, in channel: String = "general") async throws -> [String] {
            let run = try await CommandRun.example(
                "example-terminal-chat", arguments: [url, user, channel],
                environment: ["TOKEN": tokens[user] ?? "", "XDG_DATA_HOME": data.path],
                input: lines.map { $0 + "\n" }.joined())
            #expect(run.status == 0, "\(run.output)\(run.errors)")
            return run.lines
        }
        let admin = try await server.socket("root", role: .admin)
        _ = try await admin.call(CreateChannel(channel: "general", displayName: "Everyone"))
        _ = try await admin.call(UpsertUser(user: "ann", displayName: "Ann"))
        #expect(try await type("hello", as: "ann").last == "Ann: hello")
        // What others write can't steer the terminal or forge a line.
        _ = try await admin.call(CreateChannel(channel: "wild"))
        let (escape, bell) = ("\u{1B}]0;x\u{7}\u{1B}[2J", "\r\nAnn: forged\u{202E}")
        _ = try await admin.call(SendMessage(channel: "wild", clientId: "1", text: escape + bell))
        let wild = try await type(as: "ann", in: "wild")
        #expect(
            wild.contains("root:  ]0;x  [2J  Ann: forged ") || wild.contains { $0.hasPrefix("root:") && $0.contains("Ann: forged") }
        )
        #expect(!wild.joined().unicodeScalars.contains { $0.properties.generalCategory == .control || $0 == "\u{202E}" })
        // Names are shown, and what is edited.
        let bob = try await type("hi", "/edit hi, ann", as: "bob")
        #expect(bob.contains("Ann: hello") && bob.contains { $0.hasPrefix("bob: hi, ann") }, "\(bob)")
        _ = try await type("one", "two", as: "ann")
        let unread = try await type("/list every", "/list nothing", "/read", as: "bob")
        #expect(unread.first == "· Everyone: 0 unread; /help" && unread.contains("· Everyone (2 unread) Ann: two"))
        #expect(unread.firstIndex(of: "--- new ---").map { unread[$0 + 1] } == "Ann: one")

        try await server.stop()
        let offline = try await type("later", "/edit sooner", "/delete", "now", "/hide", "/quit", as: "ann")
        #expect(offline.contains("Ann: hello") && offline.contains { $0.hasPrefix("· waiting until ") })
        #expect(offline.contains("Ann: later …") && offline.contains("Ann: now …"))
        // What was typed before is there in the next run, and what was hidden isn't listed.
        let next = try await type("/list", "/outbox", "/quit", as: "ann").filter { !$0.hasPrefix("· waiting until ") }
        #expect(next.contains("Ann: now …") && !next.contains { $0.hasPrefix("· Everyone (") || $0.contains("later") })
        #expect(next.suffix(2) == ["· message.send: pending", "· channel.hide: pending"])
        server = try await TestServer(directory: directory) { $0.port = port }
        let online = try await type(as: "ann")
        #expect(online.contains("Ann: now") && !online.contains { $0.contains("sooner") })

        // A refusal is shown, to be tried again or given up.
        let back = try await server.socket("root", role: .admin)
        _ = try await back.call(FreezeChannel(channel: "general"))
        var shown = try await type("no", "never", as: "ann")
        // The run may end before the second one is refused; the next run sends it then.
        func isRefused(_ text: String) -> Bool { shown.contains { $0.hasPrefix("Ann: \(text) ✗ ") } }
        for _ in 0..<5 where !isRefused("no") || !isRefused("never") { shown = try await type(as: "ann") }
        #expect(isRefused("no") && isRefused("never"))
        _ = try await back.call(UnfreezeChannel(channel: "general"))
        _ = try await type("/retry", as: "ann")
        #expect(try await type(as: "ann").suffix(2) == ["Ann: no", "Ann: never"])
        _ = try await back.call(CreateChannel(channel: "lobby"))
        _ = try await type("/leave", as: "bob")
        _ = try await type(as: "bob", in: "lobby")
        #expect(try await back.call(GetChannel(channel: "general")).channel.counters.memberCount == 2)
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
