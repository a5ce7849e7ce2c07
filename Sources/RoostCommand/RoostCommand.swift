import ArgumentParser
import Foundation
import RoostServer

/// The program: the command line, with what its parser has no word for done here.
@main
enum Program {
    static func main() async {
        StandardDescriptors.occupy()
        if let number = ArgumentBytes.firstMalformed {
            CommandMistake(message: "Argument \(number) isn't UTF-8 text.", command: "roost").exit()
        }
        let words = NegativeNumbers.attached(Array(CommandLine.arguments.dropFirst()))
        if let mistake = RoostCommand.slip(in: words) { mistake.exit() }
        var command: any ParsableCommand
        do { command = try await RoostCommand.asyncParseAsRoot(words) } catch { RoostCommand.exit(withError: error) }
        do {
            if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
        } catch let error as ValidationError {
            // The parser knows the command of what it refuses itself. Of what a command refuses while it runs, it would show the root's help.
            CommandMistake(message: error.message, command: RoostCommand.place(of: type(of: command)) ?? "roost").exit()
        } catch let error as Output.Unwritable where error.isClosedPipe {
            StandardDescriptors.endByClosedPipe()
        } catch {
            RoostCommand.exit(withError: error)
        }
    }
}

/// A mistake in a command, told with where its help is, and exit code 64.
struct CommandMistake: Hashable {
    let message: String
    /// `roost members`
    let command: String

    func exit() -> Never {
        Output.note("Error: \(message)\n  See '\(command) --help' for more information.")
        Foundation.exit(EX_USAGE)
    }
}

/// The arguments as the program was started with them. `CommandLine.arguments` has other text in place of what isn't UTF-8: a token would be made
/// for another user.
enum ArgumentBytes {
    /// The number of the first argument that isn't UTF-8, counted from 1; nil if all of them are.
    static var firstMalformed: Int? {
        (0..<Int(CommandLine.argc)).dropFirst().first { index in
            CommandLine.unsafeArgv[index].map { String(validatingCString: UnsafePointer($0)) == nil } ?? false
        }
    }
}

/// Negative numbers after an option. The parser takes `-1` for an option of its own and says that the value is missing.
enum NegativeNumbers {
    /// Returns the words with `--option -1` as `--option=-1`, up to a `--`.
    static func attached(_ words: [String]) -> [String] {
        // What a shell asks for while one types stays as it is.
        guard words.first?.hasPrefix("---") != true else { return words }
        var result: [String] = []
        for (index, word) in words.enumerated() {
            if word == "--" { return result + words[index...] }
            if let option = result.last, option.hasPrefix("--"), !option.contains("="), word.wholeMatch(of: /-[0-9]+[smhd]?/) != nil
            {
                result[result.count - 1] = "\(option)=\(word)"
            } else {
                result.append(word)
            }
        }
        return result
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
    static func slip(in words: [String]) -> CommandMistake? {
        if words.first == "help" { return unknownTopic(words.dropFirst()) }
        var command: any ParsableCommand.Type = Self.self
        var place = "roost"
        for word in words {
            let subcommands = command.configuration.subcommands
            if let known = subcommands.first(where: { name(of: $0) == word }) {
                (command, place) = (known, "\(place) \(word)")
            } else if word.hasPrefix("-") || word == "help" {
                return nil
            } else {
                guard let meant = nearest(to: word, among: subcommands) else { return nil }
                return absence(of: word, in: place, meant: meant)
            }
        }
        return nil
    }

    /// Returns the refusal of help about a command that doesn't exist; nil for everything else. The parser shows the root's help.
    private static func unknownTopic(_ words: ArraySlice<String>) -> CommandMistake? {
        var command: any ParsableCommand.Type = Self.self
        var place = "roost"
        for word in words {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, !word.hasPrefix("-"), word != "help" else { return nil }
            guard let known = subcommands.first(where: { name(of: $0) == word }) else {
                return absence(of: word, in: place, meant: nearest(to: word, among: subcommands))
            }
            (command, place) = (known, "\(place) \(word)")
        }
        return nil
    }

    private static func nearest(to word: String, among subcommands: [any ParsableCommand.Type]) -> String? {
        subcommands.filter { $0.configuration.shouldDisplay }.map { name(of: $0) }.nearest(to: word)
    }

    private static func absence(of word: String, in place: String, meant: String?) -> CommandMistake {
        let advice = meant.map { " Did you mean '\(place) \($0)'?" } ?? ""
        return CommandMistake(message: "There is no command '\(place) \(word.safe())'.\(advice)", command: place)
    }

    /// Returns a command as it is typed: `roost members add`. Nil for one that isn't a part of this.
    static func place(of command: any ParsableCommand.Type, in root: any ParsableCommand.Type = Self.self) -> String? {
        if command == root { return name(of: root) }
        return root.configuration.subcommands.lazy.compactMap { place(of: command, in: $0) }.first.map { "\(name(of: root)) \($0)" }
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
