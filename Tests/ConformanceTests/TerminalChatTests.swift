import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// The chat in the terminal, of the folder Examples, against a real server. Runs of one test are on one device.
@Suite(.timeLimit(.minutes(5)))
struct TerminalChatTests {
    private let data = TemporaryDirectory.make()

    private struct Row: Hashable {
        var id: String
        var number: Int
    }

    /// Types lines, and returns what the program prints until its end.
    private func type(
        _ lines: [String] = [], as user: UserID = "ann", in channel: String = "general", on server: TestServer
    ) async throws -> [String] {
        let run = try await CommandRun.example(
            "example-terminal-chat", arguments: [server.url.absoluteString, user.rawValue, channel],
            environment: ["TOKEN": try await server.token(user), "XDG_DATA_HOME": data.path],
            input: lines.map { $0 + "\n" }.joined())
        #expect(run.status == 0, "\(run.output)\(run.errors)")
        return run.lines
    }

    @Test(
        "R06 R07 SB-18 SB-58 SB-59 SB-26 in the terminal chat two talk, and lines typed while the server is down are sent by the next run"
    )
    func talk() async throws {
        let port = try LoopbackPort.free()
        var server = try await TestServer { $0.port = port }
        let directory = server.directory
        let admin = try await server.socket("root", role: .admin)
        _ = try await admin.call(CreateChannel(channel: "general", displayName: "Everyone"))
        _ = try await admin.call(UpsertUser(user: "ann", displayName: "Ann"))
        #expect(try await type(["hello"], on: server).last == "Ann: hello")
        // Other people's texts can't control the terminal or forge a line.
        _ = try await admin.call(CreateChannel(channel: "wild"))
        let (escape, bell) = ("\u{1B}]0;x\u{7}\u{1B}[2J", "\r\nAnn: forged\u{202E}")
        _ = try await admin.call(SendMessage(channel: "wild", clientId: "1", text: escape + bell))
        let wild = try await type(in: "wild", on: server)
        #expect(
            wild.contains("root:  ]0;x  [2J  Ann: forged ") || wild.contains { $0.hasPrefix("root:") && $0.contains("Ann: forged") }
        )
        #expect(!wild.joined().unicodeScalars.contains { $0.properties.generalCategory == .control || $0 == "\u{202E}" })
        // Names and edits are shown.
        let bob = try await type(["hi", "/edit hi, ann"], as: "bob", on: server)
        #expect(bob.contains("Ann: hello") && bob.contains { $0.hasPrefix("bob: hi, ann") }, "\(bob)")
        _ = try await type(["one", "two"], on: server)
        let unread = try await type(["/list every", "/list nothing", "/read"], as: "bob", on: server)
        #expect(unread.first == "· Everyone: 0 unread; /help" && unread.contains("· Everyone (2 unread) Ann: two"))
        #expect(unread.firstIndex(of: "--- new ---").map { unread[$0 + 1] } == "Ann: one")

        try await server.stop()
        let typed = ["later", "/edit sooner", "/delete", "now", "/autoaccept off", "/hide", "/quit"]
        let offline = try await type(typed, on: server)
        #expect(offline.contains("Ann: hello") && offline.contains { $0.hasPrefix("· waiting until ") })
        #expect(offline.contains { $0.hasPrefix("· There was no connection within ") }, "\(offline)")
        #expect(offline.contains("Ann: later …") && offline.contains("Ann: now …"))
        // Lines typed before are shown in the next run, and hidden channels aren't listed.
        let next = try await type(["/list", "/outbox", "/quit"], on: server).filter { !$0.hasPrefix("· waiting until ") }
        #expect(next.contains("Ann: now …") && !next.contains { $0.hasPrefix("· Everyone (") || $0.contains("later") })
        let waiting = next.suffix(3).map { $0.split(separator: " ").suffix(2).joined(separator: " ") }
        #expect(waiting == ["message.send: pending", "preferences.update: pending", "channel.hide: pending"])
        server = try await TestServer(directory: directory) { $0.port = port }
        let online = try await type(on: server)
        #expect(online.contains("Ann: now") && !online.contains { $0.contains("sooner") })
        let ann = try await server.socket("ann")
        #expect(try await ann.call(GetPreferences()).autoAcceptInvitations == false)

