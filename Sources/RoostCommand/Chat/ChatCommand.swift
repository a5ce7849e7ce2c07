import ArgumentParser
import Foundation
import Logging
import Roost
import RoostAPI

/// `roost chat`: chats in a channel, through the SDK that apps use.
struct ChatCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chat", abstract: "Chat in a channel.",
        discussion: """
            On the server's machine it makes its own token from the data directory; anywhere else, give it one with --token or ROOST_TOKEN.

            In a terminal it takes the whole screen. In a pipe, in a terminal that can't move its cursor (TERM is dumb or missing), or with --plain, it sends \
            each line of standard input and prints each message \
            as a line, and ends when its input ends and the server has received everything.

            A line that begins with a slash is a command, like /join random or /invite bob: /help lists them all. Two slashes begin a message that \
            begins with one.
            """)

    @Argument(help: "The channel's id. It is created if it doesn't exist.") var channel: String
    @Option(name: .customLong("as"), help: ArgumentHelp("The id of the user who chats.", valueName: "user")) var user: String
    @OptionGroup var server: ServerOptions
    @Option(
        help:
            "Where the client keeps messages for offline use. On a screen, a folder in $XDG_STATE_HOME or ~/.local/state; in a pipe, memory."
    )
    var store: String?
    @Flag(help: "Print lines instead of a screen.") var plain = false
    @Flag(help: "Only join the channel; don't create it if it doesn't exist.") var join = false

    func validate() throws { try PathArgument.refuseEmpty(("--store", store)) }

    func run() async throws {
        let (user, channel) = (UserID(user), ChannelID(channel))
        do {
            try user.validate(field: "The user's id")
            try channel.validate(field: "The channel's id")
        } catch {
            throw ValidationError(error.message)
        }
        let url = try server.socketAddress()
        let isPlain = plain || !Self.hasScreen
        let files = try ClientFiles(user: user, url: url, directory: store, isOptional: isPlain)
        defer { withExtendedLifetime(files) {} }

        // A screen shows failures itself; log lines would be written across it.
        var logger = Logger(label: "roost.chat", factory: StandardErrorLog.init(label:))
        logger.logLevel = isPlain ? .error : .critical
        let chat = Chat(
            url: url, user: user,
            configuration: .init(
                storage: files.directory.map(Chat.Storage.directory) ?? .inMemory,
                // Without files each run would be another device, and a script's runs would push out the user's own.
                device: files.directory == nil ? nil : .current, logger: logger),
            token: try await tokenProvider(for: user))
        let room = await Room(channel, in: chat, createsChannel: !join)
        var farewell: [String] = []
        if isPlain {
            let watch = try ConnectionWatch(to: server, announcesFirst: true)
            try await PlainChat(room, watch: watch).run()
        } else {
            farewell = try await ScreenChat(
                room, memoryReason: files.memoryReason, advice: StatusLine.noServer(server.startCommand)
            ).run()
        }
        await chat.disconnect()
        for line in farewell { Output.note(line.safe()) }
    }

    /// Whether there is a terminal that can show a full screen.
    private static var hasScreen: Bool {
        let terminal = ProcessInfo.processInfo.variable("TERM") ?? "dumb"
        return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && terminal != "dumb"
    }

    private func tokenProvider(for user: UserID) async throws -> @Sendable () async throws -> String {
        if let token = try server.givenToken { return { token } }
        return try await server.mint().provider(for: user)
    }
}
