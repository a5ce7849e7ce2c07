import ArgumentParser
import Testing

@testable import RoostCommand

/// Subcommands that are misspelt.
@Suite struct SubcommandTests {
    @Test(
        "a misspelt subcommand is refused with the one that is meant, on every level",
        arguments: [
            ("serv", "There is no command 'roost serv'. Did you mean 'roost serve'?"),
            ("doctr --json", "There is no command 'roost doctr'. Did you mean 'roost doctor'?"),
            ("members lst team", "There is no command 'roost members lst'. Did you mean 'roost members list'?"),
            ("keys ad", "There is no command 'roost keys ad'. Did you mean 'roost keys add'?"),
        ])
    func slips(words: String, message: String) {
        #expect(RoostCommand.slip(in: words.split(separator: " ").map(String.init))?.message == message)
    }

    @Test(
        "what isn't a slip of a subcommand is left to the parser",
        arguments: [
            "", "serve", "help", "help serv", "--version", "--generate-completion-script bash", "frobnicate", "serve --prot 1",
            "channels list --as ann", "call mesage.send", "chat sreve --as ann", "keys", "members add team list",
        ])
    func others(words: String) {
        #expect(RoostCommand.slip(in: words.split(separator: " ").map(String.init))?.message == nil)
    }

    @Test("every command has the name by which the parser knows it")
    func names() {
        var commands: [any ParsableCommand.Type] = [RoostCommand.self]
        var wrong: [String] = []
        while let command = commands.popLast() {
            commands += command.configuration.subcommands
            if RoostCommand.name(of: command) != command._commandName { wrong.append(command._commandName) }
        }
        #expect(wrong == [])
    }
}
