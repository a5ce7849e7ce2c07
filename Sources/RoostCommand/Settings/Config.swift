import ArgumentParser
import Foundation

/// `roost config`: shows the settings and where they come from.
struct Config: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the settings.", subcommands: [Show.self], defaultSubcommand: Show.self)

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show each setting, its value and where it came from.",
            discussion: "Flags override the environment, which overrides the file, which overrides the default.")

        @OptionGroup var flags: SettingFlags
        @Flag(help: "Print JSON.") var json = false

        func run() async throws {
            let settings = try await Settings.load(flags)
            if let file = settings.unseenFile {
                throw Failure(
                    "\(file) can't be read: \(String(cString: strerror(EACCES))). Run this as the user who runs the server.".safe())
            }
            let unknown = settings.unknownServers.map(\.warning)
            for warning in settings.warnings + settings.lowered + unknown { Output.note("Warning: \(warning)".safe()) }
            let entries = settings.all
            if json {
                let rows = entries.map { Row(name: $0.setting.name, value: $0.shown, origin: "\($0.origin)") }
                return try Output.json(rows)
            }
            let rows = entries.map { [$0.setting.name, $0.shownWithUnit, "\($0.origin)"] }
            try Output.lines(Output.table([["setting", "value", "from"]] + rows))
        }

        private struct Row: Encodable {
            let name: String
            let value: Setting.Value
            let origin: String
        }
    }
}
