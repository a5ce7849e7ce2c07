import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// `roost chat` on a terminal: the contents of the screen.
@Suite struct ChatScreenTests {
    private func screen(
        of user: UserID, in channel: String = "team", on server: TestServer, width: Int = 100,
        variables: [String: String] = [:]
    ) throws -> TerminalScreen {
        try .chat(of: user, in: channel, on: server, width: width, variables: variables)
    }

    @Test("/help can be read from start to end in 80 columns and 24 lines, and a conversation is entered")
    func help() async throws {
        let server = try await TestServer()
        _ = try await server.socket("bob")
        let ann = try screen(of: "ann", on: server, width: 80)
        try await ann.wait(for: "● online")
        ann.type("/help\r")
        try await ann.wait(for: "/list [hidden]")
        try await ann.wait(for: "lines 1 to 19 of")
        ann.type("\u{1B}[6~")
        try await ann.wait("the end of the help") { lines in
            lines.contains { $0.contains("a mention") } && !lines.contains { $0.contains("/list [hidden]") }
        }
        ann.type("\u{1B}[A")
        try await ann.wait("a line less") { lines in !lines.contains { $0.contains("Tab completes") } }
        ann.type("\u{1B}[5~\u{1B}[5~")
        try await ann.wait(for: "/list [hidden]")
        // Any other key closes it, and counts as typed.
        ann.type("/")
        try await ann.wait("the input alone") { lines in
            lines.last == "> /" && !lines.contains { $0.contains("/list [hidden]") }
        }
        ann.type("help join\r")
        try await ann.wait(for: "/join ID: open a channel")
        ann.type("/create talk --type conversation bob\r")
        try await ann.wait(for: "you are in #talk: conversation, 2 members")
        try await ann.wait(for: "#talk · 2 members")
        ann.type("/join team\r")
        try await ann.wait(for: "you are in #team: community, 1 member")
        ann.type("/join talk\r")
        try await ann.wait(for: "you are in #talk: conversation, 2 members")
        #expect(!ann.lines.contains { $0.contains("kind_forbids") })
        ann.type("/quit\r")
        try await ann.end()
        try await server.stop()
    }

    @Test("without a server the screen says why and what to do, in 80 columns")
    func withoutServer() async throws {
        let bob = try TerminalScreen(
            ["chat", "team", "--as", "bob", "--token", "t", "--url", "http://127.0.0.1:1"],
            environment: ["XDG_STATE_HOME": TemporaryDirectory.make().path], width: 80)
        try await bob.wait("the reason and the advice") { lines in
            lines.contains {
                $0.hasSuffix("nothing answers at 127.0.0.1, port 1: Connection refused") || $0.hasSuffix("Connection refused)")
            }
                && lines.contains("Start a server with roost serve, or name its address with --url.")
        }
        // It isn't known whether anybody can be mentioned: that isn't shown as "nobody".
        bob.type("hi @a\t")
        try await bob.wait(for: "There is no connection to the server.")
        bob.type("\u{03}")
        try await bob.end()
    }

