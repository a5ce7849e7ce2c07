import ArgumentParser

/// `roost serve`: runs a server until it is stopped.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a server.",
        discussion: """
            All data is in one directory. SIGTERM and Ctrl-C shut down gracefully: sockets are closed over the drain window, and everything \
            acknowledged is on disk. In a server that was started in a terminal, SIGHUP does the same, as when the terminal is closed; elsewhere \
            it has no effect.
            """)

    @OptionGroup var flags: SettingFlags
    @Flag(help: "Also create the demo's users and channels, once.") var demo = false
    @Flag(
        help:
            "Report which files are missing, older or another server's, and start anyway. What is lost stays lost. A damaged database is still refused."
    )
    var acceptDataLoss = false

    func run() async throws {
        let settings = try await Settings.load(flags)
        let isDemo = demo
        try await ServerRun(settings: settings, acceptsDataLoss: acceptDataLoss).run { address, isFirst in
            let announcement = Announcement(settings: settings, address: address)
            Announcement.show(isFirst ? announcement.first : announcement.later)
            if isDemo { try await DemoWorld(address: address, settings: settings).make() }
        }
    }
}
