import ArgumentParser
import Foundation
import RoostServer

/// `roost epoch renew`: after a PostgreSQL database lost commits.
struct Epoch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "epoch", abstract: "Manage the epoch, which tells clients whether their cache is still valid.",
        subcommands: [Renew.self])

    struct Renew: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "renew",
            abstract: "Give a PostgreSQL database a new epoch, with all nodes stopped.",
            discussion: """
                For a database that was restored from a backup, or taken over by a standby that lagged behind. Every client discards its cache, \
                keeps its unsent messages and starts over. roost restore does this by itself for SQLite.
                """)

        @OptionGroup var flags: SettingFlags

        func run() async throws {
            let settings = try await Settings.load(flags)
            try settings.requireKnownServers()
            let address = settings.text(.database)
            guard address != "sqlite" else {
                throw Failure(
                    "Name the database with --database postgres://… For SQLite, roost restore sets a new epoch itself.")
            }
            let epoch: String
            do { epoch = "\(try EpochRenewal.run(url: address))" } catch { throw Failure(error) }
            try Output.line("The epoch is now \(epoch). Start the nodes.")
        }
    }
}
