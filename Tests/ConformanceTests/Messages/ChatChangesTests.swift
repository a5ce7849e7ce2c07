import Foundation
import RoostAPI
import RoostTestSupport
import Testing

extension TerminalScreen {
    /// A user's `roost chat` on its own terminal.
    static func chat(
        of user: UserID, in channel: String = "team", on server: TestServer, width: Int = 100, variables: [String: String] = [:]
    ) throws -> TerminalScreen {
        try TerminalScreen(
            ["chat", channel, "--as", user.rawValue],
            environment: [
                "ROOST_URL": server.url.absoluteString, "ROOST_DATA": server.directory.path,
                "XDG_STATE_HOME": TemporaryDirectory.make().path,
            ].merging(variables) { $1 }, width: width)
    }
}

/// What the screen of `roost chat` shows when messages are changed, read and mentioned.
@Suite struct ChatChangesTests {
    /// A channel of bob's, and others with their names.
    private func world(_ users: [UserID] = ["ann"], options: AppOptions = AppOptions()) async throws -> (TestServer, RawSocket) {
        let server = try await TestServer(options: options)
        let root = try await server.socket("root", role: .admin)
        for user in users + ["bob"] { try await root.call(UpsertUser(user: user, displayName: user.rawValue.capitalized)) }
        let bob = try await server.socket("bob")
        try await bob.call(CreateChannel(channel: "team", users: users))
        return (server, bob)
    }

    @Test("AM-30 SB-58 a refused edit says why in its row and on the status line, and /retry and /discard settle it")
    func refusedEdit() async throws {
        let (server, bob) = try await world()
        let ann = try TerminalScreen.chat(of: "ann", on: server)
        try await ann.wait(for: "#team · 2 members")
        ann.type("hello\r")
        try await ann.wait("the message to be stored") { $0.contains { $0.hasSuffix("hello") && !$0.hasPrefix(">") } }
        ann.type("/retry\r")
        try await ann.wait(for: "nothing was refused")
        try await bob.call(FreezeChannel(channel: "team"))
        ann.type("/edit goodbye\r")
        try await ann.wait(for: "✗ not changed: The channel is frozen. (frozen) /retry or /discard")
        try await ann.wait(for: "an edit was refused: The channel is frozen. (frozen)")
        #expect(ann.lines.contains { $0.hasSuffix("hello") }, "the message is as it was")

        try await bob.call(UnfreezeChannel(channel: "team"))
        ann.type("/retry\r")
        try await ann.wait("the edit") { lines in
            lines.contains { $0.hasSuffix("goodbye (edited)") } && !lines.contains { $0.contains("✗") }
        }
        try await bob.call(FreezeChannel(channel: "team"))
        ann.type("/edit once more\r")
        try await ann.wait(for: "✗ not changed")
        ann.type("/discard\r")
        try await ann.wait("the edit to be given up") { lines in
            lines.contains { $0.hasSuffix("goodbye (edited)") } && !lines.contains { $0.contains("✗") }
        }
        // The outbox's own list follows a moment after the row: until then something may be left to give up again.
        var isNothingLeft = false
        for _ in 0..<20 where !isNothingLeft {
            ann.type("/discard\r")
            isNothingLeft =
                (try? await ann.wait("the word that nothing is left", within: .seconds(2)) { lines in
                    lines.contains { $0.contains("nothing was refused") }
                }) != nil
        }
        #expect(isNothingLeft)
        ann.type("/quit\r")
        try await ann.end()
        try await server.stop()
    }

    @Test("SB-04 in a channel that keeps no messages /unread, /edit and /delete say so immediately, and leave nothing to settle")
    func ephemeral() async throws {
        let server = try await TestServer()
        let bob = try await server.socket("bob")
        _ = try await server.socket("ann")
        try await bob.call(CreateChannel(channel: "talk", type: .group, users: ["ann"], isEphemeral: true))
        let ann = try TerminalScreen.chat(of: "ann", in: "talk", on: server)
        try await ann.wait(for: "#talk · 2 members")
        ann.type("hello\r")
        try await ann.wait("the message to be sent") { $0.contains { $0.hasSuffix("hello") && !$0.hasPrefix(">") } }
        try await bob.call(SendMessage(channel: "talk", clientId: "1", text: "good morning"))
        try await ann.wait(for: "good morning")
        ann.type("/unread\r")
        try await ann.wait(for: "#talk keeps no messages: none can be unread again")
        ann.type("/edit goodbye\r")
        try await ann.wait(for: "#talk keeps no messages: what is sent can't be edited")
        ann.type("/delete\r")
        try await ann.wait(for: "#talk keeps no messages: what is sent can't be deleted")
        ann.type("/discard\r")
        try await ann.wait(for: "nothing was refused")
        ann.type("/quit\r")
        try await ann.end()
        try await server.stop()
    }

