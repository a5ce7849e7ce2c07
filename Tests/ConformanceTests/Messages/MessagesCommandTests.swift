import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// `roost messages`: the real program against a real server.
@Suite struct MessagesCommandTests {
    /// A channel with ann and bob.
    private func room() async throws -> TestServer {
        let server = try await TestServer()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "team"))
        try await bob.call(JoinChannel(channel: "team"))
        return server
    }

    private func run(_ words: String, _ server: TestServer, input: String = "") async throws -> CommandRun {
        try await CommandRun.roost("messages \(words)", on: server, input: input)
    }

    private func messages(_ run: CommandRun) throws -> [Message] {
        try JSONDecoder().decode(MessagePage.self, from: Data(run.output.utf8)).messages
    }

    @Test(
        "MN-09 SB-33 R21 a script sends an argument, its input or each line of it, once for each client id, with all fields"
    )
    func send() async throws {
        let server = try await room()
        let one = try await run("send team Hi_Bob --mention bob --mention zed --as ann", server)
        #expect(one.status == 0 && one.output.hasSuffix("  ann  Hi Bob\n"))
        #expect(one.errors == "zed isn't mentioned: no member who may read it.\n")
        #expect(try await run("send team --as ann --silent", server, input: "two\nlines\n").status == 0)
        for _ in 1...2 {
            let lines = try await run("send team --lines --client-id log --as bob", server, input: "first\n\nthird\n")
            #expect(lines.status == 0 && lines.lines.count == 2)
        }
        let all = try messages(try await run("list team --as ann --json", server))
        #expect(all.map(\.text) == ["Hi Bob", "two\nlines", "first", "third"])
        #expect(all.map(\.isSilent) == [false, true, false, false] && all[3].clientId == "log-3")
        // The ids that the command made.
        #expect(all.prefix(2).map(\.clientId.rawValue.utf8.count) == [22, 22])
        let mentions = try await run("mentions --as bob", server)
        #expect(mentions.lines.count == 1 && mentions.output.hasSuffix("team  ann  Hi Bob\n"))

        // A character may take eight bytes, and a text of the most characters is sent.
        let flags = String(repeating: "🇩🇪", count: 20_000)
        #expect(try await run("send team --as ann", server, input: flags + "\n").status == 0)
        let newest = try await server.socket("ann").call(ListMessages(channel: "team", limit: 1)).messages
        #expect(newest.map(\.text) == [flags])

        let card = try await run(
            """
            send team --kind custom --custom-type card --message-data 52.5,13.4 --tag a --tag b --meta-array yes=cid --meta-array yes=bob \
            --meta-array no=a=b --target-language de --target-language pt-BR --push-option force --as bob
            """, server)
        #expect(card.status == 0 && card.lines.first?.hasSuffix(" bob (card)") == true, "\(card.errors)")
        let notice = "send team Back_at_noon --kind admin --client-id notice --push-option suppress --as root --admin"
        for _ in 1...2 {
            let admin = try await run(notice, server)
            #expect(admin.status == 0 && admin.lines.first?.hasSuffix(" root Back at noon (admin)") == true, "\(admin.errors)")
        }
        let kinds = try await server.socket("ann").call(ListMessages(channel: "team", limit: 2)).messages
        #expect(
            kinds.map(\.content) == [
                MessageContent(
                    text: "", kind: .custom, customType: "card", data: "52.5,13.4", tags: ["a", "b"],
                    metaArrays: ["yes": ["bob", "cid"], "no": ["a=b"]], pushOption: .force, targetLanguages: ["de", "pt-BR"]),
                MessageContent(text: "Back at noon", kind: .admin, pushOption: .suppress),
            ])

        let refusals = [
            try await run("send team --as ann", server), try await run("send team x --as zoe", server),
            try await run("send team --lines --as ann", server, input: "good\n\(String(repeating: "x", count: 20_001))\n"),
            try await run("send team x --lines --as ann", server),
            try await run("send team x --target-language x_y --as ann", server),
            try await run("send team x --kind admin --as ann", server),
            try await run("send team x --message-data \(String(repeating: "x", count: 20_001)) --as ann", server),
            try await CommandRun.roost("channels update team --name \(String(repeating: "x", count: 129)) --as ann", on: server),
        ]
        #expect(
            refusals.map { "\($0.status) \($0.errors.split(separator: "\n").first ?? "")" } == [
                "1 Error: There is no text: give TEXT, or write it to standard input.",
                "1 Error: message.send is for members of the channel. (not_member)",
                "1 Error: line 2: text has a limit of 20000 characters. (limit_exceeded)",
                "64 Error: --lines reads standard input; TEXT can't be given as well.",
                "1 Error: --target-language must contain only language tags, such as de or pt-BR. (invalid_argument)",
                "1 Error: message.sendAdmin needs an admin's token. (not_permitted) Add --admin.",
                "1 Error: --message-data has a limit of 20000 characters. (limit_exceeded)",
                "1 Error: --name has a limit of 128 characters. (limit_exceeded)",
            ])
        let token = try await server.token("ann")
        let given = try await CommandRun.roost("messages send team x --kind admin", on: server, token: token)
        #expect(given.errors.hasSuffix("(not_permitted) On the server's machine, --as with --admin makes one.\n"))
        try await server.stop()
    }

    @Test("MN-09 R21 in a terminal, messages send says that it waits for the text, and how to send it")
    func typed() async throws {
        let server = try await room()
        let place = ["ROOST_URL": "http://127.0.0.1:\(server.port)", "ROOST_DATA": server.directory.path]
        for (option, advice) in [
            ([], "Type the message; Ctrl-D sends it."), (["--lines"], "Type the messages, one per line; Ctrl-D ends the list."),
        ] as [([String], String)] {
            let screen = try TerminalScreen(["messages", "send", "team", "--as", "ann"] + option, environment: place)
            try await screen.wait(for: advice)
            screen.type("Hi\r\u{04}")
            try await screen.end()
        }
        #expect(try messages(try await run("list team --as ann --json", server)).map(\.text) == ["Hi", "Hi"])
        try await server.stop()
    }

    @Test("SB-48 SB-51 SB-53 SB-54 SB-55 SB-58 SB-59 SB-60 R22 a script lists by place, time and filter, edits, deletes and resets")
    func list() async throws {
        let server = try await room()
        let lines = (1...9).map { "\($0)\n" }.joined()
        _ = try await run("send team --lines --as ann", server, input: lines)
        let all = try messages(try await run("list team --as bob --json", server))
        let (middle, id) = (all[4].seq, all[4].messageId)
        var texts: [String] = []
        for words in [
            "--limit 2", "--before \(middle) --limit 2", "--after \(middle) --limit 2", "--around \(id) --limit 3",
            "--limit 2 --reverse",
            "--sender bob", "--after-time 2020-01-02 --limit 2", "--before-time 2020-01-02T09:00:00+02:00",
            "--around-time 2099-01-01T00:00:00.5Z --limit 4", "--kind admin",
        ] {
            let page = try await run("list team --as bob --json \(words)", server)
            #expect(page.status == 0, "\(page.errors)")
            texts.append(try messages(page).map(\.text).joined(separator: " "))
        }
        #expect(texts == ["8 9", "3 4", "6 7", "4 5 6", "9 8", "", "1 2", "", "8 9", ""])
        let shown = try await run("list team --before \(middle) --limit 2 --as bob", server)
        #expect(shown.lines.map { $0.split(separator: " ").suffix(2).joined(separator: " ") } == ["ann 3", "ann 4"])
        #expect(
            shown.errors == "There are older ones: --before \(all[2].seq)\nThere are newer ones: --after \(all[3].seq)\n")
        let mistake = try await run("list team --after-time yesterday --as bob", server)
        #expect(mistake.status == 64 && mistake.errors.contains("a time must be like 2026-03-01T12:30:05.250Z"))

        for option in ["--after-time", "--before-time", "--around-time"] {
            let ancient = try await run("list team \(option) 0001-01-01 --as bob", server)
            #expect(ancient.status == 1 && ancient.errors.hasPrefix("Error: \(option) must be a time like "), "\(ancient.errors)")
        }

        // The sender is an id everywhere, even if the user has a name.
        try await server.socket("ann").call(UpdateMe(displayName: "Ann A."))
        #expect(try await run("list team --limit 1 --as bob", server).output.hasSuffix("  ann  9\n"))

        let edited = try await run("edit team \(id) five --as ann", server)
        #expect(edited.output.hasSuffix("  ann  five  (edited)\n"))
        let others = try await run("delete team \(all[0].messageId) \(id) --as bob", server)
        #expect(others.status == 1 && others.errors.hasSuffix("(not_message_owner)\n"))
        let deleted = try await run("delete team \(all[0].messageId) \(id) --as ann", server)
        #expect(deleted.lines == ["\(all[0].messageId) is deleted.", "\(id) is deleted."])
        let purged = try await run("delete team \(all[1].messageId) --for-good --as ann", server)
        #expect(purged.lines == ["\(all[1].messageId) is deleted for good."])
        let left = try messages(try await run("list team --as bob --json", server))
        #expect(left.map(\.text) == ["", "3", "4", "", "6", "7", "8", "9"])
        #expect(try await run("reset team --as bob", server).lines == ["Your history of team begins now."])
        #expect(try await run("list team --as bob", server).errors == "No such messages.\n")
        #expect(try messages(try await run("list team --as ann --json", server)).count == 8)
        try await server.stop()
    }

    @Test("SB-48 an empty page beside messages says on which side they are, and how to list them")
    func emptyPages() async throws {
        let server = try await room()
        _ = try await run("send team --lines --as ann", server, input: "1\n2\n")
        for (place, option) in [("--around-time 1970-01-01 --limit 1", "--after"), ("--after 1000", "--before")] {
            let page = try await run("list team \(place) --as bob", server)
            let advice = page.errors.split(separator: "\n").last.map { $0.split(separator: " ") } ?? []
            #expect(page.output == "" && page.errors.hasPrefix("No such messages.\nThere are "), "\(page.errors)")
            try #require(advice.count == 6 && advice[4] == option, "\(page.errors)")
            let there = try messages(try await run("list team \(option) \(advice[5]) --as bob --json", server))
            #expect(there.map(\.text) == ["1", "2"], "\(place)")
        }
        try await server.stop()
    }

    @Test("SB-59 R24 a script deletes for the caller alone, restores a deleted message, and reads earlier versions")
    func versions() async throws {
        let server = try await TestServer { ($0.options.undeletionSeconds, $0.options.versionSeconds) = (600, 600) }
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "team"))
        try await bob.call(JoinChannel(channel: "team"))
        let sent = try await ann.call(SendMessage(channel: "team", clientId: "1", text: "first"))
        let id = sent.messageId
        #expect(try await run("delete team \(id) --for-me --as bob", server).lines == ["\(id) is deleted for you."])
        #expect(try await run("list team --as bob", server).output.hasSuffix("(deleted)\n"))
        #expect(try await run("list team --as ann", server).output.hasSuffix("ann  first\n"))
        #expect(try await run("delete team \(id) --for-me --for-good --as bob", server).status == 64)
        #expect(try await run("versions team \(id) --as ann", server).errors == "No earlier versions are kept.\n")
        _ = try await run("edit team \(id) second --as ann", server)
        _ = try await run("delete team \(id) --as ann", server)
        let versions = try await run("versions team \(id) --as ann", server)
        #expect(
            versions.lines.map { $0.split(separator: " ").dropFirst(2).joined(separator: " ") } == [
                "ann second (deleted)", "ann first",
            ])
        #expect(try await run("versions team \(id) --as bob", server).errors.hasSuffix("(not_permitted)\n"))
        #expect(try await run("undelete team \(id) --as ann", server).output.hasSuffix("second  (edited)\n"))
        #expect(try await run("undelete team \(id) --as bob", server).errors.hasSuffix("(not_message_owner)\n"))
        try await server.stop()
    }

    @Test(
        "MN-06 MN-17 SB-58 R22 a script's edit ends the places of users whom the message doesn't mention, and keeps other metadata")
    func editUnmentioned() async throws {
        let server = try await room()
        let ann = try await server.socket("ann")
        let metadata: JSONValue = [
            "mentioned": [["type": "user", "index": 3, "length": 3, "userId": "zed"]], "topic": "lunch",
        ]
        let sent = try await ann.call(
            SendMessage(channel: "team", clientId: "1", text: "hi @zed", metadata: metadata, mentionees: [.users(["zed"])]))
        #expect(sent.mentionees == nil && sent.metadata == metadata && sent.droppedMentions == ["zed"])
        let run = try await self.run("edit team \(sent.messageId) oh,_hi_@zed --as ann", server)
        #expect(run.status == 0, "\(run.errors)")
        let edited = try await ann.call(GetMessage(channel: "team", message: sent.messageId))
        #expect(edited.text == "oh, hi @zed" && edited.mentionees == nil && edited.metadata == ["topic": "lunch"])
        // A user who can't read the message is refused by the edit itself.
        let outside = try await self.run("edit team \(sent.messageId) x --as zoe", server)
        #expect(outside.status == 1 && outside.errors.contains("(not_member)"), "\(outside.errors)")
        try await server.stop()
    }

    @Test("I18 MN-06 SB-58 an overloaded server doesn't make an edit skip its look at the message's mentions")
    func editOverloaded() async throws {
        let server = try await HTTPStub.start { _, request in
            let (status, code) = request.line.hasPrefix("GET ") ? (503, "overloaded") : (404, "not_found")
            return .init(status, #"{"type":"t","title":"T","status":\#(status),"code":"\#(code)","detail":"No."}"#)
        }
        let run = try await CommandRun.roost(
            arguments: ["messages", "edit", "team", "382489492373635072", "text", "--token", "t"],
            environment: ["ROOST_URL": "http://127.0.0.1:\(server.port)"])
        #expect([run.errors, "\(run.status)"] == ["Error: No. (overloaded)\n", "1"])
        await server.stop()
    }

    @Test("I3 I9 R22 a follower that continues after any line misses nothing, even if a page can't hold the changes")
    func followPages() async throws {
        struct Line: Decodable {
            let channelSeq: Seq
            let message: Message
        }
        let server = try await room()
        let ann = try await server.socket("ann")
        // A page of changes ends with the 27th of them.
        var sent: [Message] = []
        for number in 1...30 {
            let text = String(repeating: "x", count: 19_000)
            sent.append(try await ann.call(SendMessage(channel: "team", clientId: ClientID("\(number)"), text: text)))
        }
        let text = String(repeating: "y", count: 19_000)
        let edited = try await ann.call(EditMessage(channel: "team", message: sent[0].messageId, text: text))
        func lines(after seq: Seq, count: Int) async throws -> [Line] {
            let following = try await run("follow team --after \(seq) --count \(count) --as bob", server)
            #expect(following.status == 0, "\(following.errors)")
            return try following.lines.map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
        }
        let changes = Array(sent.dropFirst()) + [edited]
        let all = try await lines(after: sent[0].seq - 1, count: 30)
        #expect(all.map(\.message) == changes && all.map(\.channelSeq) == changes.map(\.changeSeq))
        let first = try await lines(after: sent[0].seq - 1, count: 27)
        let last = try #require(first.last)
        let rest = try await lines(after: last.channelSeq, count: 3)
        #expect((first + rest).map(\.message) == changes)
        try await server.stop()
    }

    @Test("I3 R22 a follower is told that they may no longer read the channel, and where to continue once they may")
    func followUnread() async throws {
        let server = try await room()
        let ann = try await server.socket("ann")
        func send(_ texts: ClosedRange<Int>) async throws -> [Message] {
            var sent: [Message] = []
            for text in texts {
                sent.append(try await ann.call(SendMessage(channel: "team", clientId: ClientID("\(text)"), text: "\(text)")))
            }
            return sent
        }
        func setReaders(_ readers: ChannelPolicy.Audience) async throws {
            try await ann.call(UpdateChannel(channel: "team", policy: PolicyChanges(read: readers)))
        }
        let first = try await send(1...2)
        let following = try RunningCommand(
            "messages follow team --after \(first[0].seq - 1) --as bob",
            environment: ["ROOST_URL": "http://127.0.0.1:\(server.port)", "ROOST_DATA": server.directory.path])
        try await following.wait(forOutput: #""text":"2""#)
        try await setReaders(.operators)
        _ = try await send(3...4)
        let ended = try await following.end()
        let advice = "Once you may again, continue with --after \(first[1].changeSeq)."
        #expect([ended.errors, "\(ended.status)"] == ["Error: You may no longer read team. \(advice) (not_permitted)\n", "1"])
        let refused = try await run("follow team --as bob", server)
        #expect([refused.errors, "\(refused.status)"] == ["Error: You may not read team. (not_permitted)\n", "1"])

        try await setReaders(.members)
        let rest = try await run("follow team --after \(first[1].changeSeq) --count 2 --as bob", server)
        #expect(rest.status == 0, "\(rest.errors)")
        struct Line: Decodable { let message: Message }
        let texts = try (ended.lines + rest.lines).map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)).message.text }
        #expect(texts == ["1", "2", "3", "4"])
        try await server.stop()
    }

    @Test("I3 R22 a follower is told so too if their role's permissions have changed, which no stream reports")
    func followRole() async throws {
        let server = try await room()
        let (ann, root) = (try await server.socket("ann"), try await server.socket("root", role: .admin))
        try await root.call(PutRole(role: "reader", rank: 1, permissions: [.historyRead]))
        try await root.call(SetMemberRole(channel: "team", users: ["bob"], role: "reader"))
        try await ann.call(UpdateChannel(channel: "team", policy: PolicyChanges(read: .operators)))
        let first = try await ann.call(SendMessage(channel: "team", clientId: "1", text: "1"))
        let following = try RunningCommand(
            "messages follow team --after \(first.seq - 1) --as bob",
            environment: ["ROOST_URL": "http://127.0.0.1:\(server.port)", "ROOST_DATA": server.directory.path])
        try await following.wait(forOutput: #""text":"1""#)
        try await root.call(PutRole(role: "reader", rank: 1, permissions: []))
        try await ann.call(SendMessage(channel: "team", clientId: "2", text: "2"))
        // It isn't notified of the message; the next event would make it skip the message.
        try await server.socket("cid").call(JoinChannel(channel: "team"))
        let ended = try await following.end()
        let advice = "Once you may again, continue with --after \(first.changeSeq)."
        #expect([ended.errors, "\(ended.status)"] == ["Error: You may no longer read team. \(advice) (not_permitted)\n", "1"])
        try await server.stop()
    }

    @Test("I3 I9 R22 a follower gets each message and change as a line of JSON, from where it left off")
    func follow() async throws {
        struct Line: Decodable {
            let channelSeq: Seq
            let message: Message
        }
        let server = try await room()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        func send(_ text: String) async throws -> Message {
            try await ann.call(SendMessage(channel: "team", clientId: ClientID(text), text: text))
        }
        let first = try await send("1")
        // Messages since the position, and then new ones: a change of an earlier message too.
        async let following = run("follow team --after \(first.seq - 1) --count 4 --as bob", server)
        _ = try await send("2")
        try await ann.call(EditMessage(channel: "team", message: first.messageId, text: "one"))
        for number in 3...6 { _ = try await send("\(number)") }
        let run = try await following
        #expect(run.status == 0, "\(run.errors)")
        let lines = try run.lines.map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
        #expect(lines.count == 4 && lines.map(\.channelSeq) == lines.map(\.channelSeq).sorted())
        let texts = lines.map(\.message.text)
        // The first one may have been sent before it was edited, or only as it is now.
        #expect(texts == ["1", "2", "one", "3"] || texts == ["2", "one", "3", "4"] || texts == ["1", "one", "3", "4"])

        let rest = try await self.run("follow team --after \(lines[3].channelSeq) --count 1 --as bob", server)
        #expect(rest.output.contains(#""text":"\#((Int(texts[3]) ?? 0) + 1)""#))
        // For a message deleted for good, its position is printed.
        let position = try await ann.call(GetChannel(channel: "team")).channel.counters.seq
        try await ann.call(PurgeMessage(channel: "team", message: first.messageId))
        let purged = try await self.run("follow team --after \(position) --count 1 --as bob", server)
        #expect(purged.output.contains(#""purged":\#(first.seq)"#) && !purged.output.contains("message"))
        let service = try await server.token("backend", role: .service)
        let refused = try await CommandRun.roost("messages follow team --as bob", on: server, token: service)
        #expect(
            [refused.errors, "\(refused.status)"] == [
                "Error: The token (from ROOST_TOKEN) is for backend, not for bob. A service makes calls on a user's behalf; following needs the user's own token.\n",
                "1",
            ])
        let own = try await CommandRun.roost("messages follow team", on: server, token: service)
        #expect(
            own.errors
                == "Error: backend isn't a member of the channel. A service makes calls on a user's behalf; following needs the user's own token.\n"
        )
        let outside = try await self.run("follow team --as zoe", server)
        #expect(outside.status == 1 && outside.errors.contains("roost members join team joins it. (not_member)"))
        let end = try await ann.call(GetChannel(channel: "team")).channel.counters.seq
        let beyond = try await self.run("follow team --after \(end + 1) --as bob", server)
        #expect(
            [beyond.errors, "\(beyond.status)"] == ["Error: --after must be \(end) or less: the channel ends there.\n", "1"])
        await bob.close()
        try await server.stop()
    }

    @Test(
        "SB-04 R05 a follower of an ephemeral channel gets each later message once, in order, and nothing else")
    func followEphemeral() async throws {
        struct Line: Decodable {
            let channelSeq: Seq
            let message: Message
        }
        let server = try await TestServer()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "talk", type: .group, users: ["bob"], isEphemeral: true))
        func send(_ text: String) async throws -> Message {
            try await ann.call(SendMessage(channel: "talk", clientId: ClientID(text), text: text))
        }
        _ = try await send("before")
        let following = try RunningCommand(
            "messages follow talk --count 2 --as bob",
            environment: ["ROOST_URL": "http://127.0.0.1:\(server.port)", "ROOST_DATA": server.directory.path])
        let note = "talk is ephemeral and keeps no messages: only new ones are printed.\n"
        try await following.wait(forError: note)
        let one = try await send("one")
        // Other events bring no message, and neither does a call for changes.
        try await ann.call(UpdateChannel(channel: "talk", displayName: "Talk"))
        let two = try await send("two")
        let run = try await following.end()
        #expect(run.status == 0 && run.errors == note, "\(run.errors)")
        let lines = try run.lines.map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
        #expect(lines.map(\.message) == [one, two] && lines.map(\.channelSeq) == [one.seq, two.seq])
        let listed = try await CommandRun.roost("messages list talk --as bob", on: server)
        #expect(listed.status == 0 && listed.errors == "talk is ephemeral and keeps no messages.\n", "\(listed.errors)")
        let resumed = try await self.run("follow talk --after \(one.seq) --as bob", server)
        #expect(resumed.status == 1)
        #expect(resumed.errors == "Error: --after can't be used with talk: it is ephemeral and keeps no messages.\n")
        await bob.close()
        try await server.stop()
    }
}
