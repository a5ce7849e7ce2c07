import ArgumentParser
import Foundation
import RoostAPI

/// `roost token`: creates a token with the secret of a data directory. No server needs to run.
struct Token: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Create a token for a user.",
        discussion: """
            Prints the token and nothing else. Anyone with the token can act as the user until it expires. Keep it secret.

            The roles:
            \(AppRole.allCases.map { "  \($0.rawValue.padded(to: 10))\($0.purpose)" }.joined(separator: "\n"))
            """)

    @Argument(help: "The user's id.") var user: String
    @Option(
        help: ArgumentHelp("The user's role in the app: see above. (default: user)", valueName: "role"), transform: Self.role
    )
    var role = AppRole.user
    @Option(
        help: ArgumentHelp(
            "How long the token is valid: seconds, or like 90s, 45m, 12h, 30d. (default: 1d, or token-lifetime-max if that is less)",
            valueName: "time"),
        transform: Lifetime.read)
    var expires: Lifetime?
    @Option(help: "The display name that the user gets when this token is the first to name them.") var name: String?
    @Option(help: "The server's data directory. Default: roost-data or roost-demo. Environment: ROOST_DATA.") var data: String?
    @Flag(help: "Print JSON: the token, its id, the user, the role and when it expires.") var json = false

    /// How long a token is valid without `--expires`, unless the server allows less.
    private static let lifetimeSeconds = 86_400

    func validate() throws { try PathArgument.refuseEmpty(("--data", data)) }

    func run() async throws {
        var mint = TokenMint.named(orDefault: data)
        let rules = await TokenRules.load(data: mint.directory.relativePath)
        mint.rules = rules
        let longest = rules.lifetimeSecondsMax
        let seconds = expires?.seconds ?? min(Self.lifetimeSeconds, longest)
        guard (1...longest).contains(seconds) else {
            throw ValidationError("--expires must be from 1 second to \(longest) seconds (the setting token-lifetime-max).")
        }
        let id = UUID().uuidString.lowercased()
        let expiresAt = Date(timeIntervalSinceNow: TimeInterval(seconds))
        let token = try await mint.token(for: UserID(user), role: role, displayName: name, expiresAt: expiresAt, id: id)
        guard json else { return try Output.line(token) }
        try Output.json(Minted(token: token, tokenId: id, user: user, role: role, expiresAt: Timestamp(expiresAt)))
    }

    private static func role(_ name: String) throws -> AppRole {
        if let role = AppRole(rawValue: name) { return role }
        throw ValidationError("There is no role \(name). \(Setting.suggestion(for: name, among: AppRole.allCases.map(\.rawValue)))")
    }

    private struct Minted: Encodable {
        let token: String
        /// The id by which it can be revoked.
        let tokenId: String
        let user: String
        let role: AppRole
        let expiresAt: Timestamp
    }
}

extension AppRole {
    /// The purpose of a token with the role.
    var purpose: String {
        switch self {
        case .user: "people"
        case .guest: "visitors: read what is open, neither join nor write"
        case .moderator: "an operator's rights in every channel, except where a type reserves them for members or admins"
        case .admin: "your admin tools: everything that a channel type doesn't forbid"
        case .service: "your backend: as an admin, or for a user (Roost-Act-As)"
        }
    }
}