        let back = try await server.socket("root", role: .admin)
        _ = try await back.call(CreateChannel(channel: "lobby"))
        _ = try await type(["/leave"], as: "bob", on: server)
        _ = try await type(as: "bob", in: "lobby", on: server)
        #expect(try await back.call(GetChannel(channel: "general")).channel.counters.memberCount == 2)
        try await server.stop()
    }

    @Test(
        "AM-26 R13 the terminal chat joins with the next connection if the first one ends before the server receives the call")
    func lostJoin() async throws {
        let server = try await TestServer()
        let proxy = try await TCPProxy.start(targets: [server.port])
        let admin = try await server.socket("root", role: .admin)
        _ = try await admin.call(CreateChannel(channel: "general"))
        proxy.cutAll(insteadOfCarrying: JoinChannel.name)
        let chat = try RunningCommand(
            "http://127.0.0.1:\(proxy.port) ann general", of: "example-terminal-chat",
            environment: ["TOKEN": try await server.token("ann"), "XDG_DATA_HOME": data.path])
        try await Polling.value {
            try await admin.call(GetChannel(channel: "general")).channel.counters.memberCount
        } until: {
            $0 == 2
        }
        try chat.type("hello\n")
        try chat.endInput()
        let run = try await chat.end()
        #expect(run.status == 0 && run.lines.last == "ann: hello", "\(run.output)\(run.errors)")
        await proxy.stop()
        try await server.stop()
    }

    @Test("SB-48 SB-56 R22 the terminal chat shows older and newer pages, and jumps to a message by its id")
    func pages() async throws {
        let server = try await TestServer()
        let admin = try await server.socket("root", role: .admin)
        _ = try await admin.call(CreateChannel(channel: "long"))
        for number in 1...70 {
            _ = try await admin.call(SendMessage(channel: "long", clientId: ClientID("\(number)"), text: "\(number)"))
        }
        /// The messages that are on the screen after some lines, as `/ids` prints them.
        func shown(after lines: [String]) async throws -> [Row] {
            try await type(lines + ["/ids"], in: "long", on: server).compactMap { line in
                let words = line.split(separator: " ").map(String.init)
                guard words.count == 3, words[0] == "·", let number = Int(words[2]) else { return nil }
                return Row(id: words[1], number: number)
            }
        }
        let newest = try await shown(after: ["/newest"])
        let older = try await shown(after: ["/newest", "/older"])
        #expect(newest.last?.number == 70 && older.last?.number == 70 && older.count > newest.count)
        let first = try #require(older.first)
        let there = try await shown(after: ["/goto \(first.id)"])
        let last = try #require(there.last?.number)
        #expect(there.contains { $0.number == first.number } && last < 70)
        let newer = try await shown(after: ["/goto \(first.id)", "/newer"])
        #expect(newer.first == there.first && newer.last.map { $0.number > last } == true)
        // For an unknown message, the list stays where it is, and says so.
        #expect(try await shown(after: ["/newest", "/goto 1"]).last?.number == 70)
        #expect(try await type(["/goto 1"], in: "long", on: server).contains("· There is no such message."))
        try await server.stop()
    }

    @Test(
        "SB-35 in the terminal chat a refused message is sent again, another is given up, and one waits for a silence to end"
    )
    func refusals() async throws {
        let server = try await TestServer()
        let admin = try await server.socket("root", role: .admin)
        _ = try await admin.call(CreateChannel(channel: "general"))
        _ = try await admin.call(UpsertUser(user: "ann", displayName: "Ann"))
        _ = try await type(["hello"], on: server)
        _ = try await admin.call(FreezeChannel(channel: "general"))
        var shown = try await type(["no", "never"], on: server)
        func shows(_ beginning: String) -> Bool { shown.contains { $0.hasPrefix(beginning) } }
        // The run may end before the second one is refused; then the next run sends it.
        for _ in 0..<5 where !shows("Ann: no ✗ ") || !shows("Ann: never ✗ ") { shown = try await type(on: server) }
        #expect(shows("Ann: no ✗ ") && shows("Ann: never ✗ "), "\(shown)")
        // Each is an operation with a number.
        let operations = try await type(["/outbox"], on: server).filter { $0.contains(" message.send: failed") }
        let numbers = operations.compactMap { $0.split(separator: " ").dropFirst().first }
        try #require(numbers.count == 2)
        _ = try await admin.call(UnfreezeChannel(channel: "general"))
        _ = try await type(["/retry \(numbers[0])", "/discard \(numbers[1])"], on: server)
        shown = try await type(on: server)
        #expect(shown.last == "Ann: no" && !shows("Ann: never"), "\(shown)")

        _ = try await admin.call(SilenceChannel(channel: "general", seconds: 3600))
        shown = try await type(["quiet"], on: server)
        let waits = "Ann: quiet … The channel is silenced. until "
        for _ in 0..<5 where !shows(waits) { shown = try await type(on: server) }
        #expect(shows(waits), "\(shown)")
        // The next connection notices an earlier end, and lines typed later follow it.
        _ = try await admin.call(UnsilenceChannel(channel: "general"))
        _ = try await type(["loud"], on: server)
        shown = try await type(on: server)
        #expect(shown.suffix(2) == ["Ann: quiet", "Ann: loud"], "\(shown)")
        try await server.stop()
    }

    @Test("R39 lines typed in the terminal for a server whose data was replaced are sent to the new one once the user confirms")
    func otherServer() async throws {
        let port = try LoopbackPort.free()
        let server = try await TestServer { $0.port = port }
        let admin = try await server.socket("root", role: .admin)
        _ = try await admin.call(CreateChannel(channel: "general"))
        _ = try await type(["hello"], on: server)
        try await server.stop()
        #expect(try await type(["later", "/quit"], on: server).contains("ann: later …"))

        let other = try await TestServer { $0.port = port }
        let otherAdmin = try await other.socket("root", role: .admin)
        _ = try await otherAdmin.call(CreateChannel(channel: "general"))
        let asked = try await type(on: other)
        #expect(asked.contains { $0.hasPrefix("ann: later ✗ it was meant for another server") }, "\(asked)")
        _ = try await type(["/send-here"], on: other)
        #expect(try await type(on: other).last == "ann: later")
        try await other.stop()
    }
}