    @Test(
        "SB-58 SB-59 a plain chat prints an edited message again, says when one is deleted, and marks those edited before"
    )
    func inLines() async throws {
        let (server, bob) = try await world()
        func send(_ text: String) async throws -> Message {
            try await bob.call(SendMessage(channel: "team", clientId: ClientID(text), text: text))
        }
        let (old, kept, gone) = (try await send("old"), try await send("kept"), try await send("gone"))
        try await bob.call(EditMessage(channel: "team", message: old.messageId, text: "older"))
        let ann = try RunningCommand(
            "chat team --as ann --plain",
            environment: [
                "ROOST_URL": server.url.absoluteString, "ROOST_DATA": server.directory.path,
                "XDG_STATE_HOME": TemporaryDirectory.make().path,
            ])
        try await ann.wait(forOutput: "Bob: older (edited)\n")
        try await ann.wait(forOutput: "Bob: gone\n")
        // Nothing is printed for changes that leave the text as it is.
        for message in [old, kept] {
            try await bob.call(UpdateMetaArrays(channel: "team", message: message.messageId, create: ["likes"]))
        }
        try await bob.call(EditMessage(channel: "team", message: kept.messageId, text: "changed"))
        try await ann.wait(forOutput: "Bob: changed (edited)\n")
        try await bob.call(DeleteMessage(channel: "team", message: gone.messageId))
        try await ann.wait(forOutput: "Bob: (deleted)\n")
        try ann.endInput()
        let run = try await ann.end()
        let lines = run.output.split(separator: "\n").map { $0.drop { $0 != "]" }.dropFirst(2) }
        #expect(lines == ["Bob: older (edited)", "Bob: kept", "Bob: gone", "Bob: changed (edited)", "Bob: (deleted)"])
        #expect(run.status == 0)
        try await server.stop()
    }

    @Test("SB-60 where history is hidden from new members /reset shows its refusal, on a screen and in lines")
    func refusedReset() async throws {
        var options = AppOptions()
        options.showsHistoryToNewMembers = false
        let (server, bob) = try await world(options: options)
        let ann = try TerminalScreen.chat(of: "ann", on: server)
        try await ann.wait(for: "#team · 2 members")
        try await bob.call(SendMessage(channel: "team", clientId: "1", text: "hello"))
        try await ann.wait(for: "hello")
        ann.type("/reset\r")
        try await ann.wait(for: "nobody can reset theirs. (feature_disabled)")
        #expect(!ann.lines.contains { $0.contains("begins now") } && ann.lines.contains { $0.hasSuffix("hello") })
        ann.type("/quit\r")
        try await ann.end()
        let lines = try await CommandRun.roost("chat team --as ann --plain", on: server, input: "/reset\n")
        #expect(lines.status == 1 && lines.errors.contains("(feature_disabled)") && !lines.output.contains("begins now"))
        try await server.stop()
    }

    @Test("AM-43 SB-02 a line shows where reading stopped, moves with reading, and is drawn by /unread")
    func marker() async throws {
        let (server, bob) = try await world()
        let hers = try await server.socket("ann")
        for number in 1...2 {
            try await bob.call(SendMessage(channel: "team", clientId: ClientID("\(number)"), text: "text \(number)."))
        }
        func isMarked(above text: String) -> ([String]) -> Bool {
            { lines in
                let marks = lines.indices.filter { lines[$0].hasPrefix("── new ") }
                return marks.count == 1 && marks.allSatisfy { lines.indices.contains($0 + 1) && lines[$0 + 1].hasSuffix(text) }
            }
        }
        func isUnmarked(_ text: String) -> ([String]) -> Bool {
            { lines in lines.contains { $0.hasSuffix(text) } && !lines.contains { $0.hasPrefix("── new ") } }
        }
        func unread(_ count: Int) async throws {
            try await Polling.value {
                try await hers.call(GetUnread(channel: "team")).unreadCount
            } until: {
                $0 == count
            }
        }

        let ann = try TerminalScreen.chat(of: "ann", on: server)
        try await ann.wait("the line above both", until: isMarked(above: "text 1."))
        try await unread(0)
        // It stays until she gets there, and disappears with the next message that she reads.
        try await bob.call(SendMessage(channel: "team", clientId: "3", text: "text 3."))
        try await unread(0)
        try await ann.wait(for: "text 3.")
        #expect(isMarked(above: "text 1.")(ann.lines))
        ann.type("x")
        try await ann.wait("the key") { $0.last == "> x" }
        try await bob.call(SendMessage(channel: "team", clientId: "4", text: "text 4."))
        try await ann.wait("no line", until: isUnmarked("text 4."))

        ann.type("\u{7F}/unread\r")
        try await ann.wait("the line above the last", until: isMarked(above: "text 4."))
        try await unread(1)
        try await bob.call(SendMessage(channel: "team", clientId: "5", text: "text 5."))
        try await ann.wait("all to be read", until: isUnmarked("text 5."))
        try await unread(0)
        // Her other devices show the same.
        let newest = try await bob.call(GetChannel(channel: "team")).channel.counters.seq
        try await hers.call(MarkUnread(channel: "team", seq: newest))
        try await ann.wait("the line above the last", until: isMarked(above: "text 5."))
        try await unread(1)
        ann.type("mine\r")
        try await ann.wait("what she has written") { $0.contains { $0.hasSuffix("mine") && !$0.hasPrefix(">") } }
        #expect(!ann.lines.contains { $0.hasPrefix("── new ") })
        ann.type("/quit\r")
        try await ann.end()
        try await server.stop()
    }