    @Test("MN-09 MN-10 SB-33 SB-58 SB-59 §8.5 edits, kinds, deletions and mentions are seen, and Tab completes a mention")
    func messages() async throws {
        let server = try await TestServer()
        let bob = try await server.socket("bob")
        let root = try await server.socket("root", role: .admin)
        for user in ["ann", "bob", "berta"] as [UserID] {
            try await root.call(UpsertUser(user: user, displayName: user.rawValue.capitalized))
        }
        try await root.call(CreateChannel(channel: "team", users: ["ann", "bob", "berta"]))
        let ann = try screen(of: "ann", on: server)
        try await ann.wait(for: "● online")
        try await ann.wait(for: "#team · 4 members")

        let sent = try await bob.call(SendMessage(channel: "team", clientId: "1", text: "lunch?"))
        try await ann.wait("bob's message") {
            $0.contains { $0.hasSuffix("Bob    lunch?") || $0.contains("Bob") && $0.hasSuffix("lunch?") }
        }
        try await bob.call(EditMessage(channel: "team", message: sent.messageId, text: "lunch at one?"))
        try await ann.wait(for: "lunch at one? (edited)")
        try await root.call(SendAdminMessage(channels: ["team"], clientId: "2", text: "The kitchen is closed."))
        try await ann.wait(for: "[admin] The kitchen is closed.")
        let mention = SendMessage(channel: "team", clientId: "3", text: "@Ann pizza then", mentionees: [.users(["ann"])])
        let third = try await bob.call(mention)
        try await ann.wait(for: "@Ann pizza then")
        #expect(ann.words(in: "1;7") == ["@Ann"], "what mentions one stands out")
        try await bob.call(DeleteMessage(channel: "team", message: sent.messageId))
        try await ann.wait("the text to be gone") { lines in
            lines.contains { $0.contains("message deleted") } && !lines.contains { $0.contains("lunch") }
        }

        // Two members may be meant at first.
        ann.type("hi @b\t")
        try await ann.wait("both names") { $0.contains("Which one?") && $0.contains("@Berta") && $0.contains("@Bob") }
        ann.type("o\t")
        try await ann.wait("the name") { $0.last == "> hi @Bob" }
        ann.type("it is\r")
        // Until then the row ends with the mark of an unsent message.
        try await ann.wait("the message to be stored") { $0.contains { $0.hasSuffix("hi @Bob it is") && !$0.hasPrefix(">") } }
        let stored = try await bob.call(ListMessages(channel: "team", limit: 1)).messages
        #expect(stored.first?.text == "hi @Bob it is")
        #expect(stored.first?.mentionees == [.users(["bob"])])
        ann.type("@zed\t")
        try await ann.wait(for: "no member is called zed")
        ann.type(String(repeating: "\u{7F}", count: 4) + "/edit\r")
        try await ann.wait("the text to be edited") { $0.last == "> /edit hi @Bob it is" }
        ann.type(" late\r")
        try await ann.wait(for: "hi @Bob it is late (edited)")

        let toAll = SendMessage(channel: "team", clientId: "all", text: "@all come", mentionees: [.channel])
        let all = try await bob.call(toAll)
        try await ann.wait(for: "@all come")
        ann.type("/mentions\r")
        try await ann.wait(for: "Who mentioned you")
        try await ann.wait("what is said to all") {
            $0.contains { $0.hasPrefix("#team") && $0.contains("\(all.messageId)") && $0.hasSuffix("@all come") }
        }
        try await ann.wait("the mention") {
            $0.contains { $0.hasPrefix("#team") && $0.contains("\(third.messageId)") && $0.hasSuffix("@Ann pizza then") }
        }
        ann.type("/quit\r")
        try await ann.end()
        try await server.stop()
    }

