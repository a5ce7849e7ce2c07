import ArgumentParser
import RoostServer

/// The command line of Roost. It only puts together what the other targets can do.
@main
struct RoostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roost", abstract: "Chat channels for apps: the server, and tools for it.",
        discussion: """
            Begin with `roost demo`, and type what it tells you into a second terminal.

            Completions: roost --generate-completion-script bash > /etc/bash_completion.d/roost (zsh and fish work too).
            """,
        version: RoostVersion.current,
        subcommands: [
            Serve.self, Demo.self, Token.self, Keys.self, ChatCommand.self, Channels.self, Members.self, CallCommand.self,
            Doctor.self, Effects.self,
            BackupCommand.self, RestoreCommand.self, Epoch.self, Config.self, Bench.self,
        ])
}

/// A failure of a command: one line on standard error, and exit code 1.
struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
