import ArgumentParser
import Foundation
import RoostServer

/// The program: the command line, with additions that its parser lacks.
@main
enum Program {
    static func main() async {
        StandardDescriptors.occupy()
        if let number = ArgumentBytes.firstMalformed {
            UsageError(message: "Argument \(number) isn't UTF-8 text.", command: "roost").exit()
        }
        let words = NegativeNumbers.attached(Array(CommandLine.arguments.dropFirst()))
        if let mistake = RoostCommand.misspelledSubcommand(in: words) { mistake.exit() }
        var command: any ParsableCommand
        do { command = try await RoostCommand.asyncParseAsRoot(words) } catch {
            // The parser throws what it was asked to print, too.
            guard let script = CompletionScript.adapted(RoostCommand.fullMessage(for: error)) else {
                RoostCommand.exit(withError: error)
            }
            RoostCommand.exit(withError: CleanExit.message(script))
        }
        do {
            if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
        } catch let error as ValidationError {
            // For its own errors the parser knows the command. For errors of a running command it would show the root's help.
            UsageError(message: error.message, command: RoostCommand.place(of: type(of: command)) ?? "roost").exit()
        } catch let error as Output.Unwritable where error.isClosedPipe {
            StandardDescriptors.endByClosedPipe()
        } catch {
            RoostCommand.exit(withError: error)
        }
    }
}

/// A usage error, reported with a pointer to the help, and exit code 64.
struct UsageError: Hashable {
    let message: String
    /// `roost members`
    let command: String

    func exit() -> Never {
        Output.note("Error: \(message)\n  See '\(command) --help' for more information.")
        Foundation.exit(EX_USAGE)
    }
}

/// The program's raw arguments. `CommandLine.arguments` replaces text that isn't UTF-8: a token would be made for another user.
enum ArgumentBytes {
    /// The number of the first argument that isn't UTF-8, counted from 1; nil if all of them are.
    static var firstMalformed: Int? {
        (0..<Int(CommandLine.argc)).dropFirst().first { index in
            CommandLine.unsafeArgv[index].map { String(validatingCString: UnsafePointer($0)) == nil } ?? false
        }
    }
}

/// Negative numbers after an option. The parser takes `-1` for another option and reports a missing value.
enum NegativeNumbers {
    /// Returns the words with `--option -1` as `--option=-1`, up to a `--`.
    static func attached(_ words: [String]) -> [String] {
        // A shell's completion requests stay unchanged.
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

/// The command line of Roost. It only combines the other targets' functions.
struct RoostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roost", abstract: "Chat channels for apps: the server, and tools for it.",
        discussion: """
            Begin with `roost demo`, and run the commands that it prints in a second terminal.

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
    /// Returns the error for a misspelt subcommand, with the intended one; nil for everything else. The parser only suggests options.
    static func misspelledSubcommand(in words: [String]) -> UsageError? {
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

    /// Returns the error for help about a command that doesn't exist; nil for everything else. The parser would show the root's help.
    private static func unknownTopic(_ words: ArraySlice<String>) -> UsageError? {
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

    private static func absence(of word: String, in place: String, meant: String?) -> UsageError {
        let advice = meant.map { " Did you mean '\(place) \($0)'?" } ?? ""
        return UsageError(message: "There is no command '\(place) \(word.safe())'.\(advice)", command: place)
    }

    /// Returns a command as typed: `roost members add`. Nil for one that isn't part of this.
    static func place(of command: any ParsableCommand.Type, in root: any ParsableCommand.Type = Self.self) -> String? {
        if command == root { return name(of: root) }
        return root.configuration.subcommands.lazy.compactMap { place(of: command, in: $0) }.first.map { "\(name(of: root)) \($0)" }
    }

    /// A command without its own name has that of its type, which is one word.
    static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }
}

/// A failure of a command: one line on standard error, and exit code 1.
struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