    @Test("SB-02 R25 R26 the screen shows who types and who has read, and /unread leaves a message for later")
    func live() async throws {
        let server = try await TestServer()
        let bob = try await server.socket("bob")
        _ = try await server.socket("ann")
        try await bob.call(CreateChannel(channel: "team", users: ["ann"]))
        let ann = try screen(of: "ann", on: server)
        try await ann.wait(for: "● online")
        try await bob.call(StartTyping(channel: "team"))
        try await ann.wait(for: "bob is typing …")
        ann.type("hel")
        while try await bob.nextSignal().typing?.users != ["ann"] {}
        ann.type("lo\r")
        while try await bob.nextSignal().typing?.users != [] {}
        while try await bob.nextEvent().rows.messages?.first?.text != "hello" {}
        try await bob.call(MarkRead(channel: "team"))
        try await ann.wait(for: "hello ✓ read by bob")
        try await bob.call(SendMessage(channel: "team", clientId: "1", text: "and you?"))
        try await ann.wait("bob to have written") { lines in
            lines.contains { $0.hasSuffix("and you?") } && !lines.contains { $0.contains("typing") }
        }
        ann.type("/who\r")
        try await ann.wait(for: "1 viewing #team: ann")
        ann.type("/devices\r")
        try await ann.wait("this device in the list") { lines in lines.contains { $0.contains("Linux") && $0.hasSuffix("this one") }
        }
        let other = try await server.socket("ann")
        try await Polling.value {
            try await other.call(GetUnread(channel: "team")).unreadCount
        } until: {
            $0 == 0
        }
        ann.type("/unread\r")
        try await ann.wait(for: "the last message is unread again")
        try await Polling.value {
            try await other.call(GetUnread(channel: "team")).unreadCount
        } until: {
            $0 == 1
        }
        try await bob.call(SendMessage(channel: "team", clientId: "2", text: "hm?"))
        try await Polling.value {
            try await other.call(GetUnread(channel: "team")).unreadCount
        } until: {
            $0 == 0
        }
        ann.type("/quit\r")
        try await ann.end()
        try await server.stop()
    }

    @Test("X-37 /status shows others a text beside the user's name, and an empty one removes it")
    func status() async throws {
        let server = try await TestServer()
        let bob = try await server.socket("bob")
        _ = try await server.socket("ann")
        try await bob.call(CreateChannel(channel: "team", users: ["ann"]))
        let ann = try screen(of: "ann", on: server)
        try await ann.wait(for: "● online")
        ann.type("/status on holiday\r")
        try await ann.wait(for: "your status is shown beside your name")
        #expect(try await bob.call(GetUser(user: "ann")).status == "on holiday")
        ann.type("/members\r")
        try await ann.wait("the status beside her name") { lines in
            lines.contains { $0.hasPrefix("●") && $0.contains("ann") && $0.hasSuffix("on holiday") }
        }
        ann.type("/status\r")
        try await ann.wait(for: "your status is removed")
        #expect(try await bob.call(GetUser(user: "ann")).status == nil)
        ann.type("/members\r")
        try await ann.wait("her name alone") { lines in
            lines.contains { $0.hasPrefix("●") && $0.contains("ann") } && !lines.contains { $0.contains("on holiday") }
        }
        ann.type("/quit\r")
        try await ann.end()
        try await server.stop()
    }

    @Test("AM-44 /read all marks all of the user's channels as read, the one on the screen too")
    func readAll() async throws {
        let server = try await TestServer()
        let bob = try await server.socket("bob")
        let hers = try await server.socket("ann")
        for channel in ["team", "talk", "tea"] as [ChannelID] {
            try await bob.call(CreateChannel(channel: channel, users: ["ann"]))
            try await bob.call(SendMessage(channel: channel, clientId: ClientID("in-\(channel)"), text: "hi there"))
        }
        func waitUntilUnread(_ count: Int) async throws {
            try await Polling.value {
                try await hers.call(GetTotalUnread()).unreadCount
            } until: {
                $0 == count
            }
        }
        let ann = try screen(of: "ann", on: server)
        try await ann.wait("what is unread elsewhere") { $0[0].contains("talk 1") && $0[0].contains("tea 1") }
        try await waitUntilUnread(2)
        ann.type("/unread\r")
        try await waitUntilUnread(3)
        ann.type("/read all\r")
        try await ann.wait("all to be read") { lines in
            lines.contains { $0.contains("all your channels are read") } && !lines[0].contains("unread")
        }
        try await waitUntilUnread(0)
        ann.type("/quit\r")
        try await ann.end()
        try await server.stop()
    }

