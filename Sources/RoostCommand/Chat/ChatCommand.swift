import ArgumentParser
import Foundation
import Logging
import Roost

/// `roost chat`: talks in a channel, through the SDK that apps use.
struct ChatCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chat", abstract: "Talk in a channel.",
        discussion: """
            On the server's machine it makes its own token from the data directory; anywhere else, give it one with --token or ROOST_TOKEN.

            In a terminal it takes the whole screen; /help tells its commands. In a pipe, or with --plain, it sends each line of standard input \
            and prints each message as a line, and ends when its input has ended and the server has everything.
            """)

    @Argument(help: "The channel's id. It is made when it doesn't exist.") var channel: String
    @Option(name: .customLong("as"), help: "The id of the user who talks.") var user: String
    @Option(help: "The server's address. Default: http://127.0.0.1:8080. Environment: ROOST_URL.") var url: String?
    @Option(help: "The server's data directory, for its secret; else roost-data or roost-demo. Environment: ROOST_DATA.")
    var data: String?
    @Option(help: "A token for the user, made by roost token. Environment: ROOST_TOKEN.") var token: String?
    @Option(help: "Where the client keeps messages for offline use. On a screen, a folder of your home; in a pipe, memory.")
    var store: String?
    @Flag(help: "Print lines instead of a screen.") var plain = false
    @Flag(help: "Only join the channel; don't make one that doesn't exist.") var join = false

    func run() async throws {
        let (user, channel) = (UserID(user), ChannelID(channel))
        do {
            try user.validate(field: "The user's id")
            try channel.validate(field: "The channel's id")
        } catch {
            throw Failure(error.message)
        }
        let environment = ProcessInfo.processInfo.environment
        guard let url = URL(string: url ?? environment["ROOST_URL"] ?? "http://127.0.0.1:8080"),
            ["http", "https", "ws", "wss"].contains(url.scheme),
            url.host() != nil
        else {
            throw Failure("--url must be like http://127.0.0.1:8080 or https://chat.example.com.")
        }
        let isPlain = plain || isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0
        let files = try ClientFiles(user: user, url: url, directory: store, isOptional: isPlain)
        defer { withExtendedLifetime(files) {} }

        // A screen has a place of its own for what goes wrong; lines of a log would be written across it.
        var logger = Logger(label: "roost.chat", factory: StandardErrorLog.init(label:))
        logger.logLevel = isPlain ? .error : .critical
        let chat = Chat(
            url: url, user: user, configuration: .init(directory: files.directory, logger: logger),
            token: try tokenProvider(for: user))
        let room = await Room(channel, in: chat, createsChannel: !join)
        if isPlain { try await PlainChat(room).run() } else { try await ScreenChat(room).run() }
        await chat.disconnect()
    }

    private func tokenProvider(for user: UserID) throws -> @Sendable () async throws -> String {
        let environment = ProcessInfo.processInfo.environment
        if let token = token ?? environment["ROOST_TOKEN"] { return { token } }
        let mint =
            (data ?? environment["ROOST_DATA"]).map { TokenMint(directory: URL(filePath: $0, directoryHint: .isDirectory)) }
            ?? .usual()
        guard let mint else {
            throw Failure(
                "There is no server's data directory here, to make a token from. Start one (roost demo), name its directory with --data, or give a token with --token."
            )
        }
        return { try await mint.token(for: user) }
    }
}
