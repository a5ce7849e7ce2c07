import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// Output that can't be written, and missing terminals.
@Suite struct OutputTests {
    private func shell(_ command: String) async throws -> CommandRun {
        try await CommandRun.program(
            "/bin/bash", arguments: ["-c", command.replacing("roost ", with: "'\(ServerProcess.binary.path)' ")])
    }

    @Test("a command whose output can't be written says so, and one whose reader has exited ends like other tools")
    func command() async throws {
        let server = try await TestServer()
        let token = "roost token ann --data '\(server.directory.path)'"
        let full = try await shell("\(token) >/dev/full")
        #expect(full.status == 1 && full.errors == "Error: can't write: No space left on device\n")
        let closed = try await shell("\(token) >&-")
        #expect(closed.status == 1 && closed.errors == "Error: can't write: Bad file descriptor\n")
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "team"))
        let options = "--as ann --data '\(server.directory.path)' --url \(server.url.absoluteString)"
        for command in ["messages list team --limit 1", "chat team --plain"] {
            // The reader exits before the first line.
            let run = try await shell(
                "(sleep 0.1; seq 1 50) | roost \(command) \(options) 2>/dev/null > >(exec true); echo ${PIPESTATUS[1]}")
            #expect(
                run.output == (command.hasPrefix("chat") ? "141\n" : "0\n") || run.output == "141\n", "\(command): \(run.output)")
        }
        try await server.stop()
    }

    @Test(
        "a server whose output can't be written continues, and says so in its log",
        arguments: [">/dev/full", ">&-", "> >(exec true)"])
    func server(redirection: String) async throws {
        let directory = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let log = directory.appending(path: "log")
        let serving = Process()
        serving.executableURL = URL(filePath: "/bin/bash")
        serving.arguments = [
            "-c",
            "sleep 0.2; exec '\(ServerProcess.binary.path)' serve --port 0 --drain-window 0.2 --data '\(directory.path)/data' \(redirection) 2>'\(log.path)'",
        ]
        serving.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("ROOST_") }
        let ended = Mailbox<Int32>()
        serving.terminationHandler = { ended.put($0.terminationStatus) }
        try serving.run()
        try await eventually("the warning") {
            (try? String(contentsOf: log, encoding: .utf8))?.contains("error=can't write: ") == true
        }
        #expect(serving.isRunning)
        serving.terminate()
        #expect(await ended.next(within: .seconds(30)) == 0)
    }

    @Test("descriptors closed at the start aren't taken for others: a server without standard error works")
    func closedErrors() async throws {
        let directory = TemporaryDirectory.make()
        let serving = try RunningCommand("serve --port 0 --drain-window 0.2 --data \(directory.path)", redirections: "<&- 2>&-")
        try await serving.wait(forOutput: "Next, in another terminal")
        serving.signal(SIGTERM)
        #expect(try await serving.end().status == 0)
    }

    @Test("an untrusted certificate and a port without TLS are reported as such")
    func secureConnections() async throws {
        let server = try await TestServer()
        let plain = try await CommandRun.roost(
            arguments: ["messages", "list", "team", "--token", "t", "--url", "https://127.0.0.1:\(server.port)"])
        #expect(
            plain.errors
                == "Error: Can't make a secure connection to https://127.0.0.1:\(server.port): "
                + "it doesn't speak TLS; perhaps the address should begin with http, not https.\n"
        )
        let chat = try await CommandRun.hasError(
            ": it doesn't speak TLS", from: "roost",
            ["chat", "team", "--as", "ann", "--plain", "--token", "t", "--url", "https://127.0.0.1:\(server.port)"])
        #expect(chat)

        let proxy = try await TLSProxy.start(.localhost, target: server.port)
        let address = "https://localhost:\(proxy.port)"
        let untrusted = try await CommandRun.roost(arguments: ["messages", "list", "team", "--token", "t", "--url", address])
        let reason = "this machine doesn't trust its certificate, or it has expired (or this machine's clock is wrong)"
        #expect(untrusted.errors == "Error: Can't make a secure connection to \(address): \(reason).\n")
        let untrustedChat = try await CommandRun.hasError(
            reason, from: "roost", ["chat", "team", "--as", "ann", "--plain", "--token", "t", "--url", address])
        #expect(untrustedChat)
        #expect(try await proxy.receivedSizeBytes() == 0)
        await proxy.stop()
        try await server.stop()
    }
}
