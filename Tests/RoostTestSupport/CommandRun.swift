import Foundation
import RoostAPI

/// One run of the command line against a server, from its start to its end.
public struct CommandRun: Hashable, Sendable {
    public let status: Int32
    public let output: String
    public let errors: String

    /// - Parameters:
    ///   - words: The command with its arguments, separated by spaces; a space inside an argument is written `_`.
    ///   - token: A token to use; otherwise the command makes one with the server's secret.
    ///   - input: Its standard input.
    public static func roost(
        _ words: String, on server: TestServer, token: String? = nil, input: String = ""
    ) async throws -> CommandRun {
        try await run(
            ServerProcess.binary, words.split(separator: " ").map { String($0).replacing("_", with: " ") },
            environment: [
                "ROOST_URL": server.url.absoluteString, "ROOST_DATA": server.directory.path, "ROOST_TOKEN": token,
            ].compactMapValues { $0 }, input: input)
    }

    /// One run without a server: with the arguments as given, and environment variables.
    public static func roost(
        arguments: [String], environment: [String: String] = [:], within deadline: Duration = .seconds(60)
    ) async throws -> CommandRun {
        try await run(ServerProcess.binary, arguments, environment: environment, within: deadline)
    }

    /// One run of another program, such as `/usr/bin/prlimit`.
    public static func program(
        _ path: String, arguments: [String], within deadline: Duration = .seconds(60)
    ) async throws -> CommandRun {
        try await run(URL(filePath: path), arguments, environment: [:], within: deadline)
    }

    /// One of the programs of the folder Examples, which are built next to these tests.
    public static func example(_ name: String, on server: TestServer) async throws -> CommandRun {
        try await run(
            ServerProcess.program(name), [server.url.absoluteString],
            environment: ["ANN_TOKEN": try await server.token("ann"), "BOB_TOKEN": try await server.token("bob")])
    }

    /// The same with the given arguments and input.
    public static func example(
        _ name: String, arguments: [String], environment: [String: String], input: String
    ) async throws -> CommandRun {
        try await run(
            ServerProcess.program(name), arguments, environment: environment,
            input: input)
    }

    /// One run of a program next to these tests that doesn't end by itself, until its standard error contains a text.
    ///
    /// - Returns: Whether the text arrived in time.
    public static func hasError(
        _ text: String, from name: String, _ arguments: [String], environment: [String: String] = [:],
        within deadline: Duration = .seconds(60)
    ) async throws -> Bool {
        let process = Process()
        process.executableURL = ServerProcess.program(name)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("ROOST_") }
            .merging(environment) { $1 }
        let (stdin, stderr) = (Pipe(), Pipe())
        (process.standardInput, process.standardOutput, process.standardError) = (stdin, FileHandle.nullDevice, stderr)
        let ended = Mailbox<Int32>()
        process.terminationHandler = { ended.put($0.terminationStatus) }
        try process.run()
        let pieces = stderr.fileHandleForReading.pieces()
        var errors = ""
        while !errors.contains(text), let piece = await pieces.next(within: deadline) { errors += piece }
        process.terminate()
        _ = await ended.next()
        return errors.contains(text)
    }

    private static func run(
        _ program: URL, _ arguments: [String], environment: [String: String], input: String = "",
        within deadline: Duration = .seconds(60)
    ) async throws -> CommandRun {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("ROOST_") }
            .merging(environment) { $1 }
        let (stdin, stdout, stderr) = (Pipe(), Pipe(), Pipe())
        (process.standardInput, process.standardOutput, process.standardError) = (stdin, stdout, stderr)
        let ended = Mailbox<Int32>()
        process.terminationHandler = { ended.put($0.terminationStatus) }
        try process.run()
        let (output, errors) = (stdout.fileHandleForReading.pieces(), stderr.fileHandleForReading.pieces())
        try stdin.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try stdin.fileHandleForWriting.close()
        guard let status = await ended.next(within: deadline) else {
            end(process)
            throw Missed(
                """
                the end of \(program.lastPathComponent) \(arguments); \
                it printed: \(await text(of: output)), and said: \(await text(of: errors))
                """)
        }
        return CommandRun(status: status, output: await text(of: output), errors: await text(of: errors))
    }

    /// Kills a program and its child processes: one that doesn't end by itself may also ignore softer signals, and would go on loading the
    /// machine.
    private static func end(_ process: Process) {
        let identifier = process.processIdentifier
        // Foundation starts each program in its own process group, except on Apple's systems.
        if kill(-identifier, SIGKILL) != 0 { kill(identifier, SIGKILL) }
    }

    private static func text(of pieces: Mailbox<String>) async -> String {
        var text = ""
        while let piece = await pieces.next() { text += piece }
        return text
    }

    /// The lines of the output, with one space between columns.
    public var lines: [String] {
        output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
    }
}