    @Test("R19 R26 a system message about a user isn't theirs to edit or delete, shows no readers, and isn't what /unread marks")
    func serverMessages() async throws {
        let server = try await TestServer()
        let bob = try await server.socket("bob")
        let hers = try await server.socket("ann")
        _ = try await server.socket("cid")
        let announces = PolicyChanges(announcesJoins: true, announcesLeaves: true)
        try await hers.call(CreateChannel(channel: "team", users: ["bob"], policy: announces))
        let ann = try screen(of: "ann", on: server)
        try await ann.wait(for: "● online")
        ann.type("wrong words\r")
        while try await bob.nextEvent().rows.messages?.first?.text != "wrong words" {}
        try await bob.call(MarkRead(channel: "team"))
        try await ann.wait(for: "wrong words ✓ read by bob")
        try await hers.call(AddMembers(channel: "team", users: ["cid"]))
        try await ann.wait("what the server says, and the readers where they were") { lines in
            lines.contains { $0.contains("added cid") } && lines.contains { $0.hasSuffix("wrong words ✓ read by bob") }
        }
        ann.type("/edit\r")
        try await ann.wait("her own text to be edited") { $0.last == "> /edit wrong words" }
        ann.type(" twice\r")
        try await ann.wait(for: "wrong words twice (edited)")
        ann.type("/delete\r")
        try await ann.wait("her own message to be gone") { lines in
            lines.contains { $0.contains("message deleted") } && lines.contains { $0.contains("added cid") }
        }
        let sent = try await bob.call(SendMessage(channel: "team", clientId: "1", text: "good?"))
        try await ann.wait(for: "good?")
        try await hers.call(RemoveMembers(channel: "team", users: ["cid"]))
        try await ann.wait(for: "removed cid")
        try await Polling.value {
            try await hers.call(GetUnread(channel: "team")).unreadCount
        } until: {
            $0 == 0
        }
        ann.type("/unread\r")
        try await Polling.value {
            try await hers.call(GetUnread(channel: "team")).readSeq
        } until: {
            $0 == sent.seq - 1
        }
        ann.type("/quit\r")
        try await ann.end()
        try await server.stop()
    }

    @Test("MN-10 SB-52 SB-55 SB-60 /goto shows a message and a time, End returns, and /reset empties the screen for one alone")
    func places() async throws {
        let server = try await TestServer()
        let bob = try await server.socket("bob")
        let hers = try await server.socket("ann")
        try await bob.call(CreateChannel(channel: "team", users: ["ann"]))
        var sent: [Message] = []
        for number in 1...150 {
            sent.append(
                try await bob.call(SendMessage(channel: "team", clientId: ClientID("\(number)"), text: "text \(number).")))
        }
        let ann = try screen(of: "ann", on: server)
        try await ann.wait(for: "text 150.")
        #expect(!ann.lines.contains { $0.contains("text 20.") })
        ann.type("/goto \(sent[19].messageId)\r")
        try await ann.wait("the place alone") { lines in
            lines.contains { $0.contains("text 20.") } && !lines.contains { $0.contains("text 150.") }
        }
        ann.type("\u{1B}[F")
        try await ann.wait(for: "text 150.")
        ann.type("/goto 2020-01-01\r")
        try await ann.wait(for: "text 1.")
        // A user who returns before the place is loaded stays at the newest messages.
        ann.type("\u{1B}[F")
        try await ann.wait(for: "text 150.")
        ann.type("/goto 2020-01-01\r\u{1B}[F")
        try await ann.wait(for: "text 150.")
        // A place requested right afterwards is looked up.
        ann.type("\u{1B}[F/goto 1\r")
        try await ann.wait(for: "There is no such message.")
        ann.type("/goto nowhere\r")
        try await ann.wait("the line to be corrected") { $0.last == "> /goto nowhere" }
        ann.type(String(repeating: "\u{7F}", count: 13) + "/reset\r")
        try await ann.wait("an empty screen") { lines in !lines.contains { $0.contains("text ") } }
        try await ann.wait(for: "your history of #team begins now")
        #expect(try await hers.call(GetChannel(channel: "team")).membership?.historyFloor ?? 0 >= sent[149].seq)
        try await bob.call(SendMessage(channel: "team", clientId: "last", text: "text after it."))
        try await ann.wait(for: "text after it.")
        #expect(try await bob.call(ListMessages(channel: "team", limit: 100)).messages.count == 100)
        ann.type("\u{03}")
        try await ann.end()
        try await server.stop()
    }

