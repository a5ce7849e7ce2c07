import ArgumentParser
import Foundation
import RoostAPI

/// `roost token`: makes a token, with the secret of a data directory. No server needs to run.
struct Token: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make a token for a user.",
        discussion: "Prints the token and nothing else. Whoever has it is that user until it expires: give it to nobody else.")

    @Argument(help: "The user's id.") var user: String
    @Flag(help: "Make an admin's token: for your own backend, not for people.") var admin = false
    @Option(help: ArgumentHelp("How long the token is good: seconds, or like 90s, 45m, 12h, 30d. (default: 1d)", valueName: "time"))
    var expires: Lifetime?
    @Option(help: "The display name that the user gets when this token is the first to name them.") var name: String?
    @Option(help: "The data directory of the server. Default: \(Setting.data.standard). Environment: ROOST_DATA.") var data: String?
    @Flag(help: "Print JSON: the token, the user, the role and when it expires.") var json = false

    func run() async throws {
        let seconds = expires?.seconds ?? 86_400
        guard (1...Lifetime.secondsMax).contains(seconds) else {
            throw Failure("--expires must be from 1 second to \(Lifetime.secondsMax / 86_400)d.")
        }
        let expiresAt = Date(timeIntervalSinceNow: TimeInterval(seconds))
        let data = data ?? ProcessInfo.processInfo.environment["ROOST_DATA"] ?? "\(Setting.data.standard)"
        let mint = TokenMint(directory: URL(filePath: data, directoryHint: .isDirectory))
        let token = try await mint.token(for: UserID(user), role: admin ? .admin : .user, displayName: name, expiresAt: expiresAt)
        guard json else { return Output.line(token) }
        try Output.json(
            Minted(
                token: token, user: user, role: admin ? .admin : .user,
                expiresAt: Timestamp(milliseconds: Int64(expiresAt.timeIntervalSince1970 * 1000))))
    }

    private struct Minted: Encodable {
        let token: String
        let user: String
        let role: AppRole
        let expiresAt: Timestamp
    }
}
