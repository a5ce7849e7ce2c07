import ArgumentParser

/// `roost demo`: a server with users and channels, to explore.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a server with demo users and channels.",
        discussion: "Like `roost serve`, with its own data directory, in which ann, bob and cat have begun to chat.")

    static let standardData = "roost-demo"

    @OptionGroup var flags: SettingFlags

    func run() async throws {
        let settings = try await Settings.load(flags, standardData: Self.standardData)
        try await ServerRun(settings: settings).run { address, isFirst in
            let announcement = Announcement(settings: settings, address: address)
            do { try await DemoWorld(address: address, settings: settings).make() } catch {
                // The server runs anyway, and its address must be known.
                Announcement.show(isFirst ? announcement.first : announcement.later)
                throw error
            }
            Announcement.show(announcement.demo(isFirst: isFirst))
        }
    }
}

extension Announcement {
    /// Two commands for two terminals: the shortest way to see two people chat.
    func demo(isFirst: Bool) -> [String] {
        (isFirst ? Array(first.prefix { !$0.hasPrefix("Next") }) : later + [""]) + [
            "ann, bob and cat are here, in the channels general, random and support.",
            "Next, in two other terminals:", "",
            "  \(Self.program) chat general --as ann\(options)",
            "  \(Self.program) chat general --as bob\(options)", "",
            "Ctrl-C stops the server.",
        ]
    }
}
