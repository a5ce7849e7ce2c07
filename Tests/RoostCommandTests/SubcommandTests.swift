import ArgumentParser
import Testing

@testable import RoostCommand

/// Misspelt subcommands.
@Suite struct SubcommandTests {
    @Test(
        "a misspelt subcommand is refused with the intended one, on every level",
        arguments: [
            ("serv", "There is no command 'roost serv'. Did you mean 'roost serve'?"),
            ("doctr --json", "There is no command 'roost doctr'. Did you mean 'roost doctor'?"),
            ("members lst team", "There is no command 'roost members lst'. Did you mean 'roost members list'?"),
            ("keys ad", "There is no command 'roost keys ad'. Did you mean 'roost keys add'?"),
            ("help serv", "There is no command 'roost serv'. Did you mean 'roost serve'?"),
            ("help frobnicate", "There is no command 'roost frobnicate'."),
            ("help members lst", "There is no command 'roost members lst'. Did you mean 'roost members list'?"),
        ])
    func slips(words: String, message: String) {
        let misspelledSubcommand = RoostCommand.misspelledSubcommand(in: words.split(separator: " ").map(String.init))
        #expect(misspelledSubcommand?.message == message)
        // The error names the help of the command whose subcommand is misspelt.
        #expect(misspelledSubcommand.map { message.contains("'\($0.command) ") } == true)
    }

    @Test(
        "anything but a misspelt subcommand is left to the parser",
        arguments: [
            "", "serve", "help", "help serve", "help members list", "help --help", "--version", "--generate-completion-script bash",
            "frobnicate", "serve --prot 1",
            "channels list --as ann", "call mesage.send", "chat sreve --as ann", "keys", "members add team list",
        ])
    func others(words: String) {
        #expect(RoostCommand.misspelledSubcommand(in: words.split(separator: " ").map(String.init))?.message == nil)
    }

    @Test("a command is recognised by its typed words")
    func places() {
        let places = [RoostCommand.self, Serve.self, Members.Add.self, Keys.List.self, Config.Show.self].map {
            RoostCommand.place(of: $0)
        }
        #expect(places == ["roost", "roost serve", "roost members add", "roost keys list", "roost config show"])
    }

    @Test(
        "a negative number after an option is its value",
        arguments: [
            ("channels create c --max-members -1", "channels create c --max-members=-1"),
            ("channels silence c --for -1 --as ann", "channels silence c --for=-1 --as ann"),
            ("messages list c --limit -20", "messages list c --limit=-20"), ("token ann --expires -5m", "token ann --expires=-5m"),
            ("messages list c --limit=3 -1", "messages list c --limit=3 -1"), ("help -1", "help -1"),
            ("members add c -- --for -1", "members add c -- --for -1"),
            ("---completion x -- --for -1", "---completion x -- --for -1"),
            ("token ann -h", "token ann -h"),
        ])
    func negativeNumbers(typed: String, read: String) {
        #expect(NegativeNumbers.attached(typed.split(separator: " ").map(String.init)).joined(separator: " ") == read)
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
