import ArgumentParser
import Foundation
import RoostAPI
import RoostServer

struct Token: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Make a token for a user.")

    @Argument(help: "The user's id.") var user: String
    @Flag(help: "An admin's token.") var admin = false
    @Option(help: "Seconds until the token is over.") var expires = 86_400
    @Option(help: "The data directory.") var data = "roost-data"

    func run() async throws {
        let keys = await TokenKeys(secret: try SecretFile(directory: URL(filePath: data)).read())
        let claims = TokenKeys.Claims(
            user: UserID(user), role: admin ? .admin : .user, expiresAt: Date(timeIntervalSinceNow: TimeInterval(expires)))
        print(try await keys.sign(claims))
    }
}