    @Test("a line typed just before the end is sent, and a command is carried out")
    func ending() async throws {
        let server = try await TestServer()
        let bob = try await server.socket("bob")
        _ = try await server.socket("ann")
        try await bob.call(CreateChannel(channel: "team", users: ["ann"]))
        let state = ["XDG_STATE_HOME": TemporaryDirectory.make().path]
        func sent() async throws -> [String] { try await bob.call(ListMessages(channel: "team", limit: 10)).messages.map(\.text) }
        var sentBeforeEndCount = 0
        for (text, end) in [("one", "\u{04}"), ("two", "/quit\r"), ("three", "\u{03}")] {
            let ann = try screen(of: "ann", on: server, variables: state)
            try await ann.wait(for: "● online")
            try await ann.wait(for: "#team · 2 members")
            ann.type("\(text)\r\(end)")
            try await ann.end()
            if try await sent().last == text { sentBeforeEndCount += 1 }
        }
        // At its end a chat waits for two seconds, which a busy machine may miss: then the next chat sends it.
        #expect(sentBeforeEndCount > 0)
        // No later chat makes up for a command, since a chat joins at its start.
        var memberCount = 2
        for _ in 0..<5 where memberCount > 1 {
            let ann = try screen(of: "ann", on: server, variables: state)
            try await ann.wait(for: "● online")
            try await eventually("all that was typed") { try await sent() == ["one", "two", "three"] }
            ann.type("/leave\r\u{04}")
            try await ann.end()
            memberCount = try await bob.call(GetChannel(channel: "team")).channel.counters.memberCount
        }
        #expect(memberCount == 1)
        try await server.stop()
    }

    @Test("a user's second terminal says that it keeps messages in memory, and at its end which ones are lost")
    func memory() async throws {
        let state = ["XDG_STATE_HOME": TemporaryDirectory.make().path]
        func open() throws -> TerminalScreen {
            try TerminalScreen(
                ["chat", "team", "--as", "bob", "--token", "t", "--url", "http://127.0.0.1:1"], environment: state, width: 80)
        }
        let first = try open()
        try await first.wait(for: "Connection refused")
        let second = try open()
        try await second.wait(for: "kept in memory: unsent messages are lost when you quit")
        second.type("hello\r")
        try await second.wait(for: "1 unsent message, lost when you quit")
        #expect(!second.lines.contains { $0.contains("your messages wait") })
        second.type("\u{04}")
        try await second.wait(for: "1 message wasn't sent and is lost: unsent messages were kept in memory.")
        try await second.end()
        first.type("\u{04}")
        try await first.end()
    }

    private func isStopped(_ process: Int32) throws -> Bool {
        let stat = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        return stat.split(separator: ")").last?.hasPrefix(" T") == true
    }

    @Test("Ctrl-Z and SIGTSTP release the terminal and stop the chat, which is drawn again when it continues")
    func suspension() async throws {
        let server = try await TestServer()
        let ann = try screen(of: "ann", on: server)
        try await ann.wait(for: "● online")
        #expect(ann.isRaw)
        for suspend in [{ ann.type("\u{1A}") }, { _ = kill(ann.processIdentifier, SIGTSTP) }] {
            suspend()
            try await eventually("the chat to be stopped") { try isStopped(ann.processIdentifier) }
            #expect(!ann.isRaw)
            kill(ann.processIdentifier, SIGCONT)
            try await waitUntilTakenOver(ann)
        }
        ann.type("\u{03}")
        try await ann.end()
        try await server.stop()
    }

