import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// Tokens that commands make with a server's secret: they follow the server's rules, and a refusal is reported with its actual reason.
@Suite struct MintedTokenTests {
    private static let issuer = "https://login.example.com"

    /// A server with its own rules for tokens. Its configuration file has them too if commands should know them.
    private func server(writesFile: Bool) async throws -> TestServer {
        let server = try await TestServer(options: AppOptions(tokenLifetimeSecondsMax: 60)) {
            $0.tokenIssuer = Self.issuer
            $0.tokenAudience = "chat"
        }
        if writesFile {
            let text = #"{"token-issuer":"\#(Self.issuer)","token-audience":"chat","token-lifetime-max":60}"#
            try Data(text.utf8).write(to: server.directory.appending(path: "roost.json"))
        }
        return server
    }

    @Test("a token that a command makes has the issuer, audience and lifetime required by the server's settings")
    func rules() async throws {
        let server = try await server(writesFile: true)
        let call = try await CommandRun.roost("call user.me --as ann", on: server)
        #expect(call.status == 0, "\(call.errors)")
        let effects = try await CommandRun.roost("effects --as root --admin", on: server)
        #expect(effects.status == 0, "\(effects.errors)")
        let chat = try await CommandRun.roost("chat team --as ann --plain", on: server, input: "hi\n")
        #expect(chat.status == 0, "\(chat.errors)")
        for words in ["token ann", "token ann --expires 60"] {
            let token = try await CommandRun.roost(words, on: server).output.trimmingCharacters(in: .whitespacesAndNewlines)
            #expect(try await server.request("GET", "/v1/me", token: token).status == 200, "\(words)")
        }
        let long = try await CommandRun.roost("token ann --expires 61", on: server)
        #expect(long.status == 64 && long.errors.contains("--expires must be from 1 second to 60 seconds"), "\(long.errors)")
        try await server.stop()
    }

    @Test("a demo is filled whatever its rules for tokens")
    func demo() async throws {
        let directory = TemporaryDirectory.make()
        let demo = try RunningCommand(
            "demo --port 0 --drain-window 0.2 --data \(directory.path) --token-issuer me --token-audience us --token-lifetime-max 60"
        )
        try await demo.wait(forOutput: "ann, bob and cat are here")
        demo.signal(SIGTERM)
        #expect(try await demo.end().status == 0)
    }

    @Test("a demo that can't be filled, for want of connections, prints its address nevertheless")
    func smallDemo() async throws {
        let directory = TemporaryDirectory.make()
        let demo = try RunningCommand("demo --port 0 --drain-window 0.2 --connections-max 2 --data \(directory.path)")
        try await demo.wait(forOutput: "address   http://127.0.0.1:")
        demo.signal(SIGTERM)
        #expect(try await demo.end().status == 0)
    }

    private func runDemo(on directory: URL) async throws {
        let demo = try RunningCommand("demo --port 0 --drain-window 0.2 --data \(directory.path)")
        try await demo.wait(forOutput: "ann, bob and cat are here")
        demo.signal(SIGTERM)
        #expect(try await demo.end().status == 0)
    }

    /// What ann does or sees in the directory of a demo, while a server runs there.
    private func asAnn<Value>(on directory: URL, _ body: (RawSocket) async throws -> Value) async throws -> Value {
        let server = try await WatchedServer.start(directory: directory)
        let socket = try await server.socket("ann")
        let value = try await body(socket)
        await socket.close()
        try await server.stop()
        return value
    }

    @Test(
        "a demo restarts as people left it: a deleted channel stays deleted, a removed member stays away, and no message is repeated"
    )
    func changedDemo() async throws {
        let directory = TemporaryDirectory.make()
        try await runDemo(on: directory)
        try await asAnn(on: directory) { ann in
            try await ann.call(DeleteChannel(channel: "random"))
            try await ann.call(RemoveMembers(channel: "general", users: ["bob"]))
        }
        try await runDemo(on: directory)
        let (members, texts) = try await asAnn(on: directory) { ann in
            (
                try await ann.call(ListMembers(channel: "general")).items.map(\.member.userId),
                try await ann.call(ListMessages(channel: "general", limit: 100)).messages.map(\.text)
            )
        }
        #expect(Set(members) == ["ann", "cat"])
        #expect(texts.filter { $0.hasPrefix("Hello! ") }.count == 1)
    }

    @Test("the next demo completes what a killed one didn't get to")
    func unfinishedDemo() async throws {
        let directory = TemporaryDirectory.make()
        try await asAnn(on: directory) { ann in
            _ = try await ann.call(CreateChannel(channel: "general"))
        }
        try await runDemo(on: directory)
        let members = try await asAnn(on: directory) { ann in
            try await ann.call(ListMembers(channel: "general")).items.map(\.member.userId)
        }
        #expect(Set(members) == ["ann", "bob", "cat"])
    }

