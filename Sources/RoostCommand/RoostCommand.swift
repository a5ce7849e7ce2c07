import ArgumentParser
import RoostServer

/// The program: the command line, after a look for a slip that its parser has no word for.
@main
enum Program {
    static func main() async {
        if let slip = RoostCommand.slip(in: Array(CommandLine.arguments.dropFirst())) { RoostCommand.exit(withError: slip) }
        await RoostCommand.main()
    }
}

/// The command line of Roost. It only puts together what the other targets can do.
struct RoostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roost", abstract: "Chat channels for apps: the server, and tools for it.",
        discussion: """
            Begin with `roost demo`, and type what it tells you into a second terminal.

            Completions: roost --generate-completion-script bash > /etc/bash_completion.d/roost (zsh and fish work too).
            """,
        version: RoostVersion.current,
        subcommands: [
            Serve.self, Demo.self, Token.self, Keys.self, ChatCommand.self, Channels.self, Members.self, Messages.self,
            CallCommand.self,
            Doctor.self, Effects.self,
            BackupCommand.self, RestoreCommand.self, Epoch.self, Config.self, Bench.self,
        ])
}

extension RoostCommand {
    /// Returns the refusal of a misspelt subcommand, with the one that is meant; nil for everything else. The parser suggests options only.
    static func slip(in words: [String]) -> ValidationError? {
        var command: any ParsableCommand.Type = Self.self
        var place = "roost"
        for word in words {
            let subcommands = command.configuration.subcommands
            if let known = subcommands.first(where: { name(of: $0) == word }) {
                (command, place) = (known, "\(place) \(word)")
            } else if word.hasPrefix("-") || word == "help" {
                return nil
            } else {
                let names = subcommands.filter { $0.configuration.shouldDisplay }.map { name(of: $0) }
                guard let meant = names.nearest(to: word) else { return nil }
                return ValidationError("There is no command '\(place) \(word.safe())'. Did you mean '\(place) \(meant)'?")
            }
        }
        return nil
    }

    /// A command without a name of its own has its type's, which is one word.
    static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }
}

/// A failure of a command: one line on standard error, and exit code 1.
struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