    /// Waits for a screen to continue after it was stopped.
    private func waitUntilTakenOver(_ ann: TerminalScreen) async throws {
        try await eventually("the screen to be taken over again") { ann.isRaw }
        // Once typed text is on the screen, the rest is too.
        ann.type("x")
        try await ann.wait("the screen") { lines in
            lines.last?.hasPrefix("> x") == true && lines.first?.contains("#team") == true
        }
    }

    @Test("Ctrl-Z in a chat started by a shell script stops the script too, and both continue together")
    func suspendedScript() async throws {
        let server = try await TestServer()
        let file = TemporaryDirectory.make().appendingPathExtension("pid")
        // A separate session with this as its terminal, like a shell in a window.
        let ann = try TerminalScreen(
            [
                "--ctty", "--wait", "/bin/sh", "-c", #"echo $$ >"$0"; "$@"; exit"#, file.path, ServerProcess.binary.path, "chat",
                "team", "--as", "ann",
            ],
            environment: [
                "ROOST_URL": server.url.absoluteString, "ROOST_DATA": server.directory.path,
                "XDG_STATE_HOME": TemporaryDirectory.make().path,
            ], program: "/usr/bin/setsid")
        try await ann.wait(for: "● online")
        let text = try String(contentsOf: file, encoding: .utf8)
        let script = try #require(Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)))
        ann.type("\u{1A}")
        try await eventually("the script to be stopped") { try isStopped(script) }
        #expect(!ann.isRaw)
        // As `fg` does.
        kill(-script, SIGCONT)
        try await waitUntilTakenOver(ann)
        ann.type("\u{03}")
        try await ann.end()
        try await server.stop()
    }

    @Test("a terminal that can't move its cursor gets lines, and a user who wants no colours gets none")
    func terminals() async throws {
        let server = try await TestServer()
        for variables in [["TERM": "dumb"], ["TERM": ""]] {
            let ann = try screen(of: "ann", on: server, variables: variables)
            try await ann.wait(for: "Online.")
            ann.type("hello\n")
            try await ann.wait("a line") { $0.contains { $0.hasSuffix("ann: hello") } }
            ann.type("/quit\n")
            try await ann.end()
        }
        let ann = try screen(of: "ann", on: server, variables: ["NO_COLOR": "1"])
        try await ann.wait("the name without a colour") { _ in ann.words(in: "1").contains { $0.contains("ann") } }
        ann.type("\u{03}")
        try await ann.end()
        let colourful = try screen(of: "ann", on: server)
        try await colourful.wait(for: "hello")
        #expect(!colourful.words(in: "1").contains { $0.contains("ann") })
        colourful.type("\u{03}")
        try await colourful.end()
        try await server.stop()
    }

    @Test("typed text is sent unchanged, an edit too, and a split escape sequence isn't text")
    func unchanged() async throws {
        let server = try await TestServer()
        let bob = try await server.socket("bob")
        _ = try await server.socket("ann")
        try await bob.call(CreateChannel(channel: "team", users: ["ann"]))
        let ann = try screen(of: "ann", on: server)
        try await ann.wait(for: "#team · 2 members")
        let text = "🏴󠁧󠁢󠁳󠁣󠁴󠁿 soft\u{00AD}hyphen"
        ann.type("\(text)\r")
        func newest() async throws -> String? {
            try await bob.call(ListMessages(channel: "team", limit: 1)).messages.last?.text
        }
        try await eventually("the text") { try await newest() == text }
        try await ann.wait("the message to be stored") { $0.contains { $0.hasSuffix("softhyphen") && !$0.hasPrefix(">") } }
        ann.type("/edit\r")
        try await ann.wait("the text to be edited") { $0.last?.hasSuffix("softhyphen") == true }
        ann.type("!\r")
        try await eventually("the edit") { try await newest() == text + "!" }
        ann.type("\u{03}")
        try await ann.end()
        try await server.stop()
    }
}