    @Test(
        "a refused claim names the setting that the command doesn't know; only a refused signature blames the directory"
    )
    func refusals() async throws {
        let server = try await server(writesFile: false)
        let file = server.directory.appending(path: "roost.json")
        func errors(_ rules: String) async throws -> String {
            try Data(rules.utf8).write(to: file)
            let run = try await CommandRun.roost("call user.me --as ann", on: server)
            #expect(run.status == 1 && run.output == "")
            return run.errors.replacing(server.directory.path, with: "DATA")
        }
        let found = [
            try await errors("{}"),
            try await errors(#"{"token-lifetime-max":60}"#),
            try await errors(#"{"token-lifetime-max":60,"token-issuer":"\#(Self.issuer)"}"#),
        ]
        func advice(_ setting: String, _ variable: String) -> String {
            "(unauthenticated) The server's \(setting) isn't the one that this command uses: put it into DATA/roost.json, or set \(variable).\n"
        }
        #expect(
            found == [
                "Error: The token is valid for too long: a token may have at most 60 s from its iat, or from now, to its exp. "
                    + advice("token-lifetime-max", "ROOST_TOKEN_LIFETIME_MAX"),
                "Error: The token has another issuer. " + advice("token-issuer", "ROOST_TOKEN_ISSUER"),
                "Error: The token is for another audience. " + advice("token-audience", "ROOST_TOKEN_AUDIENCE"),
            ])

        let other = try await TestServer()
        // A chat and `messages follow` report it too, and once.
        for words in ["call user.me --as ann", "chat team --as ann --plain", "messages follow team --as ann"] {
            let run = try await CommandRun.roost(
                arguments: words.split(separator: " ").map(String.init),
                environment: ["ROOST_URL": server.url.absoluteString, "ROOST_DATA": other.directory.path])
            #expect(
                run.errors == """
                    Error: The server at \(server.url.absoluteString) doesn't accept tokens made from \(other.directory.path). \
                    Name its data directory with --data. (unauthenticated)

                    """, "\(words)")
            #expect(run.status == 1)
        }
        try await other.stop()
        try await server.stop()
    }

    @Test("send --lines makes another token if its own has expired, and sends the refused line again")
    func expiredWhileSending() async throws {
        let directory = TemporaryDirectory.make()
        _ = try SecretFile(directory: directory).readOrMake()
        let message = Message(
            messageId: MessageID(rawValue: 1), channelId: "team", seq: 1, changeSeq: 1, sender: "ann", clientId: "1", text: "sent",
            createdAt: Timestamp(milliseconds: 1_800_000_000_000))
        let sent = String(decoding: try JSONEncoder().encode(message), as: UTF8.self)
        let expired = #"""
            {"type":"urn:roost:error:token_expired","title":"Token Expired","status":401,"code":"token_expired","detail":"The token has expired."}
            """#
        /// Sends three lines, where some requests find the token expired; returns the requests' bodies and how the command ended.
        func send(
            expiredAt expiredRequests: Set<Int>, token: String? = nil
        ) async throws -> (run: CommandRun, bodies: [String]) {
            let stub = try await HTTPStub.start { number, _ in
                expiredRequests.contains(number) ? .init(401, expired) : .init(200, sent)
            }
            let sending = try RunningCommand(
                "messages send team --lines" + (token == nil ? " --as ann" : ""),
                environment: [
                    "ROOST_URL": "http://127.0.0.1:\(stub.port)", "ROOST_DATA": directory.path, "ROOST_TOKEN": token,
                ].compactMapValues { $0 })
            try sending.type("one\ntwo\nthree\n")
            try sending.endInput()
            let run = try await sending.end()
            await stub.stop()
            return (run, stub.requests.map(\.body))
        }
        let mended = try await send(expiredAt: [2])
        #expect(mended.run.status == 0, "\(mended.run.errors)")
        try #require(mended.bodies.count == 4)
        #expect(mended.bodies[1].contains("two") && mended.bodies[1] == mended.bodies[2])
        // If another token doesn't help, or the token was given, the command gives up.
        let lasting = try await send(expiredAt: [1, 2, 3, 4])
        let given = try await send(expiredAt: [1, 2, 3, 4], token: "given")
        for (refused, count) in [(lasting, 2), (given, 1)] {
            #expect(refused.run.status == 1 && refused.bodies.count == count)
            #expect(refused.run.errors == "Error: line 1: The token has expired. (token_expired)\n")
        }
    }

    @Test("a new user whose id looks like another's is refused for that, not for the directory")
    func lookalike() async throws {
        let server = try await TestServer { $0.options.confusableNames = .refused }
        #expect(try await CommandRun.roost("call user.me --as ann", on: server).status == 0)
        // The first letter is Cyrillic.
        let run = try await CommandRun.roost("call user.me --as аnn", on: server)
        #expect(run.status == 1 && run.errors.hasPrefix("Error: The token names no valid user: "), "\(run.errors)")
        #expect(run.errors.hasSuffix("(unauthenticated)\n") && !run.errors.contains("--data"), "\(run.errors)")
        try await server.stop()
    }
}
