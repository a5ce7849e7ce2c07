import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// `roost channels`, `roost members` and the commands of `roost chat`: the real program against a real server.
@Suite struct CommandLineTests {
    /// People who exist: a token's first use makes its user.
    private func people(_ users: String..., on server: TestServer) async throws {
        for user in users { _ = try await server.request("GET", "/v1/me", token: try await server.token(UserID(user))) }
    }

    @Test("AM-39 AM-40 AM-47 R13 a script makes a channel, adds, promotes, lists and removes members, a line for each")
    func membersByScript() async throws {
        let server = try await TestServer()
        try await people("bob", "cat", on: server)
        var lines: [[String]] = []
        for words in [
            "channels create team --as ann --name The_Team --tag x", "members add team bob cat zed --as ann",
            "members role team bob --role operator --as ann", "members remove team cat dan --as bob",
        ] { lines.append(try await CommandRun.roost(words, on: server).lines.filter { !$0.hasPrefix("created") }) }
        #expect(
            lines == [
                [
                    "channel team", "type community", "name The Team", "public yes", "members 1", "messages 0", "last message -",
                    "tags x",
                    "you are owner", "unread 0",
                ],
                ["bob is now a member", "cat is now a member"],
                ["bob now has the role"], ["cat is no longer a member", "dan isn't a member"],
            ])
        // The refusal of a single user is printed to standard error, like that of the whole call; JSON has it in its place.
        let refused = try await CommandRun.roost("members add team cat zed --as ann", on: server)
        #expect(
            [refused.errors, refused.output] == ["zed was refused: There is no such user. (not_found)\n", "cat is now a member\n"])
        // Giving a non-member a role fails, whereas removing a non-member counts as done.
        let promoted = try await CommandRun.roost("members role team bob zed --role operator --as ann", on: server)
        #expect([promoted.errors, promoted.output] == ["zed isn't a member\n", "bob already has the role\n"])
        #expect(promoted.status == 1)
        let json = try await CommandRun.roost("members add team zed --as ann --json", on: server)
        #expect(json.status == 1 && json.errors == "" && json.output.contains("not_found"))
        _ = try await CommandRun.roost("members remove team cat --as ann", on: server)
        let page = try await CommandRun.roost("members list team --as bob --json", on: server)
        let members = try JSONDecoder().decode(Page<MemberEntry>.self, from: Data(page.output.utf8)).items.map(\.member)
        #expect(members.map { "\($0.userId) \($0.role)" } == ["ann owner", "bob operator"])
        try await server.stop()
    }

    @Test("two people who open a channel at the same moment are both in it, whichever of them made it")
    func chatAtOnce() async throws {
        let server = try await TestServer()
        try await people("ann", "bob", "cat", "dan", on: server)
        try await withThrowingTaskGroup(of: CommandRun.self) { group in
            for (number, user) in ["ann", "bob", "cat", "dan"].enumerated() {
                group.addTask {
                    try await CommandRun.roost("chat general --as \(user) --plain", on: server, input: "hello \(number)\n")
                }
            }
            for try await run in group { #expect(run.status == 0, "\(run.errors)") }
        }
        let page = try await CommandRun.roost("members list general --as ann --json", on: server)
        let members = try JSONDecoder().decode(Page<MemberEntry>.self, from: Data(page.output.utf8)).items
        #expect(Set(members.map(\.member.userId)) == ["ann", "bob", "cat", "dan"])
        let owners = members.filter { $0.member.role == .owner }
        #expect(owners.count == 1)
        try await server.stop()
    }

    @Test("lists of channels and members have a column for states next to the name")
    func states() async throws {
        let server = try await TestServer()
        try await people("bob", on: server)
        for words in [
            "create team --name The_Team", "create talk --type conversation --user bob", "freeze team", "silence team --for ever",
        ] {
            let run = try await CommandRun.roost("channels \(words) --as ann", on: server)
            #expect(run.status == 0, "\(run.errors)")
        }
        let channels = try await CommandRun.roost("channels list --as ann --sort name", on: server).lines
        #expect(
            channels == [
                "channel type members unread last message name state", "talk conversation 2 0 - - distinct",
                "team community 1 0 - The Team frozen, silenced forever",
            ])
        let members = try await CommandRun.roost("members list team --as ann", on: server).lines
        #expect(members.first == "user role online since name state" && members.last?.hasSuffix(" -") == true)
        try await server.stop()
    }

    @Test("exit codes: 0 done, 1 refused with the code on standard error, 64 for a mistake in the command")
    func exitCodes() async throws {
        let server = try await TestServer()
        try await people("bob", on: server)
        var runs: [CommandRun] = []
        for words in [
            "channels create team --as ann --private", "channels create team --as ann", "members join team --as bob",
            "members invite team zed --as ann", "channels update team --as ann", "channels get team --as bob --token nonsense",
            "channels list", "chanels list --as ann", "channels lst --as ann", "channels create x --type nope --as ann",
        ] { runs.append(try await CommandRun.roost(words, on: server)) }
        #expect(
            runs.map { "\($0.status) \($0.errors.split(separator: "\n").first ?? "")" } == [
                "0 ", "1 Error: A channel with this id exists. (already_exists)",
                "1 Error: The channel is private: you need an invitation. (invite_required)",
                "1 zed was refused: There is no such user. (not_found)",
                "64 Error: Nothing to change: give at least one attribute, like --name.",
                "1 Error: The token is not valid. (unauthenticated)",
                "64 Error: No token. Give one with --token or ROOST_TOKEN, or, on the server's machine, a user with --as.",
                "64 Error: There is no command 'roost chanels'. Did you mean 'roost channels'?",
                "64 Error: There is no command 'roost channels lst'. Did you mean 'roost channels list'?",
                "1 Error: --type is nope, which isn't a channel type: see roost channels types. (invalid_argument)",
            ])
        try await server.stop()
    }

    @Test("a refusal names the option of the value, not the field of the protocol")
    func refusedOptions() async throws {
        let server = try await TestServer()
        try await people("bob", on: server)
        _ = try await CommandRun.roost("channels create team --as ann", on: server)
        let welcome = String(repeating: "x", count: Limits.welcomeLength + 1)
        for (words, refusal) in [
            ("channels list --type A", "--type must contain only a to z"), ("channels list --cursor x", "--cursor isn't a cursor"),
            (
                "channels list --membership all --hidden all",
                "--hidden needs the caller's own channels: --membership member. (invalid_argument)\n"
            ),
            ("channels list --membership all --unread", "--unread needs"),
            ("channels list --membership all --user bob", "--user needs"),
            ("channels list --membership all --sort unreadFirst", "--sort needs"),
            ("channels update team --name x --if-metadata-version 2", "--if-metadata-version requires metadata"),
            ("channels silence team --for 999999999999", "--for has a limit of"),
            ("members list team --role A", "--role must contain only a to z"),
            ("members list team --order descending", "--order requires the sort userId"),
            ("members role team bob --role A", "--role must contain only a to z"),
            ("members invite team bob --welcome \(welcome)", "--welcome has a limit of"),
        ] {
            let run = try await CommandRun.roost("\(words) --as ann", on: server)
            #expect(run.status == 1 && run.errors.hasPrefix("Error: \(refusal)"), "\(words.prefix(60)): \(run.errors)")
        }
        try await server.stop()
    }

    @Test("an empty list says which of the requested types and roles don't exist")
    func unknownFilters() async throws {
        let server = try await TestServer()
        _ = try await CommandRun.roost("channels create team --as ann", on: server)
        var errors: [String] = []
        for words in [
            "channels list --type group", "channels list --type group --type groups", "channels list --type groups --json",
            "members list team --role operator", "members list team --role guide", "members search team ann --role guide",
        ] {
            let run = try await CommandRun.roost("\(words) --as ann", on: server)
            #expect(run.status == 0)
            errors.append(run.errors)
        }
        let role = "No such members.\nguide isn't a role: see roost call role.list.\n"
        let types = "No channels.\ngroups isn't a channel type: see roost channels types.\n"
        #expect(errors == ["No channels.\n", types, "", "No such members.\n", role, role])
        try await server.stop()
    }

    @Test("any operation can be called by its fields: its answer is JSON, a refusal has its code and exit code 1, a mistake 64")
    func call() async throws {
        let server = try await TestServer()
        try await people("bob", on: server)
        var runs: [CommandRun] = []
        for words in [
            "call channel.create channel=team displayName=The_Team policy.send=operators --as ann",
            "call message.send channel=team clientId=1 text=Good_morning metadata.mood=3 --as ann",
            "call message.list channel=team limit=1 --as ann", "call member.add channel=team users=bob,zed --as ann",
            "call message.send channel=team clientId=2 text=no --as bob", "call channel.silence channel=team seconds=-2 --as ann",
            "call channel.get channel=team --as ann --token nonsense", "call channels.gett channel=team --as ann",
            "call channel.get chanel=team --as ann", "call message.list channel=team limit=x --as ann", "call", "call --list zz",
        ] { runs.append(try await CommandRun.roost(words, on: server)) }
        #expect(
            runs.map { "\($0.status) \($0.errors.split(separator: "\n").first ?? "")" } == [
                "0 ", "0 ", "0 ", "1 ", "1 Error: Only operators can send in this channel. (send_not_allowed)",
                "1 Error: seconds must be 1 or more, or -1 (forever). (invalid_argument)",
                "1 Error: The token is not valid. (unauthenticated)",
                "64 Error: There is no operation channels.gett. Did you mean channel.get? roost call --list shows all of them.",
                "64 Error: channel.get has no field chanel. Did you mean channel? It has: channel.",
                "64 Error: limit must be a whole number of at most 64 bits; it is 'x'.",
                "64 Error: Missing operation. See roost call --list.",
                "64 Error: No operation has zz in its name. roost call --list shows all of them.",
            ])
        let view = try JSONDecoder().decode(ChannelView.self, from: Data(runs[0].output.utf8))
        #expect(view.channel.displayName == "The Team" && view.channel.policy?.names == [.send])
        let page = try JSONDecoder().decode(MessagePage.self, from: Data(runs[2].output.utf8))
        #expect(page.messages.map(\.text) == ["Good morning"] && page.messages.first?.metadata == ["mood": 3])
        let results = try JSONDecoder().decode(MemberResults.self, from: Data(runs[3].output.utf8)).results
        #expect(results.map(\.outcome) == [.added, .refused])

        // The commands for scripts print the same JSON.
        for (call, command) in [
            ("call type.list", "channels types --json"), ("call member.list channel=team", "members list team --json"),
        ] {
            let pair = [
                try await CommandRun.roost("\(call) --as ann", on: server),
                try await CommandRun.roost("\(command) --as ann", on: server),
            ]
            #expect(
                try pair.map { try JSONDecoder().decode(JSONValue.self, from: Data($0.output.utf8)) }.allSatisfy { $0 != .null })
            #expect(pair[0].output == pair[1].output)
        }
        // A backend in a user's name, and shell completion.
        let token = try await server.token("backend", role: .service)
        let mine = try await CommandRun.roost("call user.me --as ann", on: server, token: token)
        #expect(try JSONDecoder().decode(User.self, from: Data(mine.output.utf8)).userId == "ann")
        let offered = try await CommandRun.roost("---completion call -- positional@0 2 10 roost call message.s", on: server)
        #expect(offered.lines == ["message.send", "message.sendAdmin"])
        try await server.stop()
    }

    @Test("bash completes a field of a call without a space after its =, and a value in place of what follows the =")
    func bashCompletions() async throws {
        // The function is called as bash calls it, which makes three words of `kind=te`.
        let script = #"""
            eval "$("$0" --generate-completion-script bash)"
            compopt() { printf '%s ' "compopt $*"; }
            offer() {
                COMP_LINE="$0 call message.send $1" COMP_WORDS=("$0" call message.send "${@:3}") COMPREPLY=()
                COMP_POINT=${#COMP_LINE} COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
                "${registered[2]}" "$0" "$2" "${COMP_WORDS[COMP_CWORD - 1]}"
                echo "$1: ${COMPREPLY[*]}"
            }
            registered=($(complete -p roost))
            echo "${registered[@]}"
            offer kind=te te kind = te
            offer isSi isSi isSi
            offer isSilent= '' isSilent =
            offer 'isSilent=true cl' cl isSilent = true cl
            """#
        let run = try await CommandRun.program("/usr/bin/env", arguments: ["bash", "-c", script, ServerProcess.binary.path])
        #expect(
            run.lines == [
                "complete -F _roost_without_space roost", "kind=te: text", "compopt -o nospace isSi: isSilent=",
                "isSilent=: true false", "compopt -o nospace isSilent=true cl: clientId=",
            ], "\(run.errors)")
    }

    @Test("SB-12 R41 a backend's token makes channels once for each key, invites in a user's name, and withdraws")
    func backend() async throws {
        let server = try await TestServer()
        let token = try await server.token("backend", role: .service)
        let bob = try await server.token("bob")
        _ = try await server.request(
            "PATCH", "/v1/me/preferences", token: bob, body: #"{"autoAcceptInvitations":false}"#,
            headers: ["Content-Type: application/json"])
        let create = "channels create --type group --key order-7 --as ann"
        let first = try await CommandRun.roost(create, on: server, token: token)
        let again = try await CommandRun.roost(create, on: server, token: token)
        #expect(
            [first.status, again.status] == [0, 0] && first.output == again.output && first.output.contains("you are       owner"))

        let id = first.lines.first?.split(separator: " ").last ?? ""
        var lines: [[String]] = []
        for words in [
            "members invite \(id) bob --welcome Come_in! --as ann", "members invite \(id) bob --as ann",
            "members withdraw \(id) bob --as ann", "members withdraw \(id) bob --as ann",
        ] { lines.append(try await CommandRun.roost(words, on: server, token: token).lines) }
        #expect(lines == [["bob is invited"], ["bob is already invited"], ["bob is no longer invited"], ["bob isn't invited"]])
        try await server.stop()
    }

    @Test("AM-26 AM-33 AM-41 SB-15 SB-26 SB-28 in a plain chat, lines that begin with a slash are commands")
    func plainChat() async throws {
        let server = try await TestServer()
        try await people("ann", on: server)
        let lines = [
            "hi", "/create den --type group ann", "//go", "/hide --archive", "/list hidden", "/unhide", "/leave", "/quit", "never",
        ]
        let run = try await CommandRun.roost("chat team --as bob", on: server, input: lines.joined(separator: "\n"))
        let said = run.output.split(separator: "\n").map { $0.replacing(#/^\[\d\d:\d\d\] /#, with: "") }
        #expect(
            said == [
                "bob: hi", "you are in #den: group, 2 members", "bob: /go", "#den is hidden from your list until you type /unhide",
                "Your hidden channels:", "> #den", "#den is in your list again",
                "you are no longer a member of #den; /list shows your channels, /join ID opens one",
            ])
        #expect([run.status, run.errors.contains("Error") ? 1 : 0] == [0, 0])
        try await server.stop()
    }

    @Test("a chat whose files stay in memory is none of the user's devices, and one with a store is the same device each time")
    func devices() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let environment = ["ROOST_URL": server.url.absoluteString, "ROOST_DATA": server.directory.path]
        let (words, store) = (["chat", "team", "--as", "ann", "--plain"], TemporaryDirectory.make().path)
        for (options, count) in [([], 0), ([], 0), (["--store", store], 1), (["--store", store], 1)] as [([String], Int)] {
            let run = try await CommandRun.roost(arguments: words + options, environment: environment)
            #expect(run.status == 0, "\(run.errors)")
            #expect(try await ann.call(ListDevices()).count == count)
        }
        try await server.stop()
    }

    @Test("a chat enters a conversation, which can't be joined, as the member that the user is")
    func conversations() async throws {
        let server = try await TestServer()
        try await people("bob", on: server)
        let lines = ["/create talk --type conversation bob", "hi", "/join team", "/join talk"]
        let made = try await CommandRun.roost("chat team --as ann", on: server, input: lines.joined(separator: "\n"))
        #expect(made.status == 0, "\(made.errors)")
        #expect(
            made.lines.map { $0.replacing(#/^\[\d\d:\d\d\] /#, with: "") } == [
                "you are in #talk: conversation, 2 members", "ann: hi", "you are in #team: community, 1 member",
                "you are in #talk: conversation, 2 members", "ann: hi",
            ])
        for option in ["", " --join"] {
            let run = try await CommandRun.roost("chat talk --as bob --plain\(option)", on: server)
            #expect(run.status == 0 && run.output.hasSuffix("ann: hi\n"), "\(run.errors)")
        }
        let other = try await CommandRun.roost("chat talk --as cat --plain --join", on: server)
        #expect(other.status == 1 && other.errors.hasSuffix("(not_found)\n"))
        try await server.stop()
    }

    @Test("a plain chat prints each mistake and refusal on a line, continues, and ends with exit code 1")
    func plainMistakes() async throws {
        let server = try await TestServer()
        try await people("cat", on: server)
        let input = "/jion den\n/join\n/join den\n/invite ghost cat spirit\n/accept\n/create x --type nope\nhi\n"
        let run = try await CommandRun.roost("chat team --as bob", on: server, input: input)
        #expect(
            run.errors.split(separator: "\n").filter { $0 != "Online." } == [
                "The channel team was just created.",
                "/jion isn't a command; /help lists them, //jion sends it as a text", "which channel? /join ID",
                "There is no such channel. (not_found)", "ghost   refused: There is no such user. (not_found)",
                "spirit  refused: There is no such user. (not_found)", "you have no pending invitations",
                "type is nope, which isn't a channel type: see roost channels types. (invalid_argument)",
                "Error: 6 lines were refused.",
            ])
        #expect(run.lines.first == "cat is now a member" && run.output.hasSuffix("bob: hi\n") && run.status == 1)
        try await server.stop()
    }

    @Test("a path in the address is a proxy's prefix of all paths, for a chat as for calls")
    func prefix() async throws {
        let server = try await TestServer()
        let proxy = try await TCPProxy.start(targets: [server.port], strippingPrefix: "/roost")
        for path in ["/roost", "/roost/", "/roost/v1/socket"] {
            let address = "http://127.0.0.1:\(proxy.port)\(path)"
            let chat = try await CommandRun.roost("chat team --as ann --plain --url \(address)", on: server, input: "hi\n")
            #expect(chat.status == 0, "\(path): \(chat.errors)")
            let list = try await CommandRun.roost("channels list --as ann --url \(address)", on: server)
            #expect(list.status == 0 && list.output.contains("team"), "\(path): \(list.errors)")
        }
        await proxy.stop()
        try await server.stop()
    }

    @Test("a plain chat without a server says which address it tries")
    func plainChatWithoutServer() async throws {
        let isReported = try await CommandRun.hasError(
            """
            No connection to http://127.0.0.1:1: nothing answers at 127.0.0.1, port 1: Connection refused; trying again in 1 s.
            Start a server with roost serve, or name its address with --url.

            """,
            from: "roost",
            ["chat", "team", "--as", "bob", "--plain", "--token", "t", "--url", "http://127.0.0.1:1"])
        #expect(isReported)
    }

    @Test("a plain chat says once why there is no connection, and ends with that when its input ends without a line")
    func nothingToSend() async throws {
        let words = "chat team --as bob --plain --token t --url http://127.0.0.1:1"
        let reason = "No connection to http://127.0.0.1:1: nothing answers at 127.0.0.1, port 1: Connection refused"
        let empty = try await CommandRun.roost(arguments: words.split(separator: " ").map(String.init))
        #expect(empty.status == 1 && empty.errors.hasSuffix("Error: \(reason).\n"), "\(empty.errors)")
        let chatting = try RunningCommand(words)
        try await chatting.wait(forError: reason)
        // The next attempts follow after about a second and about two more.
        try await Task.sleep(for: .seconds(4))
        try chatting.endInput()
        let run = try await chatting.end()
        let reported = run.errors.split(separator: "\n").filter { $0.hasPrefix(reason) }
        #expect(run.status == 1 && reported.count == 1 && run.errors.hasSuffix("Error: \(reason).\n"), "\(run.errors)")
    }

    @Test("a code that this version doesn't know is printed with its sentence, and a user refused with it fails the command")
    func newerCode() async throws {
        let problem =
            #"{"type":"urn:roost:error:too_tired","title":"Too Tired","status":403,"code":"too_tired","detail":"Not now."}"#
        let results = #"""
            {"results":[{"userId":"bob","outcome":"added"},
             {"userId":"cat","outcome":"refused","error":{"code":"too_tired","message":"Not now."}}]}
            """#
        let stub = try await HTTPStub.start { _, request in
            request.line.hasPrefix("GET") ? .init(403, problem) : .init(200, results)
        }
        let directory = TemporaryDirectory.make()
        func roost(_ words: String) async throws -> CommandRun {
            try await CommandRun.roost(
                arguments: words.split(separator: " ").map(String.init),
                environment: [
                    "ROOST_URL": "http://127.0.0.1:\(stub.port)", "ROOST_DATA": directory.path, "ROOST_TOKEN": "given",
                ])
        }
        let refused = try await roost("channels get team")
        #expect(refused.status == 1 && refused.errors == "Error: Not now. (too_tired) (not_permitted)\n", "\(refused.errors)")
        let called = try await roost("call member.add channel=team users=bob,cat")
        #expect(called.status == 1 && called.output.contains("too_tired"), "\(called.errors)")
        let added = try await roost("members add team bob cat")
        #expect(added.status == 1 && added.output == "bob is now a member\n")
        #expect(added.errors == "cat was refused: Not now. (too_tired) (not_permitted)\n")
        await stub.stop()
    }

    @Test("other users' texts can't control the terminal: names and welcome texts are shown without control characters")
    func safety() async throws {
        let earlier = try await TestServer()
        let ann = try await earlier.token("ann")
        let (bob, json) = (try await earlier.token("bob"), ["Content-Type: application/json"])
        _ = try await earlier.request(
            "PATCH", "/v1/me/preferences", token: bob, body: #"{"autoAcceptInvitations":false}"#, headers: json)
        let name = try await earlier.request(
            "PATCH", "/v1/me", token: ann, body: #"{"displayName":"A\u001b[2Jnn\u202e"}"#, headers: json)
        #expect([String(name.status), name.code] == ["400", "invalid_argument"])
        _ = try await earlier.request(
            "POST", "/v1/channels", token: ann, body: #"{"channel":"team","displayName":"T"}"#, headers: json)
        _ = try await earlier.request(
            "POST", "/v1/channels/team/invitations", token: ann, body: #"{"users":["bob"],"welcome":"w\u001b[31m"}"#, headers: json)
        try await earlier.stop()
        // Such names are refused today, but an older database may have them.
        do {
            let database = try SQLiteDatabase(directory: earlier.directory)
            try database.write(lane: 0) { transaction in
                _ = try transaction.execute("UPDATE users SET display_name = \("A\u{1b}[2Jnn\u{202e}") WHERE user_id = 'ann'")
                _ = try transaction.execute("UPDATE channels SET display_name = \("T\u{1b}]0;x\u{7}")")
            }
        }
        let server = try await TestServer(directory: earlier.directory)
        var output = ""
        for words in ["members invitations --as bob", "members list team --as ann", "channels get team --as ann"] {
            output += try await CommandRun.roost(words, on: server).output
        }
        output += try await CommandRun.roost("chat team --as bob", on: server, input: "/invitations\n/members\n").output
        let dangerous = output.unicodeScalars.filter { $0.properties.generalCategory == .control && $0 != "\n" || $0 == "\u{202E}" }
        #expect(dangerous.isEmpty && output.contains("A[2Jnn") && output.contains("T]0;x") && output.contains("w[31m"))
        try await server.stop()
    }
}
