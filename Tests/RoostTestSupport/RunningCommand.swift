import Foundation

/// A run of the command line that stays alive while a test types into it and reads its output.
public final class RunningCommand {
    private let process = Process()
    private let input = Pipe()
    private let output: Mailbox<String>
    private let errors: Mailbox<String>
    private let ended = Mailbox<Int32>()
    private var printed = ""
    private var complained = ""

    /// Starts a program with some words, separated by spaces.
    ///
    /// - Parameters:
    ///   - program: `roost`, or one of the folder Examples.
    ///   - redirections: Redirections that a shell makes before, such as closed descriptors.
    public init(
        _ words: String, of program: String = "roost", environment: [String: String] = [:], redirections: String = ""
    ) throws {
        let (stdout, stderr) = (Pipe(), Pipe())
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments =
            ["-c", "exec \"$0\" \"$@\" \(redirections)", ServerProcess.program(program).path]
            + words.split(separator: " ").map(String.init)
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("ROOST_") }
            .merging(environment) { $1 }
        (process.standardInput, process.standardOutput, process.standardError) = (input, stdout, stderr)
        process.terminationHandler = { [ended] in ended.put($0.terminationStatus) }
        try process.run()
        (output, errors) = (stdout.fileHandleForReading.pieces(), stderr.fileHandleForReading.pieces())
    }

    deinit { if process.isRunning { process.terminate() } }

    public func type(_ text: String) throws { try input.fileHandleForWriting.write(contentsOf: Data(text.utf8)) }

    public func endInput() throws { try input.fileHandleForWriting.close() }

    /// Sends it a signal.
    public func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Waits until standard output contains a text.
    public func wait(forOutput text: String) async throws {
        while !printed.contains(text) {
            guard let piece = await output.next(within: .seconds(60)) else { throw Missed("'\(text)'; it printed: \(printed)") }
            printed += piece
        }
    }

    /// Waits until standard error contains a text.
    public func wait(forError text: String) async throws {
        while !complained.contains(text) {
            guard let piece = await errors.next(within: .seconds(60)) else { throw Missed("'\(text)'; it said: \(complained)") }
            complained += piece
        }
    }

    /// Waits until it has ended by itself.
    public func end() async throws -> CommandRun {
        guard let status = await ended.next(within: .seconds(60)) else {
            kill(process.processIdentifier, SIGKILL)
            throw Missed("the end of the command; it said: \(complained)")
        }
        while let piece = await output.next() { printed += piece }
        while let piece = await errors.next() { complained += piece }
        return CommandRun(status: status, output: printed, errors: complained)
    }
}
