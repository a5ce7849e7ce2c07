import ArgumentParser
import RoostServer

/// The command line of Roost.
@main
struct RoostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roost", abstract: "Chat channels for apps: the server, and tools for it.", version: RoostVersion.current,
        subcommands: [Serve.self, Token.self, Bench.self])
}