    @Test("MN-03 MN-08 MN-11 MN-12 mentions are highlighted, Tab offers the channel, and an edit keeps and makes mentions")
    func mentions() async throws {
        let (server, bob) = try await world(["ann", "cat"])
        let ann = try TerminalScreen.chat(of: "ann", on: server)
        try await ann.wait(for: "#team · 3 members")
        func newest() async throws -> Message? { try await bob.call(ListMessages(channel: "team", limit: 1)).messages.last }
        func sent(_ text: String) async throws {
            try await ann.wait(text) { $0.contains { $0.contains(text) && !$0.hasPrefix(">") && !$0.hasSuffix("…") } }
        }

        ann.type("ask @")
        ann.type("al\t")
        try await ann.wait("the channel's name") { $0.last == "> ask @all" }
        ann.type("or @bo\t")
        try await ann.wait("the name") { $0.last == "> ask @all or @Bob" }
        ann.type("now\r")
        try await sent("ask @all or @Bob now")
        #expect(try await newest()?.mentionees == [.users(["bob"]), .channel])
        #expect(ann.words(in: "1;7") == ["@all"] && ann.words(in: "1") == ["@Bob"])

        // In an edit Tab makes a mention too, and a mention whose name is removed ends.
        ann.type("/edit\r")
        try await ann.wait("the text to be edited") { $0.last == "> /edit ask @all or @Bob now" }
        ann.type(String(repeating: "\u{7F}", count: 8) + "@ca\t")
        try await ann.wait("the other name") { $0.last == "> /edit ask @all or @Cat" }
        ann.type("\r")
        try await sent("ask @all or @Cat")
        try await eventually("the edit") { try await newest()?.mentionees == [.users(["cat"]), .channel] }
        try await ann.wait("the highlighted name") { _ in ann.words(in: "1") == ["@Cat"] }
        ann.type("/edit @Cat alone\r")
        try await eventually("the second edit") { try await newest()?.mentionees == [.users(["cat"])] }
        // Other commands have no text to complete.
        ann.type("/join @bo\t!")
        try await ann.wait("the line as it was typed") { $0.last == "> /join @bo!" }

        // The command keeps the mentions that the text still names.
        let message = try #require(try await newest())
        let edit = try await CommandRun.roost("messages edit team \(message.messageId) ask_@Cat_and_others --as ann", on: server)
        #expect(edit.status == 0)
        #expect(try await newest()?.mentionees == [.users(["cat"])])
        let ended = try await CommandRun.roost("messages edit team \(message.messageId) nobody --as ann", on: server)
        #expect(ended.status == 0)
        #expect(try await newest()?.mentionees ?? [] == [])
        ann.type("\u{03}")
        try await ann.end()
        try await server.stop()
    }

    @Test("MN-17 a message shows users it names without mentioning them, until it no longer names them")
    func unmentioned() async throws {
        let (server, bob) = try await world(["ann", "cat"])
        let ann = try TerminalScreen.chat(of: "ann", on: server)
        try await ann.wait(for: "#team · 3 members")
        ann.type("ask @ca\t")
        try await ann.wait("the name") { $0.last == "> ask @Cat" }
        // Meanwhile she leaves.
        try await bob.call(RemoveMembers(channel: "team", users: ["cat"]))
        try await ann.wait(for: "#team · 2 members")
        ann.type("now\r")
        try await ann.wait("whom it doesn't mention") { lines in
            guard let row = lines.firstIndex(where: { $0.contains("ask @Cat now") }) else { return false }
            return lines[row + 1].trimmingCharacters(in: .whitespaces) == "· not mentioned: Cat"
        }
        #expect(try await bob.call(ListMessages(channel: "team", limit: 1)).messages.last?.mentionees ?? [] == [])
        ann.type("/edit ask somebody\r")
        try await ann.wait("it to be gone") { lines in
            lines.contains { $0.contains("ask somebody (edited)") } && !lines.contains { $0.contains("not mentioned") }
        }
        ann.type("\u{03}")
        try await ann.end()
        try await server.stop()
    }

    @Test("SB-02 the readers of a message are shown by name, even if they have never written")
    func readers() async throws {
        let (server, _) = try await world(["ann", "cat"])
        let cat = try await server.socket("cat")
        let ann = try TerminalScreen.chat(of: "ann", on: server)
        try await ann.wait(for: "#team · 3 members")
        ann.type("hello\r")
        while try await cat.nextEvent().rows.messages?.first?.text != "hello" {}
        try await cat.call(MarkRead(channel: "team"))
        try await ann.wait(for: "hello ✓ read by Cat")
        ann.type("/quit\r")
        try await ann.end()
        try await server.stop()
    }
}
