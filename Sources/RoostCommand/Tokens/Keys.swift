import ArgumentParser
import Foundation
import RoostServer

/// `roost keys`: the keys that a server's tokens are signed with. A running server applies a change within a second or two.
struct Keys: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List, add and remove the keys that tokens are signed with.",
        discussion: """
            To rotate without downtime: add a key, copy token-keys.json to the data directories of the other nodes if there are any, have \
            roost token and your backend sign with the new key (its name goes into the header kid), and remove the old one when its last \
            token has expired. A running server applies each step within two seconds.

            No command prints a secret: they are in token-keys.json and token-secret, readable by their owner only.
            """,
        subcommands: [List.self, Add.self, Use.self, Remove.self], defaultSubcommand: List.self)

    struct Directory: ParsableArguments {
        @Option(help: "The server's data directory. Default: roost-data or roost-demo. Environment: ROOST_DATA.") var data: String?

        func validate() throws { try PathArgument.refuseEmpty(("--data", data)) }

        /// - Throws: A ``Failure`` if no server has run.
        func ring() throws -> TokenKeyRing {
            let mint = TokenMint.named(orDefault: data)
            _ = try mint.secretFile()
            // Another user's directory appears to be empty.
            guard access(mint.directory.path, R_OK | X_OK) == 0 else {
                throw Failure(
                    "\(mint.directory.path) can't be read: \(String(cString: strerror(errno))). Run this as the user who runs the server."
                        .safe())
            }
            return TokenKeyRing(directory: mint.directory)
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the keys, without their secrets.")
        @OptionGroup var directory: Directory
        @Flag(help: "Print JSON.") var json = false

        func run() async throws {
            let entries = try await directory.ring().reportingFailures { try await $0.entries() }
            if json { return try Output.json(entries) }
            let rows = entries.map { [$0.kid.safe(), $0.algorithm, $0.signs ? "roost token signs with it" : ""] }
            try Output.lines(Output.table([["kid", "alg", ""]] + rows))
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add a new HS256 key, and print its name.",
            discussion: "Tokens that name it are accepted from then on. Nothing is signed with it until roost keys use.")
        @Argument(help: "The key's name, which tokens carry as kid. Generated if left out.") var kid: String?
        @OptionGroup var directory: Directory

        func run() async throws {
            let name = try await directory.ring().reportingFailures { try await $0.add(named: kid) }
            try Output.line(name.safe())
        }
    }

    struct Use: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Have roost token sign with a key.")
        @Argument(help: "The key's name; \(TokenKeyRing.tokenSecretName) for the secret of tokens without kid.") var kid: String
        @OptionGroup var directory: Directory

        func run() async throws {
            try await directory.ring().reportingFailures { try await $0.use(kid) }
            try Output.line("roost token now signs with \(kid.safe()).")
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove a key: its tokens are refused from then on.",
            discussion: """
                A removed key can't be brought back. For \(TokenKeyRing.tokenSecretName) that is permanent: the data directory's secret then \
                never signs or checks tokens again, and --for-good is required.
                """)
        @Argument(help: "The key's name; \(TokenKeyRing.tokenSecretName) for the secret of tokens without kid.") var kid: String
        @Flag(help: "Required to remove \(TokenKeyRing.tokenSecretName).") var forGood = false
        @OptionGroup var directory: Directory

        private var isTokenSecret: Bool { kid == TokenKeyRing.tokenSecretName }

        func validate() throws {
            guard !isTokenSecret || forGood else {
                throw ValidationError(
                    "Removing \(kid) can't be undone: all tokens without kid are refused from then on. Add --for-good to do it.")
            }
        }

        func run() async throws {
            try await directory.ring().reportingFailures { try await $0.remove(kid) }
            try Output.line(
                isTokenSecret
                    ? "\(kid) is removed for good: tokens without kid are refused."
                    : "\(kid.safe()) is removed: its tokens are refused.")
        }
    }
}

extension TokenKeyRing {
    /// Uses the keys, with failures that say what to do.
    fileprivate func reportingFailures<T>(_ body: (TokenKeyRing) async throws -> T) async throws -> T {
        do {
            return try await body(self)
        } catch {
            throw Failure(error)
        }
    }
}
